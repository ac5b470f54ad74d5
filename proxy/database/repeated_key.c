/* To look for such keys all rows are sorted. So a build asks only when there must be some: of two
 * keys that a filter cannot tell apart the second is taken for known, and of all that is at most
 * one in 1 / false_positive_rate. */
#include "database/repeated_key.h"

#include "base/buffer.h"
#include "database/keyspace_sql.h"

#include <libpq-fe.h>
#include <stdlib.h>

char *repeated_key_of(const PGresult *result, const struct keyspace *keyspace)
{
    struct span texts[KEY_COLUMNS_MAX];
    struct buffer key = {0};
    if (!PQntuples(result))
        return NULL;
    for (size_t i = 0; i < keyspace->key.columns; i++)
        texts[i] =
            (struct span){PQgetvalue(result, 0, (int)i), (size_t)PQgetlength(result, 0, (int)i)};
    key_template_render(&keyspace->key, texts, &key);
    return buffer_string(&key);
}

int repeated_key_find(char **key, struct pg_session *session, const struct keyspace *keyspace,
                      uint64_t rows, uint64_t shared, struct pg_error *error)
{
    PGresult *result;
    *key = NULL;
    if ((double)shared <= keyspace->false_positive_rate * (double)rows)
        return 0;
    char *sql = keyspace_sql_twice(keyspace);
    int status = pg_session_exec(session, sql, 0, NULL, &result, error);
    free(sql);
    if (status)
        return status;
    *key = repeated_key_of(result, keyspace);
    PQclear(result);
    return 0;
}
