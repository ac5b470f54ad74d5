/* The account as JSON; as Prometheus' text: metrics.c.
 *
 * Names and meanings are a contract with dashboards and scripts: they are added to, never changed.
 * What is not there is null, never a 0 that could be taken for a figure.
 */
#include "control/status.h"

#include "base/clock.h"
#include "control/tally.h"
#include "http/json_bytes.h"

#include <string.h>

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

/* Parts keep "" where there is none. */
static json_t *text_or_null(const char *text)
{
    return text[0] ? json_text(text) : json_null();
}

static json_t *measured_json(const struct keyspace_report *keyspace)
{
    double rate;
    return tally_measured_rate(keyspace, &rate) ? json_real(rate) : json_null();
}

/* Null until a generation has one. */
static json_t *filter_json(const struct keyspace_report *keyspace)
{
    if (!keyspace->has_filter)
        return json_null();
    const struct filter_stats *stats = &keyspace->filter;
    double fill = stats->slots ? (double)stats->keys / (double)stats->slots : 0;
    double bits = stats->keys ? (double)stats->bytes * 8 / (double)stats->keys : 0;
    return json_pack("{s:s, s:I, s:I, s:f, s:I, s:f, s:I, s:f, s:o}", "kind",
                     filter_kind_name(keyspace->kind), "keys", (json_int_t)stats->keys, "slots",
                     (json_int_t)stats->slots, "fill", fill, "bytes", (json_int_t)stats->bytes,
                     "bits_per_key", bits, "stash", (json_int_t)stats->stash_used,
                     "expected_false_positive_rate", stats->expected_false_positive_rate,
                     "measured_false_positive_rate", measured_json(keyspace));
}

/* Each under its own name; and the sums of what failed or was loaded, which were there before the
 * parts of them. */
static void add_counters(const struct keyspace_report *keyspace, json_t *to)
{
    for (const struct counter_row *row = tally_keyspace_rows; row->name; row++)
        json_object_set_new(to, row->name, json_integer((json_int_t)tally_count(keyspace, row)));
    for (const struct counter_row *row = tally_load_rows; row->name; row++)
        json_object_set_new(to, row->name, json_integer((json_int_t)tally_count(keyspace, row)));
    uint64_t loads = keyspace->loads_row + keyspace->loads_absent + keyspace->loads_timeout +
                     keyspace->loads_down + keyspace->loads_refused;
    uint64_t fills = keyspace->fills_failed_down + keyspace->fills_failed_full +
                     keyspace->fills_failed_readonly + keyspace->fills_failed_busy +
                     keyspace->fills_failed_refused + keyspace->fills_failed_waiting;
    json_object_set_new(to, "loads", json_integer((json_int_t)loads));
    json_object_set_new(to, "fills_failed", json_integer((json_int_t)fills));
}

/* Of keys in another spelling than their row's; null while there was none. */
static json_t *example_json(const struct keyspace_report *keyspace)
{
    const struct spelling *latest = keyspace->spelling;
    if (!keyspace->other_spellings)
        return json_null();
    return json_pack("{s:o, s:o}", "asked", json_text(latest->asked), "row",
                     json_text(latest->own));
}

json_t *status_load_error(const struct refused_load *latest)
{
    if (!latest->count)
        return json_null();
    return json_pack("{s:o, s:I, s:f}", "text", json_text(latest->text), "count",
                     (json_int_t)latest->count, "age_seconds", tally_seconds_since(latest->time));
}

/* The last self-check, of whichever generation; null before the first that it was of. */
static json_t *check_json(const struct check_report *last, const struct selfcheck_account *found)
{
    if (!last->generation || found->outcome == SELFCHECK_NONE)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:f}", "outcome", checks_outcome_text(found->outcome),
                     "rows_seen", (json_int_t)found->rows, "generation",
                     (json_int_t)last->generation, "age_seconds", tally_seconds_since(last->time));
}

/* Null where nothing is published. */
static json_t *published_json(const struct published_report *published)
{
    if (!published->key)
        return json_null();
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:f, s:I, s:o}", "key",
                     json_text(published->key), "state", published->state, "keys",
                     (json_int_t)published->keys, "bits", (json_int_t)published->bits, "bits_set",
                     (json_int_t)published->set, "functions", (int)published->functions, "layers",
                     (int)published->layers, "generation", (json_int_t)published->generation,
                     "deleted", (json_int_t)published->deleted, "lease_seconds",
                     (double)published->lease / 1000, "bytes", (json_int_t)published->bytes,
                     "last_error", text_or_null(published->error));
}

/* `rows` may be more than the filter's keys: those that share an entry count, too. */
static json_t *keyspace_json(const struct report *report, const struct keyspace_report *keyspace)
{
    const struct keyspace *config = keyspace->config;
    json_t *json =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:f, s:b, s:o}", "name", config->name,
                  "key", json_text(config->key.text), "table", json_text(config->table_text),
                  "query", json_text(config->query), "source", json_text(config->source),
                  "source_refused", json_text(config->source ? keyspace->refused : NULL), "state",
                  keyspace_state_name(keyspace->state), "reason", json_text(keyspace->reason),
                  "seconds_in_state", tally_seconds_since(keyspace->since), "enforce",
                  config->enforce, "filter", filter_json(keyspace));
    json_object_set_new(json, "rows",
                        keyspace->has_filter ? json_integer((json_int_t)keyspace->rows)
                                             : json_null());
    json_object_set_new(json, "source_generation",
                        keyspace->set_number ? json_integer((json_int_t)keyspace->set_number)
                                             : json_null());
    json_object_set_new(json, "self_check", check_json(&report->check, &keyspace->check));
    json_object_set_new(json, "self_check_failures",
                        json_integer((json_int_t)keyspace->check_failures));
    json_object_set_new(json, "published", published_json(&keyspace->published));
    add_counters(keyspace, json);
    json_object_set_new(json, "last_load_error", status_load_error(keyspace->refusal));
    json_object_set_new(json, "other_spelling_example", example_json(keyspace));
    return json;
}

/* Null while there is none. `position` is null here, and stands in `stream`. */
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
        "lag_bytes", (json_int_t)stream->behind, "lag_seconds", tally_seconds_since(stream->known),
        "log_bytes_per_second", stream->bytes_per_second, "transactions",
        (json_int_t)counts->transactions, "changes", (json_int_t)counts->changes, "removals_held",
        (json_int_t)counts->removals);
    bool any = counts->transactions > 0;
    json_object_set_new(json, "last_commit_position",
                        any ? position_json(counts->last_commit_lsn) : json_null());
    json_object_set_new(json, "last_commit_time",
                        any ? json_real(tally_commit_time(counts->last_commit_us)) : json_null());
    json_object_set_new(json, "purges_owed", json_integer((json_int_t)report->purges_owed));
    return json;
}

/* Null while none is built. The rest of the time is as long as the rows that are left take at the
 * rate so far. */
static json_t *building_json(const struct build_report *build)
{
    if (!build->at_work)
        return json_null();
    const struct build_progress progress = build->progress;
    double rate = progress.seconds > 0 ? (double)progress.rows / progress.seconds : 0;
    uint64_t left = progress.rows_total > progress.rows ? progress.rows_total - progress.rows : 0;
    return json_pack("{s:I, s:s, s:o, s:I, s:I, s:f, s:f, s:o}", "number",
                     (json_int_t)build->newest, "phase", build_phase_text(progress.phase), "waits",
                     text_or_null(progress.waits), "rows", (json_int_t)progress.rows, "rows_total",
                     (json_int_t)progress.rows_total, "seconds", progress.seconds,
                     "rows_per_second", rate, "remaining_seconds",
                     rate > 0 ? json_real((double)left / rate) : json_null());
}

/* down_seconds is null while it is up. */
static json_t *node_json(const struct redis_node *node)
{
    return json_pack("{s:o, s:s, s:b, s:o, s:o}", "address", json_text(node->address), "role",
                     redis_role_name(node->role), "up", node->up, "why", json_text(node->why),
                     "down_seconds",
                     node->up ? json_null() : json_real((double)node->down_ms / 1000));
}

/* Up is one that is read from. `lag_ms`: what it says is no older. */
static json_t *replica_json(const struct replica_word *word)
{
    return json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o}", "address", json_text(word->address),
                     "role", "replica", "up", word->is_read, "why", json_text(word->why), "lag_ms",
                     word->lag_ms == UINT64_MAX ? json_null()
                                                : json_integer((json_int_t)word->lag_ms),
                     "primary", text_or_null(word->primary), "down_seconds",
                     word->since ? json_real(tally_seconds_since(word->since)) : json_null());
}

/* The server that is used, and the sentinels that are asked for it; and replicas. */
static json_t *nodes_json(const struct report *report)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < report->cache_nodes; i++)
        json_array_append_new(nodes, node_json(&report->cache[i]));
    for (size_t i = 0; i < report->replica_count; i++)
        json_array_append_new(nodes, replica_json(&report->replicas[i]));
    return nodes;
}

/* Null where no keyspace has rows. */
static json_t *connections_json(const struct report *report)
{
    return report->config->database ? json_integer(report->database_connections) : json_null();
}

/* `load_window` is what the database gets at once by now, `load_budget` the most that it may get;
 * what waits for that is `loads_queued`. */
static json_t *backends_json(const struct report *report)
{
    const struct loads_waits *waits = &report->waits;
    return json_pack(
        "{s:{s:b, s:o, s:o}, s:{s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:f}}", "cache", "up",
        tally_cache_is_up(report), "nodes", nodes_json(report), "slots_uncovered",
        report->cache_is_cluster ? json_integer(report->slots_uncovered) : json_null(), "database",
        "connections", connections_json(report), "error", json_text(report->database_error),
        "loads_in_flight", (int)report->loads, "load_budget", (int)report->config->load_budget,
        "load_window", (json_int_t)waits->window, "loads_queued", (json_int_t)waits->now,
        "loads_queued_bytes", (json_int_t)waits->bytes, "loads_waited",
        (json_int_t)durations_count(&waits->turns), "load_wait_seconds",
        durations_seconds(&waits->turns));
}

/* Of clients: those in force, which may be less than was configured, for want of open files or
 * because the cache has room for less. */
static json_t *limits_json(const struct report *report)
{
    const struct file_limits *limits = &report->config->limits;
    const struct worker_report *worker = &report->worker;
    uint64_t own = report->workers ? worker->own_limit / report->workers : limits->own_connections;
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "open_files", (json_int_t)limits->files,
                     "clients", (json_int_t)limits->clients, "own_connections_per_worker",
                     (json_int_t)own, "max_bulk", (json_int_t)worker->max_bulk, "client_memory",
                     (json_int_t)report->config->max_client_memory);
}

json_t *status_json(const struct report *report)
{
    json_t *json = json_pack(
        "{s:s, s:f, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I}", "version", NESTGUARD_VERSION,
        "uptime_seconds", tally_seconds_since(report->started), "sync",
        sync_mode_name(report->config->sync), "ready", status_is_serving(report), "guarding",
        status_is_guarding(report), "generation", generation_json(&report->generation), "building",
        building_json(&report->build), "last_build_error", text_or_null(report->build.error),
        "backends", backends_json(report), "entries", (json_int_t)report->entries);
    json_t *keyspaces = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(keyspaces, keyspace_json(report, &report->keyspaces[i]));
    json_object_set_new(json, "keyspaces", keyspaces);
    json_object_set_new(json, "reload_refused", json_text(report->refusal));
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
    json_object_set_new(json, "attack", json_boolean(report->attack.is_on));
    for (const struct counter_row *row = tally_worker_rows; row->name; row++)
        json_object_set_new(json, row->name,
                            json_integer((json_int_t)tally_count(&report->worker, row)));
    return json;
}
