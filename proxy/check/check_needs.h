/* The commands that the guard sends to its cache by itself, and what is lost without each. */
#ifndef NESTGUARD_CHECK_NEEDS_H
#define NESTGUARD_CHECK_NEEDS_H

#include "base/problem.h"
#include "config/config.h"

enum { NEED_WORDS = 6 };

/* Who needs a command. From FOR_ROWS on it is tried with a key of each keyspace of that kind. */
enum need_for {
    FOR_ALL,
    FOR_ONE_SERVER, /* no cluster */
    FOR_CLUSTER,
    FOR_REPLICAS, /* of a cluster */
    FOR_SWEEPS,   /* once, when a keyspace has rows */
    FOR_ROWS,
    FOR_STRING_FILLS,
    FOR_HASH_FILLS,
    FOR_STRINGS,
    FOR_HASHES,
    FOR_PUBLISHING /* with a key of the bitmap's */
};

/* Words that stand for a key, and for the number of the database: compared as pointers. */
extern const char need_key[], need_db[];

struct need {
    const char *name, *right;
    const char *words[NEED_WORDS + 1]; /* ends with NULL */
    enum need_for whose;
    enum problem_level level; /* PROBLEM_ERROR: as bad as a cache that is down */
    const char *lost;         /* at a primary */
};

extern const struct need needs[];
extern const size_t needs_count;

/* Of a primary, or of a replica that is read from: once, with no key. */
bool need_is_once(const struct need *need, const struct config *config, bool is_replica);

/* The same with a key of this keyspace. */
bool need_is_of(const struct need *need, const struct keyspace *keyspace, bool is_replica);

#endif
