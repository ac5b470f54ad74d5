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
#include "filters/filter.h"
#include "filters/pages.h"
#include "kbest.h"

#include <getopt.h>
#include <math.h>
#include <stdint.h>
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

struct bench {
    struct filter_options options;
    struct filter *filter;
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

/* The figures */

enum figure {
    INSERT,
    BULK_INSERT,
    ABSENT,
    ABSENT_BATCH,
    PRESENT,
    PRESENT_BATCH,
    REMOVE,
    CHURN,
    FLOOR,
    FIGURES
};

static const struct {
    const char *name;
    void (*prepare)(void *arg);
    void (*run)(void *arg, size_t slice);
    bool fills, removes;
} figures[] = {
    [INSERT] = {"insert", empty, insert_slice, .fills = true},
    [BULK_INSERT] = {"bulk_insert", empty, insert_slice_in_bulk, .fills = true},
    [ABSENT] = {"absent", draw_absent, look_up_absent, false, false},
    [ABSENT_BATCH] = {"absent_batch", draw_absent, look_up_absent_batch, false, false},
    [PRESENT] = {"present", go_on, look_up_present, false, false},
    [PRESENT_BATCH] = {"present_batch", go_on, look_up_present_batch, false, false},
    [REMOVE] = {"remove", put_back, take_out, .removes = true},
    [CHURN] = {"churn", draw_others, exchange, .removes = true},
    [FLOOR] = {"floor", draw_absent, touch_lines, false, false},
};

struct result {
    const char *filter;
    size_t keys;
    double bits_per_key, rate;
    double ns[FIGURES]; /* NAN: the filter cannot do it */
    double wall_share;  /* the clock's time over the cycle counter's, where they differ most */
    size_t disagreed;   /* figures whose shortest runs differed by more than the tolerance */
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
    bool fills = figures[figure].fills;
    return (struct kbest_task){.prepare = figures[figure].prepare,
                               .run = figures[figure].run,
                               .arg = b,
                               .slices = fills ? slices_of(b) : 1,
                               .seconds = b->seconds * (fills ? FILL_SHARE : 1)};
}

static void note(const struct bench *b, struct result *result, enum figure figure,
                 struct kbest_time time)
{
    double share = time.wall_ns / time.ns;
    if (fabs(share - 1) > fabs(result->wall_share - 1))
        result->wall_share = share;
    result->disagreed += !time.agreed;
    result->ns[figure] = time.ns / (double)(figures[figure].fills ? b->keys : b->run);
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

static double measure_rate(struct bench *b)
{
    double enough = fmin(RATE_HITS / b->options.false_positive_rate, MOST_PROBES);
    size_t hits = 0, probes = 0;
    while ((double)probes < enough) {
        draw_absent(b);
        filter_contains_batch(b->filter, b->absent, b->run, b->found);
        for (size_t i = 0; i < b->run; i++)
            hits += b->found[i];
        probes += b->run;
    }
    return (double)hits / (double)probes;
}

static struct result measure_all(struct bench *b)
{
    struct result result = {.filter = filter_kind_name(b->options.kind), .keys = b->keys};
    bool removes = can_remove(b->options.kind);
    result.wall_share = 1;
    for (enum figure figure = 0; figure < FLOOR; figure++) {
        result.ns[figure] = (double)NAN;
        if (figure == ABSENT_BATCH)
            measure_beside_floor(b, &result, figure);
        else if (removes || !figures[figure].removes)
            measure(b, &result, figure);
        if (figure == BULK_INSERT)
            result.rate = measure_rate(b);
        if (figure == REMOVE)
            put_back(b);
    }
    result.bits_per_key = 8.0 * (double)filter_stats(b->filter).bytes / (double)b->keys;
    return result;
}

static struct result bench_kind(struct filter_options options, double seconds)
{
    struct bench b = {.options = options, .keys = options.capacity, .seconds = seconds};
    b.run = b.keys < RUN ? b.keys : RUN;
    b.present = allocate(b.keys, sizeof *b.present);
    b.absent = allocate(b.run, sizeof *b.absent);
    b.found = allocate(b.run, sizeof *b.found);
    for (size_t i = 0; i < b.keys; i++)
        b.present[i] = draw(&b);
    struct result result = measure_all(&b);
    filter_destroy(b.filter);
    free(b.present);
    free(b.absent);
    free(b.found);
    return result;
}

/* What is printed */

static void print_number(const char *name, double number)
{
    printf(", \"%s\": ", name);
    if (isnan(number))
        printf("null");
    else
        printf("%.6g", number);
}

static void print_json(const struct result *result)
{
    printf("{\"filter\": \"%s\", \"keys\": %zu", result->filter, result->keys);
    print_number("bits_per_key", result->bits_per_key);
    print_number("false_positive_rate", result->rate);
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        char name[32];
        snprintf(name, sizeof name, "%s_ns", figures[figure].name);
        print_number(name, result->ns[figure]);
    }
    printf("}\n");
    fflush(stdout);
}

static void print_text(const struct result *result)
{
    printf("%s, %zu keys\n", result->filter, result->keys);
    printf("  %-14s %10.2f bits\n", "memory a key", result->bits_per_key);
    printf("  %-14s %10.3g\n", "false positive", result->rate);
    if (result->rate > 0)
        printf("  %-14s %10.2f bits a key\n", "over log2(1/e)",
               result->bits_per_key + log2(result->rate));
    for (enum figure figure = 0; figure < FIGURES; figure++)
        if (!isnan(result->ns[figure]))
            printf("  %-14s %10.2f ns\n", figures[figure].name, result->ns[figure]);
    printf("  clock / counter %9.4f\n", result->wall_share);
    if (result->disagreed)
        printf("  %zu of these are of a machine too busy to agree with itself\n",
               result->disagreed);
    fflush(stdout);
}

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
    bool json = false, met = false;
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
    for (options.kind = 0; filter_kind_name(options.kind); options.kind++) {
        if (wanted && strcmp(wanted, filter_kind_name(options.kind)) != 0)
            continue;
        struct result result = bench_kind(options, seconds);
        json ? print_json(&result) : print_text(&result);
        met = true;
    }
    if (!met)
        give_up("there is no such filter");
    return 0;
}
