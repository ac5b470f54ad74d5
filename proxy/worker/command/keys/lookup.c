/* The commonest requests of all: a reject costs no slot, no allocation and no trip. What the cache
 * answers to a GET is the reply as it is; what it lacks is loaded in its place.
 */
#include "worker/command/keys/lookup.h"

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

/* What begins like an error; apart from the others, which need no room for words. */
__attribute__((noinline)) static void get_error(struct reply_slot *slot, struct span reply)
{
    char why[ANSWER_WORDS];
    if (answer_is_cache_failure(reply))
        get_failure(slot, 0, answer_error_words(reply, why));
    else
        course_take(slot->lookups, reply, reply_slot_output(slot));
}

static void get_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (slot->begun)
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else if (reply.at[0] == '-')
        get_error(slot, reply);
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

static const struct reply_slot_kind get_kind = {.on_cache = get_reply,
                                                .on_part = get_part,
                                                .on_cache_failure = get_failure,
                                                .on_loaded = get_loaded};

static struct reply_slot *open_get(struct client *client, const struct request *request,
                                   const struct reply_slot_kind *kind)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    reply_slot_set_lookup(slot, request->arguments[1], request->keyspace);
    slot->lookups->shadowed = measures_take_shadow(&client->serving->measures);
    measuring_begin(slot);
    return slot;
}

static void dispatch_get(struct client *client, const struct request *request)
{
    struct reply_slot *slot = open_get(client, request, &get_kind);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
}

/* ---- at a replica ---- */

/* A value is the answer. Of nothing, or an error, the primary is asked: the replica may lack what
 * the primary has, and says nothing of what the row's absence would mean. What the client has sent
 * behind this waits until it is answered (client/reads.h), so that it comes no earlier there,
 * either.
 */
static void ask_primary(struct reply_slot *slot)
{
    struct client *client = client_of(slot->replies);
    struct pool *pool = client_pool(client);
    struct span words[] = {span_of("GET"), slot->lookups->key};
    int node = pool_node_of(pool, words[1]);
    struct upstream *primary = pool_shared(pool, node, slot->resp3, client->id);
    slot->kind = &get_kind;
    counter_add(&slot->serving->counters.replica_misses, 1);
    if (upstream_has_room(primary, words[1].length + 4 * RESP_HEADER_ROOM))
        resp_write_command(upstream_command(primary, slot, 0), words, 2);
    else
        get_failure(slot, 0, "NESTGUARD out of memory");
}

static void end_at_replica(const struct reply_slot *slot)
{
    client_of(slot->replies)->reads.at_replicas--;
}

static void replica_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    end_at_replica(slot);
    if (!slot->begun && (reply.at[0] == '-' || answer_is_nil(reply)))
        ask_primary(slot);
    else
        get_reply(slot, index, reply);
}

/* Of what has begun the client's replies have ended. */
static void replica_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    end_at_replica(slot);
    if (slot->begun)
        get_failure(slot, index, why);
    else
        ask_primary(slot);
}

static const struct reply_slot_kind replica_kind = {.on_cache = replica_reply,
                                                    .on_part = get_part,
                                                    .on_cache_failure = replica_failure,
                                                    .on_loaded = get_loaded};

/* False: it is for the primary. */
static bool dispatch_to_replica(struct client *client, const struct request *request, int node)
{
    struct pool *pool = client->serving->pool;
    if (serving_config(client->serving)->cache_reads != CACHE_READS_REPLICA ||
        request->command->kind != COMMAND_GET || request->is_inline ||
        !reads_may_go_to_replica(client))
        return false;
    struct upstream *replica = pool_replica(pool, node, client->replies.resp3, client->id);
    if (!replica || !upstream_has_room(replica, request->raw.length))
        return false;
    struct reply_slot *slot = open_get(client, request, &replica_kind);
    counter_add(&client->serving->counters.replica_reads, 1);
    client->reads.at_replicas++;
    upstream_send(replica, slot, 0, request->raw);
    reply_slot_answered(slot);
    return true;
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

/* False: it is for the client's connection, which is now that to the key's node. */
__attribute__((noinline)) static bool go_elsewhere(struct client *client,
                                                   const struct request *request)
{
    struct pool *pool = client_pool(client);
    int node = pool_node_of(pool, request->arguments[request->command->first_key]);
    if (pool_is_cluster(pool))
        client_go_to(client, node);
    return dispatch_to_replica(client, request, node);
}

/* Apart from the rejects, which are so compiled without regard to it. */
__attribute__((noinline)) static void pass(struct client *client, const struct request *request)
{
    bool may_go = client->serving->is_led || client->pinned.own;
    if (may_go && go_elsewhere(client, request))
        return;
    if (request->command->kind == COMMAND_GET) {
        dispatch_get(client, request);
    } else {
        measures_call(&client->serving->measures, request->command);
        bool shadowed = measures_take_shadow(&client->serving->measures);
        if (hash_lookup_is_one(client, request))
            hash_lookup_dispatch(client, request, shadowed);
        else
            request_forward(request, client);
    }
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
