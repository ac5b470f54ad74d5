/* Who is asking: how many lookups are rejected, since when that is an attack, and by whose doing.
 *
 *   each worker's ledger ─▶ the last minute ─▶ the last hour
 *   counters of rejects  ─▶ rates ─▶ an attack begins, and is over
 */
#ifndef NESTGUARD_TRAFFIC_H
#define NESTGUARD_TRAFFIC_H

#include "traffic/ledger.h"
#include "traffic/rates.h"
#include <stdbool.h>

struct traffic;

/* For so many numbers of keyspaces; nothing has been asked yet. */
struct traffic *traffic_create(size_t keyspaces, uint64_t now);
void traffic_destroy(struct traffic *traffic); /* NULL is allowed */

/* Adds what a worker has gathered. Times are clock_ms(). */
void traffic_take(struct traffic *traffic, const struct ledger *ledger, uint64_t now);

enum attack_news { ATTACK_NO_NEWS, ATTACK_BEGINS, ATTACK_IS_OVER };

/* Once a second: the rejects of each keyspace so far. From `threshold` of all together in a second
 * on it is an attack (0: never), until there were fewer than half as many for some seconds. */
enum attack_news traffic_mark(struct traffic *traffic, const uint64_t *rejects, unsigned threshold,
                              uint64_t now);

struct attack {
    bool is_on;
    uint64_t number;  /* attacks so far, this one included */
    uint64_t since;   /* when it began; this and the rest: of the last one, after the first */
    uint64_t until;   /* when it was over, or now */
    uint64_t rejects; /* in that time */
    double peak;      /* in its worst second */
};

/* As of the last mark; the attack lives as long as the traffic. */
const struct attack *traffic_attack(const struct traffic *traffic);
struct rate traffic_rate(const struct traffic *traffic, size_t keyspace);
struct rate traffic_rate_of_all(const struct traffic *traffic);

/* What stands for the last minute or hour is between half as old and as old as that. */
enum traffic_window { TRAFFIC_MINUTE, TRAFFIC_HOUR };

/* A ledger of the caller's, and over how many milliseconds it goes. */
struct ledger *traffic_ledger(const struct traffic *traffic, enum traffic_window window,
                              uint64_t now, uint64_t *ms);

#endif
