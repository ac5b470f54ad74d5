/* The SQL that a keyspace needs, made from its settings; see struct keyspace_sql in config.h. */
#ifndef NESTGUARD_KEYSPACE_SQL_H
#define NESTGUARD_KEYSPACE_SQL_H

#include "config.h"

/* Fills keyspace->sql from table, key, value and where. Without a value (on_miss: pass needs none)
 * `load` gives NULL in its place, so that it still tells which rows there are. */
void keyspace_sql_init(struct keyspace *keyspace);
void keyspace_sql_finish(struct keyspace_sql *sql);

/* A table's pages are numbered from 0; no table has this one. */
#define PAGES_END ((uint64_t)UINT32_MAX)

enum { PACKED_PAGES = 16 }; /* whose keys come in one row */

/* The following give new strings. */

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

/* The table's name as SQL needs it. */
char *keyspace_sql_table(const struct keyspace *keyspace);

#endif
