/* The command line of `nestguard plan`, and its comparison of the kinds of filter. */
#include "cli/plan.h"

#include "base/text/arguments.h"
#include "base/text/byte_unit.h"
#include "cli/forms.h"
#include "cli/plan_run.h"
#include "cli/progress.h"
#include "config/syntax/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Measured with so many keys at most; what is larger behaves the same, a little slower. */
#define KEYS_RUN ((uint64_t)10000000)

/* Beyond, the memory of no machine holds a filter. */
#define KEYS_MAX (UINT64_C(1) << 48)

static int usage(FILE *out)
{
    forms_print("plan", out);
    return out == stdout ? EXIT_DONE : EXIT_USAGE;
}

static int misuse(const char *what, const char *why)
{
    fprintf(stderr, "nestguard plan: %s: %s\n\n", what, why);
    return usage(stderr);
}

/* The memory of as many keys as are planned, which may be more than were run. */
struct memory {
    double bytes;
    bool estimated;
};

/* "21.1 MiB", or "~21.1 MiB" */
static void print_memory(const struct memory *memory)
{
    const char *unit;
    char text[32];
    snprintf(text, sizeof text, "%s%.1f", memory->estimated ? "~" : "",
             byte_unit(memory->bytes, &unit));
    printf("  %7s %-3s", text, unit);
}

/* A filter that is not touched takes no memory, but even so this machine may not grant one of that
 * size: then it is as much more than the one that was run as there are keys more. 0, or what
 * filter_create() says. */
static int find_memory(const struct filter_options *planned, const struct plan_run *run,
                       struct memory *memory, const char **error)
{
    struct filter *filter;
    double more = (double)planned->capacity / (double)run->stats.capacity;
    *memory = (struct memory){(double)run->stats.bytes * more, true};
    int code = filter_create(&filter, planned, error);
    if (code)
        return code == -ENOMEM ? 0 : code;
    *memory = (struct memory){(double)filter_stats(filter).bytes, false};
    filter_destroy(filter);
    return 0;
}

/* Few hits say little: then only what is sure. */
static void print_measured(const struct plan_run *run)
{
    char text[30];
    if (run->wrong)
        snprintf(text, sizeof text, "%.2g", (double)run->wrong / (double)run->asked);
    else
        snprintf(text, sizeof text, "<%.1g", 1.0 / (double)run->asked);
    printf("  %9s", text);
}

static void print_run(const struct filter_options *planned, const struct plan_run *run,
                      const struct memory *memory)
{
    progress_end();
    printf("%-14s  %8.2f", filter_kind_name(planned->kind),
           8 * memory->bytes / (double)planned->capacity);
    print_memory(memory);
    printf("  %9.2g", run->stats.expected_false_positive_rate);
    print_measured(run);
    printf("  %6.1f  %6.1f  %7.1f  %-7s  %s\n", run->insert_ns, run->absent_ns, run->present_ns,
           filter_can_remove(planned->kind) ? "yes" : "no", run->layout);
    fflush(stdout);
}

static void print_head(const struct filter_options *planned, uint64_t keys)
{
    printf("%zu keys, false positives wanted: %g at most\n", planned->capacity,
           planned->false_positive_rate);
    printf("measured with %llu random keys, one core, lookups in batches; ns a key\n\n",
           (unsigned long long)keys);
    printf("%-14s  %8s  %11s  %9s  %9s  %6s  %6s  %7s  %-7s  %s\n", "filter", "bits/key", "memory",
           "expected", "measured", "insert", "absent", "present", "removes",
           planned->capacity > keys ? "layout as measured" : "layout");
}

/* Runs one kind, with `keys` of the planned ones. */
static int compare_kind(const struct filter_options *planned, uint64_t keys, bool *estimated)
{
    struct filter_options options = *planned;
    struct plan_run run;
    struct memory memory;
    const char *error;
    options.capacity = keys;
    int code = plan_run(&options, &run, &error);
    if (!code)
        code = find_memory(planned, &run, &memory, &error);
    if (code) {
        progress_end();
        printf("%-14s  %s\n", filter_kind_name(planned->kind), error);
        return EXIT_FAILED;
    }
    print_run(planned, &run, &memory);
    *estimated |= memory.estimated;
    return EXIT_DONE;
}

static int compare_kinds(struct filter_options planned)
{
    uint64_t keys = planned.capacity < KEYS_RUN ? planned.capacity : KEYS_RUN;
    int status = EXIT_DONE;
    bool estimated = false;
    print_head(&planned, keys);
    for (planned.kind = 0; filter_kind_name(planned.kind); planned.kind++)
        if (compare_kind(&planned, keys, &estimated))
            status = EXIT_FAILED;
    if (estimated)
        puts("\n~ by proportion: this machine does not grant as much memory");
    return status;
}

static int read_options(const char *keys, const char *rate, struct filter_options *planned)
{
    uint64_t count;
    const char *why;
    if (!keys || !rate)
        return misuse(keys ? "--fpr" : "--keys", "say how many keys, and at what rate");
    if (units_count(keys, &count, &why))
        return misuse(keys, why);
    if (count == 0 || count > KEYS_MAX)
        return misuse(keys, "the number of keys must be from 1 to 2^48");
    if (units_fraction(rate, &planned->false_positive_rate, &why))
        return misuse(rate, why);
    if (!filter_rate_is_possible(planned->false_positive_rate))
        return misuse(rate, "the rate must be from 0.0000001 to 0.03");
    planned->capacity = count;
    return EXIT_DONE;
}

int plan_main(int argc, char **argv)
{
    const char *keys = NULL, *rate = NULL;
    unsigned table = 0, help = 0;
    const struct argument_option options[] = {{"keys", &keys, NULL, 0},
                                              {"fpr", &rate, NULL, 0},
                                              {"table", NULL, &table, 0},
                                              {"help", NULL, &help, 'h'},
                                              {0}};
    struct arguments arguments = {.options = options, .most = 0};
    struct filter_options planned = {.capacity = 0};
    if (arguments_read(&arguments, argc, argv) < 0)
        return misuse(arguments.wrong, arguments.why);
    if (help)
        return usage(stdout);
    bool kinds = keys || rate || !table;
    int status = kinds ? read_options(keys, rate, &planned) : EXIT_DONE;
    if (status == EXIT_DONE && kinds)
        status = compare_kinds(planned);
    if (status == EXIT_DONE && kinds && table)
        putchar('\n');
    if (status == EXIT_DONE && table && plan_print_table())
        status = EXIT_FAILED;
    return status;
}
