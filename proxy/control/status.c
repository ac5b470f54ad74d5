/* One account in two forms. The lists in counters.h give both their names, so that a new counter
 * shows up in both by itself. Workers go on counting while they are read: sums are near each other
 * in time, but no snapshot.
 */
#include "control/status.h"

#include "base/clock.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"
#include "postgres/pg_pool.h"
#include "redis/redis.h"

#include <string.h>

/* PostgreSQL counts from 2000-01-01. */
enum { EPOCH_SECONDS = 946684800 };

/* ---- sums over the workers ---- */

/* The counter of this name, added up: `offset` is its place in struct keyspace_counters. */
static uint64_t keyspace_sum(const struct keeper *keeper, size_t keyspace, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        const char *counters = (const char *)&keeper->workers[i]->serving.keyspaces[keyspace];
        sum += counter_read((const counter *)(const void *)(counters + offset));
    }
    return sum;
}

static uint64_t worker_sum(const struct keeper *keeper, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        const char *counters = (const char *)&keeper->workers[i]->serving.counters;
        sum += counter_read((const counter *)(const void *)(counters + offset));
    }
    return sum;
}

static uint64_t load_counter(const struct keeper *keeper, size_t keyspace, size_t offset)
{
    const char *counters = (const char *)&keeper->counters[keyspace];
    return counter_read((const counter *)(const void *)(counters + offset));
}

#define LOADS(name) load_counter(keeper, i, offsetof(struct load_counters, name))
#define CONNECTIONS(name) worker_sum(keeper, offsetof(struct worker_counters, name))
#define LOOKUPS(name) keyspace_sum(keeper, i, offsetof(struct keyspace_counters, name))

struct counter_row {
    const char *name, *help;
    size_t offset;
};

#define KEYSPACE_ROW(name, help) {#name, help, offsetof(struct keyspace_counters, name)},
#define LOAD_ROW(name, help) {#name, help, offsetof(struct load_counters, name)},
#define WORKER_ROW(name, help) {#name, help, offsetof(struct worker_counters, name)},
static const struct counter_row keyspace_rows[] = {KEYSPACE_COUNTERS(KEYSPACE_ROW){0}};
static const struct counter_row load_rows[] = {LOAD_COUNTERS(LOAD_ROW){0}};
static const struct counter_row worker_rows[] = {WORKER_COUNTERS(WORKER_ROW){0}};

/* Share of the lookups of absent keys that the filter let pass: false positives found by loads,
 * against rejections. */
static double measured_rate(const struct keeper *keeper, size_t i)
{
    uint64_t passed = LOADS(false_positives) + LOADS(known_absent);
    uint64_t all = passed + LOOKUPS(rejected) + LOOKUPS(would_reject);
    return all ? (double)passed / (double)all : 0;
}

static double seconds_since(uint64_t then)
{
    return (double)(clock_ms() - then) / 1000;
}

/* ---- JSON ---- */

/* Workers accept before the control port's first call is read, until they are told to drain. */
bool status_is_serving(const struct keeper *keeper)
{
    return keeper->worker_count > 0 && !keeper->draining;
}

bool status_is_guarding(const struct keeper *keeper)
{
    for (size_t i = 0; i < keeper_config(keeper)->keyspace_count; i++)
        if (keeper->keyspaces[i].state != KEYSPACE_GUARDING)
            return false;
    return true;
}

json_t *status_states(const struct keeper *keeper)
{
    json_t *states = json_object();
    for (size_t i = 0; i < keeper_config(keeper)->keyspace_count; i++)
        json_object_set_new(states, keeper_config(keeper)->keyspaces[i].name,
                            json_string(keyspace_state_name(keeper->keyspaces[i].state)));
    return states;
}

/* Null until there is a generation. */
static json_t *filter_json(const struct keeper *keeper, size_t i)
{
    if (!keeper->generation)
        return json_null();
    const struct filter *filter = keeper->generation->filters[i];
    struct filter_stats stats = filter_stats(filter);
    double fill = stats.slots ? (double)stats.keys / (double)stats.slots : 0;
    double bits = stats.keys ? (double)stats.bytes * 8 / (double)stats.keys : 0;
    return json_pack("{s:s, s:I, s:I, s:f, s:I, s:f, s:I, s:f, s:f}", "kind",
                     filter_kind_name(filter_kind_of(filter)), "keys", (json_int_t)stats.keys,
                     "slots", (json_int_t)stats.slots, "fill", fill, "bytes",
                     (json_int_t)stats.bytes, "bits_per_key", bits, "stash",
                     (json_int_t)stats.stash_used, "expected_false_positive_rate",
                     stats.expected_false_positive_rate, "measured_false_positive_rate",
                     measured_rate(keeper, i));
}

static void add_counters(const struct keeper *keeper, size_t i, json_t *to)
{
    for (const struct counter_row *row = keyspace_rows; row->name; row++)
        json_object_set_new(to, row->name,
                            json_integer((json_int_t)keyspace_sum(keeper, i, row->offset)));
    for (const struct counter_row *row = load_rows; row->name; row++)
        json_object_set_new(to, row->name,
                            json_integer((json_int_t)load_counter(keeper, i, row->offset)));
    json_object_set_new(
        to, "loads",
        json_integer((json_int_t)(LOADS(loads_row) + LOADS(loads_absent) + LOADS(loads_timeout) +
                                  LOADS(loads_down) + LOADS(loads_refused))));
}

/* Of keys in another spelling than their row's; null while there was none. */
static json_t *example_json(const struct keeper *keeper, size_t i)
{
    const struct spelling *latest = spellings_latest(keeper->spellings, i);
    if (!LOADS(other_spellings))
        return json_null();
    return json_pack("{s:o, s:o}", "asked", json_bytes(latest->asked, strlen(latest->asked)), "row",
                     json_bytes(latest->own, strlen(latest->own)));
}

/* The last self-check, of whichever generation; null before the first. */
static json_t *check_json(const struct keeper *keeper, size_t i)
{
    const struct checker_account *account = checker_account(keeper->checker);
    if (!account->generation)
        return json_null();
    const struct selfcheck_account *found = &account->keyspaces[i];
    return json_pack("{s:s, s:I, s:I, s:f}", "outcome", checks_outcome_text(found->outcome),
                     "rows_seen", (json_int_t)found->rows, "generation",
                     (json_int_t)account->generation, "age_seconds", seconds_since(account->time));
}

static json_t *keyspace_json(const struct keeper *keeper, size_t i)
{
    const struct keyspace *keyspace = &keeper_config(keeper)->keyspaces[i];
    const struct keyspace_status *status = &keeper->keyspaces[i];
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:b, s:o}", "name", keyspace->name,
                             "key", keyspace->key.text, "table", keyspace->table_text, "state",
                             keyspace_state_name(status->state), "reason", status->reason,
                             "seconds_in_state", seconds_since(status->since), "enforce",
                             keyspace->enforce, "filter", filter_json(keeper, i));
    json_object_set_new(
        json, "rows",
        keeper->generation
            ? json_integer((json_int_t)filter_stats(keeper->generation->filters[i]).keys)
            : json_null());
    json_object_set_new(json, "self_check", check_json(keeper, i));
    add_counters(keeper, i, json);
    json_object_set_new(json, "other_spelling_example", example_json(keeper, i));
    return json;
}

static json_t *generation_json(const struct keeper *keeper)
{
    const struct generation *generation = keeper->generation;
    if (!generation)
        return json_null();
    return json_pack(
        "{s:I, s:b, s:I, s:I, s:f, s:I, s:n}", "number", (json_int_t)generation->number, "complete",
        1, "rows", (json_int_t)generation->rows, "bytes", (json_int_t)generation_bytes(generation),
        "build_seconds", generation->build_seconds, "age_seconds",
        (json_int_t)(time(NULL) - generation->built_at), "position");
}

/* The rest of the time is as long as the rows that are left take at the rate so far. */
/* The log as PostgreSQL writes its positions: "0/16B3748". */
static json_t *position_json(uint64_t lsn)
{
    return json_sprintf("%X/%X", (unsigned)(lsn >> 32), (unsigned)lsn);
}

json_t *status_position(const struct keeper *keeper)
{
    return keeper->sync ? position_json(sync_lag(keeper->sync)->position) : json_null();
}

static double lag_seconds(const struct keeper *keeper)
{
    return seconds_since(sync_lag(keeper->sync)->known);
}

/* Of what the generation in force follows. Null where none is followed, or its stream was lost. */
static json_t *stream_json(const struct keeper *keeper)
{
    if (!keeper->sync)
        return json_null();
    const struct lag *lag = sync_lag(keeper->sync);
    struct follower_counts counts = sync_counts(keeper->sync);
    json_t *json =
        json_pack("{s:o, s:I, s:f, s:f, s:I, s:I}", "position", position_json(lag->position),
                  "lag_bytes", (json_int_t)lag_bytes(lag), "lag_seconds", lag_seconds(keeper),
                  "log_bytes_per_second", keeper->pace.bytes_per_second, "transactions",
                  (json_int_t)counts.transactions, "changes", (json_int_t)counts.changes);
    bool any = counts.transactions > 0;
    json_object_set_new(json, "last_commit_position",
                        any ? position_json(counts.last_commit_lsn) : json_null());
    json_object_set_new(json, "last_commit_time",
                        any ? json_real((double)counts.last_commit_us / 1e6 + EPOCH_SECONDS)
                            : json_null());
    json_object_set_new(json, "purges_owed", json_integer((json_int_t)purger_owed(keeper->purger)));
    return json;
}

/* Commits that wait for the guard return at once, for nothing is rejected. */
static bool confirms_everything(const struct keeper *keeper)
{
    return keeper->confirmer && confirmer_is_at_work(keeper->confirmer);
}

/* For a transaction or a lock, for some time. */
static bool build_waits(const struct keeper *keeper)
{
    return keeper->renewal.builder && builder_progress(keeper->renewal.builder).waits[0];
}

static json_t *building_json(const struct keeper *keeper)
{
    const struct renewal *renewal = &keeper->renewal;
    if (!renewal->builder)
        return json_null();
    struct build_progress progress = builder_progress(renewal->builder);
    double rate = progress.seconds > 0 ? (double)progress.rows / progress.seconds : 0;
    uint64_t left = progress.rows_total > progress.rows ? progress.rows_total - progress.rows : 0;
    return json_pack("{s:I, s:s, s:s?, s:I, s:I, s:f, s:f, s:o}", "number",
                     (json_int_t)renewal->newest, "phase", build_phase_text(progress.phase),
                     "waits", progress.waits[0] ? progress.waits : NULL, "rows",
                     (json_int_t)progress.rows, "rows_total", (json_int_t)progress.rows_total,
                     "seconds", progress.seconds, "rows_per_second", rate, "remaining_seconds",
                     rate > 0 ? json_real((double)left / rate) : json_null());
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *backends_json(const struct keeper *keeper)
{
    const struct pg_error *error = pg_pool_error(keeper->pool);
    return json_pack("{s:{s:b}, s:{s:i, s:o, s:i, s:i}}", "cache", "up", redis_is_up(keeper->redis),
                     "database", "connections", (int)pg_pool_live(keeper->pool), "error",
                     error ? json_string(error->text) : json_null(), "loads_in_flight",
                     (int)loads_count(keeper->loads), "load_budget",
                     (int)keeper_config(keeper)->load_budget);
}

/* Of clients, as far as open files go. */
static json_t *limits_json(const struct keeper *keeper)
{
    const struct file_limits *limits = &keeper_config(keeper)->limits;
    return json_pack("{s:I, s:I, s:I}", "open_files", (json_int_t)limits->files, "clients",
                     (json_int_t)limits->clients, "own_connections_per_worker",
                     (json_int_t)limits->own_connections);
}

json_t *status_json(const struct keeper *keeper)
{
    json_t *json = json_pack(
        "{s:s, s:f, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I}", "version", NESTGUARD_VERSION,
        "uptime_seconds", seconds_since(keeper->started), "sync",
        sync_mode_name(keeper_config(keeper)->sync), "ready", status_is_serving(keeper), "guarding",
        status_is_guarding(keeper), "generation", generation_json(keeper), "building",
        building_json(keeper), "last_build_error", text_or_null(keeper->renewal.error), "backends",
        backends_json(keeper), "entries", (json_int_t)overrides_count(&keeper->overrides));
    json_t *keyspaces = json_array();
    for (size_t i = 0; i < keeper_config(keeper)->keyspace_count; i++)
        json_array_append_new(keyspaces, keyspace_json(keeper, i));
    json_object_set_new(json, "keyspaces", keyspaces);
    json_object_set_new(json, "stream", stream_json(keeper));
    json_object_set_new(json, "confirms_everything", json_boolean(confirms_everything(keeper)));
    json_object_set_new(json, "clients",
                        json_integer((json_int_t)atomic_load(&keeper->client_total)));
    json_object_set_new(json, "shared_connections",
                        json_integer((json_int_t)CONNECTIONS(shared_connections)));
    json_object_set_new(json, "own_connections",
                        json_integer((json_int_t)CONNECTIONS(own_connections)));
    json_object_set_new(json, "workers", json_integer(keeper->worker_count));
    json_object_set_new(json, "limits", limits_json(keeper));
    for (const struct counter_row *row = worker_rows; row->name; row++)
        json_object_set_new(json, row->name,
                            json_integer((json_int_t)worker_sum(keeper, row->offset)));
    return json;
}

/* ---- Prometheus ---- */

/* Prometheus' text format: HELP and TYPE once for each name, before its samples. */
static void family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP nestguard_%s %s\n# TYPE nestguard_%s %s\n", name, help, name, type);
}

static const char *keyspace_name(const struct keeper *keeper, size_t i)
{
    return keeper_config(keeper)->keyspaces[i].name;
}

static void keyspace_metrics(const struct keeper *keeper, struct buffer *out)
{
    char name[64];
    size_t count = keeper_config(keeper)->keyspace_count;
    for (const struct counter_row *row = keyspace_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        family(out, name, "counter", row->help);
        for (size_t i = 0; i < count; i++)
            buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %llu\n", name,
                          keyspace_name(keeper, i),
                          (unsigned long long)keyspace_sum(keeper, i, row->offset));
    }
}

/* Loads by result are one family; the other counters of the keeper are one each. */
static void load_metrics(const struct keeper *keeper, struct buffer *out)
{
    static const char prefix[] = "loads_";
    char name[64];
    size_t count = keeper_config(keeper)->keyspace_count;
    family(out, "loads_total", "counter", "Loads by their result");
    for (const struct counter_row *row = load_rows; row->name; row++) {
        bool is_load = !strncmp(row->name, prefix, sizeof prefix - 1);
        snprintf(name, sizeof name, "%s_total", row->name);
        if (!is_load)
            family(out, name, "counter", row->help);
        for (size_t i = 0; i < count; i++) {
            unsigned long long value = load_counter(keeper, i, row->offset);
            if (is_load)
                buffer_printf(out, "nestguard_loads_total{keyspace=\"%s\",result=\"%s\"} %llu\n",
                              keyspace_name(keeper, i), row->name + sizeof prefix - 1, value);
            else
                buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %llu\n", name,
                              keyspace_name(keeper, i), value);
        }
    }
}

static void state_metrics(const struct keeper *keeper, struct buffer *out)
{
    size_t count = keeper_config(keeper)->keyspace_count;
    family(out, "keyspace_state", "gauge", "1 for the state that the keyspace is in");
    for (size_t i = 0; i < count; i++)
        for (enum keyspace_state state = 0; state <= KEYSPACE_PASSING; state++)
            buffer_printf(out, "nestguard_keyspace_state{keyspace=\"%s\",state=\"%s\"} %d\n",
                          keyspace_name(keeper, i), keyspace_state_name(state),
                          keeper->keyspaces[i].state == state);
    family(out, "keyspace_state_seconds", "gauge", "How long the keyspace has been in its state");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_keyspace_state_seconds{keyspace=\"%s\"} %.3f\n",
                      keyspace_name(keeper, i), seconds_since(keeper->keyspaces[i].since));
}

static void filter_metrics(const struct keeper *keeper, struct buffer *out)
{
    size_t count = keeper_config(keeper)->keyspace_count;
    family(out, "filter_keys", "gauge", "Keys in the filter");
    for (size_t i = 0; keeper->generation && i < count; i++)
        buffer_printf(out, "nestguard_filter_keys{keyspace=\"%s\"} %zu\n", keyspace_name(keeper, i),
                      filter_stats(keeper->generation->filters[i]).keys);
    family(out, "filter_bytes", "gauge", "Memory of the filter");
    for (size_t i = 0; keeper->generation && i < count; i++)
        buffer_printf(out, "nestguard_filter_bytes{keyspace=\"%s\"} %zu\n",
                      keyspace_name(keeper, i), filter_stats(keeper->generation->filters[i]).bytes);
    family(out, "measured_false_positive_rate", "gauge",
           "Share of the lookups of absent keys that the filter let pass");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_measured_false_positive_rate{keyspace=\"%s\"} %g\n",
                      keyspace_name(keeper, i), measured_rate(keeper, i));
}

static void check_metrics(const struct keeper *keeper, struct buffer *out)
{
    const struct checker_account *account = checker_account(keeper->checker);
    size_t count = account->generation ? keeper_config(keeper)->keyspace_count : 0;
    family(out, "self_check_rows", "gauge", "Rows that the last self-check saw");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_self_check_rows{keyspace=\"%s\"} %llu\n",
                      keyspace_name(keeper, i), (unsigned long long)account->keyspaces[i].rows);
    family(out, "self_check_good", "gauge",
           "0 if the last self-check failed or could not tell, 1 if nothing speaks against it");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_self_check_good{keyspace=\"%s\"} %d\n",
                      keyspace_name(keeper, i), selfcheck_is_good(account->keyspaces[i].outcome));
    family(out, "self_check_age_seconds", "gauge", "Time since the last self-check ended");
    if (count)
        buffer_printf(out, "nestguard_self_check_age_seconds %.3f\n", seconds_since(account->time));
}

static void gauge(struct buffer *out, const char *name, const char *help, double value)
{
    family(out, name, "gauge", help);
    buffer_printf(out, "nestguard_%s %.10g\n", name, value);
}

static void stream_metrics(const struct keeper *keeper, struct buffer *out)
{
    if (!keeper->sync)
        return;
    const struct lag *lag = sync_lag(keeper->sync);
    struct follower_counts counts = sync_counts(keeper->sync);
    gauge(out, "stream_lag_bytes", "Log of the database that is not followed yet",
          (double)lag_bytes(lag));
    gauge(out, "stream_lag_seconds", "Age of what the filter knows", lag_seconds(keeper));
    gauge(out, "stream_position_bytes", "Position in the database's log", (double)lag->position);
    gauge(out, "stream_last_commit_timestamp_seconds", "When the last followed commit was made",
          counts.transactions ? (double)counts.last_commit_us / 1e6 + EPOCH_SECONDS : 0);
    family(out, "stream_changes_total", "counter", "Changes followed by this generation's stream");
    buffer_printf(out, "nestguard_stream_changes_total %llu\n", (unsigned long long)counts.changes);
}

static void process_metrics(const struct keeper *keeper, struct buffer *out)
{
    const struct generation *generation = keeper->generation;
    char name[64];
    for (const struct counter_row *row = worker_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        family(out, name, "counter", row->help);
        buffer_printf(out, "nestguard_%s %llu\n", name,
                      (unsigned long long)worker_sum(keeper, row->offset));
    }
    family(out, "build_failures_total", "counter", "Generations that could not be built");
    buffer_printf(out, "nestguard_build_failures_total %llu\n",
                  (unsigned long long)keeper->renewal.failures);
    gauge(out, "clients", "Clients now connected", atomic_load(&keeper->client_total));
    gauge(out, "clients_limit", "Clients that there is room for",
          keeper_config(keeper)->limits.clients);
    gauge(out, "shared_connections", "Connections to the cache that clients share",
          (double)CONNECTIONS(shared_connections));
    gauge(out, "own_connections", "Connections to the cache that clients have of their own",
          (double)CONNECTIONS(own_connections));
    gauge(out, "generation", "Number of the generation in force, 0 for none",
          generation ? (double)generation->number : 0);
    gauge(out, "generation_age_seconds", "Time since the generation in force was built",
          generation ? (double)(time(NULL) - generation->built_at) : 0);
    gauge(out, "building", "1 while a generation is being built", keeper->renewal.builder != NULL);
    gauge(out, "building_waits", "1 while that waits for others; status and log say for whom",
          build_waits(keeper));
    gauge(out, "confirms_everything",
          "1 while commits that wait for the guard return at once, for nothing is rejected",
          confirms_everything(keeper));
    gauge(out, "loads_in_flight", "Loads on their way", (double)loads_count(keeper->loads));
    gauge(out, "entries", "Admitted, deleted and blocked keys",
          (double)overrides_count(&keeper->overrides));
    gauge(out, "cache_up", "1 while the connection for fills and purges is up",
          redis_is_up(keeper->redis));
    gauge(out, "database_connections", "Connections for loads that are up",
          pg_pool_live(keeper->pool));
    gauge(out, "uptime_seconds", "Time since the guard was started",
          seconds_since(keeper->started));
}

void status_metrics(const struct keeper *keeper, struct buffer *out)
{
    family(out, "info", "gauge", "Version");
    buffer_printf(out, "nestguard_info{version=\"%s\"} 1\n", NESTGUARD_VERSION);
    state_metrics(keeper, out);
    keyspace_metrics(keeper, out);
    load_metrics(keeper, out);
    filter_metrics(keeper, out);
    check_metrics(keeper, out);
    stream_metrics(keeper, out);
    process_metrics(keeper, out);
}
