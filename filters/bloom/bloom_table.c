/* Sizes and arrays of the Bloom filters. */
#include "filters/bloom/bloom_table.h"

#include "filters/pages.h"

#include <errno.h>
#include <math.h>

/* More would not fit into the address space of any machine. */
#define KEYS_MAX ((size_t)1 << 50)

/* The variance of the number of set bits is m (e^-c - (1 + c) e^-2c), c being bits thrown a place;
 * the power's mean follows from it by Taylor. */
double bloom_fill_power(double places, double thrown, unsigned hashes)
{
    double c = thrown / places, k = hashes;
    double fill = -expm1(-c);
    double variance = (exp(-c) - (1 + c) * exp(-2 * c)) / places;
    if (thrown <= 0)
        return 0;
    return fmin(1, pow(fill, k) * (1 + k * (k - 1) / 2 * variance / (fill * fill)));
}

double bloom_rate(const struct bloom_layout *layout, double keys)
{
    return bloom_fill_power((double)layout->places, keys * layout->hashes, layout->hashes);
}

/* The formula of the head of bloom.h, solved for m. */
static double places_for(double keys, double rate, unsigned hashes)
{
    return -(double)hashes * keys / log1p(-pow(rate, 1.0 / hashes));
}

static uint64_t whole_words(double places)
{
    return ((uint64_t)places + 63) / 64 * 64;
}

/* The formula gives a size that is a little too small, for it takes the mean for every array: so
 * places are added, a four-thousandth at a time, until the rate holds with the variance, too. */
struct bloom_layout bloom_layout_for(double keys, double rate)
{
    unsigned hashes = (unsigned)-log2(rate); /* ln 2 * m/n; down or up, whichever takes less */
    if (hashes == 0 || places_for(keys, rate, hashes + 1) < places_for(keys, rate, hashes))
        hashes++;
    struct bloom_layout layout = {whole_words(places_for(keys, rate, hashes)), hashes};
    while (bloom_rate(&layout, keys) > rate)
        layout.places += layout.places / 4096 / 64 * 64 + 64;
    return layout;
}

int bloom_check_capacity(size_t capacity, const char **error)
{
    if (capacity <= KEYS_MAX)
        return 0;
    *error = "the capacity is beyond what any machine has memory for";
    return -EINVAL;
}

int bloom_map(void **out, size_t head, uint64_t words, size_t max_bytes, size_t *mapped,
              const char **error)
{
    *mapped = pages_round(head + words * sizeof(uint64_t));
    if (max_bytes && *mapped > max_bytes) {
        *error = "the filter would take more memory than it is allowed";
        return -E2BIG;
    }
    *out = pages_map(*mapped);
    if (*out)
        return 0;
    *error = "there is not enough memory for the filter";
    return -ENOMEM;
}

void bloom_bits_set(const struct bloom_bits *bits, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < bits->layout.hashes; i++)
        bloom_set_bit(bits->words, bloom_walk_next(&walk, bits->layout.places));
}

bool bloom_bits_have(const struct bloom_bits *bits, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < bits->layout.hashes; i++)
        if (!bloom_bit(bits->words, bloom_walk_next(&walk, bits->layout.places)))
            return false;
    return true;
}

void bloom_bits_prefetch(const struct bloom_bits *bits, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < bits->layout.hashes && i < BLOOM_PREFETCHED; i++)
        __builtin_prefetch(
            (const void *)&bits->words[bloom_walk_next(&walk, bits->layout.places) / 64]);
}
