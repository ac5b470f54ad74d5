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
#include "filters/cuckoo/cuckoo.h"

#include "filters/cuckoo/cuckoo_table.h"
#include "filters/pages.h"

#include <errno.h>
#include <stdio.h>

/* Beyond the share: in a table of a few buckets chance alone can overfill some. */
#define SPARE_BUCKETS 8

/* Attempts of a reader before it says "possibly". */
#define LOOKS 100

/* Lookups whose cache lines are on their way while one is answered. */
#define WINDOW 128

/* Readers. These are compiled once for each layout: see cuckoo_contains_batch. */

/* Rule R of the head comment. */
BUCKET_INLINE bool look_at(const struct bucket_layout *layout, const struct cuckoo *c,
                           struct spot spot, uint64_t hash)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t version = atomic_load_explicit(&c->version, memory_order_acquire);
        if (bucket_pair_has(layout, &c->table, spot.pair, spot.fingerprint) ||
            stash_has(&c->stash, hash))
            return true;
        if (atomic_load_explicit(&c->version, memory_order_relaxed) == version)
            return false;
    }
    return true;
}

BUCKET_INLINE bool look(const struct bucket_layout *layout, const struct cuckoo *c, uint64_t hash)
{
    return look_at(layout, c, cuckoo_spot(layout, &c->table, hash), hash);
}

/* Answers a ring of lookups, and puts into each one's place the lookup that comes a ring later,
 * whose cache lines then have the time of all others to arrive. Rule R, with one pair of looks at
 * the version for all: where the table was not enough, each negative is asked for again alone. */
BUCKET_INLINE void look_at_ring(const struct bucket_layout *layout, const struct cuckoo *c,
                                struct spot ring[WINDOW], const uint64_t *hashes, size_t count,
                                bool *found)
{
    const struct bucket_table table = c->table; /* for the compiler to keep in registers */
    size_t now = count < WINDOW ? count : WINDOW;
    uint64_t version = atomic_load_explicit(&c->version, memory_order_acquire);
    bool stashed = atomic_load_explicit(&c->stash.used, memory_order_acquire) != 0;
    for (size_t i = 0; i < now; i++) {
        found[i] = bucket_pair_has(layout, &table, ring[i].pair, ring[i].fingerprint);
        if (count - i > WINDOW)
            ring[i] = cuckoo_prefetch_spot(layout, &table, hashes[i + WINDOW]);
    }
    if (!stashed && atomic_load_explicit(&c->version, memory_order_relaxed) == version)
        return;
    for (size_t i = 0; i < now; i++)
        found[i] = found[i] || look(layout, c, hashes[i]);
}

BUCKET_INLINE void look_at_all(const struct bucket_layout *layout, const struct cuckoo *c,
                               const uint64_t *hashes, size_t count, bool *found)
{
    struct spot ring[WINDOW];
    for (size_t i = 0; i < count && i < WINDOW; i++)
        ring[i] = cuckoo_prefetch_spot(layout, &c->table, hashes[i]);
    for (size_t i = 0; i < count; i += WINDOW)
        look_at_ring(layout, c, ring, hashes + i, count - i, found + i);
}

static void cuckoo_contains_batch(const struct filter *filter, const uint64_t *hashes, size_t count,
                                  bool *found)
{
    const struct cuckoo *c = cuckoo_const(filter);
    BUCKET_WITH_LAYOUT(c->table.width, look_at_all(layout, c, hashes, count, found))
}

static bool cuckoo_contains(const struct filter *filter, uint64_t hash)
{
    const struct cuckoo *c = cuckoo_const(filter);
    BUCKET_WITH_LAYOUT(c->table.width, return look(layout, c, hash))
    return true;
}

static void cuckoo_ask_begin(const struct filter *filter, struct filter_ask *ask)
{
    const struct cuckoo *c = cuckoo_const(filter);
    struct spot spot = cuckoo_prefetch_spot(cuckoo_layout(c), &c->table, ask->hash);
    ask->places[0] = spot.pair[0];
    ask->places[1] = spot.pair[1];
    ask->fingerprint = spot.fingerprint;
}

static bool cuckoo_ask_end(const struct filter *filter, const struct filter_ask *ask)
{
    const struct cuckoo *c = cuckoo_const(filter);
    struct spot spot = {ask->fingerprint, {ask->places[0], ask->places[1]}};
    BUCKET_WITH_LAYOUT(c->table.width, return look_at(layout, c, spot, ask->hash))
    return true;
}

static void cuckoo_prefetch(const struct filter *filter, uint64_t hash)
{
    const struct cuckoo *c = cuckoo_const(filter);
    (void)cuckoo_prefetch_spot(cuckoo_layout(c), &c->table, hash);
}

/* What it holds */

static struct filter_stats cuckoo_stats(const struct filter *filter)
{
    const struct cuckoo *c = cuckoo_const(filter);
    unsigned bucket = bucket_slots(cuckoo_layout(c));
    size_t slots = (size_t)c->table.buckets * bucket;
    size_t in_table = atomic_load_explicit(&c->in_table, memory_order_relaxed);
    double compared = 2.0 * bucket * (double)in_table / (double)slots;
    return (struct filter_stats){
        .keys = atomic_load_explicit(&c->keys, memory_order_relaxed),
        .capacity = c->capacity,
        .slots = slots,
        .bytes = c->mapped + atomic_load_explicit(&c->surplus_bytes, memory_order_relaxed),
        .stash_used = stash_count(&c->stash),
        .stash_size = STASH_SIZE,
        .expected_false_positive_rate = bucket_match_rate(c->table.width, compared),
    };
}

static void cuckoo_describe(const struct filter *filter, char *text, size_t size)
{
    const struct cuckoo *c = cuckoo_const(filter);
    snprintf(text, size, "%llu buckets of %u, %u-bit fingerprints",
             (unsigned long long)c->table.buckets, bucket_slots(cuckoo_layout(c)),
             cuckoo_layout(c)->fingerprint_bits);
}

static size_t cuckoo_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct cuckoo *c = cuckoo_of(filter);
    parts[0] = (struct filter_part){&c->keys, sizeof c->keys};
    parts[1] = (struct filter_part){&c->in_table, sizeof c->in_table};
    parts[2] = (struct filter_part){&c->stash, sizeof c->stash};
    parts[3] = (struct filter_part){c->table.memory,
                                    (size_t)c->table.buckets * bucket_bytes(cuckoo_layout(c))};
    parts[4] = (struct filter_part){&c->surplus.used, sizeof c->surplus.used};
    parts[5] = (struct filter_part){c->surplus.cells, surplus_bytes(&c->surplus)};
    return c->surplus.cells ? 6 : 5;
}

/* There cannot be more numbers in it than fingerprints in the table. */
size_t cuckoo_surplus_limit(const struct cuckoo *c)
{
    size_t slots = ((size_t)c->table.buckets + 1) * bucket_slots(cuckoo_layout(c));
    size_t most = slots * 4 * sizeof(struct surplus_cell);
    size_t allowed = c->base.options.max_bytes;
    if (allowed && allowed - c->mapped < most)
        return allowed - c->mapped;
    return most;
}

/* A stage more is a surplus twice as large. */
static unsigned cuckoo_stages(const struct filter *filter)
{
    return 1 + surplus_doublings(&cuckoo_const(filter)->surplus);
}

static int cuckoo_add_stage(struct filter *filter)
{
    struct cuckoo *c = cuckoo_of(filter);
    bool grown = surplus_grow(&c->surplus, cuckoo_surplus_limit(c));
    atomic_store_explicit(&c->surplus_bytes, surplus_bytes(&c->surplus), memory_order_relaxed);
    return grown ? 0 : -ENOSPC;
}

/* Making one */

/* capacity / (slots * load), rounded up, without a product that could overflow. */
static uint64_t buckets_for(const struct bucket_layout *layout, size_t capacity)
{
    const uint64_t share = (uint64_t)bucket_slots(layout) * layout->permille;
    uint64_t whole = capacity / share * 1000;
    uint64_t rest = (capacity % share * 1000 + share - 1) / share;
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
    uint64_t buckets = buckets_for(layout, options->capacity);
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
    struct cuckoo *c = cuckoo_of(filter);
    surplus_finish(&c->surplus);
    pages_unmap(c, c->mapped);
}

const struct filter_ops cuckoo_ops = {
    .name = "cuckoo",
    .image_version = 3,
    .create = cuckoo_create,
    .destroy = cuckoo_destroy,
    .insert = cuckoo_insert,
    .remove = cuckoo_remove,
    .contains = cuckoo_contains,
    .prefetch = cuckoo_prefetch,
    .ask_begin = cuckoo_ask_begin,
    .ask_end = cuckoo_ask_end,
    .contains_batch = cuckoo_contains_batch,
    .stats = cuckoo_stats,
    .describe = cuckoo_describe,
    .parts = cuckoo_parts,
    .stages = cuckoo_stages,
    .add_stage = cuckoo_add_stage,
};
