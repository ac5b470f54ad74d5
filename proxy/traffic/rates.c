/* A rate is the difference of two marks by the time that lay between them, so that a mark which
 * comes late makes no rate wrong. A minute's marks are the last of sixty seconds, an hour's of
 * sixty minutes.
 */
#include "traffic/rates.h"

enum { MINUTE_MS = 60 * 1000 };

/* Of the mark that is `back` before the newest. */
static size_t place_of(const struct rate_marks *marks, size_t back)
{
    return (marks->next + RATE_MARKS - 1 - back) % RATE_MARKS;
}

static void mark(struct rate_marks *marks, uint64_t count, uint64_t now)
{
    marks->times[marks->next] = now;
    marks->counts[marks->next] = count;
    marks->next = (marks->next + 1) % RATE_MARKS;
    marks->count += marks->count < RATE_MARKS;
}

void rates_mark(struct rates *rates, uint64_t count, uint64_t now)
{
    const struct rate_marks *minutes = &rates->minutes;
    mark(&rates->seconds, count, now);
    if (!minutes->count || now - minutes->times[place_of(minutes, 0)] >= MINUTE_MS)
        mark(&rates->minutes, count, now);
}

/* From a mark until the last of the seconds' marks. */
static double since(const struct rates *rates, const struct rate_marks *marks, size_t back)
{
    const struct rate_marks *seconds = &rates->seconds;
    size_t from = place_of(marks, back), to = place_of(seconds, 0);
    uint64_t ms = seconds->times[to] - marks->times[from];
    uint64_t count = seconds->counts[to] - marks->counts[from];
    return ms ? (double)count * 1000 / (double)ms : 0;
}

struct rate rates_of(const struct rates *rates)
{
    struct rate rate = {0, 0, 0};
    if (rates->seconds.count < 2)
        return rate;
    rate.now = since(rates, &rates->seconds, 1);
    rate.minute = since(rates, &rates->seconds, rates->seconds.count - 1);
    rate.hour = since(rates, &rates->minutes, rates->minutes.count - 1);
    return rate;
}
