/* What each kind of filter costs on this machine, beside what the machine's memory costs.
 *
 *   bench_filters [--keys N] [--fpr P] [--filter NAME] [--json] [--seconds S]
 *
 * Keys are random 64-bit numbers, as hashes are. Every figure but the memory's is nanoseconds an
 * operation, by the K-best method. The filters are full: as many keys as they were made for.
 *
 * "floor" is the least that a lookup in two places of a table of this size can cost: two
 * independent cache lines a key, asked for well ahead, one word of each looked at. It is measured
 * in turn with the batched lookup of absent keys. */
#include "filter_figures.h"
#include "filters/bitmap/bitmap.h"
#include "filters/filter.h"
#include "filters/pages.h"
#include "kbest.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN = 1 << 14,         /* operations timed together: less than a slice of the scheduler */
    RATE_HITS = 1000,      /* looked for where a false-positive rate is measured ... */
    MOST_PROBES = 1 << 24, /* ... in no more lookups than these */
    AHEAD = 128,           /* cache lines on their way, of the floor */
    SECONDS = 5,           /* for a figure, if its runs do not agree before */
    FILL_SHARE = 4         /* times that for a figure for which a filter is filled each time */
};

__extension__ typedef unsigned __int128 uint128;

/* How a figure is measured; without a run it is not. */
struct way {
    void (*prepare)(void *arg);
    void (*run)(void *arg, size_t slice);
    bool fills, removes;
};

struct bench {
    const struct way *ways;
    struct filter_options options;
    struct filter *filter;
    struct bitmap_shape shape; /* in its place */
    struct bitmap *bitmap;
    size_t keys, run;
    double seconds;
    uint64_t *present; /* `keys` of them */
    uint64_t *absent;  /* `run` of them, new ones for each run that inserts them */
    bool *found;
    size_t at; /* where in `present` the next run begins */
    uint64_t drawn;
    uint64_t *lines; /* of the floor */
    size_t words;
    uint64_t sum; /* so that nothing measured can be left out */
};

static void give_up(const char *why)
{
    fprintf(stderr, "bench_filters: %s\n", why);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        give_up("there is not enough memory");
    return memory;
}

/* splitmix64 (Steele, Lea and Flood, 2014): each number comes once. */
static uint64_t draw(struct bench *b)
{
    uint64_t x = ++b->drawn * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* What is timed, and what comes before it */

static void empty(void *arg)
{
    struct bench *b = arg;
    const char *error;
    filter_destroy(b->filter);
    if (filter_create(&b->filter, &b->options, &error))
        give_up(error);
}

static size_t slices_of(const struct bench *b)
{
    return (b->keys + b->run - 1) / b->run;
}

static size_t slice_end(const struct bench *b, size_t slice)
{
    return b->keys - slice * b->run < b->run ? b->keys : (slice + 1) * b->run;
}

static void insert_slice(void *arg, size_t slice)
{
    struct bench *b = arg;
    for (size_t i = slice * b->run; i < slice_end(b, slice); i++)
        if (filter_insert(b->filter, b->present[i]))
            give_up("a filter had no place for a key that it was made for");
}

static void insert_slice_in_bulk(void *arg, size_t slice)
{
    struct bench *b = arg;
    size_t from = slice * b->run;
    if (filter_insert_batch(b->filter, b->present + from, slice_end(b, slice) - from, NULL))
        give_up("a filter had no place for a key that it was made for");
}

static void draw_absent(void *arg)
{
    struct bench *b = arg;
    for (size_t i = 0; i < b->run; i++)
        b->absent[i] = draw(b);
}

/* The next `run` keys; runs do not overlap, so that none finds what the one before left in the
 * caches. */
static void go_on(void *arg)
{
    struct bench *b = arg;
    b->at += b->run;
    if (b->at + b->run > b->keys)
        b->at = 0;
}

static void look_up(struct bench *b, const uint64_t *hashes)
{
    for (size_t i = 0; i < b->run; i++)
        b->sum += filter_contains(b->filter, hashes[i]);
}

static void look_up_absent(void *arg, size_t slice)
{
    (void)slice;
    look_up(arg, ((struct bench *)arg)->absent);
}

static void look_up_present(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    look_up(b, b->present + b->at);
}

static void look_up_absent_batch(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    filter_contains_batch(b->filter, b->absent, b->run, b->found);
}

static void look_up_present_batch(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    filter_contains_batch(b->filter, b->present + b->at, b->run, b->found);
}

/* Puts back what the run before took out, and lets it take out others. */
static void put_back(void *arg)
{
    struct bench *b = arg;
    if (filter_stats(b->filter).keys < b->keys &&
        filter_insert_batch(b->filter, b->present + b->at, b->run, NULL))
        give_up("a filter had no place for a key that was in it before");
    go_on(arg);
}

static void take_out(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    for (size_t i = 0; i < b->run; i++)
        if (filter_remove(b->filter, b->present[b->at + i]))
            give_up("a filter had lost a key");
}

static void draw_others(void *arg)
{
    go_on(arg);
    draw_absent(arg);
}

static void exchange(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    for (size_t i = 0; i < b->run; i++) {
        uint64_t *key = &b->present[b->at + i];
        if (filter_remove(b->filter, *key))
            give_up("a filter had lost a key");
        *key = b->absent[i];
        if (filter_insert(b->filter, *key))
            give_up("a filter had no place for a key in exchange for another");
    }
}

static const uint64_t *line_of(const struct bench *b, uint64_t hash)
{
    return &b->lines[(size_t)((uint128)hash * b->words >> 64)];
}

static uint64_t second(uint64_t hash)
{
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static void touch_lines(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    for (size_t i = 0; i < b->run; i++) {
        uint64_t ahead = b->absent[i + AHEAD < b->run ? i + AHEAD : i];
        __builtin_prefetch(line_of(b, ahead));
        __builtin_prefetch(line_of(b, second(ahead)));
        b->sum += *line_of(b, b->absent[i]) ^ *line_of(b, second(b->absent[i]));
    }
}

/* With bitmaps, whose items are texts: the numbers' bytes, as many as a usual key has digits. */

static void empty_bitmap(void *arg)
{
    struct bench *b = arg;
    bitmap_destroy(b->bitmap);
    b->bitmap = bitmap_create(&b->shape);
    if (!b->bitmap)
        give_up("there is not enough memory");
}

static void add_slice(void *arg, size_t slice)
{
    struct bench *b = arg;
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    for (size_t i = slice * b->run; i < slice_end(b, slice); i++)
        bitmap_add(b->bitmap, &b->present[i], sizeof *b->present, places);
}

static void ask_for_absent(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    for (size_t i = 0; i < b->run; i++)
        b->sum += bitmap_contains(b->bitmap, &b->absent[i], sizeof *b->absent);
}

static void ask_for_present(void *arg, size_t slice)
{
    (void)slice;
    struct bench *b = arg;
    for (size_t i = b->at; i < b->at + b->run; i++)
        b->sum += bitmap_contains(b->bitmap, &b->present[i], sizeof *b->present);
}

/* The figures */

static const struct way filter_ways[FIGURES] = {
    [INSERT] = {empty, insert_slice, .fills = true},
    [BULK_INSERT] = {empty, insert_slice_in_bulk, .fills = true},
    [ABSENT] = {draw_absent, look_up_absent, false, false},
    [ABSENT_BATCH] = {draw_absent, look_up_absent_batch, false, false},
    [PRESENT] = {go_on, look_up_present, false, false},
    [PRESENT_BATCH] = {go_on, look_up_present_batch, false, false},
    [REMOVE] = {put_back, take_out, .removes = true},
    [CHURN] = {draw_others, exchange, .removes = true},
    [FLOOR] = {draw_absent, touch_lines, false, false},
};

static const struct way bitmap_ways[FIGURES] = {
    [INSERT] = {empty_bitmap, add_slice, .fills = true},
    [ABSENT] = {draw_absent, ask_for_absent, false, false},
    [PRESENT] = {go_on, ask_for_present, false, false},
};

static bool can_remove(enum filter_kind kind)
{
    struct filter_options options = {.kind = kind, .capacity = 1, .false_positive_rate = 1e-3};
    struct filter *filter;
    const char *error;
    if (filter_create(&filter, &options, &error))
        give_up(error);
    bool can = filter_insert(filter, 1) == 0 && filter_remove(filter, 1) == 0;
    filter_destroy(filter);
    return can;
}

static struct kbest_task task_of(struct bench *b, enum figure figure)
{
    const struct way *way = &b->ways[figure];
    return (struct kbest_task){.prepare = way->prepare,
                               .run = way->run,
                               .arg = b,
                               .slices = way->fills ? slices_of(b) : 1,
                               .seconds = b->seconds * (way->fills ? FILL_SHARE : 1)};
}

static void note(const struct bench *b, struct result *result, enum figure figure,
                 struct kbest_time time)
{
    double share = time.wall_ns / time.ns;
    if (fabs(share - 1) > fabs(result->wall_share - 1))
        result->wall_share = share;
    result->disagreed += !time.agreed;
    result->ns[figure] = time.ns / (double)(b->ways[figure].fills ? b->keys : b->run);
}

static void measure(struct bench *b, struct result *result, enum figure figure)
{
    struct kbest_task task = task_of(b, figure);
    note(b, result, figure, kbest_measure(&task));
}

/* In turn with the floor, from which most of its time comes. */
static void measure_beside_floor(struct bench *b, struct result *result, enum figure figure)
{
    const struct kbest_task tasks[] = {task_of(b, figure), task_of(b, FLOOR)};
    struct kbest_time times[2];
    size_t bytes = filter_stats(b->filter).bytes;
    b->words = bytes / sizeof *b->lines;
    b->lines = pages_map(bytes);
    if (!b->lines)
        give_up("there is not enough memory");
    memset(b->lines, 1, bytes); /* else all would be one page of zeros */
    kbest_compare(tasks, 2, times);
    note(b, result, figure, times[0]);
    note(b, result, FLOOR, times[1]);
    pages_unmap(b->lines, bytes);
}

/* Of the absent. */
static size_t count_found(struct bench *b)
{
    size_t found = 0;
    if (b->filter)
        filter_contains_batch(b->filter, b->absent, b->run, b->found);
    for (size_t i = 0; i < b->run; i++)
        found +=
            b->filter ? b->found[i] : bitmap_contains(b->bitmap, &b->absent[i], sizeof *b->absent);
    return found;
}

static double measure_rate(struct bench *b)
{
    double enough = fmin(RATE_HITS / b->options.false_positive_rate, MOST_PROBES);
    size_t hits = 0, probes = 0;
    while ((double)probes < enough) {
        draw_absent(b);
        hits += count_found(b);
        probes += b->run;
    }
    return (double)hits / (double)probes;
}

static size_t bytes_of(const struct bench *b)
{
    size_t bytes;
    if (b->filter)
        return filter_stats(b->filter).bytes;
    bitmap_bytes(b->bitmap, &bytes);
    return bytes;
}

static struct result measure_all(struct bench *b, bool removes)
{
    struct result result = {.keys = b->keys, .wall_share = 1, .ns[FLOOR] = (double)NAN};
    for (enum figure figure = 0; figure < FLOOR; figure++) {
        result.ns[figure] = (double)NAN;
        if (b->ways[figure].run && figure == ABSENT_BATCH)
            measure_beside_floor(b, &result, figure);
        else if (b->ways[figure].run && (removes || !b->ways[figure].removes))
            measure(b, &result, figure);
        if (figure == BULK_INSERT)
            result.rate = measure_rate(b);
        if (figure == REMOVE && b->filter)
            put_back(b);
    }
    result.bits_per_key = 8.0 * (double)bytes_of(b) / (double)b->keys;
    return result;
}

static struct result bench_keys(struct bench *b, bool removes)
{
    b->run = b->keys < RUN ? b->keys : RUN;
    b->present = allocate(b->keys, sizeof *b->present);
    b->absent = allocate(b->run, sizeof *b->absent);
    b->found = allocate(b->run, sizeof *b->found);
    for (size_t i = 0; i < b->keys; i++)
        b->present[i] = draw(b);
    struct result result = measure_all(b, removes);
    filter_destroy(b->filter);
    bitmap_destroy(b->bitmap);
    free(b->present);
    free(b->absent);
    free(b->found);
    return result;
}

static struct result bench_kind(const struct filter_options *options, double seconds)
{
    struct bench b = {filter_ways, *options, .keys = options->capacity, .seconds = seconds};
    struct result result = bench_keys(&b, can_remove(options->kind));
    result.filter = filter_kind_name(options->kind);
    return result;
}

/* What is published for others to read. */
static struct result bench_format(enum bitmap_format format, const struct filter_options *options,
                                  double seconds)
{
    struct bench b = {bitmap_ways, *options, .keys = options->capacity, .seconds = seconds};
    b.shape = bitmap_shape_for(format, b.keys, options->false_positive_rate);
    struct result result = bench_keys(&b, false);
    result.filter = bitmap_format_name(format);
    return result;
}

/* All, or the one that is wanted. Returns how many. */
static unsigned bench_all(struct filter_options options, const char *wanted, double seconds,
                          void (*print)(const struct result *))
{
    unsigned count = 0;
    for (; filter_kind_name(options.kind); options.kind++)
        if (!wanted || strcmp(wanted, filter_kind_name(options.kind)) == 0) {
            struct result result = bench_kind(&options, seconds);
            print(&result);
            count++;
        }
    for (enum bitmap_format format = 0; (int)format < BITMAP_FORMATS; format++)
        if (!wanted || strcmp(wanted, bitmap_format_name(format)) == 0) {
            struct result result = bench_format(format, &options, seconds);
            print(&result);
            count++;
        }
    return count;
}

/* The command line */

static double number_of(const char *text, double least, double most)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number >= least && number <= most)) {
        fprintf(stderr, "bench_filters: %s is not between %g and %g\n", text, least, most);
        exit(2);
    }
    return number;
}

static int usage(FILE *to, int code)
{
    fprintf(to, "bench_filters [--keys N] [--fpr P] [--filter NAME] [--json] [--seconds S]\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"keys", required_argument, NULL, 'k'},
                                          {"fpr", required_argument, NULL, 'p'},
                                          {"filter", required_argument, NULL, 'f'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct filter_options options = {.capacity = 10000000, .false_positive_rate = 1e-4};
    const char *wanted = NULL;
    double seconds = SECONDS;
    bool json = false;
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'k')
            options.capacity = (size_t)number_of(optarg, 1, 1e12);
        else if (option == 'p')
            options.false_positive_rate = number_of(optarg, 1e-7, 0.03);
        else if (option == 'f')
            wanted = optarg;
        else if (option == 's')
            seconds = number_of(optarg, 0, 1e6);
        else if (option == 'j')
            json = true;
        else
            return option == 'h' ? usage(stdout, 0) : usage(stderr, 2);
    }
    if (optind < argc)
        return usage(stderr, 2);
    if (!bench_all(options, wanted, seconds,
                   json ? filter_figures_print_json : filter_figures_print_text))
        give_up("there is no such filter");
    return 0;
}
