/* An MGET's parts and an EXISTS' sums: lookup_many.h has the picture. Keys are decided upon by the
 * KEY_ASKS_MAX, so that their filters' memory is fetched together, and asked for in their order.
 */
#include "worker/command/keys/lookup_many.h"

#include "guard/guard.h"
#include "resp/reply.h"
#include "worker/client/reads.h"
#include "worker/client/tracking.h"
#include "worker/command/keys/answer.h"
#include "worker/command/keys/course.h"
#include "worker/command/keys/lookup_many_internal.h"
#include "worker/reply/measuring.h"
#include "worker/upstream/pool.h"

#include <stdlib.h>

static const char no_memory[] = "NESTGUARD out of memory";

/* Of an MGET that the cache has refused, for one of its keys or as a whole: as at Redis that is the
 * answer to all of them. */
static const struct reply_slot_kind refused_kind, refused_each_kind;

static bool is_refused(const struct reply_slot *slot)
{
    return slot->kind == &refused_kind || slot->kind == &refused_each_kind;
}

static const struct reply_slot_kind exists_kind;

/* ---- MGET ---- */

/* The same for one key of several. */
static void fail_lookup(struct lookup *lookup, const char *why)
{
    size_t begun = lookup_begin(lookup);
    if (lookup->keyspace != NOT_GUARDED)
        course_without_cache(lookup, &lookup->slot->reply, why);
    else
        resp_write_error(&lookup->slot->reply, "%s", why);
    lookup_end(lookup, begun);
}

/* A request is for the keys of one piece, and has its number. */
static struct range range_asked(const struct reply_slot *slot, unsigned index)
{
    return lookup_many_range(slot, (size_t)index * LOOKUPS_AT_ONCE);
}

/* As to a GET: an error that is the cache's answer. */
static bool refuses(struct span reply)
{
    return reply.at[0] == '-' && !answer_is_cache_failure(reply);
}

static void take_refusal(struct reply_slot *slot, struct range range, struct span refusal)
{
    for (size_t i = range.first; i < range.end; i++) {
        struct lookup *lookup = &slot->lookups[i];
        if (lookup->rejected)
            continue;
        size_t begun = lookup_begin(lookup);
        if (lookup->keyspace != NOT_GUARDED)
            course_after(lookup, true);
        if (!is_refused(slot))
            reply_slot_append(slot, &slot->reply, refusal);
        lookup_end(lookup, begun);
        slot->kind = slot->kind->asks_each ? &refused_each_kind : &refused_kind;
    }
}

static void mget_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    struct range range = range_asked(slot, index);
    for (size_t i = range.first; i < range.end; i++)
        if (!slot->lookups[i].rejected)
            fail_lookup(&slot->lookups[i], why);
}

/* MGET gives nil for what is no string: that is the word of a key whose row is a hash, in the cache
 * or not. */
static bool is_hash(const struct lookup *lookup)
{
    return lookup->keyspace != NOT_GUARDED &&
           serving_keyspace(lookup->slot->serving, lookup->keyspace)->fill == FILL_HASH;
}

static void take_element(struct lookup *lookup, struct span element)
{
    struct buffer *out = &lookup->slot->reply;
    if (lookup->keyspace == NOT_GUARDED) {
        reply_slot_append(lookup->slot, out, element);
    } else if (is_hash(lookup)) {
        course_after(lookup, true);
        reply_slot_append(lookup->slot, out, element);
    } else {
        course_take(lookup, element, out);
    }
}

/* One element of the cache's reply, which is that key's own word. */
static void mget_element(struct lookup *lookup, struct span element)
{
    if (!reply_is_text(element) && !reply_is_nil(element)) {
        fail_lookup(lookup, REQUEST_STRANGE);
        return;
    }
    size_t begun = lookup_begin(lookup);
    take_element(lookup, element);
    lookup_end(lookup, begun);
}

static size_t count_asked(const struct reply_slot *slot, struct range range)
{
    size_t count = 0;
    for (size_t i = range.first; i < range.end; i++)
        count += !slot->lookups[i].rejected;
    return count;
}

/* The cache was asked for the keys that are not rejected, in order. */
static void mget_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    struct range range = range_asked(slot, index);
    if (refuses(reply)) {
        take_refusal(slot, range, reply);
        return;
    }
    if (!reply_is_list_of(reply, count_asked(slot, range))) {
        char why[ANSWER_WORDS];
        mget_failure(slot, index, answer_error_words(reply, why));
        return;
    }
    resp_array_open(reply, &at);
    for (size_t i = range.first; i < range.end; i++)
        if (!slot->lookups[i].rejected)
            mget_element(&slot->lookups[i], resp_array_next(&at, end));
}

static void answer_loaded(struct lookup *lookup, enum load_outcome outcome,
                          const struct blob *value)
{
    size_t begun = lookup_begin(lookup);
    if (outcome == LOAD_ROW && is_hash(lookup))
        resp_write_nil(&lookup->slot->reply, lookup->slot->resp3);
    else
        answer_write_loaded(lookup, &lookup->slot->reply, outcome, value);
    lookup_end(lookup, begun);
}

/* For the keys that are not rejected. */
static void write_mget(const struct reply_slot *slot, struct range range, struct buffer *command)
{
    resp_write_array(command, count_asked(slot, range) + 1);
    resp_write_bulk(command, "MGET", 4);
    for (size_t i = range.first; i < range.end; i++)
        if (!slot->lookups[i].rejected)
            resp_write_bulk(command, slot->lookups[i].key.at, slot->lookups[i].key.length);
}

/* A replica lacked some of them. */
static void mget_again(struct reply_slot *slot, unsigned index)
{
    struct range range = range_asked(slot, index);
    struct upstream *primary = reads_primary(slot, slot->lookups[range.first].key);
    if (upstream_has_room(primary, lookup_many_bytes(slot, range)))
        write_mget(slot, range, upstream_command(primary, slot, index));
    else
        mget_failure(slot, index, no_memory);
}

static const struct reply_slot_kind mget_kind = {.on_cache = mget_reply,
                                                 .on_cache_failure = mget_failure,
                                                 .ask_again = mget_again,
                                                 .on_loaded = answer_loaded,
                                                 .finish = lookup_join_list};

static const struct reply_slot_kind refused_kind = {.on_cache = mget_reply,
                                                    .on_cache_failure = mget_failure,
                                                    .ask_again = mget_again,
                                                    .on_loaded = answer_loaded,
                                                    .finish = lookup_join_sum};

/* In a cluster, of one key. */
static void mget_one_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    fail_lookup(&slot->lookups[index], why);
}

static void mget_one_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char why[ANSWER_WORDS];
    const char *at;
    if (refuses(reply)) {
        take_refusal(slot, (struct range){index, index + 1}, reply);
        return;
    }
    if (!reply_is_list_of(reply, 1)) {
        fail_lookup(&slot->lookups[index], answer_error_words(reply, why));
        return;
    }
    resp_array_open(reply, &at);
    mget_element(&slot->lookups[index], resp_array_next(&at, reply.at + reply.length));
}

/* A replica lacked the one key of a request, whose number is its place. */
static void ask_one_again(struct reply_slot *slot, unsigned index)
{
    const char *name = slot->kind == &exists_kind ? "EXISTS" : "MGET";
    if (!reads_ask_again(slot, index, name, slot->lookups[index].key))
        fail_lookup(&slot->lookups[index], no_memory);
}

static const struct reply_slot_kind mget_each_kind = {.on_cache = mget_one_reply,
                                                      .on_cache_failure = mget_one_failure,
                                                      .ask_again = ask_one_again,
                                                      .on_loaded = answer_loaded,
                                                      .finish = lookup_join_list,
                                                      .asks_each = true};

static const struct reply_slot_kind refused_each_kind = {.on_cache = mget_one_reply,
                                                         .on_cache_failure = mget_one_failure,
                                                         .ask_again = ask_one_again,
                                                         .on_loaded = answer_loaded,
                                                         .finish = lookup_join_sum,
                                                         .asks_each = true};

/* Where a request for these keys, of one node, is written: to a replica only for guarded ones. */
static struct buffer *request_for(struct client *client, struct reply_slot *slot, unsigned index,
                                  struct range range, bool may_be_at_replica)
{
    const struct pool *pool = client_pool(client);
    for (size_t i = range.first; i < range.end && may_be_at_replica; i++)
        may_be_at_replica = slot->lookups[i].keyspace != NOT_GUARDED;
    int node = may_be_at_replica ? pool_node_of(pool, slot->lookups[range.first].key) : NO_NODE;
    struct upstream *replica =
        may_be_at_replica ? reads_replica(client, node, lookup_many_bytes(slot, range)) : NULL;
    return replica ? reads_ask_replica(replica, slot, index)
                   : upstream_command(client->upstream, slot, index);
}

static void mget_ask(struct client *client, struct reply_slot *slot, struct range range,
                     bool may_be_at_replica)
{
    unsigned index = (unsigned)(range.first / LOOKUPS_AT_ONCE);
    write_mget(slot, range, request_for(client, slot, index, range, may_be_at_replica));
}

/* ---- EXISTS: asked key by key, because the cache gives only a sum ---- */

static void exists_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    fail_lookup(&slot->lookups[index], why);
}

/* ":1" or ":0" of one key; an error is kept as it is, for the reply to be one. */
static void exists_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char why[ANSWER_WORDS];
    struct lookup *lookup = &slot->lookups[index];
    size_t begun = lookup_begin(lookup);
    bool guarded = lookup->keyspace != NOT_GUARDED, is_number = reply_is_number(reply);
    bool is_refusal = reply_is_error(reply) && !(guarded && answer_is_cache_failure(reply));
    if (!is_number && !is_refusal) {
        exists_failure(slot, index, answer_error_words(reply, why));
        return;
    }
    if (!guarded || !is_number || course_after(lookup, !span_is(reply, ":0\r\n")) != COURSE_LOADING)
        buffer_append(&slot->reply, reply.at, reply.length);
    lookup_end(lookup, begun);
}

/* A row that is too large to be loaded exists, too. */
static void exists_loaded(struct lookup *lookup, enum load_outcome outcome,
                          const struct blob *value)
{
    size_t begun = lookup_begin(lookup);
    (void)value;
    if (outcome == LOAD_ROW || outcome == LOAD_TOO_LARGE || outcome == LOAD_ABSENT)
        resp_write_integer(&lookup->slot->reply, outcome != LOAD_ABSENT);
    else
        answer_write_load_error(&lookup->slot->reply, outcome);
    lookup_end(lookup, begun);
}

static const struct reply_slot_kind exists_kind = {.on_cache = exists_reply,
                                                   .on_cache_failure = exists_failure,
                                                   .ask_again = ask_one_again,
                                                   .on_loaded = exists_loaded,
                                                   .finish = lookup_join_sum,
                                                   .asks_each = true};

/* A request for each key that passes, with its place among the lookups for a number. */
static void ask_each(struct client *client, struct reply_slot *slot, struct range range,
                     const char *name, bool may_be_at_replica)
{
    struct span arguments[2] = {span_of(name)};
    const struct pool *pool = client_pool(client);
    for (size_t i = range.first; i < range.end; i++) {
        if (slot->lookups[i].rejected)
            continue;
        arguments[1] = slot->lookups[i].key;
        if (pool_is_cluster(pool)) {
            client_go_to_key(client, arguments[1]);
            tracking_precede(client);
        }
        resp_write_command(
            request_for(client, slot, (unsigned)i, (struct range){i, i + 1}, may_be_at_replica),
            arguments, 2);
    }
}

/* Decides on some of the keys, at most as many as can be asked for together. */
static void decide_some(struct serving *serving, struct lookup *lookups, size_t count,
                        bool (*decide)(struct serving *, int, struct span, bool))
{
    struct key_asks asks;
    asks.count = 0; /* the rest is written before it is read */
    for (size_t i = 0; i < count; i++) {
        struct lookup *lookup = &lookups[i];
        lookup->keyspace = guard_match(serving_config(serving), lookup->key);
        if (lookup->keyspace != NOT_GUARDED)
            key_asks_add(&asks, serving->view, lookup->keyspace, lookup->key);
    }
    key_asks_end(&asks);
    for (size_t i = 0, ask = 0; i < count; i++)
        if (lookups[i].keyspace != NOT_GUARDED) {
            lookups[i].slot->asks_for_rows |=
                keyspace_has_rows(serving_keyspace(serving, lookups[i].keyspace));
            lookups[i].rejected =
                decide(serving, lookups[i].keyspace, lookups[i].key, asks.at[ask++].held);
            lookups[i].shadowed = measures_take_shadow(&serving->measures);
        }
}

/* Decides on each of these keys of an MGET or EXISTS; returns how many are not rejected. */
static size_t decide_all(struct reply_slot *slot, struct range range)
{
    struct serving *serving = slot->serving;
    size_t passing = 0;
    for (size_t i = range.first; i < range.end; i += KEY_ASKS_MAX) {
        size_t rest = range.end - i;
        decide_some(serving, &slot->lookups[i], rest < KEY_ASKS_MAX ? rest : KEY_ASKS_MAX,
                    slot->replies->no_fallback ? course_rejects_user : course_rejects);
    }
    for (size_t i = range.first; i < range.end; i++) {
        struct lookup *lookup = &slot->lookups[i];
        size_t begun = lookup_begin(lookup);
        if (lookup->rejected && slot->kind != &exists_kind)
            answer_write_absent(&slot->reply, serving_keyspace(serving, lookup->keyspace),
                                answer_nil(slot), true);
        else if (lookup->rejected)
            resp_write_integer(&slot->reply, 0); /* says it plainly, whatever on_absent is */
        else
            passing++;
        lookup_end(lookup, begun);
    }
    return passing;
}

static const struct reply_slot_kind *kind_of(const struct request *request, bool each)
{
    if (request->command->kind == COMMAND_EXISTS)
        return &exists_kind;
    return each ? &mget_each_kind : &mget_kind;
}

void lookup_many_ask(struct client *client, struct reply_slot *slot, struct range range,
                     bool may_be_at_replica)
{
    if (is_refused(slot))
        return;
    size_t passing = decide_all(slot, range);
    client->account.rejected_keys += range.end - range.first - passing;
    if (!range.first)
        measuring_begin(slot);
    if (slot->kind != &mget_kind)
        ask_each(client, slot, range, slot->kind == &exists_kind ? "EXISTS" : "MGET",
                 may_be_at_replica);
    else if (passing)
        mget_ask(client, slot, range, may_be_at_replica);
}

static bool try_room(struct reply_slot *slot, const struct request *request, bool in_pieces)
{
    if (in_pieces)
        return reply_slot_try_lookup_places(slot, request->count - 1);
    return reply_slot_try_lookups(slot, &request->arguments[1], request->count - 1);
}

/* Memory is asked for before anything is sent: a command of a million keys is refused whole.
 * `each`: the keys of an MGET are asked for one by one, too. */
static void dispatch_many(struct client *client, const struct request *request, bool each)
{
    bool may_be_at_replica = client->serving->is_led && reads_may_go_to_replica(client);
    struct reply_slot *slot = reply_slot_open(&client->replies, kind_of(request, each));
    size_t most = request->raw.length + 3 * RESP_HEADER_ROOM * request->count; /* EXISTS' */
    bool in_pieces = lookup_many_may_have_pieces(client, request);
    if (!try_room(slot, request, in_pieces) || !upstream_has_room(client->upstream, most)) {
        request_refuse_memory(slot);
        return;
    }
    if (in_pieces) {
        lookup_many_begin_pieces(client, request, slot);
        return;
    }
    for (size_t first = 0; first < slot->lookup_count; first += LOOKUPS_AT_ONCE)
        lookup_many_ask(client, slot, lookup_many_range(slot, first), may_be_at_replica);
    reply_slot_answered(slot);
}

/* Behind other commands in the same input, which is to be its alone. */
static bool stands_behind(const struct client *client, const struct request *request)
{
    struct span input = buffer_span(&client->in);
    return request->raw.at > input.at && request->raw.at < input.at + input.length;
}

static bool is_such(const struct request *request)
{
    return request->command->kind == COMMAND_MGET || request->command->kind == COMMAND_EXISTS;
}

bool lookup_many_must_wait(const struct client *client, const struct request *request)
{
    return lookup_many_has_pieces(request) && is_such(request) &&
           (client->replies.first || stands_behind(client, request));
}

static bool any_guarded(const struct serving *serving, const struct request *request)
{
    for (size_t i = 1; i < request->count; i++)
        if (guard_match(serving_config(serving), request->arguments[i]) != NOT_GUARDED)
            return true;
    return false;
}

bool lookup_many_is_guarded(const struct client *client, const struct request *request)
{
    return is_such(request) && any_guarded(client->serving, request);
}

/* What a client has pinned may hold for this command alone, and not for one that is sent later. */
bool lookup_many_dispatch(struct client *client, const struct request *request)
{
    if (is_such(request) && !client->pinned.states && lookup_many_may_have_pieces(client, request))
        lookup_many_begin_search(client, request, kind_of(request, false));
    else if (lookup_many_is_guarded(client, request))
        dispatch_many(client, request, false);
    else
        return false;
    return true;
}

void lookup_each(struct client *client, const struct request *request)
{
    dispatch_many(client, request, true);
}
