/* The parts tell of themselves; here it is put together, and counted by keyspaces' names, of which
 * a process may have had several numbers. Nothing is kept: a report is made when somebody asks.
 */
#include "keeper/parts/report.h"

#include "keeper/keeper_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- counters ---- */

#define ADD(name, help) to->name += counter_read(&from->name);

static void add_loads(struct keyspace_report *to, const struct load_counters *from)
{
    LOAD_COUNTERS(ADD)
}

/* Of commands what each worker has made known; see measuring_tick(). */
static void add_measures(struct report *to, const struct measures *from)
{
    for (int i = 0; i < WORKER_TIME_COUNT; i++)
        histogram_read(&from->times[i], &to->times[i]);
    for (size_t i = 0; i <= command_table_rows; i++)
        to->calls[i] += counter_read(&from->told[i]);
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

/* What a number has counted stays, also when the keyspace has been retired. */
static void count_keyspace(const struct keeper *keeper, size_t number, struct keyspace_report *to)
{
    add_loads(to, &keeper->counters[number]);
    for (unsigned i = 0; i < keeper->worker_count; i++)
        worker_report_add_lookups(&to->lookups, keeper->workers[i], number);
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
        worker_report_add(&report->worker, keeper->workers[i]);
        add_measures(report, &keeper->workers[i]->serving.measures);
    }
}

/* ---- all ---- */

void keeper_report(const struct keeper *keeper, struct report *report)
{
    *report = (struct report){.started = keeper->started,
                              .is_draining = keeper->leaving.begun,
                              .refusal = keeper->refusal[0] ? keeper->refusal : NULL,
                              .build = renewal_report(&keeper->renewal),
                              .stream = replication_report(&keeper->replication),
                              .confirms_everything = replication_lets_go(&keeper->replication),
                              .replicas = keeper->replicas.words,
                              .replica_count = keeper->replicas.count,
                              .entries = entries_count(&keeper->entries),
                              .attack = *traffic_attack(keeper->accounting.traffic),
                              .rejects = traffic_rate_of_all(keeper->accounting.traffic)};
    publishing_report(&keeper->publishing, report);
    for (size_t i = 0; i < report->count; i++)
        report->keyspaces[i].published =
            publisher_report(keeper->publisher, report->keyspaces[i].number);
    count_keyspaces(keeper, report);
    report_workers(keeper, report);
    purging_report(&keeper->purging, report);
    loading_report(&keeper->loading, report);
    checking_report(&keeper->checking, report);
}

void report_finish(struct report *report)
{
    free(report->keyspaces);
    free(report->cache);
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
                                .refusal =
                                    loads_refusal(keeper->loading.loads, (size_t)key.keyspace),
                                .generation = view->generation ? view->generation->number : 0,
                                .stream = replication_report(&keeper->replication)};
    report.ruling =
        guard_decide(&permission, &keeper->entries.table, key.keyspace, key.text, report.is_held);
    report.is_possible = report.ruling.reason == REASON_NO_PERMISSION
                             ? !view->asked[key.keyspace].filter || report.is_held
                             : report.ruling.decision == DECISION_PASS;
    return report;
}
