/* A share is a range of pages, by ctid, which PostgreSQL 14 and newer read without looking at other
 * pages. The last share has no end.
 *
 * Why each row that the snapshot sees comes exactly once: a row version stays at its ctid for as
 * long as somebody may see it, unless the table is rewritten (VACUUM FULL, CLUSTER, ALTER TABLE);
 * that takes a lock that has to wait for the one that columns_sql() takes here, before the pages
 * are counted, and that the transaction holds to its end. What is added to the table meanwhile may
 * take any place, but no snapshot that was taken before sees it. And the ranges divide whatever has
 * pages: also a table that got a child since it was looked at is read whole, its child by the same
 * ranges.
 */
#include "build/copy/table_scan.h"

#include "database/printed_types.h"
#include "database/session_value.h"

#include <libpq-fe.h>
#include <stdlib.h>

/* Below so many pages of a share, another connection takes longer than it saves. */
enum { SHARE_PAGES_MIN = 512 };

/* Only a plain table: what has children would be looked at whole for each run of packed pages. The
 * planner must not prefer another way, for it would read the whole table for each run, too. */
static const char pages_sql[] =
    "SELECT pg_relation_size(c.oid) / current_setting('block_size')::int8,"
    "       set_config('enable_tidscan', 'on', true)"
    "  FROM pg_class c JOIN pg_am m ON m.oid = c.relam"
    " WHERE c.oid = to_regclass($1) AND c.relkind = 'r' AND NOT c.relhassubclass"
    "   AND m.amname = 'heap'";

static enum column_packing packing_of(Oid type)
{
    enum { INT8 = 20, INT2 = 21, INT4 = 23, UUID = 2950 };
    if (type == UUID)
        return PACKS_UUID;
    return type == INT8 || type == INT4 || type == INT2 ? PACKS_INTEGER : PACKS_NOT;
}

static int count_pages(struct table_scan *scan, struct pg_session *session,
                       const struct keyspace *keyspace, struct pg_error *error)
{
    char *table = keyspace_sql_rows(keyspace);
    int status = session_number(&scan->pages, session, pages_sql, table, error);
    free(table);
    return status;
}

int table_scan_plan(struct table_scan *scan, struct pg_session *session,
                    const struct keyspace *keyspace, struct pg_error *error)
{
    PGresult *result;
    *scan = (struct table_scan){0};
    char *sql = keyspace_sql_columns(keyspace);
    int status = pg_session_exec(session, sql, 0, NULL, &result, error);
    free(sql);
    if (status)
        return status;
    status = printed_types_refuse(session, result, error);
    scan->packed = !keyspace->where;
    for (int i = 0; i < PQnfields(result); i++) {
        scan->packing[i] = packing_of(PQftype(result, i));
        scan->packed &= scan->packing[i] != PACKS_NOT;
    }
    PQclear(result);
    if (!status && !keyspace->query) /* which has no pages */
        status = count_pages(scan, session, keyspace, error);
    if (scan->pages < SHARE_PAGES_MIN)
        *scan = (struct table_scan){0};
    return status;
}

unsigned table_scan_shares(const struct table_scan *scan, unsigned most)
{
    uint64_t worth = scan->pages / SHARE_PAGES_MIN;
    return worth < 1 ? 1 : worth < most ? (unsigned)worth : most;
}

char *table_scan_sql(const struct table_scan *scan, const struct keyspace *keyspace, unsigned share,
                     unsigned shares)
{
    uint64_t width = scan->pages / shares, first = width * share;
    bool last = share + 1 == shares;
    if (scan->packed)
        return keyspace_sql_pack_pages(keyspace, scan->packing, first,
                                       last ? scan->pages - first : width, last);
    if (shares == 1)
        return keyspace_sql_copy(keyspace);
    return keyspace_sql_copy_pages(keyspace, first, last ? PAGES_END : first + width);
}
