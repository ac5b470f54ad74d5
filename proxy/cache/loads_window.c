/* The quickest of two periods is the yardstick: that of one alone would be unknown when it begins.
 * Times are nanoseconds. The size is a fraction, so that it can move by one for as many answers as
 * there are loads at once.
 */
#include "cache/loads_window.h"

#define PERIOD_NS (UINT64_C(10) * 1000 * 1000 * 1000)
#define NOISE_NS UINT64_C(100000) /* of a loop's turns; more than that is waiting */

static double bounded(const struct load_window *window, double size)
{
    size = size > (double)window->most ? (double)window->most : size;
    return size < (double)window->least ? (double)window->least : size;
}

void load_window_limit(struct load_window *window, size_t connections, size_t most)
{
    window->most = most;
    window->least = connections < most ? connections : most;
    if (!window->period)
        window->quickest = window->quickest_before = UINT64_MAX;
    window->size = bounded(window, window->size);
}

/* By whole loads: what is left of the fraction lets nobody through. */
bool load_window_has_room(const struct load_window *window, size_t under_way)
{
    return (double)under_way + 1 <= window->size;
}

/* While queries wait for each other even the quickest takes longer than it need; now and then the
 * window closes, to see how quick one is that need not. */
static void look_anew(struct load_window *window, uint64_t now)
{
    window->period = now;
    window->quickest_before = window->quickest;
    window->quickest = UINT64_MAX;
    window->size = (double)window->least;
}

void load_window_answered(struct load_window *window, uint64_t now, uint64_t took, bool in_demand)
{
    if (now - window->period > PERIOD_NS)
        look_anew(window, now);
    if (took < window->quickest)
        window->quickest = took;
    uint64_t quickest =
        window->quickest < window->quickest_before ? window->quickest : window->quickest_before;
    double step = 1 / window->size; /* about one each time that all have been answered */
    if (took > quickest + quickest / 2 + NOISE_NS)
        window->size = bounded(window, window->size - step);
    else if (in_demand)
        window->size = bounded(window, window->size + step);
}
