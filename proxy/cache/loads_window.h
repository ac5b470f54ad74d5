/* How many loads are at the database at once while others wait. Each of its connections serves one
 * after the other, so more than keep them busy make no load quicker, and whoever comes next wait:
 * like a congestion window (TCP Vegas, Brakmo and Peterson 1995), it grows while queries take about
 * as long as the quickest of late, and shrinks when they take longer.
 */
#ifndef NESTGUARD_LOADS_WINDOW_H
#define NESTGUARD_LOADS_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_window {
    double size;                        /* loads at once: from least to most */
    size_t least, most;                 /* see load_window_limit() */
    uint64_t quickest, quickest_before; /* ns; of this period and the one before */
    uint64_t period;                    /* uv_hrtime() of its beginning */
};

/* `most`: load_budget. `connections` are kept busy if it allows. */
void load_window_limit(struct load_window *window, size_t connections, size_t most);

bool load_window_has_room(const struct load_window *window, size_t under_way);

/* A query has been answered that was asked so long ago; `in_demand`: others waited. */
void load_window_answered(struct load_window *window, uint64_t now, uint64_t took, bool in_demand);

#endif
