/* Places that all hosts share: for hints, for connections of clients' own. A host may have three
 * times as many as it leaves free, however often it connects: the more have come, the less each
 * may have, and there is always room for who comes next. So Choudhury and Hahne bound the queues
 * of a switch ("Dynamic queue length thresholds for shared-memory packet switches", 1998). The
 * last ones are for hosts that have few.
 *
 *   most  ├─────────── first host ───────────┼─ second ─┼ third ┤
 *         0                                 3/4       15/16    1
 */
#ifndef NESTGUARD_FAIR_SHARE_H
#define NESTGUARD_FAIR_SHARE_H

#include <stdbool.h>
#include <stddef.h>

/* What there would be if the host took what it asks for. */
struct fair_share {
    size_t most, used; /* places; of these, by all */
    size_t host;       /* and by this host alone */
    size_t few;        /* so many are few, at least one: a part of `most` by this divisor */
};

bool fair_share_allows(const struct fair_share *share);

/* Of many places (1024 or more) the last sixteenth is for hosts that have fewer than so many:
 * whether the last one taken is such a one, and this host has more. `parts`: of workers, of which
 * each sees what its own have of that. */
bool fair_share_is_kept(size_t most, size_t used, size_t host, size_t parts);

/* Of a few places one at least. */
size_t fair_share_part(size_t most, size_t divisor);

#endif
