#include "database/row_count.h"

#include "database/keyspace_sql.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

/* What statistics say of a table, where two of them agree: the live rows as the server has counted
 * them since it last looked, and the rows a page that it found then, for as many pages as there are
 * now. A crash of the server loses the one, a burst of deletions belies the other. A small table is
 * counted as quickly. */
static const char estimate_sql[] =
    "SELECT s.n_live_tup FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid"
    " WHERE c.oid = $1::oid AND c.relkind = 'r' AND NOT c.relhassubclass"
    " AND s.n_live_tup >= 100000 AND abs(s.n_live_tup - c.reltuples * pg_relation_size(c.oid)"
    " / (nullif(c.relpages, 0) * current_setting('block_size')::float8)) < s.n_live_tup * 0.01";

int row_count_estimate(uint64_t *rows, struct pg_session *session, uint32_t table,
                       struct pg_error *error)
{
    PGresult *result;
    char text[16];
    const char *values[] = {text};
    snprintf(text, sizeof text, "%u", (unsigned)table);
    int status = pg_session_exec(session, estimate_sql, 1, values, &result, error);
    if (status)
        return status;
    if (PQntuples(result) == 1)
        *rows = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return 0;
}

int row_count(uint64_t *rows, struct pg_session *session, const struct keyspace *keyspace,
              struct pg_error *error)
{
    PGresult *result;
    char *sql = keyspace_sql_count(keyspace);
    int status = pg_session_exec(session, sql, 0, NULL, &result, error);
    free(sql);
    if (status)
        return status;
    *rows = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return 0;
}
