/* The account as Prometheus' text; as JSON: status.c.
 *
 * Names are a contract with dashboards and alerts. A family's lines stand together, as the format
 * wants it, so the loops over keyspaces are within those over families. What is not known has no
 * line: a 0 would be a figure.
 */
#include "control/status.h"

#include "control/exposition.h"
#include "control/process_account.h"
#include "control/tally.h"

#include <string.h>
#include <time.h>

/* As a label's value it needs no escape: it was read as a SETTING_NAME (config/settings.h). */
static const char *keyspace_name(const struct report *report, size_t i)
{
    return report->keyspaces[i].config->name;
}

/* What workers count of each keyspace. */
static void keyspace_metrics(const struct report *report, struct buffer *out)
{
    char name[64];
    size_t count = report->count;
    for (const struct counter_row *row = tally_keyspace_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        exposition_family(out, name, "counter", row->help);
        for (size_t i = 0; i < count; i++)
            buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %llu\n", name,
                          keyspace_name(report, i),
                          (unsigned long long)tally_count(&report->keyspaces[i], row));
    }
}

/* Counters that are one family, told apart by a label. */
static const struct counter_family {
    const char *prefix, *name, *label, *help;
} load_families[] = {
    {"loads_", "loads_total", "result", "Loads by their result"},
    {"fills_failed_", "fills_failed_total", "reason", "Values that the cache did not take, by why"},
    {0}};

/* NULL: the counter is a family by itself. */
static const struct counter_family *family_of(const struct counter_row *row)
{
    for (const struct counter_family *family = load_families; family->prefix; family++)
        if (!strncmp(row->name, family->prefix, strlen(family->prefix)))
            return family;
    return NULL;
}

/* What the keeper counts of each: rows of one family follow one another in the table. */
static void load_metrics(const struct report *report, struct buffer *out)
{
    const struct counter_family *last = NULL;
    char name[64], label[64];
    for (const struct counter_row *row = tally_load_rows; row->name; row++) {
        const struct counter_family *own = family_of(row);
        snprintf(name, sizeof name, own ? "%s" : "%s_total", own ? own->name : row->name);
        label[0] = '\0';
        if (own)
            snprintf(label, sizeof label, ",%s=\"%s\"", own->label,
                     row->name + strlen(own->prefix));
        if (!own || own != last)
            exposition_family(out, name, "counter", own ? own->help : row->help);
        last = own;
        for (size_t i = 0; i < report->count; i++)
            buffer_printf(out, "nestguard_%s{keyspace=\"%s\"%s} %llu\n", name,
                          keyspace_name(report, i), label,
                          (unsigned long long)tally_count(&report->keyspaces[i], row));
    }
}

/* A line for each state, so that a dashboard sees one go as another comes. */
static void state_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->count;
    exposition_family(out, "keyspace_state", "gauge", "1 for the state that the keyspace is in");
    for (size_t i = 0; i < count; i++)
        for (enum keyspace_state state = 0; state <= KEYSPACE_PASSING; state++)
            buffer_printf(out, "nestguard_keyspace_state{keyspace=\"%s\",state=\"%s\"} %d\n",
                          keyspace_name(report, i), keyspace_state_name(state),
                          report->keyspaces[i].state == state);
    exposition_family(out, "keyspace_state_seconds", "gauge",
                      "How long the keyspace has been in its state");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_keyspace_state_seconds{keyspace=\"%s\"} %.3f\n",
                      keyspace_name(report, i), tally_seconds_since(report->keyspaces[i].since));
}

/* Of a keyspace without a filter there is its rate alone, by what was counted before. */
static void filter_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->count;
    exposition_family(out, "filter_keys", "gauge", "Keys in the filter");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].has_filter)
            buffer_printf(out, "nestguard_filter_keys{keyspace=\"%s\"} %zu\n",
                          keyspace_name(report, i), report->keyspaces[i].filter.keys);
    exposition_family(out, "filter_bytes", "gauge", "Memory of the filter");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].has_filter)
            buffer_printf(out, "nestguard_filter_bytes{keyspace=\"%s\"} %zu\n",
                          keyspace_name(report, i), report->keyspaces[i].filter.bytes);
    exposition_family(out, "measured_false_positive_rate", "gauge",
                      "Share of the lookups of absent keys that the filter let pass");
    for (size_t i = 0; i < count; i++) {
        double rate;
        if (tally_measured_rate(&report->keyspaces[i], &rate))
            buffer_printf(out, "nestguard_measured_false_positive_rate{keyspace=\"%s\"} %g\n",
                          keyspace_name(report, i), rate);
    }
}

struct published_row {
    const char *name, *help;
    size_t offset;   /* of a uint64_t in struct published_report */
    double per_unit; /* so many of it are one of what is told */
};

/* Of keyspaces that publish. */
static void published_metrics(const struct report *report, struct buffer *out)
{
    static const struct published_row rows[] = {
        {"published_keys", "Rows in what the keyspace publishes",
         offsetof(struct published_report, keys), 1},
        {"published_places", "Bits of what the keyspace publishes",
         offsetof(struct published_report, bits), 1},
        {"published_places_set", "Those of them that are set",
         offsetof(struct published_report, set), 1},
        {"published_bytes", "Memory of the guard's own copy of it",
         offsetof(struct published_report, bytes), 1},
        {"published_lease_due", "1 while the keyspace guards, so that there should be a lease",
         offsetof(struct published_report, due), 1},
        {"published_lease_seconds", "Time that is left of its lease, 0 without one",
         offsetof(struct published_report, lease), 1000},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        exposition_family(out, rows[r].name, "gauge", rows[r].help);
        for (size_t i = 0; i < report->count; i++) {
            const struct published_report *published = &report->keyspaces[i].published;
            uint64_t value;
            memcpy(&value, (const char *)published + rows[r].offset, sizeof value);
            if (published->key)
                buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %.15g\n", rows[r].name,
                              keyspace_name(report, i), (double)value / rows[r].per_unit);
        }
    }
}

/* Of keyspaces that are lists. */
static void source_metrics(const struct report *report, struct buffer *out)
{
    exposition_family(out, "source_refused", "gauge",
                      "1 while the newest list of its keys is refused, or is not there");
    for (size_t i = 0; i < report->count; i++)
        if (report->keyspaces[i].config->source)
            buffer_printf(out, "nestguard_source_refused{keyspace=\"%s\"} %d\n",
                          keyspace_name(report, i), report->keyspaces[i].refused != NULL);
}

/* Of keyspaces that it was about: not those of files, nor what has come since. */
static void check_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->check.generation ? report->count : 0;
    exposition_family(out, "self_check_failures_total", "counter",
                      "Self-checks that found a row which the filter lacked");
    for (size_t i = 0; i < report->count; i++)
        if (keyspace_has_rows(report->keyspaces[i].config))
            buffer_printf(out, "nestguard_self_check_failures_total{keyspace=\"%s\"} %llu\n",
                          keyspace_name(report, i),
                          (unsigned long long)report->keyspaces[i].check_failures);
    exposition_family(out, "self_check_rows", "gauge", "Rows that the last self-check saw");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].check.outcome != SELFCHECK_NONE)
            buffer_printf(out, "nestguard_self_check_rows{keyspace=\"%s\"} %llu\n",
                          keyspace_name(report, i),
                          (unsigned long long)report->keyspaces[i].check.rows);
    exposition_family(
        out, "self_check_good", "gauge",
        "0 if the last self-check failed or could not tell, 1 if nothing speaks against it");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].check.outcome != SELFCHECK_NONE)
            buffer_printf(out, "nestguard_self_check_good{keyspace=\"%s\"} %d\n",
                          keyspace_name(report, i),
                          selfcheck_is_good(report->keyspaces[i].check.outcome));
    exposition_family(out, "self_check_age_seconds", "gauge",
                      "Time since the last self-check ended");
    if (count)
        buffer_printf(out, "nestguard_self_check_age_seconds %.3f\n",
                      tally_seconds_since(report->check.time));
}

/* A family of one line. */
static void gauge(struct buffer *out, const char *name, const char *help, double value)
{
    exposition_family(out, name, "gauge", help);
    buffer_printf(out, "nestguard_%s %.10g\n", name, value);
}

/* Nothing while no log is followed. */
static void stream_metrics(const struct report *report, struct buffer *out)
{
    const struct stream_report *stream = &report->stream;
    struct follower_counts counts = stream->counts;
    if (!stream->is_followed)
        return;
    gauge(out, "stream_lag_bytes", "Log of the database that is not followed yet",
          (double)stream->behind);
    gauge(out, "stream_lag_seconds", "Age of what the filter knows",
          tally_seconds_since(stream->known));
    gauge(out, "stream_lag_limit_seconds", "Behind by more nothing is rejected; max_lag",
          (double)report->config->max_lag_ms / 1000);
    gauge(out, "stream_position_bytes", "Position in the database's log", (double)stream->position);
    if (counts.transactions)
        gauge(out, "stream_last_commit_timestamp_seconds", "When the last followed commit was made",
              tally_commit_time(counts.last_commit_us));
    exposition_family(out, "stream_changes_total", "counter",
                      "Changes followed by this generation's stream");
    buffer_printf(out, "nestguard_stream_changes_total %llu\n", (unsigned long long)counts.changes);
}

/* Of loads that wait for their turn at the database. */
static void wait_metrics(const struct loads_waits *waits, struct buffer *out)
{
    gauge(out, "load_window", "Loads that may be at the database at once while others wait",
          (double)waits->window);
    gauge(out, "loads_queued", "Loads that wait for their turn at the database",
          (double)waits->now);
    gauge(out, "loads_queued_bytes", "Memory of the loads that wait", (double)waits->bytes);
    exposition_family(out, "load_wait_seconds", "histogram",
                      "How long loads waited for their turn at the database");
    exposition_durations(out, "load_wait_seconds", "", &waits->turns);
}

static void database_metrics(const struct durations answers[LOADS_ANSWERS], struct buffer *out)
{
    static const char *const labels[] = {[LOADS_ROW] = "outcome=\"row\"",
                                         [LOADS_ABSENT] = "outcome=\"absent\"",
                                         [LOADS_ERROR] = "outcome=\"error\""};
    exposition_family(out, "database_seconds", "histogram",
                      "How long the database took for a load's query, by what it answered");
    for (int i = 0; i < LOADS_ANSWERS; i++)
        exposition_durations(out, "database_seconds", labels[i], &answers[i]);
}

/* Rows of one family stand together, and the first of them has its head. */
#define TIME_ROW(name, family, labels, help) {family, labels, help},

static void time_metrics(const struct durations times[WORKER_TIME_COUNT], struct buffer *out)
{
    static const struct {
        const char *name, *labels, *help;
    } rows[] = {WORKER_TIMES(TIME_ROW)};
    for (int i = 0; i < WORKER_TIME_COUNT; i++) {
        if (!i || strcmp(rows[i].name, rows[i - 1].name) != 0)
            exposition_family(out, rows[i].name, "histogram", rows[i].help);
        exposition_durations(out, rows[i].name, rows[i].labels, &times[i]);
    }
}

/* A command that nobody has sent has no line. */
static void call_metrics(const uint64_t calls[COMMAND_NUMBERS], struct buffer *out)
{
    exposition_family(out, "command_calls_total", "counter",
                      "Commands received, by their names; those that nestguard does not know are "
                      "one");
    for (size_t i = 0; i <= command_table_rows; i++)
        if (calls[i])
            buffer_printf(out, "nestguard_command_calls_total{command=\"%s\"} %llu\n",
                          i < command_table_rows ? command_table[i].name : "other",
                          (unsigned long long)calls[i]);
}

/* Clients, and the connections to the cache that they use. */
static void client_metrics(const struct report *report, struct buffer *out)
{
    gauge(out, "clients", "Clients now connected", report->clients);
    gauge(out, "client_memory_bytes",
          "Memory of clients: input, lookups and replies that wait or arrive",
          (double)report->client_bytes);
    gauge(out, "client_memory_limit_bytes", "Of more the heaviest client is cut off",
          (double)report->config->max_client_memory);
    gauge(out, "clients_limit", "Clients that there is room for", report->config->limits.clients);
    gauge(out, "shared_connections", "Connections to the cache that clients share",
          (double)report->worker.shared_connections);
    exposition_family(out, "shared_connections_stalled_seconds_total", "counter",
                      "Time that shared cache connections waited for slow readers");
    buffer_printf(out, "nestguard_shared_connections_stalled_seconds_total %.3f\n",
                  (double)report->worker.stalled_ms / 1000);
    gauge(out, "own_connections", "Connections to the cache that clients have of their own",
          (double)report->worker.own_connections);
    gauge(out, "own_connections_limit",
          "Of them there is room for, by own_connections, open files, and maxclients of the cache",
          (double)report->worker.own_limit);
    gauge(out, "bulk_limit_bytes",
          "Longest argument that is taken: max_bulk, or proto-max-bulk-len of the cache",
          (double)report->worker.max_bulk);
}

static void cache_metrics(const struct report *report, struct buffer *out)
{
    gauge(out, "cache_up",
          "1 while the connections for fills and purges are up, to all primaries, and each slot of "
          "a cluster has one",
          tally_cache_is_up(report));
    if (report->cache_is_cluster)
        gauge(out, "cache_slots_uncovered", "Slots of the cluster that no node has",
              report->slots_uncovered);
    exposition_family(
        out, "cache_node_up", "gauge",
        "1 for the server that is the cache, for a sentinel that names one, and for a replica "
        "that is read from; 0: status says why not");
    for (size_t i = 0; i < report->cache_nodes; i++) {
        buffer_printf(out, "nestguard_cache_node_up{address=");
        exposition_value(out, report->cache[i].address);
        buffer_printf(out, ",role=\"%s\"} %d\n", redis_role_name(report->cache[i].role),
                      report->cache[i].up);
    }
    for (size_t i = 0; i < report->replica_count; i++) {
        buffer_printf(out, "nestguard_cache_node_up{address=");
        exposition_value(out, report->replicas[i].address);
        buffer_printf(out, ",role=\"replica\"} %d\n", report->replicas[i].is_read);
    }
}

/* What is of no keyspace: workers, builds, clients, generation, loads, attack, cache. */
static void guard_metrics(const struct report *report, struct buffer *out)
{
    const struct generation_report *generation = &report->generation;
    char name[64];
    for (const struct counter_row *row = tally_worker_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        exposition_family(out, name, "counter", row->help);
        buffer_printf(out, "nestguard_%s %llu\n", name,
                      (unsigned long long)tally_count(&report->worker, row));
    }
    exposition_family(out, "build_failures_total", "counter",
                      "Generations that could not be built");
    buffer_printf(out, "nestguard_build_failures_total %llu\n",
                  (unsigned long long)report->build.failures);
    gauge(out, "build_failing", "1 while the last attempt to build a generation has failed",
          report->build.failing);
    client_metrics(report, out);
    gauge(out, "generation", "Number of the generation in force, 0 for none",
          (double)generation->number);
    if (generation->number)
        gauge(out, "generation_age_seconds", "Time since the generation in force was built",
              (double)(time(NULL) - generation->built_at));
    gauge(out, "building", "1 while a generation is being built", report->build.at_work);
    gauge(out, "building_waits", "1 while that waits for others; status and log say for whom",
          report->build.at_work && report->build.progress.waits[0]);
    gauge(out, "confirms_everything",
          "1 while commits that wait for the guard return at once, for nothing is rejected",
          report->confirms_everything);
    gauge(out, "loads_in_flight", "Loads on their way", (double)report->loads);
    time_metrics(report->times, out);
    call_metrics(report->calls, out);
    wait_metrics(&report->waits, out);
    database_metrics(report->database, out);
    gauge(out, "attack", "1 while there is an attack, see attack_threshold", report->attack.is_on);
    gauge(out, "rejects_per_second", "Lookups rejected in the last second", report->rejects.now);
    exposition_family(out, "attacks_total", "counter", "Attacks so far");
    buffer_printf(out, "nestguard_attacks_total %llu\n", (unsigned long long)report->attack.number);
    gauge(out, "entries", "Admitted, deleted and blocked keys", (double)report->entries);
    gauge(out, "entries_limit", "As many as there may be; max_hints", report->config->max_hints);
    gauge(out, "reload_refused", "1 while the file that was last read again is refused",
          report->refusal != NULL);
    cache_metrics(report, out);
    if (report->config->database)
        gauge(out, "database_connections", "Connections for loads that are up",
              report->database_connections);
    gauge(out, "uptime_seconds", "Time since the guard was started",
          tally_seconds_since(report->started));
}

/* ---- the process, by the names that clients of Prometheus have for it ---- */

static void process_gauge(struct buffer *out, const char *name, const char *type, const char *help,
                          double value)
{
    buffer_printf(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.10g\n", name, help,
                  name, type, name, value);
}

/* What is not known has no line. */
static void process_metrics(struct buffer *out)
{
    struct process_account process = process_account();
    process_gauge(out, "cpu_seconds_total", "counter", "Processor time, user and system",
                  process.cpu_seconds);
    process_gauge(out, "start_time_seconds", "gauge", "When the process was started",
                  process.start_time);
    if (process.resident_bytes)
        process_gauge(out, "resident_memory_bytes", "gauge", "Memory that is resident",
                      (double)process.resident_bytes);
    if (process.virtual_bytes)
        process_gauge(out, "virtual_memory_bytes", "gauge", "Memory that is mapped",
                      (double)process.virtual_bytes);
    if (process.open_files)
        process_gauge(out, "open_fds", "gauge", "Files that are open", (double)process.open_files);
    process_gauge(out, "max_fds", "gauge", "Files that may be open", (double)process.max_files);
}

void status_metrics(const struct report *report, struct buffer *out)
{
    exposition_family(out, "info", "gauge", "Version");
    buffer_printf(out, "nestguard_info{version=\"%s\"} 1\n", NESTGUARD_VERSION);
    exposition_family(out, "build_info", "gauge", "How the program was built");
    buffer_printf(out, "nestguard_build_info{version=\"%s\",compiler=\"%s\"} 1\n",
                  NESTGUARD_VERSION, __VERSION__);
    state_metrics(report, out);
    keyspace_metrics(report, out);
    load_metrics(report, out);
    filter_metrics(report, out);
    published_metrics(report, out);
    source_metrics(report, out);
    check_metrics(report, out);
    stream_metrics(report, out);
    guard_metrics(report, out);
    process_metrics(out);
}
