/* The parts tell of themselves; here is what only the shell knows, workers and builds, and how it
 * is put together. Nothing is kept: a report is made when somebody asks.
 */
#include "keeper/report.h"

#include "base/clock.h"
#include "base/memory.h"
#include "keeper/keeper_internal.h"
#include "redis/redis.h"

#include <stdlib.h>

/* ---- counters ---- */

#define ADD(name, help) to->name += counter_read(&from->name);
#define TAKE(name, help) to->name = counter_read(&from->name);

static void add_lookups(struct keyspace_report *to, const struct keyspace_counters *from)
{
    KEYSPACE_COUNTERS(ADD)
}

static void take_loads(struct keyspace_report *to, const struct load_counters *from)
{
    LOAD_COUNTERS(TAKE)
}

static void add_worker(struct worker_report *to, const struct worker_counters *from)
{
    WORKER_COUNTERS(ADD)
    to->shared_connections += counter_read(&from->shared_connections);
    to->own_connections += counter_read(&from->own_connections);
}

static void report_workers(const struct keeper *keeper, struct report *report)
{
    report->workers = keeper->worker_count;
    report->clients = atomic_load(&keeper->client_total);
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        const struct serving *serving = &keeper->workers[i]->serving;
        add_worker(&report->worker, &serving->counters);
        for (size_t k = 0; k < report->count; k++)
            add_lookups(&report->keyspaces[k], &serving->keyspaces[k]);
    }
}

/* ---- parts ---- */

static struct generation_report report_generation(const struct generation *generation)
{
    if (!generation)
        return (struct generation_report){0};
    return (struct generation_report){generation->number, generation->rows,
                                      generation_bytes(generation), generation->build_seconds,
                                      generation->built_at};
}

static struct build_report report_build(const struct renewal *renewal)
{
    struct build_report report = {.at_work = renewal->builder != NULL,
                                  .newest = renewal->newest,
                                  .error = renewal->error,
                                  .failures = renewal->failures};
    if (renewal->builder)
        report.progress = builder_progress(renewal->builder);
    return report;
}

static void report_backends(const struct keeper *keeper, struct report *report)
{
    purging_report(&keeper->purging, report);
    loading_report(&keeper->loading, report);
    checking_report(&keeper->checking, report);
}

static struct published_report report_published(const struct published *published)
{
    if (!published)
        return (struct published_report){0};
    uint64_t now = clock_ms(), until = published->lease;
    struct published_report report = {.key = published->keyspace->publish.key,
                                      .state = published_state_name(published->state),
                                      .keys = published->keys,
                                      .generation = published->image_id,
                                      .deleted = published->deleted,
                                      .lease = until > now ? until - now : 0,
                                      .error = published->error};
    if (published->image.count) {
        const struct bitmap_shape *shape = layers_shape(&published->image);
        report.layers = published->image.count;
        report.functions = shape->functions;
        report.bits = shape->bits * report.layers;
        report.bytes = (size_t)(shape->bits / 8) * (report.layers + published->old.count);
        report.set = layers_set_bits(&published->image);
    }
    return report;
}

static void report_keyspace(const struct keeper *keeper, size_t i, struct keyspace_report *report)
{
    const struct keyspace_status *status = &keeper->publishing.keyspaces[i];
    report->config = &keeper_config(keeper)->keyspaces[i];
    report->state = status->state;
    report->reason = status->reason;
    report->since = status->since;
    report->published = report_published(publisher_of(keeper->publisher, i));
    take_loads(report, &keeper->counters[i]);
    if (keeper->publishing.generation) {
        report->kind = filter_kind_of(keeper->publishing.generation->filters[i]);
        report->filter = filter_stats(keeper->publishing.generation->filters[i]);
    }
}

/* ---- all ---- */

void keeper_report(const struct keeper *keeper, struct report *report)
{
    *report = (struct report){.config = keeper_config(keeper),
                              .started = keeper->started,
                              .is_draining = keeper->draining,
                              .count = keeper_config(keeper)->keyspace_count,
                              .generation = report_generation(keeper->publishing.generation),
                              .build = report_build(&keeper->renewal),
                              .stream = replication_report(&keeper->replication),
                              .confirms_everything = replication_lets_go(&keeper->replication),
                              .entries = entries_count(&keeper->entries)};
    report->keyspaces = xcalloc(report->count, sizeof *report->keyspaces);
    for (size_t i = 0; i < report->count; i++)
        report_keyspace(keeper, i, &report->keyspaces[i]);
    report_workers(keeper, report);
    report_backends(keeper, report);
}

void report_finish(struct report *report)
{
    free(report->keyspaces);
    *report = (struct report){0};
}

/* What is decided, by the functions by which workers decide, on the view and the entries that they
 * have copies of. Where the keyspace may not reject, the ruling says nothing of the filter, which
 * is asked whatever entries say. */
struct key_report keeper_report_key(const struct keeper *keeper, struct key key)
{
    const struct view *view = keeper->publishing.view;
    struct permission permission = permission_begin(view);
    struct key_report report = {.is_held = guard_holds(view, key),
                                .known_absent = loads_knows_absent(keeper->loading.loads, key),
                                .in_flight = loads_in_flight(keeper->loading.loads, key),
                                .entry = entries_find(&keeper->entries, key),
                                .state = view->states[key.keyspace],
                                .generation = view->generation ? view->generation->number : 0,
                                .stream = replication_report(&keeper->replication)};
    report.ruling =
        guard_decide(&permission, &keeper->entries.table, key.keyspace, key.text, report.is_held);
    report.is_possible = report.ruling.reason == REASON_NO_PERMISSION
                             ? !view->generation || report.is_held
                             : report.ruling.decision == DECISION_PASS;
    return report;
}
