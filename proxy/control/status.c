/* One account in two forms. The lists in counters.h give both their names, so that a new counter
 * shows up in both by itself.
 */
#include "control/status.h"

#include "base/clock.h"
#include "http/json_bytes.h"

#include <string.h>

/* PostgreSQL counts from 2000-01-01. */
enum { EPOCH_SECONDS = 946684800 };

struct counter_row {
    const char *name, *help;
    size_t offset;
};

#define KEYSPACE_ROW(name, help) {#name, help, offsetof(struct keyspace_report, name)},
#define LOAD_ROW(name, help) {#name, help, offsetof(struct keyspace_report, name)},
#define WORKER_ROW(name, help) {#name, help, offsetof(struct worker_report, name)},
static const struct counter_row keyspace_rows[] = {KEYSPACE_COUNTERS(KEYSPACE_ROW){0}};
static const struct counter_row load_rows[] = {LOAD_COUNTERS(LOAD_ROW){0}};
static const struct counter_row worker_rows[] = {WORKER_COUNTERS(WORKER_ROW){0}};

/* The counter of this row, in struct keyspace_report or struct worker_report. */
static uint64_t count_of(const void *report, const struct counter_row *row)
{
    uint64_t count;
    memcpy(&count, (const char *)report + row->offset, sizeof count);
    return count;
}

/* Share of the lookups of absent keys that the filter let pass: false positives found by loads,
 * against rejections. */
static double measured_rate(const struct keyspace_report *keyspace)
{
    uint64_t passed = keyspace->false_positives + keyspace->known_absent;
    uint64_t all = passed + keyspace->rejected + keyspace->would_reject;
    return all ? (double)passed / (double)all : 0;
}

static double seconds_since(uint64_t then)
{
    return (double)(clock_ms() - then) / 1000;
}

/* ---- JSON ---- */

/* Workers accept before the control port's first call is read, until they are told to drain. */
bool status_is_serving(const struct report *report)
{
    return report->workers > 0 && !report->is_draining;
}

bool status_is_guarding(const struct report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->keyspaces[i].state != KEYSPACE_GUARDING)
            return false;
    return true;
}

json_t *status_states(const struct report *report)
{
    json_t *states = json_object();
    for (size_t i = 0; i < report->count; i++)
        json_object_set_new(states, report->keyspaces[i].config->name,
                            json_string(keyspace_state_name(report->keyspaces[i].state)));
    return states;
}

/* Null until a generation has one. */
static json_t *filter_json(const struct keyspace_report *keyspace)
{
    if (!keyspace->has_filter)
        return json_null();
    const struct filter_stats *stats = &keyspace->filter;
    double fill = stats->slots ? (double)stats->keys / (double)stats->slots : 0;
    double bits = stats->keys ? (double)stats->bytes * 8 / (double)stats->keys : 0;
    return json_pack("{s:s, s:I, s:I, s:f, s:I, s:f, s:I, s:f, s:f}", "kind",
                     filter_kind_name(keyspace->kind), "keys", (json_int_t)stats->keys, "slots",
                     (json_int_t)stats->slots, "fill", fill, "bytes", (json_int_t)stats->bytes,
                     "bits_per_key", bits, "stash", (json_int_t)stats->stash_used,
                     "expected_false_positive_rate", stats->expected_false_positive_rate,
                     "measured_false_positive_rate", measured_rate(keyspace));
}

static void add_counters(const struct keyspace_report *keyspace, json_t *to)
{
    for (const struct counter_row *row = keyspace_rows; row->name; row++)
        json_object_set_new(to, row->name, json_integer((json_int_t)count_of(keyspace, row)));
    for (const struct counter_row *row = load_rows; row->name; row++)
        json_object_set_new(to, row->name, json_integer((json_int_t)count_of(keyspace, row)));
    uint64_t loads = keyspace->loads_row + keyspace->loads_absent + keyspace->loads_timeout +
                     keyspace->loads_down + keyspace->loads_refused;
    json_object_set_new(to, "loads", json_integer((json_int_t)loads));
}

/* Of keys in another spelling than their row's; null while there was none. */
static json_t *example_json(const struct keyspace_report *keyspace)
{
    const struct spelling *latest = keyspace->spelling;
    if (!keyspace->other_spellings)
        return json_null();
    return json_pack("{s:o, s:o}", "asked", json_bytes(latest->asked, strlen(latest->asked)), "row",
                     json_bytes(latest->own, strlen(latest->own)));
}

/* The last self-check, of whichever generation; null before the first. */
static json_t *check_json(const struct check_report *last, const struct selfcheck_account *found)
{
    if (!last->generation)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:f}", "outcome", checks_outcome_text(found->outcome),
                     "rows_seen", (json_int_t)found->rows, "generation",
                     (json_int_t)last->generation, "age_seconds", seconds_since(last->time));
}

/* Null where nothing is published. */
static json_t *published_json(const struct published_report *published)
{
    if (!published->key)
        return json_null();
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:f, s:I, s:s?}", "key",
                     published->key, "state", published->state, "keys", (json_int_t)published->keys,
                     "bits", (json_int_t)published->bits, "bits_set", (json_int_t)published->set,
                     "functions", (int)published->functions, "layers", (int)published->layers,
                     "generation", (json_int_t)published->generation, "deleted",
                     (json_int_t)published->deleted, "lease_seconds",
                     (double)published->lease / 1000, "bytes", (json_int_t)published->bytes,
                     "last_error", published->error[0] ? published->error : NULL);
}

static json_t *keyspace_json(const struct report *report, const struct keyspace_report *keyspace)
{
    const struct keyspace *config = keyspace->config;
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:b, s:o}", "name", config->name,
                             "key", config->key.text, "table", config->table_text, "state",
                             keyspace_state_name(keyspace->state), "reason", keyspace->reason,
                             "seconds_in_state", seconds_since(keyspace->since), "enforce",
                             config->enforce, "filter", filter_json(keyspace));
    json_object_set_new(json, "rows",
                        keyspace->has_filter ? json_integer((json_int_t)keyspace->filter.keys)
                                             : json_null());
    json_object_set_new(json, "self_check", check_json(&report->check, &keyspace->check));
    json_object_set_new(json, "published", published_json(&keyspace->published));
    add_counters(keyspace, json);
    json_object_set_new(json, "other_spelling_example", example_json(keyspace));
    return json;
}

static json_t *generation_json(const struct generation_report *generation)
{
    if (!generation->number)
        return json_null();
    return json_pack("{s:I, s:b, s:I, s:I, s:f, s:I, s:n}", "number",
                     (json_int_t)generation->number, "complete", 1, "rows",
                     (json_int_t)generation->rows, "bytes", (json_int_t)generation->bytes,
                     "build_seconds", generation->build_seconds, "age_seconds",
                     (json_int_t)(time(NULL) - generation->built_at), "position");
}

/* The rest of the time is as long as the rows that are left take at the rate so far. */
/* The log as PostgreSQL writes its positions: "0/16B3748". */
static json_t *position_json(uint64_t lsn)
{
    return json_sprintf("%X/%X", (unsigned)(lsn >> 32), (unsigned)lsn);
}

json_t *status_position(const struct stream_report *stream)
{
    return stream->is_followed ? position_json(stream->position) : json_null();
}

/* Of what the generation in force follows. Null where none is followed, or its stream was lost. */
static json_t *stream_json(const struct report *report)
{
    const struct stream_report *stream = &report->stream;
    const struct follower_counts *counts = &stream->counts;
    if (!stream->is_followed)
        return json_null();
    json_t *json = json_pack(
        "{s:o, s:I, s:f, s:f, s:I, s:I, s:I}", "position", position_json(stream->position),
        "lag_bytes", (json_int_t)stream->behind, "lag_seconds", seconds_since(stream->known),
        "log_bytes_per_second", stream->bytes_per_second, "transactions",
        (json_int_t)counts->transactions, "changes", (json_int_t)counts->changes, "removals_held",
        (json_int_t)counts->removals);
    bool any = counts->transactions > 0;
    json_object_set_new(json, "last_commit_position",
                        any ? position_json(counts->last_commit_lsn) : json_null());
    json_object_set_new(json, "last_commit_time",
                        any ? json_real((double)counts->last_commit_us / 1e6 + EPOCH_SECONDS)
                            : json_null());
    json_object_set_new(json, "purges_owed", json_integer((json_int_t)report->purges_owed));
    return json;
}

static json_t *building_json(const struct build_report *build)
{
    if (!build->at_work)
        return json_null();
    const struct build_progress progress = build->progress;
    double rate = progress.seconds > 0 ? (double)progress.rows / progress.seconds : 0;
    uint64_t left = progress.rows_total > progress.rows ? progress.rows_total - progress.rows : 0;
    return json_pack("{s:I, s:s, s:s?, s:I, s:I, s:f, s:f, s:o}", "number",
                     (json_int_t)build->newest, "phase", build_phase_text(progress.phase), "waits",
                     progress.waits[0] ? progress.waits : NULL, "rows", (json_int_t)progress.rows,
                     "rows_total", (json_int_t)progress.rows_total, "seconds", progress.seconds,
                     "rows_per_second", rate, "remaining_seconds",
                     rate > 0 ? json_real((double)left / rate) : json_null());
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

/* The first node is the server itself; the others only know where it is. */
static bool cache_is_up(const struct report *report)
{
    return report->cache_nodes && report->cache[0].up;
}

static json_t *node_json(const struct redis_node *node)
{
    return json_pack("{s:s, s:s, s:b, s:o}", "address", node->address, "role",
                     redis_role_name(node->role), "up", node->up, "why",
                     node->why ? json_bytes(node->why, strlen(node->why)) : json_null());
}

static json_t *nodes_json(const struct report *report)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < report->cache_nodes; i++)
        json_array_append_new(nodes, node_json(&report->cache[i]));
    return nodes;
}

static json_t *backends_json(const struct report *report)
{
    const struct loads_waits *waits = &report->waits;
    return json_pack("{s:{s:b, s:o}, s:{s:i, s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:f}}", "cache",
                     "up", cache_is_up(report), "nodes", nodes_json(report), "database",
                     "connections", (int)report->database_connections, "error",
                     report->database_error ? json_string(report->database_error) : json_null(),
                     "loads_in_flight", (int)report->loads, "load_budget",
                     (int)report->config->load_budget, "load_window", (json_int_t)waits->window,
                     "loads_queued", (json_int_t)waits->now, "loads_queued_bytes",
                     (json_int_t)waits->bytes, "loads_waited", (json_int_t)waits->count,
                     "load_wait_seconds", (double)waits->ms / 1000);
}

/* Of clients. */
static json_t *limits_json(const struct report *report)
{
    const struct file_limits *limits = &report->config->limits;
    return json_pack("{s:I, s:I, s:I, s:I}", "open_files", (json_int_t)limits->files, "clients",
                     (json_int_t)limits->clients, "own_connections_per_worker",
                     (json_int_t)limits->own_connections, "client_memory",
                     (json_int_t)report->config->max_client_memory);
}

json_t *status_json(const struct report *report)
{
    json_t *json = json_pack(
        "{s:s, s:f, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I}", "version", NESTGUARD_VERSION,
        "uptime_seconds", seconds_since(report->started), "sync",
        sync_mode_name(report->config->sync), "ready", status_is_serving(report), "guarding",
        status_is_guarding(report), "generation", generation_json(&report->generation), "building",
        building_json(&report->build), "last_build_error", text_or_null(report->build.error),
        "backends", backends_json(report), "entries", (json_int_t)report->entries);
    json_t *keyspaces = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(keyspaces, keyspace_json(report, &report->keyspaces[i]));
    json_object_set_new(json, "keyspaces", keyspaces);
    json_object_set_new(json, "stream", stream_json(report));
    json_object_set_new(json, "confirms_everything", json_boolean(report->confirms_everything));
    json_object_set_new(json, "clients", json_integer((json_int_t)report->clients));
    json_object_set_new(json, "client_memory_bytes",
                        json_integer((json_int_t)report->client_bytes));
    json_object_set_new(json, "shared_connections",
                        json_integer((json_int_t)report->worker.shared_connections));
    json_object_set_new(json, "own_connections",
                        json_integer((json_int_t)report->worker.own_connections));
    json_object_set_new(json, "workers", json_integer(report->workers));
    json_object_set_new(json, "limits", limits_json(report));
    for (const struct counter_row *row = worker_rows; row->name; row++)
        json_object_set_new(json, row->name,
                            json_integer((json_int_t)count_of(&report->worker, row)));
    return json;
}

/* ---- Prometheus ---- */

/* Prometheus' text format: HELP and TYPE once for each name, before its samples. */
static void family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP nestguard_%s %s\n# TYPE nestguard_%s %s\n", name, help, name, type);
}

static const char *keyspace_name(const struct report *report, size_t i)
{
    return report->keyspaces[i].config->name;
}

static void keyspace_metrics(const struct report *report, struct buffer *out)
{
    char name[64];
    size_t count = report->count;
    for (const struct counter_row *row = keyspace_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        family(out, name, "counter", row->help);
        for (size_t i = 0; i < count; i++)
            buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %llu\n", name,
                          keyspace_name(report, i),
                          (unsigned long long)count_of(&report->keyspaces[i], row));
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

static void load_metrics(const struct report *report, struct buffer *out)
{
    const struct counter_family *last = NULL;
    char name[64], label[64];
    for (const struct counter_row *row = load_rows; row->name; row++) {
        const struct counter_family *own = family_of(row);
        snprintf(name, sizeof name, own ? "%s" : "%s_total", own ? own->name : row->name);
        label[0] = '\0';
        if (own)
            snprintf(label, sizeof label, ",%s=\"%s\"", own->label,
                     row->name + strlen(own->prefix));
        if (!own || own != last)
            family(out, name, "counter", own ? own->help : row->help);
        last = own;
        for (size_t i = 0; i < report->count; i++)
            buffer_printf(out, "nestguard_%s{keyspace=\"%s\"%s} %llu\n", name,
                          keyspace_name(report, i), label,
                          (unsigned long long)count_of(&report->keyspaces[i], row));
    }
}

static void state_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->count;
    family(out, "keyspace_state", "gauge", "1 for the state that the keyspace is in");
    for (size_t i = 0; i < count; i++)
        for (enum keyspace_state state = 0; state <= KEYSPACE_PASSING; state++)
            buffer_printf(out, "nestguard_keyspace_state{keyspace=\"%s\",state=\"%s\"} %d\n",
                          keyspace_name(report, i), keyspace_state_name(state),
                          report->keyspaces[i].state == state);
    family(out, "keyspace_state_seconds", "gauge", "How long the keyspace has been in its state");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_keyspace_state_seconds{keyspace=\"%s\"} %.3f\n",
                      keyspace_name(report, i), seconds_since(report->keyspaces[i].since));
}

static void filter_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->count;
    family(out, "filter_keys", "gauge", "Keys in the filter");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].has_filter)
            buffer_printf(out, "nestguard_filter_keys{keyspace=\"%s\"} %zu\n",
                          keyspace_name(report, i), report->keyspaces[i].filter.keys);
    family(out, "filter_bytes", "gauge", "Memory of the filter");
    for (size_t i = 0; i < count; i++)
        if (report->keyspaces[i].has_filter)
            buffer_printf(out, "nestguard_filter_bytes{keyspace=\"%s\"} %zu\n",
                          keyspace_name(report, i), report->keyspaces[i].filter.bytes);
    family(out, "measured_false_positive_rate", "gauge",
           "Share of the lookups of absent keys that the filter let pass");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_measured_false_positive_rate{keyspace=\"%s\"} %g\n",
                      keyspace_name(report, i), measured_rate(&report->keyspaces[i]));
}

struct published_row {
    const char *name, *help;
    size_t offset; /* of a uint64_t in struct published_report */
};

static void published_metrics(const struct report *report, struct buffer *out)
{
    static const struct published_row rows[] = {
        {"published_keys", "Rows in what the keyspace publishes",
         offsetof(struct published_report, keys)},
        {"published_bits", "Bits of what the keyspace publishes",
         offsetof(struct published_report, bits)},
        {"published_bits_set", "Those of them that are set",
         offsetof(struct published_report, set)},
        {"published_lease_milliseconds", "Time that is left of its lease, 0 without one",
         offsetof(struct published_report, lease)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        family(out, rows[r].name, "gauge", rows[r].help);
        for (size_t i = 0; i < report->count; i++) {
            const struct published_report *published = &report->keyspaces[i].published;
            uint64_t value;
            memcpy(&value, (const char *)published + rows[r].offset, sizeof value);
            if (published->key)
                buffer_printf(out, "nestguard_%s{keyspace=\"%s\"} %llu\n", rows[r].name,
                              keyspace_name(report, i), (unsigned long long)value);
        }
    }
}

static void check_metrics(const struct report *report, struct buffer *out)
{
    size_t count = report->check.generation ? report->count : 0;
    family(out, "self_check_rows", "gauge", "Rows that the last self-check saw");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_self_check_rows{keyspace=\"%s\"} %llu\n",
                      keyspace_name(report, i),
                      (unsigned long long)report->keyspaces[i].check.rows);
    family(out, "self_check_good", "gauge",
           "0 if the last self-check failed or could not tell, 1 if nothing speaks against it");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "nestguard_self_check_good{keyspace=\"%s\"} %d\n",
                      keyspace_name(report, i),
                      selfcheck_is_good(report->keyspaces[i].check.outcome));
    family(out, "self_check_age_seconds", "gauge", "Time since the last self-check ended");
    if (count)
        buffer_printf(out, "nestguard_self_check_age_seconds %.3f\n",
                      seconds_since(report->check.time));
}

static void gauge(struct buffer *out, const char *name, const char *help, double value)
{
    family(out, name, "gauge", help);
    buffer_printf(out, "nestguard_%s %.10g\n", name, value);
}

static void stream_metrics(const struct report *report, struct buffer *out)
{
    const struct stream_report *stream = &report->stream;
    struct follower_counts counts = stream->counts;
    if (!stream->is_followed)
        return;
    gauge(out, "stream_lag_bytes", "Log of the database that is not followed yet",
          (double)stream->behind);
    gauge(out, "stream_lag_seconds", "Age of what the filter knows", seconds_since(stream->known));
    gauge(out, "stream_position_bytes", "Position in the database's log", (double)stream->position);
    gauge(out, "stream_last_commit_timestamp_seconds", "When the last followed commit was made",
          counts.transactions ? (double)counts.last_commit_us / 1e6 + EPOCH_SECONDS : 0);
    family(out, "stream_changes_total", "counter", "Changes followed by this generation's stream");
    buffer_printf(out, "nestguard_stream_changes_total %llu\n", (unsigned long long)counts.changes);
}

static void wait_metrics(const struct loads_waits *waits, struct buffer *out)
{
    gauge(out, "load_window", "Loads that may be at the database at once while others wait",
          (double)waits->window);
    gauge(out, "loads_queued", "Loads that wait for their turn at the database",
          (double)waits->now);
    gauge(out, "loads_queued_bytes", "Memory of the loads that wait", (double)waits->bytes);
    family(out, "load_wait_seconds", "summary", "How long loads waited for their turn");
    buffer_printf(out, "nestguard_load_wait_seconds_sum %.3f\n", (double)waits->ms / 1000);
    buffer_printf(out, "nestguard_load_wait_seconds_count %llu\n",
                  (unsigned long long)waits->count);
}

static void process_metrics(const struct report *report, struct buffer *out)
{
    const struct generation_report *generation = &report->generation;
    char name[64];
    for (const struct counter_row *row = worker_rows; row->name; row++) {
        snprintf(name, sizeof name, "%s_total", row->name);
        family(out, name, "counter", row->help);
        buffer_printf(out, "nestguard_%s %llu\n", name,
                      (unsigned long long)count_of(&report->worker, row));
    }
    family(out, "build_failures_total", "counter", "Generations that could not be built");
    buffer_printf(out, "nestguard_build_failures_total %llu\n",
                  (unsigned long long)report->build.failures);
    gauge(out, "clients", "Clients now connected", report->clients);
    gauge(out, "client_memory_bytes", "Memory of clients: input, lookups and replies that wait",
          (double)report->client_bytes);
    gauge(out, "client_memory_limit_bytes", "Of more the heaviest client is cut off",
          (double)report->config->max_client_memory);
    gauge(out, "clients_limit", "Clients that there is room for", report->config->limits.clients);
    gauge(out, "shared_connections", "Connections to the cache that clients share",
          (double)report->worker.shared_connections);
    gauge(out, "own_connections", "Connections to the cache that clients have of their own",
          (double)report->worker.own_connections);
    gauge(out, "generation", "Number of the generation in force, 0 for none",
          (double)generation->number);
    gauge(out, "generation_age_seconds", "Time since the generation in force was built",
          generation->number ? (double)(time(NULL) - generation->built_at) : 0);
    gauge(out, "building", "1 while a generation is being built", report->build.at_work);
    gauge(out, "building_waits", "1 while that waits for others; status and log say for whom",
          report->build.at_work && report->build.progress.waits[0]);
    gauge(out, "confirms_everything",
          "1 while commits that wait for the guard return at once, for nothing is rejected",
          report->confirms_everything);
    gauge(out, "loads_in_flight", "Loads on their way", (double)report->loads);
    wait_metrics(&report->waits, out);
    gauge(out, "entries", "Admitted, deleted and blocked keys", (double)report->entries);
    gauge(out, "cache_up", "1 while the connection for fills and purges is up, to a primary",
          cache_is_up(report));
    family(out, "cache_node_up", "gauge",
           "1 for the server that is the cache, and for a sentinel that names one; 0: status says "
           "why not");
    for (size_t i = 0; i < report->cache_nodes; i++)
        buffer_printf(out, "nestguard_cache_node_up{address=\"%s\",role=\"%s\"} %d\n",
                      report->cache[i].address, redis_role_name(report->cache[i].role),
                      report->cache[i].up);
    gauge(out, "database_connections", "Connections for loads that are up",
          report->database_connections);
    gauge(out, "uptime_seconds", "Time since the guard was started",
          seconds_since(report->started));
}

void status_metrics(const struct report *report, struct buffer *out)
{
    family(out, "info", "gauge", "Version");
    buffer_printf(out, "nestguard_info{version=\"%s\"} 1\n", NESTGUARD_VERSION);
    state_metrics(report, out);
    keyspace_metrics(report, out);
    load_metrics(report, out);
    filter_metrics(report, out);
    published_metrics(report, out);
    check_metrics(report, out);
    stream_metrics(report, out);
    process_metrics(report, out);
}
