/* The guard's own decision first, then what cache and database have of the key:
 *
 *   cache: EXISTS ─▶ decide ─┬─ the filter may have it ───────────────────▶ answer
 *                            └─ it has not ─▶ database: is there a row? ─▶ answer
 *
 * The database is asked where the guard has no row, and only there: what it has is explained
 * without it, also while it hangs.
 */
#include "control/explain.h"

#include "base/clock.h"
#include "base/memory.h"
#include "control/status.h"
#include "guard/guard.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"
#include "redis/redis.h"

#include <stdlib.h>

struct explanation {
    struct keeper *keeper;
    struct http_call *call;
    struct key key;
    json_t *body;
    char text[]; /* the key's */
};

/* What is decided, by the functions by which workers decide, on the view and the entries that they
 * have copies of. */
struct judgement {
    struct ruling ruling;
    bool held;         /* the filter may have it */
    bool possible;     /* the verdict, whether the keyspace may reject by it or not */
    bool known_absent; /* the filter has it, and the database has not */
};

/* Where the keyspace may not reject, the ruling says nothing of the filter, which is asked whatever
 * entries say. */
static struct judgement judge(const struct explanation *it)
{
    const struct keeper *keeper = it->keeper;
    const struct view *view = keeper->view;
    struct permission permission = permission_begin(view);
    struct judgement judgement = {.held = guard_holds(view, it->key)};
    judgement.ruling = guard_decide(&permission, &keeper->overrides, it->key.keyspace, it->key.text,
                                    judgement.held);
    judgement.possible = judgement.ruling.reason == REASON_NO_PERMISSION
                             ? !view->generation || judgement.held
                             : judgement.ruling.decision == DECISION_PASS;
    judgement.known_absent = loads_knows_absent(keeper->loads, it->key);
    return judgement;
}

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

/* A failure leaves `row` null: not known. */
static void on_row(void *arg, const struct row_result *result)
{
    struct explanation *it = arg;
    struct span own = result->other_spelling;
    blob_release(result->value);
    if (result->outcome == LOAD_ROW || result->outcome == LOAD_ABSENT)
        json_object_set_new(it->body, "row", json_boolean(result->outcome == LOAD_ROW));
    if (own.at) {
        const char *why = json_string_value(json_object_get(it->body, "why"));
        json_object_set_new(it->body, "why", explain_spelling(why, own));
        json_object_set_new(it->body, "other_spelling", json_bytes(own.at, own.length));
    }
    answer(it);
}

static void ask_for_row(struct explanation *it)
{
    const struct rows *rows = &it->keeper->rows;
    enum load_outcome foretold = rows_foretell(rows, it->key);
    if (foretold == LOAD_ROW)
        rows_load(rows, it->key, on_row, it);
    else
        on_row(it, &(struct row_result){.outcome = foretold, .error = ""});
}

static json_t *describe(const struct explanation *it, struct judgement judgement)
{
    static const char *const decisions[] = {
        [DECISION_PASS] = "pass", [DECISION_REJECT] = "reject", [DECISION_SHADOW] = "shadow"};
    const struct keeper *keeper = it->keeper;
    const struct view *view = keeper->view;
    struct override entry = overrides_find(&keeper->overrides, it->key, clock_ms());
    json_t *body =
        json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:n, s:n}", "key",
                  json_bytes(it->key.text.at, it->key.text.length), "keyspace",
                  keeper_config(keeper)->keyspaces[it->key.keyspace].name, "verdict",
                  judgement.possible ? "possible" : "absent", "decision",
                  decisions[judgement.ruling.decision], "why", reason_text(judgement.ruling.reason),
                  "state", keyspace_state_name(view->states[it->key.keyspace]), "entry",
                  entry.blocked_until ? "block" : override_kind_name(entry.kind), "in_flight",
                  loads_in_flight(keeper->loads, it->key), "known_absent", judgement.known_absent,
                  "row", "other_spelling");
    json_object_set_new(body, "generation",
                        view->generation ? json_integer((json_int_t)view->generation->number)
                                         : json_null());
    json_object_set_new(body, "position", status_position(keeper));
    return body;
}

static void on_cache(void *arg, const struct redis_answer *cache)
{
    struct explanation *it = arg;
    struct judgement judgement = judge(it);
    it->body = describe(it, judgement);
    json_object_set_new(it->body, "cached",
                        cache->outcome == REDIS_DONE ? json_boolean(cache->number) : json_null());
    if (judgement.possible && judgement.held && !judgement.known_absent)
        answer(it);
    else
        ask_for_row(it);
}

void explain_key(struct keeper *keeper, struct http_call *call, struct key key)
{
    struct explanation *it = xmalloc(sizeof *it + key.text.length);
    *it = (struct explanation){.keeper = keeper, .call = call, .key = key_copy(key, it->text)};
    redis_exists(keeper->redis, (struct redis_bytes){it->text, key.text.length}, on_cache, it);
}
