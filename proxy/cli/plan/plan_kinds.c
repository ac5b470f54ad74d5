/* A kind's speed and rate are measured with PLAN_KEYS_RUN keys at most; its memory is that of a
 * filter for all that are planned, which is made and thrown away without a key in it.
 */
#include "cli/plan/plan_parts.h"

#include "cli/plan/plan_print.h"
#include "cli/plan/plan_run.h"
#include "cli/terminal/progress.h"

#include <errno.h>
#include <stdio.h>

/* A filter that is not touched takes no memory, but even so this machine may not grant one of that
 * size: then it is as much more than the one that was run as there are keys more. 0, or what
 * filter_create() says. */
static int find_memory(const struct filter_options *planned, const struct plan_run *run,
                       struct plan_memory *memory, const char **error)
{
    struct filter *filter;
    double more = (double)planned->capacity / (double)run->stats.capacity;
    *memory = (struct plan_memory){(double)run->stats.bytes * more, true};
    int code = filter_create(&filter, planned, error);
    if (code)
        return code == -ENOMEM ? 0 : code;
    *memory = (struct plan_memory){(double)filter_stats(filter).bytes, false};
    filter_destroy(filter);
    return 0;
}

/* Bits a key are of what was planned; rate, hits and times of what was run. */
static void print_run(const struct filter_options *planned, const struct plan_run *run,
                      const struct plan_memory *memory)
{
    const struct plan_line line = {.name = filter_kind_name(planned->kind),
                                   .layout = run->layout,
                                   .bits_a_key = 8 * memory->bytes / (double)planned->capacity,
                                   .expected = run->stats.expected_false_positive_rate,
                                   .memory = *memory,
                                   .asked = run->asked,
                                   .wrong = run->wrong,
                                   .insert_ns = run->insert_ns,
                                   .absent_ns = run->absent_ns,
                                   .present_ns = run->present_ns,
                                   .removes = filter_can_remove(planned->kind)};
    plan_print_line(&line);
}

/* Runs one kind, with `keys` of the planned ones. 0, or 1 when it cannot be made or fails: then the
 * reason stands in the place of its figures. */
static int compare_kind(const struct filter_options *planned, uint64_t keys, bool *estimated)
{
    struct filter_options options = *planned;
    struct plan_run run;
    struct plan_memory memory;
    const char *error;
    options.capacity = keys;
    int code = plan_run(&options, &run, &error);
    if (!code)
        code = find_memory(planned, &run, &memory, &error);
    if (code) {
        progress_end();
        printf("%-20s  %s\n", filter_kind_name(planned->kind), error);
        return 1;
    }
    print_run(planned, &run, &memory);
    *estimated |= memory.estimated;
    return 0;
}

int plan_kinds(struct filter_options planned)
{
    uint64_t keys = planned.capacity < PLAN_KEYS_RUN ? planned.capacity : PLAN_KEYS_RUN;
    int status = 0;
    bool estimated = false;
    printf("measured with %llu random keys, one core, lookups in batches; ns a key\n\n",
           (unsigned long long)keys);
    plan_print_head("filter", planned.capacity > keys ? "layout as measured" : "layout");
    for (planned.kind = 0; filter_kind_name(planned.kind); planned.kind++)
        status |= compare_kind(&planned, keys, &estimated);
    if (estimated)
        puts("\n~ by proportion: this machine does not grant as much memory");
    return status;
}
