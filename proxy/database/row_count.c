#include "database/row_count.h"

#include "database/keyspace_sql.h"
#include "database/session_value.h"

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
    char oid[16];
    snprintf(oid, sizeof oid, "%u", (unsigned)table);
    return session_number(rows, session, estimate_sql, oid, error);
}

int row_count(uint64_t *rows, struct pg_session *session, const struct keyspace *keyspace,
              struct pg_error *error)
{
    char *sql = keyspace_sql_count(keyspace);
    int status = session_number(rows, session, sql, NULL, error);
    free(sql);
    return status;
}
