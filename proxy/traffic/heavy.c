/* The places are few, so they are gone through one by one: hashes lie beside each other for that.
 * What is added for a client comes once a second, and for a key once in many lookups.
 */
#include "traffic/heavy.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct heavy {
    size_t places, size, used; /* size: bytes of an item; used: places that have one */
    uint64_t total;            /* weight of all that was added since it was cleared */
    uint64_t most;             /* that was added at once */
    uint64_t *counts, *errors; /* by place, as all that follows */
    uint32_t *hashes;
    char *items; /* one behind the other */
};

/* What a place has is written when it is first used. */
struct heavy *heavy_create(size_t places, size_t item_size)
{
    struct heavy *heavy = xcalloc(1, sizeof *heavy);
    heavy->places = places;
    heavy->size = item_size;
    heavy->counts = xmalloc(places * sizeof *heavy->counts);
    heavy->errors = xmalloc(places * sizeof *heavy->errors);
    heavy->hashes = xmalloc(places * sizeof *heavy->hashes);
    heavy->items = xmalloc(places * item_size);
    return heavy;
}

void heavy_destroy(struct heavy *heavy)
{
    if (!heavy)
        return;
    free(heavy->counts);
    free(heavy->errors);
    free(heavy->hashes);
    free(heavy->items);
    free(heavy);
}

void heavy_clear(struct heavy *heavy)
{
    heavy->used = 0;
    heavy->total = heavy->most = 0;
}

static char *item_at(const struct heavy *heavy, size_t place)
{
    return heavy->items + place * heavy->size;
}

/* FNV-1a (Fowler, Noll, Vo), of words: items are made of whole ones. Who finds two items of one
 * hash makes a comparison longer. */
static uint32_t hash_of(const struct heavy *heavy, const void *item)
{
    uint64_t hash = UINT64_C(14695981039346656037), word;
    for (size_t at = 0; at < heavy->size; at += sizeof word) {
        memcpy(&word, (const char *)item + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

/* heavy->used: it has none. */
static size_t place_of(const struct heavy *heavy, const void *item, uint32_t hash)
{
    for (size_t i = 0; i < heavy->used; i++)
        if (heavy->hashes[i] == hash && memcmp(item_at(heavy, i), item, heavy->size) == 0)
            return i;
    return heavy->used;
}

static size_t lightest(const struct heavy *heavy)
{
    size_t least = 0;
    for (size_t i = 1; i < heavy->used; i++)
        if (heavy->counts[i] < heavy->counts[least])
            least = i;
    return least;
}

/* What an item may weigh that has no place. */
static uint64_t unseen(const struct heavy *heavy)
{
    return heavy->used < heavy->places ? 0 : heavy->counts[lightest(heavy)];
}

static void put(struct heavy *heavy, size_t place, const struct heavy_entry *entry)
{
    heavy->counts[place] = entry->count;
    heavy->errors[place] = entry->error;
    heavy->hashes[place] = hash_of(heavy, entry->item);
    memcpy(item_at(heavy, place), entry->item, heavy->size);
}

/* Who has no place takes that of the lightest, and its count, for it may have weighed as much. */
void heavy_add(struct heavy *heavy, const void *item, uint64_t weight)
{
    size_t place = place_of(heavy, item, hash_of(heavy, item));
    heavy->total += weight;
    heavy->most = weight > heavy->most ? weight : heavy->most;
    if (place < heavy->used) {
        heavy->counts[place] += weight;
        return;
    }
    uint64_t before = unseen(heavy);
    place = heavy->used < heavy->places ? heavy->used++ : lightest(heavy);
    put(heavy, place, &(struct heavy_entry){item, before + weight, before});
}

static struct heavy_entry entry_at(const struct heavy *heavy, size_t place)
{
    return (struct heavy_entry){item_at(heavy, place), heavy->counts[place], heavy->errors[place]};
}

/* Both summaries' word on what `one` has a place for; what the other has none for may weigh as much
 * as its lightest. */
static struct heavy_entry sum_of(const struct heavy *one, size_t place, const struct heavy *other)
{
    struct heavy_entry entry = entry_at(one, place);
    size_t at = place_of(other, entry.item, one->hashes[place]);
    bool there = at < other->used;
    entry.count += there ? other->counts[at] : unseen(other);
    entry.error += there ? other->errors[at] : unseen(other);
    return entry;
}

static int by_count(const void *a, const void *b)
{
    const struct heavy_entry *one = a, *other = b;
    return (one->count < other->count) - (one->count > other->count);
}

/* Whatever has a place in either, twice as many at most; of them the heaviest keep theirs. Contents
 * change hands in the end, for `into` stays where its owner has it. */
void heavy_merge(struct heavy *into, const struct heavy *from)
{
    if (!from->used)
        return;
    struct heavy old = *into;
    struct heavy_entry *all = xcalloc(into->used + from->used + 1, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < old.used; i++)
        all[count++] = sum_of(&old, i, from);
    for (size_t i = 0; i < from->used; i++)
        if (place_of(&old, item_at(from, i), from->hashes[i]) == old.used)
            all[count++] = sum_of(from, i, &old);
    qsort(all, count, sizeof *all, by_count);
    struct heavy *fresh = heavy_create(old.places, old.size);
    fresh->used = count < old.places ? count : old.places;
    fresh->total = old.total + from->total;
    fresh->most = from->most > old.most ? from->most : old.most;
    for (size_t i = 0; i < fresh->used; i++)
        put(fresh, i, &all[i]);
    *into = *fresh;
    *fresh = old;
    heavy_destroy(fresh);
    free(all);
}

size_t heavy_top(const struct heavy *heavy, struct heavy_entry *out, size_t most)
{
    struct heavy_entry *all = xcalloc(heavy->used + 1, sizeof *all);
    size_t count = heavy->used < most ? heavy->used : most;
    for (size_t i = 0; i < heavy->used; i++)
        all[i] = entry_at(heavy, i);
    qsort(all, heavy->used, sizeof *all, by_count);
    memcpy(out, all, count * sizeof *out);
    free(all);
    return count;
}

uint64_t heavy_total(const struct heavy *heavy)
{
    return heavy->total;
}

bool heavy_stands_out(const struct heavy *heavy, const struct heavy_entry *entry)
{
    uint64_t least = entry->count - entry->error;
    return least > heavy->most && least >= entry->error;
}
