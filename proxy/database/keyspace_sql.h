/* The SQL that a keyspace needs, made from its settings; asked for by whoever runs it. */
#ifndef NESTGUARD_KEYSPACE_SQL_H
#define NESTGUARD_KEYSPACE_SQL_H

#include "config/config.h"

/* All functions below give new strings. Column and table names are quoted; the parameters $1.. are
 * the key columns in the template's order, untyped, so that the server takes the columns' own
 * types.
 */

/* SELECT value, key columns..., bytes[, ttl] WHERE key = $1.. [AND (where)]: columns in this order.
 * Without a value (on_miss: pass needs none) it gives NULL in its place, so that it still tells
 * which rows there are. Likewise in place of a value whose text has more bytes than `most`: only
 * then `bytes` is not NULL, and says how many. `ttl` is there with a ttl_expression: what it gives,
 * as row_ttl_ms() reads it. */
char *keyspace_sql_load(const struct keyspace *keyspace, size_t most);

/* An expression over the row, as it stands in that. */
char *keyspace_sql_expression(const char *expression);

/* The same rows without their values: SELECT NULL, key columns... Of so many ways to split a key at
 * once, at least one: the first one's columns are $1.., the next one's come behind them. */
char *keyspace_sql_find(const struct keyspace *keyspace, size_t ways);

/* The same once more, with what vouches for there being none: how many tables that were read the
 * statement's snapshot may see empty, because they were rewritten since; and key columns, which are
 * NULL in the one row that comes when there is none. */
char *keyspace_sql_confirm(const struct keyspace *keyspace, size_t ways);

/* SELECT of the key columns of any rows, so many at most. */
char *keyspace_sql_sample(const struct keyspace *keyspace, unsigned most);

/* DELETE ... WHERE key = $1.. [AND (where)]. Not of a query's rows: they are no table's. */
char *keyspace_sql_remove(const struct keyspace *keyspace);

/* SELECT that fails where a column's type has no such text as $1..; it reads no row. Not of a
 * query: its rows have no type with a name. */
char *keyspace_sql_accepts(const struct keyspace *keyspace);

/* SELECT count(*) of rows with a whole key: no column NULL. */
char *keyspace_sql_count(const struct keyspace *keyspace);

/* SELECT of the key columns of a key that several of the same rows have; no row where each has its
 * own. It may sort all of them. */
char *keyspace_sql_twice(const struct keyspace *keyspace);

/* COPY (SELECT key columns ...) TO STDOUT of the same rows. */
char *keyspace_sql_copy(const struct keyspace *keyspace);

/* SELECT of the key columns that gives no row. */
char *keyspace_sql_columns(const struct keyspace *keyspace);

/* A table's pages are numbered from 0; no table has this one. */
#define PAGES_END ((uint64_t)UINT32_MAX)

enum { PACKED_PAGES = 16 }; /* whose keys come in one row */

/* The rows of `copy` that lie in pages from `first` to below `end`; PAGES_END: in all from there
 * on. Only of what has pages: tables, partitioned or not. (For all pages of anything: `copy`.) */
char *keyspace_sql_copy_pages(const struct keyspace *keyspace, uint64_t first, uint64_t end);

/* How many rows `count` would count, but no more than `most` of them are looked for. */
char *keyspace_sql_count_to(const struct keyspace *keyspace, uint64_t most);

/* How a column of a key is sent where many keys come in a row. */
enum column_packing {
    PACKS_NOT,
    PACKS_INTEGER, /* 8 bytes, the most significant one first; of all integer types */
    PACKS_UUID     /* its 16 bytes */
};

/* The same in binary format, packed: each row has one column with the keys of PACKED_PAGES pages,
 * one behind the other, or NULL when they have none. Not for a keyspace with a condition. At least
 * one page; after the `last` of them, all that come behind. */
char *keyspace_sql_pack_pages(const struct keyspace *keyspace, const enum column_packing *packing,
                              uint64_t first, uint64_t pages, bool last);

/* What a FROM names: the table, or a query in parentheses with its alias. */
char *keyspace_sql_rows(const struct keyspace *keyspace);

#endif
