/* A window is two halves: one that is being filled, and the one before. When a half of the minute
 * is full, it becomes part of the hour; so the hour is the hour's halves, and the minute's.
 */
#include "traffic/traffic.h"

#include "base/memory.h"

#include <stdlib.h>

enum {
    HALF_MINUTE_MS = 30 * 1000,
    HALF_HOUR_MS = 30 * 60 * 1000,
    CALM_MS = 10 * 1000 /* without which an attack is not over */
};

struct window {
    uint64_t half_ms;                  /* how long a half is */
    uint64_t since, earlier;           /* when each half began */
    struct ledger *current, *previous; /* the half being filled, and the one before */
};

struct traffic {
    size_t keyspaces;
    struct rates *rates; /* of each keyspace */
    struct rates all;
    uint64_t total; /* rejects as of the last mark */
    struct window minute, hour;
    struct attack attack;
    uint64_t total_before; /* it */
    uint64_t excited;      /* when there were last as many as make it go on */
};

/* ---- windows ---- */

static void window_init(struct window *window, uint64_t half_ms, uint64_t now)
{
    *window = (struct window){half_ms, now, now, ledger_create(), ledger_create()};
}

static void window_finish(struct window *window)
{
    ledger_destroy(window->current);
    ledger_destroy(window->previous);
}

/* The oldest half is forgotten, and its memory is that of the newest. */
static void begin_half(struct window *window, uint64_t now)
{
    struct ledger *oldest = window->previous;
    window->previous = window->current;
    window->current = oldest;
    ledger_clear(oldest);
    window->earlier = window->since;
    window->since = now;
}

static bool is_full(const struct window *window, uint64_t now)
{
    return now - window->since >= window->half_ms;
}

/* The hour first: what the minute has gathered then goes into the half that has just begun. */
static void turn_over(struct traffic *traffic, uint64_t now)
{
    if (is_full(&traffic->hour, now))
        begin_half(&traffic->hour, now);
    if (!is_full(&traffic->minute, now))
        return;
    begin_half(&traffic->minute, now);
    ledger_merge(traffic->hour.current, traffic->minute.previous);
}

void traffic_take(struct traffic *traffic, const struct ledger *ledger, uint64_t now)
{
    turn_over(traffic, now);
    ledger_merge(traffic->minute.current, ledger);
}

struct ledger *traffic_ledger(const struct traffic *traffic, enum traffic_window window,
                              uint64_t now, uint64_t *ms)
{
    struct ledger *sum = ledger_create();
    const struct window *minute = &traffic->minute, *hour = &traffic->hour;
    ledger_merge(sum, minute->current);
    if (window == TRAFFIC_MINUTE) {
        ledger_merge(sum, minute->previous);
    } else {
        ledger_merge(sum, hour->current);
        ledger_merge(sum, hour->previous);
    }
    *ms = now - (window == TRAFFIC_MINUTE ? minute->earlier : hour->earlier);
    return sum;
}

/* ---- attacks ---- */

/* The second that made it an attack is its first: `before` is what there was before that. */
static enum attack_news begin_attack(struct traffic *traffic, uint64_t before, uint64_t now)
{
    struct attack *attack = &traffic->attack;
    *attack = (struct attack){.is_on = true, .number = attack->number + 1, .since = now};
    traffic->total_before = before;
    return ATTACK_BEGINS;
}

/*   calm ─ a second of `threshold` rejects ─▶ attack
 *     ▲                                          │
 *     └── CALM_MS without a second of half as many
 *
 * Two bounds, so that an attack that comes in waves is one attack, and one pair of lines in the
 * log. Without a threshold, for it may be taken away while there is one, it is over at once. */
static enum attack_news judge(struct traffic *traffic, uint64_t before, double rate,
                              unsigned threshold, uint64_t now)
{
    struct attack *attack = &traffic->attack;
    enum attack_news news = ATTACK_NO_NEWS;
    if (threshold && rate >= (double)threshold / (attack->is_on ? 2 : 1))
        traffic->excited = now;
    if (!attack->is_on && threshold && rate >= threshold)
        news = begin_attack(traffic, before, now);
    if (!attack->is_on)
        return news;
    attack->until = now;
    attack->rejects = traffic->total - traffic->total_before;
    attack->peak = rate > attack->peak ? rate : attack->peak;
    if (threshold && now - traffic->excited < CALM_MS)
        return news;
    attack->is_on = false;
    return ATTACK_IS_OVER;
}

enum attack_news traffic_mark(struct traffic *traffic, const uint64_t *rejects, unsigned threshold,
                              uint64_t now)
{
    uint64_t before = traffic->total;
    traffic->total = 0;
    for (size_t i = 0; i < traffic->keyspaces; i++) {
        rates_mark(&traffic->rates[i], rejects[i], now);
        traffic->total += rejects[i];
    }
    rates_mark(&traffic->all, traffic->total, now);
    turn_over(traffic, now);
    return judge(traffic, before, rates_of(&traffic->all).now, threshold, now);
}

const struct attack *traffic_attack(const struct traffic *traffic)
{
    return &traffic->attack;
}

struct rate traffic_rate(const struct traffic *traffic, size_t keyspace)
{
    return rates_of(&traffic->rates[keyspace]);
}

struct rate traffic_rate_of_all(const struct traffic *traffic)
{
    return rates_of(&traffic->all);
}

/* ---- life ---- */

struct traffic *traffic_create(size_t keyspaces, uint64_t now)
{
    struct traffic *traffic = xcalloc(1, sizeof *traffic);
    traffic->keyspaces = keyspaces;
    traffic->rates = xcalloc(keyspaces, sizeof *traffic->rates);
    window_init(&traffic->minute, HALF_MINUTE_MS, now);
    window_init(&traffic->hour, HALF_HOUR_MS, now);
    return traffic;
}

void traffic_destroy(struct traffic *traffic)
{
    if (!traffic)
        return;
    window_finish(&traffic->minute);
    window_finish(&traffic->hour);
    free(traffic->rates);
    free(traffic);
}
