/* How the rows of a keyspace are read when its filter is built: in one go, or, where what it reads
 * has pages and is large, in shares of pages, over several connections.
 */
#ifndef NESTGUARD_TABLE_SCAN_H
#define NESTGUARD_TABLE_SCAN_H

#include "config/config.h"
#include "database/keyspace_sql.h"
#include "postgres/pg_session.h"

struct table_scan {
    uint64_t pages; /* of the table when it was planned; 0: not to be divided */
    bool packed;    /* many keys come in a row: see keyspace_sql_pack_pages() */
    enum column_packing packing[KEY_COLUMNS_MAX];
};

/* Refuses a keyspace whose keys are not its rows' alone (printed_types.h). Asks the session, whose
 * transaction holds the snapshot and must last until the last share has been read by whomever: it
 * keeps the table's rows in their pages. 0, or as pg_session_exec(). */
int table_scan_plan(struct table_scan *scan, struct pg_session *session,
                    const struct keyspace *keyspace, struct pg_error *error);

/* How many shares are worth having: from 1 to `most`. */
unsigned table_scan_shares(const struct table_scan *scan, unsigned most);

/* The COPY of one of so many shares, a new string. Together the shares have each row once. */
char *table_scan_sql(const struct table_scan *scan, const struct keyspace *keyspace, unsigned share,
                     unsigned shares);

#endif
