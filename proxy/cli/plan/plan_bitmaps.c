/* Bitmaps that are published for others to read: their items are texts, here decimal numbers. */
#include "cli/plan/plan_parts.h"

#include "cli/plan/plan_print.h"
#include "cli/terminal/progress.h"
#include "filters/bitmap/bitmap.h"

#include <stdio.h>
#include <uv.h>

/* Absent items that are asked for: at a rate of 1 % ten thousand of them are hits. And how many
 * items lie between two looks at the clock. */
enum { ASKED = 1000000, SHOW_EVERY = 4096 };

struct counted {
    uint64_t found; /* of those asked for, how many it has */
    double ns;      /* each, on average */
};

/* Its digits, the last one first: numbers that differ have texts that differ, which is enough.
 * Returns the length. */
static size_t write_item(uint64_t number, char item[24])
{
    size_t length = 0;
    do
        item[length++] = (char)('0' + number % 10);
    while (number /= 10);
    return length;
}

/* Numbers 0 to count - 1. Returns nanoseconds an item, the writing of its text among them. */
static double add_items(struct bitmap *bitmap, uint64_t count, const char *name)
{
    uint64_t places[BITMAP_FUNCTIONS_MAX], began = uv_hrtime();
    char item[24];
    for (uint64_t i = 0; i < count; i++) {
        bitmap_add(bitmap, item, write_item(i, item), places);
        if (i % SHOW_EVERY == 0)
            progress_show(name, i, count);
    }
    return (double)(uv_hrtime() - began) / (double)count;
}

static struct counted ask_items(const struct bitmap *bitmap, uint64_t first, uint64_t count)
{
    struct counted counted = {0};
    uint64_t began = uv_hrtime();
    char item[24];
    for (uint64_t i = first; i < first + count; i++)
        counted.found += bitmap_contains(bitmap, item, write_item(i, item));
    counted.ns = (double)(uv_hrtime() - began) / (double)count;
    return counted;
}

/* `bitmap` takes the first `run` items, and is asked for those behind them. What the line says of
 * bits, layout and memory is of what was planned for all `keys`; a byte more has the bit behind the
 * last (bitmap.h). */
static void run_format(enum bitmap_format format, uint64_t keys, uint64_t run,
                       const struct bitmap_shape *planned, struct bitmap *bitmap)
{
    char layout[60];
    const char *name = bitmap_format_name(format);
    double insert_ns = add_items(bitmap, run, name);
    struct counted absent = ask_items(bitmap, run, ASKED), present = ask_items(bitmap, 0, run);
    snprintf(layout, sizeof layout, "%u functions to %llu bits", planned->functions,
             (unsigned long long)planned->bits);
    const struct plan_line line = {.name = name,
                                   .layout = layout,
                                   .bits_a_key = (double)planned->bits / (double)keys,
                                   .expected = bitmap_shape_rate(planned, keys),
                                   .memory = {(double)planned->bits / 8 + 1, false},
                                   .asked = ASKED,
                                   .wrong = absent.found,
                                   .insert_ns = insert_ns,
                                   .absent_ns = absent.ns,
                                   .present_ns = present.ns};
    plan_print_line(&line);
}

/* 0 or 1. That Redis cannot hold a bitmap is an answer, not a failure. */
static int compare_format(enum bitmap_format format, uint64_t keys, double rate)
{
    struct bitmap_shape planned = bitmap_shape_for(format, keys, rate);
    uint64_t run = keys < PLAN_KEYS_RUN ? keys : PLAN_KEYS_RUN;
    struct bitmap_shape shape = bitmap_shape_for(format, run, rate);
    if (planned.bits > BITMAP_BITS_MAX) {
        printf("%-20s  %llu bits are more than Redis takes as one string, 512 MB\n",
               bitmap_format_name(format), (unsigned long long)planned.bits);
        return 0;
    }
    struct bitmap *bitmap = bitmap_create(&shape);
    if (!bitmap) {
        printf("%-20s  this machine does not grant as much memory\n", bitmap_format_name(format));
        return 1;
    }
    run_format(format, keys, run, &planned, bitmap);
    bitmap_destroy(bitmap);
    return 0;
}

int plan_bitmaps(uint64_t keys, double rate)
{
    int status = 0;
    plan_print_head("published bitmap", "layout");
    for (unsigned format = 0; format < BITMAP_FORMATS; format++)
        status |= compare_format((enum bitmap_format)format, keys, rate);
    return status;
}
