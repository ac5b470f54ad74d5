/* A cuckoo filter (Fan, Andersen, Kaminsky and Mitzenmacher, CoNEXT 2014) of any size, that its
 * readers may use while one writer changes it.
 *
 * A hash gives a bucket i and a fingerprint f, and the pair (f, i) gives the other bucket:
 *
 *        hash  |<- i: the high bits, scaled to the number of buckets n      f: the low bits ->|
 *
 *        other bucket = (r(f) - i) mod n        r: a fixed mixing function to 0 .. n-1
 *
 * Since r - (r - i) = i, the map is its own inverse whatever n is; the textbook's i XOR r(f) needs
 * a power of two. An entry lies in one of its two buckets, or with its full hash in the stash.
 *
 * i and f come from one hash. For one value of f, the hashes that have it are spread over the
 * buckets as evenly as whole numbers allow: 2^(64-bits of f)/n for each, give or take one. Capacity
 * is bounded so that there is at least one (2^47 buckets with 17 bits, 2^32 with 32); with 17 bits
 * the unevenness is below one in a million up to 2^27 buckets and below one in 1000 up to 2^37.
 *
 * Readers beside the writer
 * -------------------------
 * Without care, a reader loses an entry that the writer moves: it looks at the bucket where the
 * entry is not yet, the writer moves it, the reader looks at the bucket where it no longer is.
 * Removals do the same to equal entries: a second copy is added to the bucket seen first, the
 * first copy is taken from the other. Three rules prevent it:
 *
 *   W1  A move writes the new place before it clears the old one. (Insertions along a path of moves
 *       begin at its far end: the store that clears a place also fills it with what comes next.)
 *   W2  The writer adds one to `version` before each store that takes a fingerprint away, and
 *       stores at most one such between two additions. All its stores are release stores.
 *   R   A reader loads the version, then all words where an entry may be, then the version again,
 *       and says "absent" only if the versions are equal. All but the last are acquire loads.
 *
 * Claim: it never says so of an entry that is in for the whole of the lookup. Let v be the version
 * it saw twice, and T(v) the one store that takes away after version v was written.
 *
 *   - Its first load synchronizes with the store of v, hence each word it loads is at least as new
 *     as what the writer had stored there before version v (release of v, acquire by the reader,
 *     read coherence).
 *   - No word it loads is as new as T(v+1) or newer: reading such a word with acquire would
 *     synchronize with a store that comes after the store of v+1, and the last load of the version,
 *     sequenced after an acquire load and so not reordered before it, would have to see v+1 or
 *     more. That is why the last load itself may be relaxed.
 *   - So the reader sees each word in a state between the store of v and T(v+1). In that span a
 *     single store takes something away, T(v), and it is the first one of the span. By W1 and the
 *     meaning of removal a copy of the entry is elsewhere when T(v) happens, hence was there at v;
 *     or the entry came in after T(v), and then its insertion happened before the lookup, which
 *     sees it by read coherence. Either way nothing takes that copy away before T(v+1): its word
 *     holds it, repacked or not, in every state that the reader can see. The reader has seen it.
 *
 * If the second version differs, something moved and the reader looks again. After many such
 * attempts it says "possibly", which is never wrong; so a lookup ends in bounded time. */
#include "cuckoo.h"

#include "bucket.h"
#include "pages.h"
#include "stash.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CACHE_LINE 64

/* Filled to at most 95 %. A search for a place then fails once in many millions of times; from 96 %
 * on the stash begins to fill, and at 98 % there is no place left to find. */
#define LOAD_NUMERATOR 19
#define LOAD_DENOMINATOR 20

/* Beyond the share: in a table of a few buckets chance alone can overfill some. */
#define SPARE_BUCKETS 8

/* Buckets that one search for a place looks at. It rarely needs more than 20; but with half as many
 * the stash of a table of 20 million keys begins to fill at 95.4 % instead of 96.4 %. */
#define SEARCH_LIMIT 1024

/* Attempts of a reader before it says "possibly". */
#define LOOKS 100

/* Lookups whose cache lines are on their way while one is answered. */
#define WINDOW 64

__extension__ typedef unsigned __int128 uint128;

/* At the head of the mapping whose rest is the table. What only the writer needs, what readers need
 * and never changes, and what changes under the readers lie on different cache lines. */
struct cuckoo {
    struct filter base;
    struct bucket_table table;
    size_t capacity;
    size_t mapped; /* bytes */

    alignas(CACHE_LINE) _Atomic(uint64_t) version;
    struct stash stash;

    alignas(CACHE_LINE) _Atomic(size_t) keys;
    int refilled; /* the stash entry that was last tried for a place in the table */
};

/* Where an entry may be. */
struct spot {
    uint32_t fingerprint;
    uint64_t pair[2]; /* of buckets; may be the same twice */
};

static const struct cuckoo *cuckoo_const(const struct filter *filter)
{
    return (const struct cuckoo *)filter;
}

static struct cuckoo *cuckoo_of(struct filter *filter)
{
    return (struct cuckoo *)filter;
}

static const struct bucket_layout *layout_of(const struct cuckoo *c)
{
    return &bucket_layouts[c->table.width];
}

/* Hash to bucket and fingerprint */

/* Scales a 64-bit value to 0 .. n-1 (Lemire, "Fast random integer generation in an interval",
 * 2019); right for any n, also above 2^32. */
BUCKET_INLINE uint64_t scale(uint64_t value, uint64_t n)
{
    return (uint64_t)((uint128)value * n >> 64);
}

/* r(f). Neighbouring fingerprints must not give r at equal distances, or chains of moves would meet
 * the same buckets again and again; hence two multiplications (after Stafford's variant 13 of
 * splitmix64). No secret is needed: the fingerprints are secret. */
BUCKET_INLINE uint64_t spread(uint32_t fingerprint, uint64_t n)
{
    uint64_t x = fingerprint * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 32) * UINT64_C(0x94d049bb133111eb);
    return scale(x ^ x >> 31, n);
}

BUCKET_INLINE uint64_t other_bucket(uint64_t bucket, uint32_t fingerprint, uint64_t n)
{
    uint64_t r = spread(fingerprint, n);
    return r >= bucket ? r - bucket : r + (n - bucket);
}

BUCKET_INLINE struct spot spot_of(const struct bucket_layout *layout, const struct cuckoo *c,
                                  uint64_t hash)
{
    uint64_t mask = (UINT64_C(1) << layout->fingerprint_bits) - 1;
    struct spot spot = {.fingerprint = (uint32_t)(hash & mask)};
    spot.fingerprint += spot.fingerprint == 0; /* 0 is an empty place */
    spot.pair[0] = scale(hash, c->table.buckets);
    spot.pair[1] = other_bucket(spot.pair[0], spot.fingerprint, c->table.buckets);
    return spot;
}

/* Readers. These are compiled once for each layout: see contains_batch. */

/* Rule R of the head comment. */
BUCKET_INLINE bool look(const struct bucket_layout *layout, const struct cuckoo *c,
                        const struct spot *spot, uint64_t hash)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t version = atomic_load_explicit(&c->version, memory_order_acquire);
        if (bucket_pair_has(layout, &c->table, spot->pair, spot->fingerprint) ||
            stash_has(&c->stash, hash))
            return true;
        if (atomic_load_explicit(&c->version, memory_order_relaxed) == version)
            return false;
    }
    return true;
}

BUCKET_INLINE struct spot prefetch_spot(const struct bucket_layout *layout, const struct cuckoo *c,
                                        uint64_t hash)
{
    struct spot spot = spot_of(layout, c, hash);
    bucket_prefetch(layout, &c->table, spot.pair[0]);
    bucket_prefetch(layout, &c->table, spot.pair[1]);
    return spot;
}

/* A ring of lookups: each is answered when its cache lines have had the time of WINDOW - 1 others
 * to arrive. */
BUCKET_INLINE void look_at_all(const struct bucket_layout *layout, const struct cuckoo *c,
                               const uint64_t *hashes, size_t count, bool *found)
{
    struct spot ring[WINDOW];
    for (size_t i = 0; i < count && i < WINDOW; i++)
        ring[i] = prefetch_spot(layout, c, hashes[i]);
    for (size_t i = 0; i < count; i++) {
        struct spot *spot = &ring[i % WINDOW];
        found[i] = look(layout, c, spot, hashes[i]);
        if (count - i > WINDOW)
            *spot = prefetch_spot(layout, c, hashes[i + WINDOW]);
    }
}

static void cuckoo_contains_batch(const struct filter *filter, const uint64_t *hashes, size_t count,
                                  bool *found)
{
    const struct cuckoo *c = cuckoo_const(filter);
    switch (c->table.width) {
    case BUCKET_NARROW:
        look_at_all(&bucket_layouts[BUCKET_NARROW], c, hashes, count, found);
        break;
    case BUCKET_MEDIUM:
        look_at_all(&bucket_layouts[BUCKET_MEDIUM], c, hashes, count, found);
        break;
    case BUCKET_WIDE:
        look_at_all(&bucket_layouts[BUCKET_WIDE], c, hashes, count, found);
        break;
    }
}

static bool cuckoo_contains(const struct filter *filter, uint64_t hash)
{
    bool found;
    cuckoo_contains_batch(filter, &hash, 1, &found);
    return found;
}

static void cuckoo_prefetch(const struct filter *filter, uint64_t hash)
{
    const struct cuckoo *c = cuckoo_const(filter);
    (void)prefetch_spot(layout_of(c), c, hash);
}

/* The writer */

/* Rule W2: comes before each store that takes a fingerprint away. */
static void announce_clearing(struct cuckoo *c)
{
    uint64_t version = atomic_load_explicit(&c->version, memory_order_relaxed);
    atomic_store_explicit(&c->version, version + 1, memory_order_release);
}

/* A search for a place goes breadth first through the buckets that can be reached by moving
 * fingerprints to their other buckets, and writes nothing. */
struct step {
    uint64_t bucket;
    uint32_t incoming; /* the fingerprint that would come into this bucket */
    int from;          /* the step whose bucket it would leave; NO_STEP: it is the new one */
};

#define NO_STEP (-1)

struct search {
    struct step steps[SEARCH_LIMIT];
    int count;
};

/* Going back is of no use: the path that a search finds is a shortest one and visits no bucket
 * twice. Without this test the search for a place for the ninth copy of a hash would go to and fro
 * between its two buckets up to the limit. */
static bool on_path(const struct search *search, int step, uint64_t bucket)
{
    for (; step != NO_STEP; step = search->steps[step].from)
        if (search->steps[step].bucket == bucket)
            return true;
    return false;
}

static void search_add(const struct cuckoo *c, struct search *search, int from, uint64_t bucket,
                       uint32_t incoming)
{
    if (search->count == SEARCH_LIMIT || on_path(search, from, bucket))
        return;
    search->steps[search->count++] =
        (struct step){.bucket = bucket, .incoming = incoming, .from = from};
    bucket_prefetch(layout_of(c), &c->table, bucket);
}

/* Adds the steps that lead on from a step, unless its bucket has an empty place: then true. */
static bool search_expand(const struct cuckoo *c, struct search *search, int step)
{
    uint64_t bucket = search->steps[step].bucket;
    uint32_t fingerprints[BUCKET_SLOTS];
    bucket_read(&c->table, bucket, fingerprints);
    for (unsigned i = 0; i < BUCKET_SLOTS; i++)
        if (fingerprints[i] == 0)
            return true;
    for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
        uint64_t other = other_bucket(bucket, fingerprints[i], c->table.buckets);
        search_add(c, search, step, other, fingerprints[i]);
    }
    return false;
}

/* The step whose bucket has an empty place, or NO_STEP. */
static int search_place(const struct cuckoo *c, struct search *search, const struct spot *spot)
{
    search->count = 0;
    search_add(c, search, NO_STEP, spot->pair[0], spot->fingerprint);
    search_add(c, search, NO_STEP, spot->pair[1], spot->fingerprint);
    for (int i = 0; i < search->count; i++)
        if (search_expand(c, search, i))
            return i;
    return NO_STEP;
}

/* Carries out the moves of a path, the last one first (rule W1):
 *
 *     new --> A: a --> B: b --> C: empty
 *
 *   b into C's empty place; a over b in B; new over a in A. Each is one store, and each but the
 * first takes away what the one before has already stored elsewhere. */
static void move_along(struct cuckoo *c, const struct search *search, int step)
{
    uint32_t outgoing = 0;
    while (step != NO_STEP) {
        const struct step *at = &search->steps[step];
        if (outgoing != 0)
            announce_clearing(c);
        bool replaced = bucket_replace(&c->table, at->bucket, outgoing, at->incoming);
        assert(replaced);
        (void)replaced;
        outgoing = at->incoming;
        step = at->from;
    }
}

/* Brings an entry into the table; false, and nothing written, when no place can be reached. */
static bool place(struct cuckoo *c, uint64_t hash)
{
    struct search search;
    struct spot spot = spot_of(layout_of(c), c, hash);
    int last = search_place(c, &search, &spot);
    if (last == NO_STEP)
        return false;
    move_along(c, &search, last);
    return true;
}

static void count_keys(struct cuckoo *c, size_t keys)
{
    atomic_store_explicit(&c->keys, keys, memory_order_relaxed);
}

static size_t keys_in(const struct cuckoo *c)
{
    return atomic_load_explicit(&c->keys, memory_order_relaxed);
}

static int cuckoo_insert(struct filter *filter, uint64_t hash)
{
    struct cuckoo *c = cuckoo_of(filter);
    if (!place(c, hash) && !stash_put(&c->stash, hash))
        return -ENOSPC;
    count_keys(c, keys_in(c) + 1);
    return 0;
}

static void take_from_stash(struct cuckoo *c, int number)
{
    announce_clearing(c);
    stash_clear(&c->stash, number);
}

static bool take_from_table(struct cuckoo *c, uint64_t hash)
{
    struct spot spot = spot_of(layout_of(c), c, hash);
    announce_clearing(c);
    return bucket_replace(&c->table, spot.pair[0], spot.fingerprint, 0) ||
           bucket_replace(&c->table, spot.pair[1], spot.fingerprint, 0);
}

/* A place became free somewhere: tries whether one entry of the stash now reaches a place in the
 * table. A different one each time, so that one that cannot does not keep the others waiting. */
static void refill_from_stash(struct cuckoo *c)
{
    int number = stash_next(&c->stash, c->refilled);
    if (number < 0)
        return;
    c->refilled = number;
    if (place(c, stash_hash(&c->stash, number)))
        take_from_stash(c, number);
}

/* From the stash first. Call entries alike that have the same fingerprint and pair of buckets: the
 * table cannot tell them apart, the stash can. Each hash in the stash is one that is in the set,
 * and the table holds as many alike as there are others of them in the set. Removing a hash that
 * the stash has keeps both true. Were it taken from the table instead, the stash would keep a hash
 * that is gone, in the place of one alike that is in and that the stash does not answer for. */
static int cuckoo_remove(struct filter *filter, uint64_t hash)
{
    struct cuckoo *c = cuckoo_of(filter);
    int number = stash_find(&c->stash, hash);
    if (number >= 0)
        take_from_stash(c, number);
    else if (take_from_table(c, hash))
        refill_from_stash(c);
    else
        return -ENOENT;
    count_keys(c, keys_in(c) - 1);
    return 0;
}

static struct filter_stats cuckoo_stats(const struct filter *filter)
{
    const struct cuckoo *c = cuckoo_const(filter);
    size_t slots = (size_t)c->table.buckets * BUCKET_SLOTS;
    size_t keys = keys_in(c);
    size_t stashed = stash_count(&c->stash);
    double fill = keys > stashed ? (double)(keys - stashed) / (double)slots : 0;
    return (struct filter_stats){
        .keys = keys,
        .capacity = c->capacity,
        .slots = slots,
        .bytes = c->mapped,
        .stash_used = stashed,
        .stash_size = STASH_SIZE,
        .expected_false_positive_rate = bucket_match_rate(c->table.width, 2 * BUCKET_SLOTS * fill),
    };
}

static void cuckoo_describe(const struct filter *filter, char *text, size_t size)
{
    const struct cuckoo *c = cuckoo_const(filter);
    snprintf(text, size, "%llu buckets of %d, %u-bit fingerprints",
             (unsigned long long)c->table.buckets, BUCKET_SLOTS, layout_of(c)->fingerprint_bits);
}

static size_t cuckoo_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct cuckoo *c = cuckoo_of(filter);
    parts[0] = (struct filter_part){&c->keys, sizeof c->keys};
    parts[1] = (struct filter_part){&c->stash, sizeof c->stash};
    parts[2] = (struct filter_part){c->table.memory,
                                    (size_t)c->table.buckets * bucket_bytes(layout_of(c))};
    return 3;
}

/* Making one */

/* capacity / (slots * load), rounded up, without a product that could overflow. */
static uint64_t buckets_for(size_t capacity)
{
    const uint64_t share = BUCKET_SLOTS * LOAD_NUMERATOR;
    uint64_t whole = capacity / share * LOAD_DENOMINATOR;
    uint64_t rest = (capacity % share * LOAD_DENOMINATOR + share - 1) / share;
    return whole + rest + SPARE_BUCKETS;
}

static int refuse(const char **error, const char *why, int code)
{
    *error = why;
    return code;
}

static int cuckoo_create(struct filter **out, const struct filter_options *options,
                         const char **error)
{
    enum bucket_width width = bucket_width_for(options->false_positive_rate);
    const struct bucket_layout *layout = &bucket_layouts[width];
    uint64_t buckets = buckets_for(options->capacity);
    if (buckets > UINT64_C(1) << (64 - layout->fingerprint_bits))
        return refuse(error, "the capacity is beyond what 64-bit hashes can tell apart", -EINVAL);
    size_t mapped = pages_round(sizeof(struct cuckoo) + buckets * bucket_bytes(layout));
    if (options->max_bytes && mapped > options->max_bytes)
        return refuse(error, "the filter would take more memory than it is allowed", -E2BIG);
    struct cuckoo *c = pages_map(mapped);
    if (!c)
        return refuse(error, "there is not enough memory for the filter", -ENOMEM);
    c->base.ops = &cuckoo_ops;
    c->table.width = width;
    c->table.memory = c + 1; /* as aligned as the struct is: no bucket straddles a cache line */
    c->table.buckets = buckets;
    c->capacity = options->capacity;
    c->mapped = mapped;
    *out = &c->base;
    return 0;
}

static void cuckoo_destroy(struct filter *filter)
{
    pages_unmap(filter, cuckoo_of(filter)->mapped);
}

const struct filter_ops cuckoo_ops = {
    .name = "cuckoo",
    .image_version = 1,
    .create = cuckoo_create,
    .destroy = cuckoo_destroy,
    .insert = cuckoo_insert,
    .remove = cuckoo_remove,
    .contains = cuckoo_contains,
    .prefetch = cuckoo_prefetch,
    .contains_batch = cuckoo_contains_batch,
    .stats = cuckoo_stats,
    .describe = cuckoo_describe,
    .parts = cuckoo_parts,
};
