/* The reload is over when its answer is made: of each keyspace that is in force by then it is told
 * what became of it on the way. When the file was refused all are left as they were.
 */
#include "control/configuration.h"

#include "config/config_yaml.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <string.h>

/* ---- what became of a reload ---- */

static json_t *changes_json(const struct setting_changes *changes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < changes->count; i++) {
        const struct setting_change *change = &changes->at[i];
        json_t *item = json_pack("{s:s, s:o, s:o, s:b}", "what", change->what, "before",
                                 json_text(change->before), "after", json_text(change->after),
                                 "taken", change->taken);
        if (change->why)
            json_object_set_new(item, "why", json_text(change->why));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *restart_json(const struct setting_changes *changes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < changes->count; i++)
        if (!changes->at[i].taken && !changes->at[i].why)
            json_array_append_new(list, json_string(changes->at[i].what));
    return list;
}

static json_t *problems_json(const struct problems *problems)
{
    static const char *const levels[] = {
        [PROBLEM_NOTE] = "note", [PROBLEM_WARNING] = "warning", [PROBLEM_ERROR] = "error"};
    json_t *list = json_array();
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->at[i];
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:o}", "level", levels[problem->level], "place",
                            json_text(problem->place), "text", json_text(problem->text), "remedy",
                            json_text(problem->remedy)));
    }
    return list;
}

static bool is_of(const struct setting_change *change, const char *keyspace)
{
    return change->keyspace && change->taken && strcmp(change->keyspace, keyspace) == 0;
}

/* "added", "changed", or "left" as it was. */
static const char *fate_of(const struct setting_changes *changes, const char *keyspace)
{
    const char *fate = "left";
    for (size_t i = 0; i < changes->count; i++)
        if (is_of(&changes->at[i], keyspace) && changes->at[i].kind == CHANGE_ADDED)
            return "added";
        else if (is_of(&changes->at[i], keyspace))
            fate = "changed";
    return fate;
}

static json_t *keyspaces_json(const struct setting_changes *changes, const struct config *now)
{
    json_t *lists = json_pack("{s:[], s:[], s:[], s:[]}", "added", "changed", "removed", "left");
    for (size_t i = 0; i < now->keyspace_count; i++) {
        const struct keyspace *keyspace = &now->keyspaces[i];
        if (!keyspace->retired)
            json_array_append_new(json_object_get(lists, fate_of(changes, keyspace->name)),
                                  json_string(keyspace->name));
    }
    for (size_t i = 0; i < changes->count; i++)
        if (changes->at[i].kind == CHANGE_REMOVED)
            json_array_append_new(json_object_get(lists, "removed"),
                                  json_string(changes->at[i].keyspace));
    return lists;
}

json_t *configuration_reload_json(const struct reload *reload, const struct config *now)
{
    static const struct setting_changes none;
    const struct setting_changes *changes = reload->refused ? &none : &reload->changes;
    json_t *body = json_pack("{s:o, s:o, s:o, s:o}", "changes", changes_json(changes), "restart",
                             restart_json(changes), "keyspaces", keyspaces_json(changes, now),
                             "problems", problems_json(&reload->problems));
    if (reload->refused)
        json_object_set_new(body, "error", json_text(reload_refusal(reload)));
    return body;
}

/* ---- the calls ---- */

static void on_reloaded(void *arg, const struct reload *reload, const struct config *now)
{
    struct http_call *call = arg;
    if (reload)
        http_answer_json(call, reload->refused ? 409 : 200, configuration_reload_json(reload, now));
    else
        http_answer_error(call, 503, "the guard is ending");
}

void configuration_reload(struct http_call *call, void *arg)
{
    switch (keeper_reload(arg, on_reloaded, call)) {
    case 0:
        break;
    case -EBUSY:
        http_answer_error(call, 503,
                          "a file is being read: the cache and the database are asked about it");
        break;
    default:
        http_answer_error(call, 503, "the guard is ending");
    }
}

void configuration_get(struct http_call *call, void *arg)
{
    struct buffer text = {0};
    config_yaml(keeper_config(arg), &text);
    http_answer_text(call, 200, "application/yaml", buffer_span(&text));
    buffer_finish(&text);
}
