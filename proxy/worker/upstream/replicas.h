/* The replicas of each primary, which guarded keys may be read from.
 *
 *   the primary ─ INFO ─▶ how far it is, who follows it ─▶ a connection to each of them in the zone
 *                                │                             │ INFO: how far it is
 *                                └────────▶ freshness.h ◀──────┘
 *                                               ▼
 *                    replicas_choose(): one that answers as of less than cache_max_lag ago
 *
 * All of them are asked several times within cache_max_lag, each over its own connection, so that
 * one that is lost, cut off, slow, promoted or another's by now is not chosen any more after that
 * time at the latest, and mostly at once. A connection that is new has shown nothing yet.
 *
 * They say only what the cache holds; who finds nothing there, or an error, asks the primary.
 */
#ifndef NESTGUARD_REPLICAS_H
#define NESTGUARD_REPLICAS_H

#include "worker/upstream/upstream.h"

enum { REPLICAS_MAX = 8 }; /* of one primary */

struct replicas;

/* What is told of one of them. */
struct replica_word {
    char address[280], primary[280]; /* "" where the primary has no address of its own */
    bool is_read;                    /* when clients ask for something that it has */
    uint64_t lag_ms; /* it answers as of so long ago, or less; UINT64_MAX: that is not known */
    const char *why; /* it is not read from; static text. NULL: it is */
    uint64_t since;  /* clock_ms() since when it was not, as far as the keeper knows; 0: it is */
};

struct replicas *replicas_create(struct serving *serving, struct cache_route *route);

/* Once in a while, of each primary: `upstream` leads to it and is up; `place` is its address in a
 * cluster, else NULL. */
void replicas_follow(struct replicas *replicas, int node, const struct redis_place *place,
                     struct upstream *upstream);

/* The one that whoever has this id reads from, always the same while nothing changes; NULL: none
 * will do. */
struct upstream *replicas_choose(struct replicas *replicas, int node, bool resp3, uint64_t id);

void replicas_each(struct replicas *replicas, void (*act)(struct upstream *upstream));

bool replicas_all_idle(struct replicas *replicas);

/* Closes connections on which nothing is under way: those to replicas that are none any more, or
 * all. `ends` is told of each before. */
void replicas_close_idle(struct replicas *replicas, bool all,
                         void (*ends)(void *arg, const struct upstream *upstream), void *arg);

/* So many of them, `room` at most. */
size_t replicas_report(const struct replicas *replicas, struct replica_word *words, size_t room);

/* Their connections have been closed. */
void replicas_destroy(struct replicas *replicas);

#endif
