/* The guard's own decision first, then what cache and database have of the key:
 *
 *   cache: EXISTS ─▶ decide ─┬─ the filter may have it ───────────────────▶ answer
 *                            └─ it has not ─▶ database: is there a row? ─▶ answer
 *
 * The database is asked where the guard has no row, and only there: what it has is explained
 * without it, also while it hangs.
 */
#include "control/explain.h"

#include "base/memory.h"
#include "control/status.h"
#include "guard/guard.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

#include <stdlib.h>

/* A call while others are asked; freed with its answer. */
struct explanation {
    struct keeper *keeper;
    struct http_call *call;
    struct key key;
    json_t *body; /* from the cache's answer on */
    char text[];  /* the key's */
};

json_t *explain_spelling(const char *before, struct span own)
{
    struct buffer text = {0};
    buffer_printf(&text, "%s; a row exists under another spelling: ", before);
    buffer_append(&text, own.at, own.length);
    json_t *json = json_bytes(text.bytes, buffer_length(&text));
    buffer_finish(&text);
    return json;
}

static void answer(struct explanation *it)
{
    http_answer_json(it->call, 200, it->body);
    free(it);
}

/* "" and NULL: there is none. */
static json_t *error_json(const char *error)
{
    return error && error[0] ? json_text(error) : json_null();
}

/* A failure leaves `row` null: not known. */
static void on_row(void *arg, const struct row_result *result)
{
    struct explanation *it = arg;
    struct span own = result->other_spelling;
    blob_release(result->value);
    if (result->outcome == LOAD_ROW || result->outcome == LOAD_ABSENT)
        json_object_set_new(it->body, "row", json_boolean(result->outcome == LOAD_ROW));
    else
        json_object_set_new(it->body, "row_error", error_json(result->error));
    if (own.at) {
        const char *why = json_string_value(json_object_get(it->body, "why"));
        json_object_set_new(it->body, "why", explain_spelling(why, own));
        json_object_set_new(it->body, "other_spelling", json_bytes(own.at, own.length));
    }
    answer(it);
}

/* Where it is foretold, the database need not be asked. */
static void ask_for_row(struct explanation *it)
{
    const struct rows *rows = &keeper_parts(it->keeper).loading->rows;
    enum load_outcome foretold = rows_foretell(rows, it->key);
    if (foretold == LOAD_ROW)
        rows_find(rows, it->key, on_row, it);
    else
        on_row(it, &(struct row_result){.outcome = foretold, .error = ""});
}

/* Who looks for the row by himself must look by the keyspace's condition, too. */
static const char *why_of(const struct keyspace *keyspace, enum reason reason)
{
    if (reason != REASON_ABSENT)
        return reason_text(reason);
    if (keyspace->source)
        return "the filter rules the key out: no list of the keyspace's had it, and nobody wrote "
               "it";
    return keyspace->where ? "the filter rules the key out: no row that meets `where` had it"
                           : reason_text(reason);
}

static json_t *describe(const struct explanation *it, const struct key_report *report)
{
    static const char *const decisions[] = {
        [DECISION_PASS] = "pass", [DECISION_REJECT] = "reject", [DECISION_SHADOW] = "shadow"};
    const struct override *entry = &report->entry;
    const struct keyspace *keyspace = &keeper_config(it->keeper)->keyspaces[it->key.keyspace];
    json_t *body = json_pack(
        "{s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:n, s:n, s:n, s:n}", "key",
        json_bytes(it->key.text.at, it->key.text.length), "keyspace", keyspace->name, "verdict",
        report->is_possible ? "possible" : "absent", "decision", decisions[report->ruling.decision],
        "why", why_of(keyspace, report->ruling.reason), "state", keyspace_state_name(report->state),
        "entry", entry->blocked_until ? "block" : override_kind_name(entry->kind), "in_flight",
        report->in_flight, "known_absent", report->known_absent, "row", "row_error", "cached_error",
        "other_spelling");
    json_object_set_new(body, "where", json_text(keyspace->where));
    json_object_set_new(body, "generation",
                        report->generation ? json_integer((json_int_t)report->generation)
                                           : json_null());
    json_object_set_new(body, "position", status_position(&report->stream));
    json_object_set_new(body, "last_load_error", status_load_error(report->refusal));
    return body;
}

static void on_cache(void *arg, const struct redis_answer *cache)
{
    struct explanation *it = arg;
    struct key_report report = keeper_report_key(it->keeper, it->key);
    it->body = describe(it, &report);
    json_object_set_new(it->body, "cached",
                        cache->outcome == REDIS_DONE ? json_boolean(cache->number) : json_null());
    if (cache->outcome != REDIS_DONE)
        json_object_set_new(it->body, "cached_error", error_json(cache->error));
    const struct keyspace *keyspace = &keeper_config(it->keeper)->keyspaces[it->key.keyspace];
    if (keyspace->source || (report.is_possible && report.is_held && !report.known_absent))
        answer(it);
    else
        ask_for_row(it);
}

void explain_key(struct keeper *keeper, struct http_call *call, struct key key)
{
    struct explanation *it = xmalloc(sizeof *it + key.text.length);
    *it = (struct explanation){.keeper = keeper, .call = call, .key = key_copy(key, it->text)};
    purging_ask(keeper_parts(keeper).purging, it->key, on_cache, it);
}
