/* Reading and deleting single rows by cache key, over the pool's prepared statements.
 *
 * A key may split into columns in several ways; they are tried one after the other, and that no row
 * is there by any of them is the word of one statement about all. A row counts only when the
 * database prints its key columns exactly as the key has them: `item:042` is not the key of row 42,
 * though 042 = 42 for a bigint. So each row has one key, and a purge of that key reaches everything
 * that was cached of the row; the filter, too, knows rows by that key alone. Hence such a key is
 * absent. But "no row has this key" is not "there is no such row": the row's own key comes with the
 * answer, for those who tell people.
 *
 * A value is asked for as far as it is small (ROW_SMALL); of a larger one comes how large it is. If
 * that is no more than max_value it is asked for again, when there is room in the lane, or is
 * LOAD_TIMEOUT if nobody wants it by then; else it is LOAD_TOO_LARGE, and nobody has seen it.
 *
 * LOAD_ABSENT is the database's word: either it has no such row, or the texts of the key are none
 * that its columns can hold. An error in reading a row that may be there is LOAD_REFUSED. So is,
 * of a query, a text that its column cannot hold: see rows.c.
 */
#ifndef NESTGUARD_ROWS_H
#define NESTGUARD_ROWS_H

#include "config/config.h"
#include "database/row_lane.h"
#include "database/row_ttl.h"
#include "guard/messages.h"
#include "postgres/pg_pool.h"

/* Outlives all queries that are asked of it. The configuration may be another when an answer comes:
 * a keyspace's number has the same key's columns in both. */
struct rows {
    struct pg_pool *pool;
    const struct config *config; /* the one in force */
    struct row_lane *lane; /* for values that are not small; NULL: they have no bound in all */
};

struct row_result {
    enum load_outcome outcome;
    struct blob *value; /* with LOAD_ROW: one reference, the callback's. Empty for SQL NULL; a bytea
                           as its raw bytes. NULL: not asked for, see rows_find() */
    int64_t ttl_ms;     /* with it: as row_ttl_ms() gives it */
    size_t way;         /* with LOAD_ROW: which split of the key it was, for rows_remove() */
    int equals;         /* with LOAD_ROW: how many rows equal the key's, itself included, and would
                           go with it */
    long long removed;  /* with rows_remove(): how many rows went */
    const char *error;  /* of the server, lives until the callback returns; "" when there is none */
    bool early;         /* with LOAD_TIMEOUT: as in pg_answer.h */
    /* With LOAD_ABSENT: the key of a row whose columns equal those asked for and are printed
     * otherwise, `item:42` for item:042. `at` is NULL where there is none. Lives until the callback
     * returns. */
    struct span other_spelling;
};

/* What is known of a key without asking: LOAD_ABSENT (no column's text can be in it),
 * LOAD_AMBIGUOUS, or LOAD_ROW: the database must be asked. Only such a key may be given to the
 * functions below. */
enum load_outcome rows_foretell(const struct rows *rows, struct key key);

/* Called once, never before the asking function has returned. */
typedef void (*row_cb)(void *arg, const struct row_result *result);

/* Until `done`, which is called later, there is what it returns: the row's place among large ones,
 * where it may have to wait. */
struct row_lane_place *rows_load(const struct rows *rows, struct key key, row_cb done, void *arg);
/* The same for who wants to know whether there is a row. Its value is not asked for, be it large,
 * or of an expression that fails for it. */
void rows_find(const struct rows *rows, struct key key, row_cb done, void *arg);
/* Deletes by one split of the key alone. LOAD_ROW: it was carried out, though no row may have gone
 * (`removed`). */
void rows_remove(const struct rows *rows, struct key key, size_t way, row_cb done, void *arg);

#endif
