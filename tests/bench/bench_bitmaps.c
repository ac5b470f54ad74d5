/* What published bitmaps cost and get wrong, apart from any server.
 *
 *   bench_bitmaps KEYS RATE SECONDS
 *
 * An object a line. First each format with the keys that it was made for; then a bitmap that was
 * made for KEYS with three times as many, as it is, grown by others beside it (publish/layers.h),
 * and replaced by a larger one. Keys are decimal numbers. */
#include "base/span.h"
#include "filters/bitmap/bitmap.h"
#include "kbest.h"
#include "publish/layers.h"

#include <stdio.h>
#include <stdlib.h>

enum { ABSENT = 1000000, ABSENT_FROM = 1000000000, TEXT = 16 };

struct bench {
    struct bitmap *bitmap;
    unsigned keys;
    char (*texts)[TEXT];
    size_t *lengths;
    unsigned found;
};

static struct span number(unsigned value, char text[TEXT])
{
    return (struct span){text, (size_t)snprintf(text, TEXT, "%u", value)};
}

static void add_all(void *arg, size_t slice)
{
    struct bench *b = arg;
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    (void)slice;
    for (unsigned i = 0; i < b->keys; i++)
        bitmap_add(b->bitmap, b->texts[i], b->lengths[i], places);
}

static void ask_all(void *arg, size_t slice)
{
    struct bench *b = arg;
    (void)slice;
    for (unsigned i = 0; i < b->keys; i++)
        b->found += bitmap_contains(b->bitmap, b->texts[i], b->lengths[i]);
}

static double ns_of(struct bench *b, void (*run)(void *arg, size_t slice), double seconds)
{
    struct kbest_task task = {.run = run, .arg = b, .slices = 1, .seconds = seconds};
    return kbest_measure(&task).ns / b->keys;
}

static bool has(const struct layers *layers, struct span item)
{
    for (unsigned i = 0; i < layers->count; i++)
        if (bitmap_contains(layers->at[i], item.at, item.length))
            return true;
    return false;
}

/* Of those that are not in. */
static double share_wrong(const struct layers *layers)
{
    char text[TEXT];
    unsigned wrong = 0;
    for (unsigned i = 0; i < ABSENT; i++)
        wrong += has(layers, number(ABSENT_FROM + i, text));
    return (double)wrong / ABSENT;
}

static void measure_format(struct bench *b, enum bitmap_format format, double rate, double seconds)
{
    struct bitmap_shape shape = bitmap_shape_for(format, b->keys, rate);
    struct layers layers;
    b->bitmap = bitmap_create(&shape);
    layers_begin(&layers, b->bitmap);
    double add = ns_of(b, add_all, seconds), ask = ns_of(b, ask_all, seconds);
    printf("{\"format\": \"%s\", \"keys\": %u, \"m\": %llu, \"k\": %u, \"bits_per_key\": %.2f, "
           "\"expected\": %.3g, \"measured\": %.3g, \"add_ns\": %.1f, \"ask_ns\": %.1f}\n",
           bitmap_format_name(format), b->keys, (unsigned long long)shape.bits, shape.functions,
           (double)shape.bits / b->keys, bitmap_shape_rate(&shape, b->keys), share_wrong(&layers),
           add, ask);
    layers_finish(&layers);
}

/* As many bitmaps as it takes, at most. */
static void measure_growth(const char *name, struct bitmap_shape shape, unsigned keys,
                           unsigned bitmaps)
{
    struct layers layers;
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    char text[TEXT];
    layers_begin(&layers, bitmap_create(&shape));
    for (unsigned i = 0; i < keys; i++) {
        layers_add(&layers, number(i, text), places);
        if (layers.count < bitmaps && layers_are_full(&layers))
            layers_grow(&layers);
    }
    printf("{\"way\": \"%s\", \"keys\": %u, \"bitmaps\": %u, \"m\": %llu, \"k\": %u, "
           "\"bits_per_key\": %.2f, \"bits_set\": %.3f, \"measured\": %.3g}\n",
           name, keys, layers.count, (unsigned long long)shape.bits, shape.functions,
           (double)shape.bits * layers.count / keys,
           (double)layers_set_bits(&layers) / (double)(shape.bits * layers.count),
           share_wrong(&layers));
    layers_finish(&layers);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct bench b = {.keys = (unsigned)strtoul(argv[1], NULL, 10)};
    double rate = strtod(argv[2], NULL), seconds = strtod(argv[3], NULL);
    b.texts = calloc(b.keys, sizeof *b.texts);
    b.lengths = calloc(b.keys, sizeof *b.lengths);
    if (!b.keys || !b.texts || !b.lengths || !(rate > 0 && rate < 1))
        return 2;
    for (unsigned i = 0; i < b.keys; i++)
        b.lengths[i] = number(i, b.texts[i]).length;
    for (unsigned format = 0; format < BITMAP_FORMATS; format++)
        measure_format(&b, (enum bitmap_format)format, rate, seconds);
    struct bitmap_shape fixed = bitmap_shape_for(BITMAP_GUAVA_64, b.keys, rate);
    struct bitmap_shape layer =
        bitmap_shape_for(BITMAP_GUAVA_64, b.keys, rate / PUBLISH_LAYERS_MAX);
    struct bitmap_shape larger = bitmap_shape_for(BITMAP_GUAVA_64, 3 * b.keys, rate);
    measure_growth("fixed", fixed, b.keys, 1);
    measure_growth("fixed", fixed, 3 * b.keys, 1);
    measure_growth("grown", layer, 3 * b.keys, PUBLISH_LAYERS_MAX);
    measure_growth("replaced", larger, 3 * b.keys, 1);
    free(b.texts);
    free(b.lengths);
    return 0;
}
