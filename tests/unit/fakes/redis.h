/* The cache as the keeper asks it: fills, deletions and scans are kept until the test answers them,
 * oldest first. */
#ifndef NESTGUARD_FAKES_REDIS_H
#define NESTGUARD_FAKES_REDIS_H

#include "redis/redis.h"

enum { FAKE_CALLS = 1024, FAKE_KEYS = 64 };

/* Any command, its words as keys; a DEL of keys; with a value a SET; with a hash (its names and
 * values, each with a blank behind it) a RESTORE; with a cursor a SCAN; or an EXISTS. */
struct fake_call {
    const struct redis *redis;
    char *keys[FAKE_KEYS];
    size_t lengths[FAKE_KEYS];
    size_t count;
    char *value, *hash;
    uint64_t ttl_ms;
    char *cursor, *pattern;
    bool exists;
    redis_answer_cb done;
    void *arg;
};

extern struct fake_redis {
    bool up;
    const char *doubt, *run_id;
    bool is_led; /* by number to one of two nodes, of which the one numbered `owner` has all keys */
    int owner;
    struct fake_call calls[FAKE_CALLS]; /* without an answer */
    size_t count;
} fake_redis;

/* A second one, beside NULL; its calls are in the same line. */
struct redis *fake_other_redis(void);

/* The node with that number. */
struct redis *fake_redis_node(int number);

/* Up, and asked nothing: whatever a failed test left. */
void fake_redis_reset(void);

/* The oldest call gets this answer. */
void fake_redis_answer(const struct redis_answer *answer);
void fake_redis_ends(enum redis_outcome outcome);

/* The oldest call, taken out, for a test that answers in its own way; then forgotten. */
struct fake_call fake_redis_take(void);
void fake_redis_forget(struct fake_call *call);

#endif
