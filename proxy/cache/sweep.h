/* A walk through all of the cache's keys that match a keyspace's template, a step at a time: SCAN,
 * which blocks neither the server nor this loop. A key that is there from the walk's beginning to
 * its end is found at least once.
 */
#ifndef NESTGUARD_SWEEP_H
#define NESTGUARD_SWEEP_H

#include "base/buffer.h"
#include "config/syntax/key_template.h"
#include "redis/redis.h"

/* Zeroed, then the first four set. */
struct sweep {
    struct redis *redis;
    void (*found)(void *arg, struct span key);
    /* After each step. REDIS_DONE: sweep_is_over() or another step is due. Otherwise the walk is
     * off, for where it was is not to be trusted. */
    void (*stepped)(void *arg, enum redis_outcome outcome, const char *error);
    void *arg;
    struct key_template key; /* a copy; without a text: no walk is under way */
    struct buffer pattern;
    char *cursor; /* of the next step, as the server has named it */
    bool asking;  /* a step is under way, if only one of a walk that was abandoned */
};

/* None is under way. A template that was closed finds its keys like any other. */
void sweep_begin(struct sweep *sweep, const struct key_template *key);
void sweep_step(struct sweep *sweep);    /* only while it is not `asking` */
void sweep_abandon(struct sweep *sweep); /* nothing more is found; `stepped` is still called */
void sweep_finish(struct sweep *sweep);  /* when redis has ended */

static inline bool sweep_is_over(const struct sweep *sweep)
{
    return sweep->key.text == NULL;
}

#endif
