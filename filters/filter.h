/* A set of keys in little memory, asked "surely absent, or possibly there?".
 *
 * A filter stores 64-bit hashes made by filter_hash() under a secret seed; it never sees a key.
 * Every kind of filter stands behind this one interface; filter_kind_name() lists them.
 *
 * Threads: any number of threads may ask (the functions that take a const filter) while one thread
 * at a time inserts and removes. A hash whose insertion has returned, and that nobody removed, is
 * never answered "absent", also not while the writer moves it from one bucket to another.
 */
#ifndef NESTGUARD_FILTER_H
#define NESTGUARD_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter;

/* The secret of one filter's hashes; drawn anew for each filter by filter_seed_random(). */
struct filter_seed {
    uint64_t k0, k1;
};

enum filter_kind {
    FILTER_CUCKOO,
    FILTER_BLOOM,
    FILTER_BLOCKED_BLOOM,
    FILTER_COUNTING_BLOOM,
    FILTER_SCALABLE_BLOOM
};

/* The name of a kind; NULL past the last one. */
const char *filter_kind_name(enum filter_kind kind);

/* Whether filter_remove() works on this kind. */
bool filter_can_remove(enum filter_kind kind);

/* Whether a filter can be made for this rate: 1e-7 to 0.03. */
bool filter_rate_is_possible(double rate);

struct filter_options {
    enum filter_kind kind;
    size_t capacity;            /* keys that must find place; 0 is allowed */
    double false_positive_rate; /* wanted upper bound, 1e-7 to 0.03 */
    size_t max_bytes;           /* refuse to take more memory than this; 0: no bound */
};

struct filter_stats {
    size_t keys;     /* insertions less removals */
    size_t capacity; /* keys it was made for */
    size_t slots;    /* places for fingerprints in the table; of a Bloom filter, for keys */
    size_t bytes;    /* memory taken, all of it */
    size_t stash_used, stash_size;
    double expected_false_positive_rate; /* at the present fill */
};

/* Fills *seed from the system's random source. 0 or a negative errno. */
int filter_seed_random(struct filter_seed *seed);

/* The hash of a key's bytes: SipHash-1-3 (Aumasson and Bernstein, 2012). */
uint64_t filter_hash(const struct filter_seed *seed, const void *bytes, size_t length);

/* Makes an empty filter in *out, which the caller frees with filter_destroy(). Returns 0, -EINVAL
 * (a value out of its range), -E2BIG (over max_bytes) or -ENOMEM; *error then says why, for a
 * person. */
int filter_create(struct filter **out, const struct filter_options *options, const char **error);
void filter_destroy(struct filter *filter); /* NULL is allowed */

/* Adds one entry; the same hash added twice must be removed twice. Returns 0, or -ENOSPC when there
 * is no place for it, or none at which the wanted false-positive rate still holds: then nothing has
 * changed and every earlier entry is still in. */
int filter_insert(struct filter *filter, uint64_t hash);

/* filter_insert() for each of the hashes in order, up to the first that finds no place, with the
 * memory latencies overlapped. Returns 0 or that one's -ENOSPC; *inserted, unless it is NULL, is
 * how many are in. */
int filter_insert_batch(struct filter *filter, const uint64_t *hashes, size_t count,
                        size_t *inserted);

/* Takes one entry out. Returns 0, -ENOENT when no entry looks like this one, or -ENOTSUP when this
 * kind cannot remove. Only for a hash that was inserted: any other may take out another key's
 * fingerprint. */
int filter_remove(struct filter *filter, uint64_t hash);

/* False: surely absent. True: possibly there. */
bool filter_contains(const struct filter *filter, uint64_t hash);

/* Asks the memory system for the cache lines that filter_contains() will read for this hash. */
void filter_prefetch(const struct filter *filter, uint64_t hash);

/* filter_contains() in two steps, for whoever has other work while the cache lines are on their
 * way: the answer is as of the second. */
struct filter_ask {
    uint64_t hash;
    uint64_t places[2]; /* the kind's own, as is what follows */
    uint32_t fingerprint;
};

void filter_ask_begin(const struct filter *filter, uint64_t hash, struct filter_ask *ask);
bool filter_ask_end(const struct filter *filter, const struct filter_ask *ask);

/* found[i] = filter_contains(filter, hashes[i]) for i below count, with the memory latencies
 * overlapped. */
void filter_contains_batch(const struct filter *filter, const uint64_t *hashes, size_t count,
                           bool *found);

/* A writer's or a reader's view; the counts may lag behind a concurrent writer. */
struct filter_stats filter_stats(const struct filter *filter);

enum filter_kind filter_kind_of(const struct filter *filter);

/* Writes how it is laid out, for a person, as in "13 hashes to 1917056 bits"; cut off to fit. */
void filter_describe(const struct filter *filter, char *text, size_t size);

#endif
