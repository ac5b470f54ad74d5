/* A call that changes something about a key waits for everybody who is asked, and is answered by
 * the last of them:
 *
 *   PUT                    every worker has the hint ─▶ 201, 204
 *   DELETE                 database: is there a row? ─yes, or in another spelling─▶ 409
 *                                                    └─no─▶ tombstone
 *   DELETE ?row=delete     the same; if there is one: DELETE ─▶ is there another? ─no─▶ tombstone
 *                                                                               └─yes─▶ 409
 *   DELETE ?block          block, without asking
 *
 * Tombstones and blocks are answered when every worker has them and the cache has deleted the key.
 */
#include "control/key_calls.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "config/syntax/units.h"
#include "control/explain.h"
#include "guard/guard.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <stdlib.h>

enum { ASK_MOST = 5 }; /* questions to the database about one key, while others write it */

/* A call about one key, while others are asked about it. */
struct key_call {
    struct keeper_parts parts;
    struct http_call *call;
    struct key_touch touch;
    unsigned asked; /* how often the database was asked */
    bool deletes_row;
    bool created;              /* PUT: the key had no hint */
    int refused;               /* DELETE: why no entry could be made; or 0 */
    bool removed;              /* DELETE: its row went */
    struct override tombstone; /* from before the database was asked */
    const char *kept;          /* DELETE: why it is not rejected all the same; or NULL */
    bool stranded;             /* DELETE: a process that has taken over does not have it */
    unsigned outstanding;      /* answers still to come: workers, cache */
    const char *cache_error;
    char text[]; /* the key's */
};

static struct key key_of(const struct key_call *key)
{
    return key->touch.key;
}

/* After the answer: nobody has a question about the key any more. */
static void key_call_close(struct key_call *key)
{
    touches_close(key->parts.touches, &key->touch);
    free(key);
}

/* NOT_GUARDED when no keyspace has such a key; then the call is answered. */
static int keyspace_of(struct http_call *call, const struct keeper *keeper)
{
    struct span text = http_call_rest(call);
    int keyspace = guard_match(keeper_config(keeper), text);
    if (keyspace == NOT_GUARDED)
        http_answer_json(call, 404,
                         json_pack("{s:o, s:n, s:s}", "key", json_bytes(text.at, text.length),
                                   "keyspace", "error",
                                   "no keyspace has a key like this: it is not guarded, and passes "
                                   "through untouched"));
    return keyspace;
}

/* NULL when no keyspace has such a key; then the call is answered. */
static struct key_call *key_call_open(struct http_call *call, struct keeper *keeper)
{
    struct span text = http_call_rest(call);
    int keyspace = keyspace_of(call, keeper);
    if (keyspace == NOT_GUARDED)
        return NULL;
    struct key_call *key = xcalloc(1, sizeof *key + text.length);
    key->parts = keeper_parts(keeper);
    key->call = call;
    key->touch.key = key_copy(key_make(keyspace, text), key->text);
    touches_open(key->parts.touches, &key->touch);
    return key;
}

/* A duration in the query. 0: it is not there; -1: it is wrong, and the call is answered. */
static int64_t query_duration(struct http_call *call, const char *name)
{
    const char *text = http_call_query(call, name), *error = NULL;
    uint64_t ms = 0;
    if (!text)
        return 0;
    if (units_duration(text, &ms, &error) == 0 && ms > 0 && ms < INT64_MAX / 2)
        return (int64_t)ms;
    http_answer_error(call, 400, "%s=%s: %s", name, text,
                      error ? error : "the time must be more than 0");
    return -1;
}

/* The override could not be made; frees the call. */
static void answer_refused(struct key_call *key, int status)
{
    if (status == -ENOSPC)
        http_answer_error(key->call, 503,
                          "%u keys are admitted, deleted or blocked already: max_hints allows no "
                          "more",
                          entries_most(key->parts.entries));
    else if (status == -ESTALE)
        http_answer_error(key->call, 409,
                          "the keyspace was changed meanwhile: nothing was changed");
    else
        http_answer_error(key->call, 503, "the guard is ending");
    key_call_close(key);
}

/* ---- GET /v1/keys/{key} ---- */

void key_calls_get(struct http_call *call, void *arg)
{
    int keyspace = keyspace_of(call, arg);
    if (keyspace != NOT_GUARDED)
        explain_key(arg, call, key_make(keyspace, http_call_rest(call)));
}

/* ---- PUT /v1/keys/{key} ---- */

static const char stranded[] =
    "another process has taken over and could not be told: repeat the call, which goes there";

static void admitted(void *arg, bool known)
{
    struct key_call *key = arg;
    if (!known)
        http_answer_error(key->call, 503, "%s", stranded);
    else if (key->created)
        http_answer_json(key->call, 201, json_pack("{s:s}", "status", "admitted"));
    else
        http_answer_json(key->call, 204, NULL);
    key_call_close(key);
}

void key_calls_put(struct http_call *call, void *arg)
{
    struct keeper *keeper = arg;
    int64_t for_ms = query_duration(call, "for");
    struct key_call *key = for_ms < 0 ? NULL : key_call_open(call, keeper);
    if (!key)
        return;
    struct entries *entries = key->parts.entries;
    struct override entry = entries_find(entries, key_of(key));
    struct override hint = override_admit(entry, entries_hint(entries, (uint64_t)for_ms));
    hint.blocked_until = 0; /* whoever admits a key ends its block */
    key->created = entry.kind != OVERRIDE_HINT || entry.blocked_until;
    int status = entries_set(entries, key_of(key), hint, admitted, key);
    if (status)
        answer_refused(key, status);
}

/* ---- DELETE /v1/keys/{key} ---- */

/* Workers or cache have answered; whoever is the last of them answers the call. */
static void deleted_in_part(struct key_call *key)
{
    if (--key->outstanding)
        return;
    if (key->refused && !key->kept) {
        answer_refused(key, key->refused);
        return;
    }
    if (key->kept)
        http_answer_error(key->call, 409, "a row was deleted, and the key is not rejected: %s",
                          key->kept);
    else if (key->stranded)
        http_answer_error(key->call, 503, "%s", stranded);
    else if (key->cache_error)
        http_answer_error(key->call, 503,
                          "the guard rejects the key from now on, but could not delete it from the "
                          "cache (%s): repeat the call when the cache is back",
                          key->cache_error);
    else
        http_answer_json(key->call, 204, NULL);
    key_call_close(key);
}

static void workers_know(void *arg, bool known)
{
    struct key_call *key = arg;
    key->stranded = !known;
    deleted_in_part(key);
}

static void purged(void *arg, const struct redis_answer *answer)
{
    struct key_call *key = arg;
    if (answer->outcome != REDIS_DONE)
        key->cache_error = answer->outcome == REDIS_DOWN ? "it is down" : "it refused the DEL";
    deleted_in_part(key);
}

/* From here on the key is not cached, and rejected if the entry says so. A load that is under way
 * is stale by now, so it fills nothing; a fill sent before goes to the cache ahead of the purge.
 * Where the entry is refused the key is purged all the same. */
static void reject_and_purge(struct key_call *key, struct override entry)
{
    key->outstanding = 2; /* workers_know() and purged(), neither of which has been called yet */
    key->refused = entries_set(key->parts.entries, key_of(key), entry, workers_know, key);
    if (key->refused)
        key->outstanding = 1;
    if (key->refused == -ESTALE && key->removed && !key->kept)
        key->kept = "its keyspace was changed meanwhile";
    purging_delete(key->parts.purging, key_of(key), purged, key);
}

static struct override known_of(const struct key_call *key)
{
    return entries_find(key->parts.entries, key_of(key));
}

/* What else is said of the key stays: when the block ends it counts again. */
static void block(struct key_call *key, uint64_t for_ms)
{
    struct override entry = known_of(key);
    entry.blocked_until = clock_ms() + for_ms;
    reject_and_purge(key, entry);
}

/* A block lasts on under the tombstone. A hint that waits for the end of all that was being written
 * when it came stays in the tombstone's place: its row may be in a transaction that nobody sees
 * yet, and no log would end the tombstone. Until the hint ends the key is loaded, and absent. */
static void bury(struct key_call *key)
{
    struct override known = known_of(key);
    bool is_expected = known.kind == OVERRIDE_HINT && known.sticky;
    key->tombstone.blocked_until = known.blocked_until;
    reject_and_purge(key, is_expected ? known : key->tombstone);
}

/* A row went: what was loaded of it goes, what is said of the key stays. */
static void forget(struct key_call *key, const char *kept)
{
    key->kept = kept;
    reject_and_purge(key, known_of(key));
}

/* Only the database's word that a row is gone lets a key be rejected: without it, nothing changes.
 */
static void answer_database(struct key_call *key, const struct row_result *result)
{
    static const char *const texts[] = {[LOAD_TIMEOUT] = "it did not answer within load_timeout",
                                        [LOAD_DOWN] = "it is down",
                                        [LOAD_REFUSED] = "it refused",
                                        [LOAD_AMBIGUOUS] = "",
                                        [LOAD_ABSENT] = "",
                                        [LOAD_BUSY] = "",
                                        [LOAD_CUT] = "",
                                        [LOAD_TOO_LARGE] = "",
                                        [LOAD_ROW] = ""};
    http_answer_error(key->call, result->outcome == LOAD_REFUSED ? 409 : 503,
                      "the database could not be asked, so nothing was changed: %s%s%s",
                      texts[result->outcome], result->error[0] ? ": " : "", result->error);
    key_call_close(key);
}

static void ask_row(struct key_call *key);

/* Queries may not see yet what the log has told of the key. */
static bool is_unseen(const struct key_call *key)
{
    return visibility_has(key->parts.loading->visibility, key_of(key));
}

static void ask_again(struct key_touch *touch)
{
    ask_row(container_of(touch, struct key_call, touch));
}

/* The database said that there is no row; but it may have said so before somebody wrote the key
 * anew, and then it must be asked again. A row that the log had told of before, while queries did
 * not see it yet (commit_visibility.h), nothing would tell of again: its tombstone would deny it
 * for good. So it is waited for, until the probe after which queries see it. */
static void bury_unless_touched(struct key_call *key)
{
    if (!key->touch.touched) {
        bury(key);
    } else if (key->asked == ASK_MOST && key->removed) {
        forget(key, "it is being written");
    } else if (key->asked == ASK_MOST) {
        http_answer_error(key->call, 409, "the key is being written: nothing was changed");
        key_call_close(key);
    } else if (is_unseen(key)) {
        key->touch.on_probe = ask_again;
        visibility_hurry(key->parts.loading->visibility);
    } else {
        ask_row(key);
    }
}

/* Of a key of one column alone the row was the only one. */
static bool may_be_of_others(const struct key_call *key)
{
    const struct config *config = key->parts.loading->rows.config;
    return config->keyspaces[key_of(key).keyspace].key.columns > 1;
}

/* The DELETE was by one way to split the key, and another row may have it by another. Where none
 * went, the row was gone meanwhile, or a trigger or rule has kept it: the DELETE does not say. */
static void row_removed(void *arg, const struct row_result *result)
{
    struct key_call *key = arg;
    key->deletes_row = false;
    key->removed = result->outcome == LOAD_ROW && result->removed == 1;
    if (key->removed && !may_be_of_others(key))
        bury_unless_touched(key);
    else if (result->outcome == LOAD_ABSENT || result->outcome == LOAD_ROW)
        ask_row(key);
    else
        answer_database(key, result);
}

/* The caller is told which key to name: "gone" would be wrong, and to take the one for the other
 * would leave what the cache has of both. */
static void answer_other_spelling(struct key_call *key, struct span own)
{
    http_answer_json(
        key->call, 409,
        json_pack(
            "{s:o, s:o}", "error",
            explain_spelling("nothing was changed: no row has this key (?block=10m refuses it "
                             "all the same)",
                             own),
            "other_spelling", json_bytes(own.at, own.length)));
    key_call_close(key);
}

/* After a row of the key went; NULL: the database has no other. */
static const char *why_kept(const struct row_result *result)
{
    if (result->other_spelling.at)
        return "a row has another spelling of it";
    if (result->outcome == LOAD_ABSENT)
        return NULL;
    return result->outcome == LOAD_ROW ? "another row has it, too"
                                       : "the database could not be asked for another row";
}

static void row_asked(void *arg, const struct row_result *result)
{
    struct key_call *key = arg;
    blob_release(result->value);
    if (key->removed && why_kept(result)) {
        forget(key, why_kept(result));
    } else if (result->other_spelling.at) {
        answer_other_spelling(key, result->other_spelling);
    } else if (result->outcome == LOAD_ABSENT) {
        bury_unless_touched(key);
    } else if (result->outcome != LOAD_ROW) {
        answer_database(key, result);
    } else if (key->deletes_row &&
               key->parts.loading->rows.config->keyspaces[key->touch.key.keyspace].query) {
        http_answer_error(key->call, 409,
                          "nothing was changed: the row is one of a query, not of a table: delete "
                          "it by SQL, or refuse the key for a time with ?block=10m");
        key_call_close(key);
    } else if (key->deletes_row && result->equals > 1) {
        http_answer_error(
            key->call, 409,
            "nothing was changed: %d rows equal this key to the database, which would "
            "delete them all: delete the one by SQL",
            result->equals);
        key_call_close(key);
    } else if (key->deletes_row) {
        key->touch.touched = is_unseen(key);
        rows_remove(&key->parts.loading->rows, key_of(key), result->way, row_removed, key);
    } else {
        http_answer_error(key->call, 409,
                          "the row exists: delete it first, or with ?row=delete, or refuse the key "
                          "for a time with ?block=10m");
        key_call_close(key);
    }
}

/* The database need not be asked about a key that no column's text can be in. */
static void ask_row(struct key_call *key)
{
    const struct rows *rows = &key->parts.loading->rows;
    key->touch.touched = is_unseen(key);
    key->tombstone = entries_tombstone(key->parts.entries);
    key->asked++;
    switch (rows_foretell(rows, key_of(key))) {
    case LOAD_ABSENT:
        bury(key);
        break;
    case LOAD_AMBIGUOUS:
        http_answer_error(key->call, 409, "the key can be split into columns in too many ways");
        key_call_close(key);
        break;
    default:
        rows_find(rows, key_of(key), row_asked, key);
    }
}

/* A block needs no word from the database: it is the admin's order, and must work when the database
 * does not. */
void key_calls_delete(struct http_call *call, void *arg)
{
    struct keeper *keeper = arg;
    const char *row = http_call_query(call, "row");
    int64_t block_ms = query_duration(call, "block");
    if (block_ms < 0)
        return;
    if ((row && strcmp(row, "delete") != 0) || (row && block_ms)) {
        http_answer_error(call, 400,
                          row && block_ms ? "row and block exclude each other"
                                          : "row: only ?row=delete is known");
        return;
    }
    struct key_call *key = key_call_open(call, keeper);
    if (!key)
        return;
    key->deletes_row = row != NULL;
    if (!block_ms && keeper_config(keeper)->keyspaces[key->touch.key.keyspace].source) {
        http_answer_error(call, 409,
                          "nothing was changed: the key has no row that could be asked for: take "
                          "it out of the keyspace's source, or refuse it for a time with "
                          "?block=10m");
        key_call_close(key);
        return;
    }
    int status = entries_have_room(key->parts.entries, key_of(key));
    if (block_ms)
        block(key, (uint64_t)block_ms);
    else if (status) /* before a row is deleted */
        answer_refused(key, status);
    else
        ask_row(key);
}
