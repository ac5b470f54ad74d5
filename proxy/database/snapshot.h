/* Which transactions the database's queries see: what pg_current_snapshot() prints.
 *
 *   "100:105:101,103"    below 100 all are over, from 105 on none is, between them all but 101, 103
 *
 * Over means that every later query sees what the transaction has committed. Only transactions
 * that are not part of others are listed, and only they may be asked for: the others end with them.
 *
 * Ids are kept as the log has them, 32 bits wide, and compared modulo 2^32. That is exact: all ids
 * that a server has in use, in its log and among its transactions, lie within 2^31 of each other;
 * it stops rather than let them grow further apart.
 */
#ifndef NESTGUARD_SNAPSHOT_H
#define NESTGUARD_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot {
    uint32_t xmin, xmax;
    uint32_t *running; /* those in between that are not over, ascending from xmin on */
    size_t count;
};

/* 0, or -EPROTO: the text is something else, and *out holds nothing. */
int snapshot_read(struct snapshot *out, const char *text);
void snapshot_finish(struct snapshot *snapshot); /* zeroed again; a zeroed one is allowed */

bool snapshot_is_over(const struct snapshot *snapshot, uint32_t xid);

/* Whether all are over that began before `xid`. */
bool snapshot_has_passed(const struct snapshot *snapshot, uint32_t xid);

/* Whether all that is over in `earlier`, of the same server, is over in this one. What began before
 * either and runs on and on does not stand in the way of that. */
bool snapshot_covers(const struct snapshot *snapshot, const struct snapshot *earlier);

/* Whether `a` began before `b`. */
static inline bool xid_precedes(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
