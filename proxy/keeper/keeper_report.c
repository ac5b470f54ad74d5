/* The parts tell of themselves; here is what only the shell knows, workers and builds, and how it
 * is put together. Nothing is kept: a report is made when somebody asks.
 */
#include "keeper/parts/report.h"

#include "base/clock.h"
#include "base/memory.h"
#include "keeper/keeper_internal.h"
#include "redis/redis.h"

#include <stdlib.h>
#include <string.h>

/* ---- counters ---- */

#define ADD(name, help) to->name += counter_read(&from->name);

static void add_lookups(struct keyspace_report *to, const struct keyspace_counters *from)
{
    KEYSPACE_COUNTERS(ADD)
}

static void add_loads(struct keyspace_report *to, const struct load_counters *from)
{
    LOAD_COUNTERS(ADD)
}

static void add_worker(struct worker_report *to, const struct worker_counters *from)
{
    WORKER_COUNTERS(ADD)
    to->shared_connections += counter_read(&from->shared_connections);
    to->stalled_ms += counter_read(&from->stalled_ms);
    to->own_connections += counter_read(&from->own_connections);
}

/* What is told of the keyspace with this number, retired or not; or NULL. */
static struct keyspace_report *report_of(const struct report *report, size_t number)
{
    const char *name = report->config->keyspaces[number].name;
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->keyspaces[i].config->name, name) == 0)
            return &report->keyspaces[i];
    return NULL;
}

static void count_keyspace(const struct keeper *keeper, size_t number, struct keyspace_report *to)
{
    add_loads(to, &keeper->counters[number]);
    for (unsigned i = 0; i < keeper->worker_count; i++)
        add_lookups(to, &keeper->workers[i]->serving.keyspaces[number]);
}

static void count_keyspaces(const struct keeper *keeper, struct report *report)
{
    for (size_t i = 0; i < report->config->keyspace_count; i++) {
        struct keyspace_report *to = report_of(report, i);
        if (to)
            count_keyspace(keeper, i, to);
    }
}

static void report_workers(const struct keeper *keeper, struct report *report)
{
    report->workers = keeper->worker_count;
    report->clients = atomic_load(&keeper->client_total);
    report->client_bytes = atomic_load(&keeper->client_memory.total);
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        const struct serving *serving = &keeper->workers[i]->serving;
        add_worker(&report->worker, &serving->counters);
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
                                      .due = published->may_lease,
                                      .lease = until > now ? until - now : 0,
                                      .error = published->error};
    if (published->image.count) {
        const struct bitmap_shape *shape = layers_shape(&published->image);
        report.layers = published->image.count;
        report.functions = shape->functions;
        report.bits = shape->bits * report.layers;
        report.bytes = (shape->bits / 8 + 1) * (report.layers + published->old.count);
        report.set = layers_set_bits(&published->image);
    }
    return report;
}

static void report_keyspace(const struct keeper *keeper, size_t i, struct keyspace_report *report)
{
    const struct generation *generation = keeper->publishing.generation;
    const struct keyspace_status *status = &keeper->publishing.keyspaces[i];
    report->number = i;
    report->config = &keeper_config(keeper)->keyspaces[i];
    report->state = status->state;
    report->reason = status->reason;
    report->since = status->since;
    report->published = report_published(publisher_of(keeper->publisher, i));
    report->has_filter = generation && generation->filters[i];
    if (!report->has_filter)
        return;
    report->kind = filter_kind_of(generation->filters[i]);
    report->filter = filter_stats(generation->filters[i]);
    report->rows = generation_rows(generation, i);
}

/* ---- all ---- */

void keeper_report(const struct keeper *keeper, struct report *report)
{
    *report = (struct report){.config = keeper_config(keeper),
                              .started = keeper->started,
                              .is_draining = keeper->leaving.begun,
                              .generation = report_generation(keeper->publishing.generation),
                              .build = report_build(&keeper->renewal),
                              .stream = replication_report(&keeper->replication),
                              .confirms_everything = replication_lets_go(&keeper->replication),
                              .entries = entries_count(&keeper->entries),
                              .attack = *traffic_attack(keeper->accounting.traffic),
                              .rejects = traffic_rate_of_all(keeper->accounting.traffic)};
    report->keyspaces = xcalloc(report->config->keyspace_count, sizeof *report->keyspaces);
    for (size_t i = 0; i < report->config->keyspace_count; i++)
        if (!report->config->keyspaces[i].retired)
            report_keyspace(keeper, i, &report->keyspaces[report->count++]);
    count_keyspaces(keeper, report);
    report_workers(keeper, report);
    report_backends(keeper, report);
}

void report_finish(struct report *report)
{
    free(report->keyspaces);
    free(report->cache);
    *report = (struct report){0};
}

static bool has_filter(const struct generation *generation, int keyspace)
{
    return generation && generation->filters[keyspace];
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
                             ? !has_filter(view->generation, key.keyspace) || report.is_held
                             : report.ruling.decision == DECISION_PASS;
    return report;
}
