/* Without a log a generation never changes: nothing need be followed, only doubted now and then.
 * What keeps it honest is the snapshot that it was read under, by which a self-check tells a row
 * that it must know from one that came later.
 */
#include "follow/checks/standing.h"

#include "base/memory.h"

#include <stdlib.h>

struct standing {
    struct standing_options options;
    struct shared_config *config; /* as in tracker.c */
    struct generation *generation;
    struct snapshot snapshot;
    struct checks *checks;
};

static void on_passed(void *arg)
{
    struct standing *standing = arg;
    standing->options.ready(standing->options.arg, standing);
}

static bool on_failed(void *arg, size_t keyspace, const char *why)
{
    struct standing *standing = arg;
    if (standing->options.gives_up(standing->options.arg, standing, keyspace, why))
        return true;
    standing->options.fault(standing->options.arg, standing, why);
    return false;
}

struct standing *standing_create(struct built *built, const struct standing_options *options)
{
    struct standing *standing = xcalloc(1, sizeof *standing);
    standing->options = *options;
    standing->config = built->config;
    standing->generation = built->generation;
    standing->snapshot = built->snapshot;
    built->config = NULL;
    built->generation = NULL;
    built->snapshot = (struct snapshot){0};
    standing->checks = checks_create(&(struct checks_options){.checker = options->checker,
                                                              .config = options->config,
                                                              .fn_checks = options->fn_checks,
                                                              .generation = standing->generation,
                                                              .snapshot = &standing->snapshot,
                                                              .passed = on_passed,
                                                              .failed = on_failed,
                                                              .arg = standing});
    checks_when_due(standing->checks);
    return standing;
}

/* Its filters do not change: whatever an answer of the database tells can be judged at once. That
 * may end this. */
void standing_tick(struct standing *standing)
{
    checks_when_due(standing->checks);
    fn_checks_known(standing->options.fn_checks, standing->generation, UINT64_MAX);
}

struct generation *standing_generation(const struct standing *standing)
{
    return standing->generation;
}

void standing_close(struct standing *standing)
{
    if (!standing)
        return;
    checks_close(standing->checks);
    fn_checks_forget(standing->options.fn_checks, standing->generation);
    generation_release(standing->generation);
    shared_config_release(standing->config);
    snapshot_finish(&standing->snapshot);
    free(standing);
}
