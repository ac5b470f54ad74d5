/* Three numbers are kept apart: rows that there are, keys that a filter takes (with places to spare
 * where a log will tell of more), and bytes, of which all filters and bitmaps of a generation
 * and those of sources together may have max_filter_memory. What a bitmap may grow by counts as
 * taken from the beginning: it could not be had later.
 */
#include "build/filter_size.h"

#include <stdio.h>

enum {
    SPARE_SHARE = 32, /* places for new rows: this share of the rows */
    SPARE_ROWS = 1000 /* and for small tables so many */
};

static size_t capacity_for(const struct config *config, uint64_t rows)
{
    uint64_t spare = rows / SPARE_SHARE;
    if (config->sync != SYNC_REPLICATION)
        return rows;
    return rows + (spare > SPARE_ROWS ? spare : SPARE_ROWS);
}

/* A bitmap, and those beside it that it may grow by. */
static size_t bitmap_most(const struct bitmap *bitmap, const struct publish *publish)
{
    size_t length;
    bitmap_bytes(bitmap, &length);
    return publish->grow ? PUBLISH_LAYERS_MAX * length : length;
}

size_t filter_size_taken(const struct generation *generation, const struct config *config)
{
    size_t bytes = generation_bytes(generation);
    for (size_t i = 0; i < generation->count; i++)
        if (generation->bitmaps[i])
            bytes += bitmap_most(generation->bitmaps[i], &config->keyspaces[i].publish);
    return bytes;
}

size_t filter_size_room(const struct config *config, size_t taken)
{
    if (!config->max_filter_memory)
        return 0;
    return taken < config->max_filter_memory ? config->max_filter_memory - taken : 1;
}

int filter_for(struct filter **out, const struct config *config, size_t keyspace, uint64_t rows,
               size_t taken, struct pg_error *error)
{
    const struct keyspace *of = &config->keyspaces[keyspace];
    const char *why;
    struct filter_options options = {.kind = of->filter,
                                     .capacity = capacity_for(config, rows),
                                     .false_positive_rate = of->false_positive_rate,
                                     .max_bytes = filter_size_room(config, taken)};
    int status = filter_create(out, &options, &why);
    if (status)
        snprintf(error->text, sizeof error->text, "a filter for the %llu rows of keyspace %s: %s",
                 (unsigned long long)rows, of->name, why);
    return status;
}

/* One that does not grow must hold all that come before the filter is full and another is built,
 * and while that is. One that grows begins with hardly more than the rows that there are, for it
 * can have more at any time; and it is wrong by the sum of all its bitmaps. */
static uint64_t items_for(const struct publish *publish, uint64_t rows)
{
    uint64_t spare = rows / (2 * SPARE_SHARE);
    if (!publish->grow)
        return rows + rows / 2 + SPARE_ROWS;
    return rows + (spare > SPARE_ROWS / 4 ? spare : SPARE_ROWS / 4);
}

struct bitmap *filter_size_bitmap(const struct config *config, size_t keyspace, uint64_t rows,
                                  size_t taken)
{
    size_t room = filter_size_room(config, taken);
    const struct publish *publish = &config->keyspaces[keyspace].publish;
    double rate = publish->false_positive_rate / (publish->grow ? PUBLISH_LAYERS_MAX : 1);
    if (!publish->key)
        return NULL;
    struct bitmap_shape shape = bitmap_shape_for(publish->format, items_for(publish, rows), rate);
    struct bitmap *bitmap = bitmap_create(&shape);
    if (!bitmap || !room || bitmap_most(bitmap, publish) <= room)
        return bitmap;
    bitmap_destroy(bitmap);
    return NULL;
}

/* About half of the share that is to spare may be missing, or as much be too much. */
bool filter_size_fits(const struct filter *filter, const struct config *config, uint64_t rows)
{
    size_t capacity = filter_stats(filter).capacity;
    size_t wanted = capacity_for(config, rows);
    size_t tolerance = wanted / (2 * SPARE_SHARE);
    return capacity >= wanted - tolerance && capacity <= wanted + tolerance;
}
