/* For questions whose answer is one value: a count, a name, a flag. What a server prints for them
 * has no row or one, and more is not looked at.
 */
#include "database/session_value.h"

#include "base/memory.h"

#include <libpq-fe.h>
#include <stdlib.h>

int session_text(char **text, struct pg_session *session, const char *sql, const char *parameter,
                 struct pg_error *error)
{
    PGresult *result;
    const char *values[] = {parameter};
    int status = pg_session_exec(session, sql, parameter ? 1 : 0, values, &result, error);
    if (status)
        return status;
    *text = PQntuples(result) > 0 ? xstrdup(PQgetvalue(result, 0, 0)) : NULL;
    PQclear(result);
    return 0;
}

int session_number(uint64_t *number, struct pg_session *session, const char *sql,
                   const char *parameter, struct pg_error *error)
{
    char *text = NULL;
    int status = session_text(&text, session, sql, parameter, error);
    if (text)
        *number = strtoull(text, NULL, 10);
    free(text);
    return status;
}
