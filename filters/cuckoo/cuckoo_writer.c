/* The writer of a cuckoo filter. cuckoo.c says which rules its stores keep, for the readers' sake.
 *
 * An entry goes to the first of these that takes it:
 *
 *   the stash      if it holds this very hash already: a copy more
 *   the surplus    if its two buckets hold something that looks the same
 *   the table      the emptier of its two buckets; or, if both are full, wherever entries can be
 *                  moved along a path of other buckets
 *   the stash      an entry of its own
 *
 * The surplus is what keeps copies from doing harm: rows that share a key, or a hostile user who
 * makes such rows by the thousand, would fill two buckets and then the stash. As the table holds
 * one like them for as long as there are any, readers need not know how many there are. (A narrow
 * fingerprint looks like another by chance so often that two are let into the table.)
 *
 * Call entries alike that have the same fingerprint and pair of buckets. What holds at all times:
 *
 *   I1  each entry of the stash is one that is in the set, with its copies;
 *   I2  table and surplus together hold as many alike as there are others of them in the set;
 *   I3  what the surplus holds, the table holds at least once.
 *
 * Hence the order of removals: from the stash if it has this very hash, else from the surplus, else
 * from the table. Were it taken from the table while the stash has it, the stash would keep a hash
 * that is gone, in the place of one alike that is in and that the stash does not answer for. */
#include "filters/cuckoo/cuckoo_table.h"

#include <assert.h>
#include <errno.h>

/* Buckets that one search for a place looks at. It rarely needs more than 20; but the fuller a
 * table may be before its stash begins to fill (bucket.h) hangs on those that need all. */
#define SEARCH_LIMIT 2048

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

BUCKET_INLINE void search_add(const struct bucket_layout *layout, const struct bucket_table *table,
                              struct search *search, const struct step *step)
{
    if (search->count == SEARCH_LIMIT)
        return;
    search->steps[search->count++] = *step;
    bucket_prefetch(layout, table, step->bucket);
}

/* Adds the steps that lead on from a step. Of what looks like the incoming fingerprint the other
 * bucket is the one that this comes from: going back there is of no use, and the search for a place
 * for the ninth copy of a hash would go to and fro between its two buckets up to the limit. A
 * longer circle does no harm, as a shortest path, which is what the search finds, visits no bucket
 * twice. */
BUCKET_INLINE void search_expand(const struct bucket_layout *layout,
                                 const struct bucket_table *table, struct search *search, int from)
{
    const struct step step = search->steps[from];
    for (unsigned i = 0; i < layout->words; i++) {
        uint64_t word = bucket_load(layout, table, step.bucket * layout->words + i);
        for (unsigned field = 0; field < layout->fingerprints; field++) {
            uint32_t fingerprint = bucket_get(layout, word, field);
            uint64_t other = cuckoo_other(step.bucket, fingerprint, table->buckets);
            if (fingerprint != step.incoming)
                search_add(layout, table, search, &(struct step){other, fingerprint, from});
        }
    }
}

/* The step whose bucket has an empty place, or NO_STEP. All steps of one length are looked at
 * before the first of them is expanded: most searches end there, and their buckets come from memory
 * together. */
BUCKET_INLINE int search_place(const struct bucket_layout *layout, const struct cuckoo *c,
                               struct search *search, const struct spot *spot)
{
    const struct bucket_table table = c->table; /* for the compiler to keep in registers */
    search->count = 0;
    for (unsigned i = 0; i < 2; i++)
        search_add(layout, &table, search,
                   &(struct step){spot->pair[i], spot->fingerprint, NO_STEP});
    for (int begin = 0, end; begin < search->count; begin = end) {
        end = search->count;
        for (int i = begin; i < end; i++)
            if (bucket_room(layout, &table, search->steps[i].bucket))
                return i;
        for (int i = begin; i < end; i++)
            search_expand(layout, &table, search, i);
    }
    return NO_STEP;
}

/* Carries out the moves of a path, the last one first (rule W1):
 *
 *     new --> A: a --> B: b --> C: empty
 *
 * b goes into C's empty place; a over b in B; new over a in A. Each is one store, and each but the
 * first takes away what the one before has already stored elsewhere. */
BUCKET_INLINE void move_along(const struct bucket_layout *layout, struct cuckoo *c,
                              const struct search *search, int step)
{
    uint32_t outgoing = 0;
    while (step != NO_STEP) {
        const struct step *at = &search->steps[step];
        bool written;
        if (outgoing == 0) {
            written = bucket_add(layout, &c->table, at->bucket, at->incoming);
        } else {
            announce_clearing(c);
            written = bucket_replace(layout, &c->table, at->bucket, outgoing, at->incoming);
        }
        assert(written);
        (void)written;
        outgoing = at->incoming;
        step = at->from;
    }
}

/* Moves others so that it finds place in one of its buckets; false, and nothing written, when no
 * place can be reached. Not inlined: most insertions can do without its large frame. */
static __attribute__((noinline)) bool make_place(struct cuckoo *c, const struct spot *spot)
{
    struct search search;
    int last = NO_STEP;
    BUCKET_WITH_LAYOUT(c->table.width, last = search_place(layout, c, &search, spot))
    if (last == NO_STEP)
        return false;
    BUCKET_WITH_LAYOUT(c->table.width, move_along(layout, c, &search, last))
    return true;
}

/* Puts it into the emptier one of its buckets, if there is room. */
BUCKET_INLINE bool place(const struct bucket_layout *layout, struct cuckoo *c,
                         const struct spot *spot)
{
    uint64_t room = bucket_room(layout, &c->table, spot->pair[0]);
    uint64_t other_room = bucket_room(layout, &c->table, spot->pair[1]);
    uint64_t swap = -(uint64_t)(other_room > room); /* a branch would be foreseen half the time */
    uint64_t bucket = spot->pair[0] ^ ((spot->pair[0] ^ spot->pair[1]) & swap);
    return bucket_add(layout, &c->table, bucket, spot->fingerprint);
}

/* Only one writer adds, so nothing is lost between load and store. */
static void count(_Atomic(size_t) *counter, size_t difference)
{
    size_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, counted + difference, memory_order_relaxed);
}

/* A number for all that are alike and for nothing else; never 0. */
static uint64_t number_of(const struct bucket_layout *layout, const struct spot *spot)
{
    uint64_t bucket = spot->pair[0] < spot->pair[1] ? spot->pair[0] : spot->pair[1];
    return bucket << layout->fingerprint_bits | spot->fingerprint;
}

static bool put_in_surplus(const struct bucket_layout *layout, struct cuckoo *c,
                           const struct spot *spot)
{
    size_t most = cuckoo_surplus_limit(c);
    bool put = surplus_add(&c->surplus, number_of(layout, spot), most);
    atomic_store_explicit(&c->surplus_bytes, surplus_bytes(&c->surplus), memory_order_relaxed);
    return put;
}

/* How many alike are in the table, or at least one if there are any; what lies in a pair that is
 * the same bucket twice is counted twice. Not inlined: it is rare that there are any. */
static __attribute__((noinline)) unsigned count_alike(const struct cuckoo *c,
                                                      const struct spot *spot)
{
    const struct bucket_layout *layout = cuckoo_layout(c);
    unsigned alike = 0;
    for (unsigned i = 0; i < 2 * layout->words; i++) {
        uint64_t at = spot->pair[i % 2] * layout->words + i / 2;
        uint64_t word = bucket_load(layout, &c->table, at);
        uint64_t fields = bucket_find(layout, word, spot->fingerprint);
        for (; fields; fields &= fields - 1)
            alike++;
    }
    return alike;
}

/* Not to the stash. */
BUCKET_INLINE bool put(const struct bucket_layout *layout, struct cuckoo *c, uint64_t hash)
{
    struct spot spot = cuckoo_spot(layout, &c->table, hash);
    unsigned alike = 0;
    if (bucket_pair_look(layout, &c->table, spot.pair, spot.fingerprint).any)
        alike = count_alike(c, &spot);
    if (alike >= layout->copies && put_in_surplus(layout, c, &spot))
        return true;
    if (place(layout, c, &spot) || make_place(c, &spot)) {
        count(&c->in_table, 1);
        return true;
    }
    return alike > 0 && put_in_surplus(layout, c, &spot);
}

static bool put_in_table(struct cuckoo *c, uint64_t hash)
{
    BUCKET_WITH_LAYOUT(c->table.width, return put(layout, c, hash))
    return false;
}

/* The number of its entry in the stash, or -1; which is nearly always empty. */
static inline int stashed_at(const struct cuckoo *c, uint64_t hash)
{
    if (atomic_load_explicit(&c->stash.used, memory_order_relaxed) == 0)
        return -1;
    return stash_find(&c->stash, hash);
}

int cuckoo_insert(struct filter *filter, uint64_t hash)
{
    struct cuckoo *c = cuckoo_of(filter);
    int stashed = stashed_at(c, hash);
    bool put_it = stashed >= 0 ? stash_add_copy(&c->stash, stashed)
                               : put_in_table(c, hash) || stash_put(&c->stash, hash);
    if (!put_it)
        return -ENOSPC;
    count(&c->keys, 1);
    return 0;
}

/* One copy. */
static void take_from_stash(struct cuckoo *c, int number)
{
    if (c->stash.copies[number] > 1) {
        c->stash.copies[number]--;
        return;
    }
    announce_clearing(c);
    stash_clear(&c->stash, number);
}

/* A place became free somewhere: tries whether one entry of the stash now reaches a place in the
 * table. A different one each time, so that one that cannot does not keep the others waiting. */
static void refill_from_stash(struct cuckoo *c)
{
    int number = stash_next(&c->stash, c->refilled);
    if (number < 0)
        return;
    c->refilled = number;
    if (put_in_table(c, stash_hash(&c->stash, number)))
        take_from_stash(c, number);
}

/* One from the surplus, else from the table, where a place becomes free by that. */
BUCKET_INLINE bool take(const struct bucket_layout *layout, struct cuckoo *c, uint64_t hash)
{
    struct spot spot = cuckoo_prefetch_spot(layout, &c->table, hash);
    if (surplus_take(&c->surplus, number_of(layout, &spot)))
        return true;
    announce_clearing(c);
    if (!bucket_replace(layout, &c->table, spot.pair[0], spot.fingerprint, 0) &&
        !bucket_replace(layout, &c->table, spot.pair[1], spot.fingerprint, 0))
        return false;
    count(&c->in_table, (size_t)-1);
    refill_from_stash(c);
    return true;
}

static bool take_from_table(struct cuckoo *c, uint64_t hash)
{
    BUCKET_WITH_LAYOUT(c->table.width, return take(layout, c, hash))
    return false;
}

int cuckoo_remove(struct filter *filter, uint64_t hash)
{
    struct cuckoo *c = cuckoo_of(filter);
    int stashed = stashed_at(c, hash);
    if (stashed >= 0)
        take_from_stash(c, stashed);
    else if (!take_from_table(c, hash))
        return -ENOENT;
    count(&c->keys, (size_t)-1);
    return 0;
}
