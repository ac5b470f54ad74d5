/* A slot keeps all of its command's words among its lookups, for the time when the row has come: of
 * these the second is the key, and alone is looked up.
 *
 * What the second request finds may be newer than the first: the hash may have come since, or a
 * field been written. Only if the answer is then as it was before, the hash is there and lacks what
 * is asked for. Else the row itself is asked: that is right whatever has happened.
 *
 * So it is when the same client has sent behind this command what may have written the hash: the
 * second request may come after that at the cache, and this command's reply must not know of it.
 */
#include "worker/command/keys/hash_lookup.h"

#include "resp/reply.h"
#include "worker/client/reads.h"
#include "worker/command/keys/answer.h"
#include "worker/command/keys/course.h"
#include "worker/command/keys/hash_answer.h"
#include "worker/reply/measuring.h"
#include "worker/upstream/upstream.h"

enum { WORD_NAME, WORD_KEY, WORD_FIELDS };
enum { ASK_AS_SENT, ASK_FOR_ALL }; /* numbers of a slot's requests */
enum { LOOK_BEHIND = 500 };        /* at so many commands; of more nothing is known */

static struct lookup *lookup_of(struct reply_slot *slot)
{
    return &slot->lookups[WORD_KEY];
}

static struct hash_question question_of(const struct reply_slot *slot)
{
    return (struct hash_question){.what = command_find(slot->lookups[WORD_NAME].key)->hash,
                                  .fields = &slot->lookups[WORD_FIELDS],
                                  .count = slot->lookup_count - WORD_FIELDS,
                                  .resp3 = slot->resp3};
}

/* ---- the answers ---- */

static void write_hash(struct reply_slot *slot, struct span hash)
{
    struct hash_question question = question_of(slot);
    struct buffer *out = reply_slot_output(slot);
    size_t before = buffer_length(out);
    if (hash_answer_write(&question, hash, out))
        serving_arrived(slot->serving, buffer_length(out) - before);
    else
        reply_slot_starve(slot);
}

static void write_absent(const struct hash_question *question, const struct keyspace *keyspace,
                         struct buffer *out)
{
    if (keyspace->on_absent == ABSENT_ERROR)
        answer_write_absent(out, keyspace, "", false);
    else
        hash_answer_write_nothing(question, out);
}

static void answer_absent(struct reply_slot *slot)
{
    struct hash_question question = question_of(slot);
    write_absent(&question, serving_keyspace(slot->serving, lookup_of(slot)->keyspace),
                 reply_slot_output(slot));
}

/* In place of what the cache did not have. */
static void take_row(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    struct reply_slot *slot = lookup->slot;
    if (outcome == LOAD_ROW)
        write_hash(slot, blob_span(value));
    else if (outcome == LOAD_ABSENT)
        answer_absent(slot);
    else
        answer_write_load_error(reply_slot_output(slot), outcome);
}

/* ---- what the cache says ---- */

static void hear_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    course_without_cache(lookup_of(slot), reply_slot_output(slot), why);
}

/* The hash is there: `reply` is the answer. */
static void answer(struct reply_slot *slot, struct span reply)
{
    course_after(lookup_of(slot), true);
    reply_slot_append(slot, reply_slot_output(slot), reply);
}

/* The hash is not there; `reply` says the same. */
static void miss(struct reply_slot *slot, struct span reply)
{
    enum course course = course_after(lookup_of(slot), false);
    if (course == COURSE_REJECTED)
        answer_absent(slot);
    else if (course == COURSE_ANSWERED)
        reply_slot_append(slot, reply_slot_output(slot), reply);
}

/* Or what is no answer to the command. */
static void take_error(struct reply_slot *slot, unsigned index, struct span reply)
{
    char why[ANSWER_WORDS];
    if (answer_is_cache_failure(reply) || !reply_is_error(reply))
        hear_failure(slot, index, answer_error_words(reply, why));
    else
        answer(slot, reply);
}

static bool only_reads(const struct reply_slot *slot);

/* HGETALL's reply, and in its light that to what the client has sent. */
static void judge(struct reply_slot *slot, struct span hash)
{
    const char *at;
    struct hash_question question = question_of(slot);
    struct buffer now = {0};
    if (!hash_answer_write(&question, hash, &now))
        reply_slot_starve(slot);
    else if (resp_map_open(hash, &at) > 0 && hash_answer_is_nothing(&question, buffer_span(&now)))
        answer(slot, buffer_span(&now));
    else
        miss(slot, buffer_span(&now));
    buffer_finish(&now);
}

/* Whatever the client has sent behind this command only reads. */
static bool is_followed_by_reads(const struct reply_slot *slot)
{
    const struct reply_slot *behind = slot->next;
    for (unsigned i = 0; i < LOOK_BEHIND && behind && only_reads(behind); i++)
        behind = behind->next;
    return !behind;
}

/* A user who may not ask for all, or a cache to whom the command is unknown, leaves open whether
 * the hash is there: as if it were not. */
static void take_all(struct reply_slot *slot, unsigned index, struct span reply)
{
    const char *at;
    bool is_denied = reply_is_error(reply) && !answer_is_cache_failure(reply) &&
                     !span_starts(reply, "-WRONGTYPE ");
    if (resp_map_open(reply, &at) >= 0)
        judge(slot, is_followed_by_reads(slot) ? reply : span_of("*0\r\n"));
    else if (is_denied)
        judge(slot, span_of("*0\r\n"));
    else
        take_error(slot, index, reply);
}

/* Whole, however large: it is looked into. */
static const struct reply_slot_kind all_kind = {
    .on_cache = take_all, .on_cache_failure = hear_failure, .on_loaded = take_row};

/* A connection of the client's own may be in a transaction or another database by now: what was
 * pipelined behind this command is on its way there. A shared one has no state, but may not ask for
 * a user of the cache's own. NULL: neither will do. */
static struct upstream *upstream_of(struct reply_slot *slot)
{
    struct client *client = client_of(slot->replies);
    if (!slot->replies->no_fallback)
        return reads_primary(slot, lookup_of(slot)->key);
    return slot->replies->last == slot ? client->upstream : NULL;
}

static void ask_for_all(struct reply_slot *slot, struct span reply)
{
    struct upstream *upstream = upstream_of(slot);
    const struct span words[] = {span_of("HGETALL"), lookup_of(slot)->key};
    if (!upstream || !upstream_has_room(upstream, words[1].length + 4 * RESP_HEADER_ROOM)) {
        miss(slot, reply);
        return;
    }
    slot->kind = &all_kind;
    resp_write_command(upstream_command(upstream, slot, ASK_FOR_ALL), words, 2);
}

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct hash_question question = question_of(slot);
    if (slot->begun)
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else if (!hash_answer_has_form(&question, reply))
        take_error(slot, index, reply);
    else if (!hash_answer_is_nothing(&question, reply))
        answer(slot, reply);
    else if (hash_asks_for_fields(question.what))
        ask_for_all(slot, reply);
    else
        miss(slot, reply);
}

/* What comes in parts is neither nothing nor an error; but of HMGET it may be a great many nils. */
static void take_part(struct reply_slot *slot, struct span bytes)
{
    if (!slot->begun)
        course_after(lookup_of(slot), true);
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

/* A replica lacks the hash, or something of it. */
static void ask_again(struct reply_slot *slot, unsigned index)
{
    struct upstream *primary = reads_primary(slot, lookup_of(slot)->key);
    size_t bytes = buffer_length(&slot->keys) + RESP_HEADER_ROOM * (slot->lookup_count + 1);
    if (!upstream_has_room(primary, bytes)) {
        hear_failure(slot, index, "NESTGUARD out of memory");
        return;
    }
    struct buffer *command = upstream_command(primary, slot, index);
    resp_write_array(command, slot->lookup_count);
    for (size_t i = 0; i < slot->lookup_count; i++)
        resp_write_bulk(command, slot->lookups[i].key.at, slot->lookups[i].key.length);
}

static const struct reply_slot_kind first_kind = {.on_cache = take_reply,
                                                  .on_part = take_part,
                                                  .on_cache_failure = hear_failure,
                                                  .ask_again = ask_again,
                                                  .on_loaded = take_row};
static const struct reply_slot_kind first_whole_kind = {.on_cache = take_reply,
                                                        .on_cache_failure = hear_failure,
                                                        .ask_again = ask_again,
                                                        .on_loaded = take_row};

/* Of the kinds that are told apart here: others may write. */
static bool only_reads(const struct reply_slot *slot)
{
    return slot->kind == &first_kind || slot->kind == &first_whole_kind || slot->kind == &all_kind;
}

/* ---- dispatching ---- */

void hash_lookup_dispatch(struct client *client, const struct request *request, bool shadowed,
                          struct upstream *replica)
{
    bool whole = request->command->hash == HASH_VALUES;
    struct reply_slot *slot =
        reply_slot_open(&client->replies, whole ? &first_whole_kind : &first_kind);
    if (!reply_slot_try_lookups(slot, request->arguments, request->count)) {
        request_refuse_memory(slot);
        return;
    }
    lookup_of(slot)->keyspace = request->keyspace;
    lookup_of(slot)->shadowed = shadowed;
    slot->asks_for_rows = keyspace_has_rows(serving_keyspace(slot->serving, request->keyspace));
    measuring_begin(slot);
    if (replica)
        request_write(request, reads_ask_replica(replica, slot, ASK_AS_SENT));
    else
        request_to_cache(request, client, slot, ASK_AS_SENT);
    reply_slot_answered(slot);
}

/* As many nils as names were sent: the fields themselves need not be kept. */
void hash_lookup_write_absent(struct client *client, const struct request *request)
{
    struct buffer *out = client_reply(client);
    const struct keyspace *keyspace = serving_keyspace(client->serving, request->keyspace);
    if (keyspace->on_absent == ABSENT_ERROR) {
        answer_write_absent(out, keyspace, "", false);
        return;
    }
    resp_write_array(out, request->count - WORD_FIELDS);
    for (size_t i = WORD_FIELDS; i < request->count; i++)
        resp_write_nil(out, client->replies.resp3);
}
