/* The commonest requests of all: a reject costs no slot, no allocation and no trip. What the cache
 * answers to a GET is the reply as it is; what it lacks is loaded in its place.
 */
#include "worker/command/keys/lookup.h"

#include "resp/reply.h"
#include "worker/client/reads.h"
#include "worker/command/keys/answer.h"
#include "worker/command/keys/course.h"
#include "worker/command/keys/hash_lookup.h"
#include "worker/command/keys/lookup_many.h"
#include "worker/reply/measuring.h"
#include "worker/upstream/pool.h"

static void get_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    course_without_cache(slot->lookups, reply_slot_output(slot), why);
}

/* What does not begin like a value; apart from those, which need no room for words. A nil of RESP3
 * is among it, and what no GET answers. */
__attribute__((noinline)) static void get_other(struct reply_slot *slot, struct span reply)
{
    char why[ANSWER_WORDS];
    bool is_answer = reply_is_error(reply) || reply_is_nil(reply);
    if (!is_answer || answer_is_cache_failure(reply))
        get_failure(slot, 0, answer_error_words(reply, why));
    else
        course_take(slot->lookups, reply, reply_slot_output(slot));
}

static void get_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (slot->begun)
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else if (reply.at[0] != '$')
        get_other(slot, reply);
    else
        course_take(slot->lookups, reply, reply_slot_output(slot));
}

/* What comes in parts is neither nil nor an error. */
static void get_part(struct reply_slot *slot, struct span bytes)
{
    if (!slot->begun)
        course_after(slot->lookups, true);
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

/* In place of the nil that the cache answered. */
static void get_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    answer_write_loaded(lookup, reply_slot_output(lookup->slot), outcome, value);
}

/* A replica did not have it. */
static void get_again(struct reply_slot *slot, unsigned index)
{
    if (!reads_ask_again(slot, index, "GET", slot->lookups->key))
        get_failure(slot, index, "NESTGUARD out of memory");
}

static const struct reply_slot_kind get_kind = {.on_cache = get_reply,
                                                .on_part = get_part,
                                                .on_cache_failure = get_failure,
                                                .ask_again = get_again,
                                                .on_loaded = get_loaded};

static struct reply_slot *open_get(struct client *client, const struct request *request)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &get_kind);
    reply_slot_set_lookup(slot, request->arguments[1], request->keyspace);
    slot->lookups->shadowed = measures_take_shadow(&client->serving->measures);
    measuring_begin(slot);
    return slot;
}

static void dispatch_get(struct client *client, const struct request *request)
{
    struct reply_slot *slot = open_get(client, request);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
}

/* ---- */

/* The one answer that needs no slot, unless earlier replies are still to come. */
__attribute__((always_inline)) static inline void reject(struct client *client,
                                                         const struct request *request)
{
    const struct keyspace *keyspace = serving_keyspace(client->serving, request->keyspace);
    bool is_get = request->command->kind == COMMAND_GET, resp3 = client->replies.resp3;
    if (is_get && keyspace->on_absent == ABSENT_NIL) {
        resp_write_nil(client_reply(client), resp3); /* the commonest of all */
    } else if (request->command->hash == HASH_VALUES) {
        measures_call(&client->serving->measures, request->command);
        hash_lookup_write_absent(client, request);
    } else {
        measures_call(&client->serving->measures, request->command);
        answer_write_absent(client_reply(client), keyspace, request->command->absent[resp3],
                            is_get);
    }
}

/* By a command that reads through: what a replica does not have the primary is asked for. */
static bool may_be_at_replica(struct client *client, const struct request *request)
{
    bool is_get = request->command->kind == COMMAND_GET;
    return (is_get || hash_lookup_is_one(client, request)) && reads_may_go_to_replica(client);
}

/* NULL: it is for the client's connection, which is now that to the key's node. */
__attribute__((noinline)) static struct upstream *go_elsewhere(struct client *client,
                                                               const struct request *request)
{
    struct pool *pool = client_pool(client);
    struct span key = request->arguments[request->command->first_key];
    if (pool_is_cluster(pool))
        client_go_to_key(client, key);
    if (!may_be_at_replica(client, request))
        return NULL;
    return reads_replica(client, pool_node_of(pool, key),
                         request->raw.length + RESP_HEADER_ROOM * (request->count + 1));
}

static void dispatch_read(struct client *client, const struct request *request,
                          struct upstream *replica)
{
    measures_call(&client->serving->measures, request->command);
    bool shadowed = measures_take_shadow(&client->serving->measures);
    if (hash_lookup_is_one(client, request))
        hash_lookup_dispatch(client, request, shadowed, replica);
    else
        request_forward_read(request, client);
}

static void dispatch_at_replica(struct client *client, const struct request *request,
                                struct upstream *replica)
{
    if (request->command->kind != COMMAND_GET) {
        dispatch_read(client, request, replica);
        return;
    }
    struct reply_slot *slot = open_get(client, request);
    request_write(request, reads_ask_replica(replica, slot, 0));
    reply_slot_answered(slot);
}

/* Apart from the rejects, which are so compiled without regard to it. */
__attribute__((noinline)) static void pass(struct client *client, const struct request *request)
{
    bool may_go = client->serving->is_led || client->pinned.own;
    struct upstream *replica = may_go ? go_elsewhere(client, request) : NULL;
    if (replica)
        dispatch_at_replica(client, request, replica);
    else if (request->command->kind == COMMAND_GET)
        dispatch_get(client, request);
    else
        dispatch_read(client, request, NULL);
}

void lookup_dispatch(struct client *client, const struct request *request)
{
    struct span key = request->arguments[request->command->first_key];
    if (course_rejects(client->serving, request->keyspace, key, request->held)) {
        reject(client, request);
    } else {
        client->account.others++;
        pass(client, request);
    }
}

/* It was counted among others before, and by its name. */
void lookup_dispatch_user(struct client *client, const struct request *request)
{
    struct span key = request->arguments[request->command->first_key];
    measures_uncall(&client->serving->measures, request->command);
    if (client->replies.no_fallback
            ? course_rejects_user(client->serving, request->keyspace, key, request->held)
            : course_rejects(client->serving, request->keyspace, key, request->held)) {
        client->account.others--;
        reject(client, request);
    } else {
        pass(client, request);
    }
}

bool lookup_is_guarded(const struct client *client, const struct request *request)
{
    return request->keyspace != NOT_GUARDED || lookup_many_is_guarded(client, request);
}
