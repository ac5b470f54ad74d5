/* Items are asked for in groups, so that the memory of the filters is waited for once a group. An
 * item that means several keys is there when one of them may be; an item that means more than a
 * group holds may be there. Of more than LOOKUPS_AT_ONCE so many are answered at a time, in turn
 * with other clients (piecemeal.h), each by the view of its time.
 *
 * A user of the cache's own must not learn here what Redis would not tell: Redis is asked for the
 * keys first, over the user's connection, and what it refuses is refused (as with EXISTS).
 */
#include "worker/command/keys/membership.h"

#include "base/container_of.h"
#include "guard/guard.h"
#include "guard/item_keys.h"
#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/command/keys/admission.h"
#include "worker/command/keys/filter_report.h"
#include "worker/command/keys/item_limit.h"
#include "worker/command/keys/lookup_join.h"
#include "worker/reply/piecemeal.h"
#include "worker/request/shadow_sample.h"
#include "worker/upstream/upstream.h"

#include <errno.h>
#include <stdlib.h>

enum { FILTER_NAME = 1, FIRST_ITEM = 2 }; /* arguments of those that ask */

static const char no_memory[] = "NESTGUARD out of memory";

/* Its first argument is a filter's name. */
static bool is_about_filter(const struct command *command)
{
    return command->kind == COMMAND_MEMBER || command->kind == COMMAND_ADMIT ||
           command->kind == COMMAND_FILTER;
}

/* The one that the command names as its filter, or NOT_GUARDED: then it is about a filter in Redis.
 */
static int find_keyspace(const struct config *config, const struct request *request)
{
    if (request->count <= FILTER_NAME || !is_about_filter(request->command))
        return NOT_GUARDED;
    const struct keyspace *found = config_find_keyspace(config, request->arguments[FILTER_NAME]);
    return found ? (int)(found - config->keyspaces) : NOT_GUARDED;
}

bool membership_is_meant(const struct client *client, const struct request *request)
{
    return find_keyspace(serving_config(client->serving), request) != NOT_GUARDED;
}

/* ---- the ruling on items ---- */

/* What was asked for, as keys of the keyspace. */
struct item {
    size_t keys;   /* how many of the group's it has; they follow those of the item before */
    bool is_vague; /* it means more keys than can be asked for */
};

/* Items whose filters' memory is fetched together. */
struct group {
    struct serving *serving;
    struct permission *permission; /* begun before the first item was added */
    int keyspace;
    size_t count; /* of the items */
    struct item items[KEY_ASKS_MAX];
    struct item_key keys[KEY_ASKS_MAX];
    struct key_asks asks;
    struct buffer text; /* of the keys */
};

/* Too large to be zeroed for each command: `text` and the counts are. */
static void group_init(struct group *group, struct serving *serving, struct permission *permission,
                       int keyspace)
{
    group->serving = serving;
    group->permission = permission;
    group->keyspace = keyspace;
    group->text = (struct buffer){0};
    group->count = group->asks.count = 0; /* the rest is written before it is read */
}

/* False: it has no place beside the others. */
static bool group_add(struct group *group, struct span text)
{
    const struct keyspace *keyspace = serving_keyspace(group->serving, group->keyspace);
    struct key_asks *asks = &group->asks;
    struct item_key *keys = &group->keys[asks->count];
    if (group->count == KEY_ASKS_MAX)
        return false;
    int found = item_keys_add(&keyspace->key, text, &group->text, keys, KEY_ASKS_MAX - asks->count);
    if (found < 0 && group->count)
        return false;
    struct item *item = &group->items[group->count++];
    *item = (struct item){.keys = found < 0 ? 0 : (size_t)found, .is_vague = found < 0};
    for (size_t i = 0; i < item->keys; i++)
        key_asks_add(asks, group->serving->view, group->keyspace,
                     item_key_span(&group->text, keys[i]));
    return true;
}

/* Of an item that no key of the keyspace is spelled like: as sure as any key that no filter holds.
 */
static enum decision decide_without_key(struct group *group)
{
    if (!permission_holds(group->permission, group->keyspace))
        return DECISION_PASS;
    return serving_keyspace(group->serving, group->keyspace)->enforce ? DECISION_REJECT
                                                                      : DECISION_SHADOW;
}

/* The mildest of the rulings on an item's keys. */
static enum decision decide_keys(struct group *group, size_t first, size_t count)
{
    struct serving *serving = group->serving;
    enum decision mildest = DECISION_REJECT;
    for (size_t i = first; i < first + count && mildest != DECISION_PASS; i++) {
        struct span key = item_key_span(&group->text, group->keys[i]);
        enum decision decision = guard_decide(group->permission, &serving->overrides,
                                              group->keyspace, key, group->asks.at[i].held)
                                     .decision;
        if (decision != DECISION_REJECT)
            mildest = decision;
    }
    return mildest;
}

/* `first`: where the item's keys begin among the group's. */
static enum decision decide(struct group *group, const struct item *item, size_t first)
{
    if (item->is_vague)
        return DECISION_PASS;
    if (!item->keys)
        return decide_without_key(group);
    enum decision decision = decide_keys(group, first, item->keys);
    if (decision == DECISION_SHADOW)
        shadow_sample(group->serving, group->keyspace,
                      item_key_span(&group->text, group->keys[first]));
    return decision;
}

/* Takes the rulings, writes an answer for each item, and empties the group. */
static void group_answer(struct group *group, struct buffer *out, bool resp3)
{
    struct keyspace_counters *counters = &group->serving->keyspaces[group->keyspace];
    size_t first = 0, decided[] = {[DECISION_REJECT] = 0, [DECISION_SHADOW] = 0};
    key_asks_end(&group->asks);
    for (size_t i = 0; i < group->count; i++) {
        enum decision decision = decide(group, &group->items[i], first);
        resp_write_truth(out, decision != DECISION_REJECT, resp3);
        decided[decision]++;
        first += group->items[i].keys;
    }
    counter_add(&counters->lookups, group->count);
    counter_add(&counters->members, group->count);
    counter_add(&counters->rejected, decided[DECISION_REJECT]);
    counter_add(&counters->would_reject, decided[DECISION_SHADOW]);
    group->count = group->asks.count = 0;
    buffer_clear(&group->text);
}

/* The group is fresh. */
static void answer_items(struct group *group, const struct span *items, size_t count,
                         struct buffer *out, bool resp3)
{
    for (size_t i = 0; i < count; i++) {
        if (group_add(group, items[i]))
            continue;
        group_answer(group, out, resp3);
        group_add(group, items[i]);
    }
    group_answer(group, out, resp3);
    buffer_finish(&group->text);
}

/* BF.MEXISTS and its like: the reply is an array, also for one item. */
static bool is_of_many(const struct command *command)
{
    return command->arity < 0;
}

/* Bytes of the reply for so many. */
static size_t room_for(size_t count)
{
    return RESP_HEADER_ROOM + count * strlen(":1\r\n");
}

static void answer_at_once(struct client *client, const struct request *request, int keyspace)
{
    const struct command *command = request->command;
    bool resp3 = client->replies.resp3 && !(command->items & ITEMS_COUNTED);
    size_t count = request->count - FIRST_ITEM;
    struct buffer *out = client_reply(client);
    struct group group;
    if (!buffer_try_reserve(out, room_for(count))) {
        resp_write_error(out, no_memory);
        return;
    }
    if (is_of_many(command))
        resp_write_array(out, count);
    group_init(&group, client->serving, &client->serving->permission, keyspace);
    answer_items(&group, &request->arguments[FIRST_ITEM], count, out, resp3);
}

/* ---- in pieces ---- */

struct pieces {
    struct piecemeal piecemeal;
    int keyspace;
    bool resp3;
    size_t left; /* items */
    const char *at, *end;
    char text[]; /* the command's, behind its filter's name */
};

/* What comes unasked between two pieces must not come within the reply: that is kept in the slot
 * until it is whole. */
static bool go_on(struct piecemeal *piecemeal)
{
    struct pieces *pieces = container_of(piecemeal, struct pieces, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    struct span items[LOOKUPS_AT_ONCE];
    struct group group;
    size_t count = 0;
    for (; slot->replies && pieces->left && count < LOOKUPS_AT_ONCE; count++, pieces->left--)
        items[count] = resp_bulk_text(resp_array_next(&pieces->at, pieces->end));
    if (count) {
        struct permission permission = permission_begin(slot->serving->view);
        group_init(&group, slot->serving, &permission, pieces->keyspace);
        answer_items(&group, items, count, &slot->reply, pieces->resp3);
        turn_worked(&slot->serving->turn, count);
    }
    if (slot->replies && pieces->left)
        return true;
    reply_slot_let_go(slot, piecemeal->bytes);
    return false;
}

static const struct reply_slot_kind pieces_kind = {0};

/* What the client asks next is answered by what holds after this. But who is blocked is read from
 * for as long as may be: the end of a client that has sent much is behind all of that, and has to
 * be seen. */
static void begin_pieces(struct client *client, struct pieces *pieces, size_t bytes)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &pieces_kind);
    if (!pinned_is_blocked(client))
        client_settle(client);
    if (!buffer_try_reserve(&slot->reply, room_for(pieces->left))) {
        free(pieces);
        request_refuse_memory(slot);
        return;
    }
    pieces->piecemeal.slot = slot;
    pieces->piecemeal.go_on = go_on;
    resp_write_array(&slot->reply, pieces->left);
    reply_slot_hold(slot, bytes);
    piecemeal_begin(&pieces->piecemeal, bytes);
}

/* An inline command has no more items than are served at once, or few more: it is a line. */
static bool try_pieces(struct client *client, const struct request *request, int keyspace)
{
    struct span name = request->arguments[FILTER_NAME];
    const char *text = name.at + name.length + 2, *end = request->raw.at + request->raw.length;
    size_t count = request->count - FIRST_ITEM;
    if (count <= LOOKUPS_AT_ONCE || request->is_inline)
        return false;
    size_t length = (size_t)(end - text), bytes = length + room_for(count);
    struct pieces *pieces =
        piecemeal_has_room(client->serving, bytes) ? malloc(sizeof *pieces + length) : NULL;
    if (!pieces)
        return false;
    *pieces = (struct pieces){.keyspace = keyspace,
                              .resp3 = client->replies.resp3,
                              .left = count,
                              .at = pieces->text,
                              .end = pieces->text + length};
    memcpy(pieces->text, text, length);
    begin_pieces(client, pieces, bytes);
    return true;
}

static void answer(struct client *client, const struct request *request, int keyspace)
{
    if (try_pieces(client, request, keyspace))
        return;
    if (!item_limit_refuses(client, request->count - FIRST_ITEM))
        answer_at_once(client, request, keyspace);
}

/* Of what is longer the hashing takes more time than is won. */
enum { PREFETCHED_BYTES = 1024 };

__attribute__((noinline)) void membership_prefetch(const struct view *view,
                                                   const struct request *request)
{
    struct item_key keys[2];
    struct buffer text = {0};
    int keyspace = find_keyspace(view->config, request);
    const struct asked_filter *asked = keyspace == NOT_GUARDED ? NULL : &view->asked[keyspace];
    if (!asked || !asked->filter || request->count != FIRST_ITEM + 1 ||
        request->arguments[FIRST_ITEM].length > PREFETCHED_BYTES)
        return;
    int count = item_keys_add(&view->config->keyspaces[keyspace].key,
                              request->arguments[FIRST_ITEM], &text, keys, 2);
    for (int i = 0; i < count; i++) {
        struct span key = item_key_span(&text, keys[i]);
        filter_prefetch(asked->filter, filter_hash(asked->seed, key.at, key.length));
    }
    buffer_finish(&text);
}

/* ---- a user of the cache's own ---- */

/* Only a refusal is kept, or that it was no answer: whether Redis has the key says nothing of the
 * row. */
static void user_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct lookup *lookup = &slot->lookups[index];
    size_t begun = lookup_begin(lookup);
    if (reply_is_error(reply))
        reply_slot_append(slot, &slot->reply, reply);
    else if (!reply_is_number(reply))
        resp_write_error(&slot->reply, "%s", REQUEST_STRANGE);
    lookup_end(lookup, begun);
}

static void user_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    struct lookup *lookup = &slot->lookups[index];
    size_t begun = lookup_begin(lookup);
    resp_write_error(&slot->reply, "%s", why);
    lookup_end(lookup, begun);
}

/* The first one is the reply to all of it. */
static bool write_refusal_of(struct reply_slot *slot)
{
    struct buffer answers = reply_slot_take_answers(slot);
    struct span refusal = {"", 0};
    for (size_t i = 0; i < slot->lookup_count && !refusal.length; i++)
        refusal = lookup_answer(&slot->lookups[i], &answers);
    buffer_append(reply_slot_output(slot), refusal.at, refusal.length);
    buffer_finish(&answers);
    return refusal.length;
}

/* The rulings are those of now: none of before could have been told. */
static void finish_user(struct reply_slot *slot, bool many, bool counted)
{
    struct permission permission = permission_begin(slot->serving->view);
    struct buffer *out = reply_slot_output(slot);
    struct group group;
    if (write_refusal_of(slot) || !reply_slot_reserve(slot, out, room_for(slot->lookup_count)))
        return;
    if (many)
        resp_write_array(out, slot->lookup_count);
    for (size_t i = 0; i < slot->lookup_count; i++) {
        const struct lookup *lookup = &slot->lookups[i];
        group_init(&group, slot->serving, &permission, lookup->keyspace);
        answer_items(&group, &lookup->key, 1, out, slot->resp3 && !counted);
    }
}

static void finish_one(struct reply_slot *slot)
{
    finish_user(slot, false, false);
}

static void finish_many(struct reply_slot *slot)
{
    finish_user(slot, true, false);
}

static void finish_count(struct reply_slot *slot)
{
    finish_user(slot, false, true);
}

#define KIND(end)                                                                                  \
    {                                                                                              \
        .on_cache = user_reply, .on_cache_failure = user_failure, .finish = (end)                  \
    }
static const struct reply_slot_kind one_kind = KIND(finish_one), many_kind = KIND(finish_many),
                                    count_kind = KIND(finish_count);
#undef KIND

static const struct reply_slot_kind *kind_for(const struct command *command)
{
    if (command->items & ITEMS_COUNTED)
        return &count_kind;
    return is_of_many(command) ? &many_kind : &one_kind;
}

static void write_exists(struct buffer *command, const struct buffer *text,
                         const struct item_key *keys, size_t count)
{
    resp_write_array(command, count + 1);
    resp_write_bulk(command, "EXISTS", 6);
    for (size_t i = 0; i < count; i++) {
        struct span key = item_key_span(text, keys[i]);
        resp_write_bulk(command, key.at, key.length);
    }
}

/* Of an item without keys, or with too many, everybody is told the same. */
static void ask_cache(struct client *client, struct reply_slot *slot, unsigned index)
{
    const struct lookup *lookup = &slot->lookups[index];
    struct item_key keys[KEY_ASKS_MAX];
    struct buffer text = {0};
    int found = item_keys_add(&serving_keyspace(slot->serving, lookup->keyspace)->key, lookup->key,
                              &text, keys, KEY_ASKS_MAX);
    size_t count = found > 0 ? (size_t)found : 0;
    size_t most = buffer_length(&text) + (count + 2) * RESP_HEADER_ROOM;
    if (count && upstream_has_room(client->upstream, most))
        write_exists(upstream_command(client->upstream, slot, index), &text, keys, count);
    else if (count)
        user_failure(slot, index, no_memory);
    buffer_finish(&text);
}

/* The items are the slot's lookups, in their order. */
static void answer_user(struct client *client, const struct request *request, int keyspace)
{
    if (item_limit_refuses(client, request->count - FIRST_ITEM))
        return;
    struct reply_slot *slot = reply_slot_open(&client->replies, kind_for(request->command));
    if (!reply_slot_try_lookups(slot, &request->arguments[FIRST_ITEM],
                                request->count - FIRST_ITEM)) {
        request_refuse_memory(slot);
        return;
    }
    for (size_t i = 0; i < slot->lookup_count; i++) {
        slot->lookups[i].keyspace = keyspace;
        ask_cache(client, slot, (unsigned)i);
    }
    reply_slot_answered(slot);
}

/* ---- dispatch ---- */

static void refuse_arity(struct client *client, const struct request *request)
{
    char name[32];
    span_lower(span_of(request->command->name), name, sizeof name);
    resp_write_error(client_reply(client), "ERR wrong number of arguments for '%s' command", name);
}

static void refuse_user(struct client *client)
{
    resp_write_error(client_reply(client),
                     "NOPERM a keyspace's filter is told of and added to by the guard's own user "
                     "only: a user of the cache's own admits a key by writing it");
}

__attribute__((noinline)) bool membership_dispatch(struct client *client,
                                                   const struct request *request)
{
    const struct command *command = request->command;
    int keyspace = find_keyspace(serving_config(client->serving), request);
    bool is_user = client->replies.no_fallback;
    if (keyspace == NOT_GUARDED)
        return false;
    if (!command_arity_ok(command, request->count))
        refuse_arity(client, request);
    else if (command->kind == COMMAND_MEMBER && is_user)
        answer_user(client, request, keyspace);
    else if (command->kind == COMMAND_MEMBER)
        answer(client, request, keyspace);
    else if (is_user)
        refuse_user(client);
    else if (command->kind == COMMAND_ADMIT)
        admission_dispatch(client, request, keyspace);
    else
        filter_report(client, request, keyspace);
    return true;
}
