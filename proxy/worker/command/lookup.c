/* Three ways to a reply:
 *
 *   GET      one key: the cache's reply as it is, or what the load found
 *   MGET     one request for all keys that pass; each lookup keeps its part until all are there
 *   EXISTS   one request for each key that passes; the reply is their sum
 *
 * The commands that only read a key (COMMAND_READ) are rejected here or forwarded as they are.
 */
#include "worker/command/lookup.h"

#include "guard/guard.h"
#include "worker/command/row_loads.h"
#include "worker/command/shadow_sample.h"
#include "worker/upstream/upstream.h"

enum { WORDS = 128 };

/* ---- answers ---- */

static const struct keyspace *keyspace_of(const struct serving *serving, int keyspace)
{
    return &serving_config(serving)->keyspaces[keyspace];
}

/* In the protocol of whoever asked. */
static const char *nil_of(const struct reply_slot *slot)
{
    return slot->resp3 ? "_\r\n" : "$-1\r\n";
}

static bool is_nil(struct span reply)
{
    return reply.length <= 5 && (span_is(reply, "$-1\r\n") || span_is(reply, "_\r\n"));
}

/* A cache that is starting, or cut off from its master, has no answer to give: as good as down. */
static bool is_cache_failure(struct span reply)
{
    if (reply.at[0] != '-')
        return false;
    return span_starts(reply, "-LOADING") || span_starts(reply, "-MASTERDOWN") ||
           span_starts(reply, "-CLUSTERDOWN") || span_starts(reply, "-BUSY ");
}

/* Of an error: the cache tells best what it is at. */
static const char *words_of(struct span reply, char words[WORDS])
{
    snprintf(words, WORDS, "%.*s", (int)(reply.length > 3 ? reply.length - 3 : 0), reply.at + 1);
    return words;
}

/* What a lookup of an absent key gets; `plain` is the command's own answer for a missing key. */
__attribute__((noinline)) static void write_absent(struct buffer *out,
                                                   const struct keyspace *keyspace,
                                                   const char *plain, bool takes_value)
{
    if (keyspace->on_absent == ABSENT_ERROR)
        resp_write_error(out, "NESTGUARD absent: no row of keyspace %s has this key",
                         keyspace->name);
    else if (keyspace->on_absent == ABSENT_VALUE && takes_value)
        resp_write_bulk(out, keyspace->absent_value, strlen(keyspace->absent_value));
    else
        buffer_append(out, plain, strlen(plain));
}

static void write_load_error(struct buffer *out, enum load_outcome outcome)
{
    static const char *const texts[] = {
        [LOAD_BUSY] = "busy: no turn at the database within load_timeout, try again",
        [LOAD_CUT] = "busy: too many loads wait, and most of them are this client's",
        [LOAD_TIMEOUT] = "timeout: the database took longer than load_timeout",
        [LOAD_DOWN] = "database down",
        [LOAD_REFUSED] = "database error: it refused the load, see the guard's log",
        [LOAD_AMBIGUOUS] = "ambiguous: the key can be split into columns in too many ways",
        [LOAD_TOO_LARGE] = "too large: the row's value has more bytes than max_value"};
    resp_write_error(out, "NESTGUARD %s", texts[outcome]);
}

static void write_value(struct reply_slot *slot, struct buffer *out, struct span value)
{
    if (reply_slot_reserve(slot, out, value.length + RESP_HEADER_ROOM))
        resp_write_bulk(out, value.at, value.length);
}

/* The answer of a GET or of one key of an MGET. */
static void write_loaded(const struct lookup *lookup, struct buffer *out, enum load_outcome outcome,
                         const struct blob *value)
{
    const struct keyspace *keyspace = keyspace_of(lookup->slot->serving, lookup->keyspace);
    if (outcome == LOAD_ROW)
        write_value(lookup->slot, out, blob_span(value));
    else if (outcome == LOAD_ABSENT)
        write_absent(out, keyspace, nil_of(lookup->slot), true);
    else
        write_load_error(out, outcome);
}

/* ---- asking ---- */

/* A user of the cache's own may not be allowed to read the key, and must not learn whether it
 * exists: the cache is asked in any case, and only for what it does not have is the ruling told
 * (go_on_after). What was blocked by order is absent to everybody. */
__attribute__((noinline)) static bool rejects_user(struct serving *serving, int keyspace,
                                                   struct span key, bool held)
{
    struct ruling ruling =
        guard_decide(&serving->permission, &serving->overrides, keyspace, key, held);
    bool rejected = ruling.decision == DECISION_REJECT && ruling.reason == REASON_BLOCK;
    counter_add(&serving->keyspaces[keyspace].lookups, 1);
    counter_add(&serving->keyspaces[keyspace].rejected, rejected);
    return rejected;
}

/* Takes the ruling on a key and counts it; true: reject. */
static inline bool rejects(struct serving *serving, int keyspace, struct span key, bool held)
{
    struct ruling ruling =
        guard_decide(&serving->permission, &serving->overrides, keyspace, key, held);
    struct keyspace_counters *counters = &serving->keyspaces[keyspace];
    counter_add(&counters->lookups, 1);
    if (ruling.decision == DECISION_REJECT)
        counter_add(&counters->rejected, 1);
    else if (ruling.decision == DECISION_SHADOW) {
        counter_add(&counters->would_reject, 1);
        shadow_sample(serving, keyspace, key);
    }
    return ruling.decision == DECISION_REJECT;
}

/* A key that was passed on for a write that was under way is decided upon once more when the cache
 * does not have it: the write may have been refused since. The ruling is as good as that on a
 * lookup that is sent now. */
__attribute__((noinline)) static bool is_rejected_now(const struct lookup *lookup)
{
    const struct serving *serving = lookup->slot->serving;
    struct permission permission = permission_begin(serving->view);
    bool held = guard_holds(serving->view, key_make(lookup->keyspace, lookup->key));
    return guard_decide(&permission, &serving->overrides, lookup->keyspace, lookup->key, held)
               .decision == DECISION_REJECT;
}

/* What a key's lookup has come to once the cache has said its word. */
enum course {
    COURSE_ANSWERED, /* that word is the answer */
    COURSE_LOADING,
    COURSE_REJECTED
};

static enum course go_on_after(struct lookup *lookup, bool hit)
{
    struct serving *serving = lookup->slot->serving;
    struct keyspace_counters *counters = &serving->keyspaces[lookup->keyspace];
    counter_add(hit ? &counters->cache_hits : &counters->cache_misses, 1);
    if (hit)
        return COURSE_ANSWERED;
    if (is_rejected_now(lookup)) {
        counter_add(&counters->rejected, 1);
        return COURSE_REJECTED;
    }
    if (keyspace_of(serving, lookup->keyspace)->on_miss != MISS_LOAD)
        return COURSE_ANSWERED;
    row_load(lookup);
    return COURSE_LOADING;
}

/* The same where the cache's word, or that there is no row, goes to `out`. */
static void take_value(struct lookup *lookup, struct span reply, struct buffer *out)
{
    enum course course = go_on_after(lookup, !is_nil(reply));
    if (course == COURSE_ANSWERED)
        reply_slot_append(lookup->slot, out, reply);
    else if (course == COURSE_REJECTED)
        write_absent(out, keyspace_of(lookup->slot->serving, lookup->keyspace),
                     nil_of(lookup->slot), true);
}

/* Without the cache the row itself answers; where the application loads by itself, it must learn of
 * the failure. */
static void answer_without_cache(struct lookup *lookup, struct buffer *out, const char *why)
{
    struct serving *serving = lookup->slot->serving;
    counter_add(&serving->keyspaces[lookup->keyspace].cache_failures, 1);
    const struct replies *replies = lookup->slot->replies;
    bool falls_back = !(replies && replies->no_fallback);
    if (falls_back && keyspace_of(serving, lookup->keyspace)->on_miss == MISS_LOAD)
        row_load(lookup);
    else
        resp_write_error(out, "%s", why);
}

/* ---- GET ---- */

static void get_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    answer_without_cache(slot->lookups, reply_slot_output(slot), why);
}

static void get_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char why[WORDS];
    if (slot->begun)
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else if (is_cache_failure(reply))
        get_failure(slot, index, words_of(reply, why));
    else
        take_value(slot->lookups, reply, reply_slot_output(slot));
}

/* What comes in parts is neither nil nor an error. */
static void get_part(struct reply_slot *slot, struct span bytes)
{
    if (!slot->begun)
        go_on_after(slot->lookups, true);
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

/* In place of the nil that the cache answered. */
static void get_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    write_loaded(lookup, reply_slot_output(lookup->slot), outcome, value);
}

static const struct reply_slot_kind get_kind = {.on_cache = get_reply,
                                                .on_part = get_part,
                                                .on_cache_failure = get_failure,
                                                .on_loaded = get_loaded};

static void dispatch_get(struct client *client, const struct request *request)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &get_kind);
    reply_slot_set_lookup(slot, request->arguments[1], request->keyspace);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
}

/* ---- MGET ---- */

/* The same for one key of several. */
static void fail_lookup(struct lookup *lookup, const char *why)
{
    size_t begun = lookup_begin(lookup);
    if (lookup->keyspace != NOT_GUARDED)
        answer_without_cache(lookup, &lookup->slot->reply, why);
    else
        resp_write_error(&lookup->slot->reply, "%s", why);
    lookup_end(lookup, begun);
}

static void mget_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    for (size_t i = 0; i < slot->lookup_count; i++)
        if (!slot->lookups[i].rejected)
            fail_lookup(&slot->lookups[i], why);
}

static void mget_element(struct lookup *lookup, struct span element)
{
    if (!element.length) {
        fail_lookup(lookup, "NESTGUARD cache error: its reply to MGET is too short");
        return;
    }
    size_t begun = lookup_begin(lookup);
    if (lookup->keyspace != NOT_GUARDED)
        take_value(lookup, element, &lookup->slot->reply);
    else
        reply_slot_append(lookup->slot, &lookup->slot->reply, element);
    lookup_end(lookup, begun);
}

/* The cache was asked for the keys that are not rejected, in order. */
static void mget_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    if (reply.at[0] != '*') {
        char why[WORDS];
        mget_failure(slot, index, words_of(reply, why));
        return;
    }
    resp_array_open(reply, &at);
    for (size_t i = 0; i < slot->lookup_count; i++)
        if (!slot->lookups[i].rejected)
            mget_element(&slot->lookups[i], resp_array_next(&at, end));
}

static void answer_loaded(struct lookup *lookup, enum load_outcome outcome,
                          const struct blob *value)
{
    size_t begun = lookup_begin(lookup);
    write_loaded(lookup, &lookup->slot->reply, outcome, value);
    lookup_end(lookup, begun);
}

static void mget_finish(struct reply_slot *slot)
{
    struct buffer answers = reply_slot_take_answers(slot);
    struct buffer *out = reply_slot_output(slot);
    resp_write_array(out, slot->lookup_count);
    for (size_t i = 0; i < slot->lookup_count; i++)
        if (!reply_slot_append(slot, out, lookup_answer(&slot->lookups[i], &answers)))
            break;
    buffer_finish(&answers);
}

static const struct reply_slot_kind mget_kind = {.on_cache = mget_reply,
                                                 .on_cache_failure = mget_failure,
                                                 .on_loaded = answer_loaded,
                                                 .finish = mget_finish};

/* Nothing is asked when all keys are rejected. */
static void mget_ask(struct client *client, struct reply_slot *slot, size_t passing)
{
    if (!passing)
        return;
    struct buffer *command = upstream_command(client->upstream, slot, 0);
    resp_write_array(command, passing + 1);
    resp_write_bulk(command, "MGET", 4);
    for (size_t i = 0; i < slot->lookup_count; i++)
        if (!slot->lookups[i].rejected)
            resp_write_bulk(command, slot->lookups[i].key.at, slot->lookups[i].key.length);
}

/* ---- EXISTS: asked key by key, because the cache gives only a sum ---- */

static void exists_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    fail_lookup(&slot->lookups[index], why);
}

static void exists_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char why[WORDS];
    struct lookup *lookup = &slot->lookups[index];
    size_t begun = lookup_begin(lookup);
    bool guarded = lookup->keyspace != NOT_GUARDED;
    if (guarded && is_cache_failure(reply)) {
        exists_failure(slot, index, words_of(reply, why));
        return;
    }
    if (!guarded || reply.at[0] != ':' ||
        go_on_after(lookup, !span_is(reply, ":0\r\n")) != COURSE_LOADING)
        buffer_append(&slot->reply, reply.at, reply.length);
    lookup_end(lookup, begun);
}

static void exists_loaded(struct lookup *lookup, enum load_outcome outcome,
                          const struct blob *value)
{
    size_t begun = lookup_begin(lookup);
    (void)value;
    if (outcome == LOAD_ROW || outcome == LOAD_TOO_LARGE || outcome == LOAD_ABSENT)
        resp_write_integer(&lookup->slot->reply, outcome != LOAD_ABSENT);
    else
        write_load_error(&lookup->slot->reply, outcome);
    lookup_end(lookup, begun);
}

/* The sum, or the first error: a count that leaves out a key would be wrong. */
static void exists_finish(struct reply_slot *slot)
{
    struct buffer answers = reply_slot_take_answers(slot);
    struct span error = {"", 0};
    int64_t sum = 0;
    for (size_t i = 0; i < slot->lookup_count && !error.length; i++) {
        struct span answer = lookup_answer(&slot->lookups[i], &answers);
        if (span_starts(answer, "-"))
            error = answer;
        sum += span_is(answer, ":1\r\n");
    }
    if (error.length)
        buffer_append(reply_slot_output(slot), error.at, error.length);
    else
        resp_write_integer(reply_slot_output(slot), sum);
    buffer_finish(&answers);
}

static const struct reply_slot_kind exists_kind = {.on_cache = exists_reply,
                                                   .on_cache_failure = exists_failure,
                                                   .on_loaded = exists_loaded,
                                                   .finish = exists_finish};

static void exists_ask(struct client *client, struct reply_slot *slot)
{
    struct span arguments[2] = {span_of("EXISTS")};
    for (size_t i = 0; i < slot->lookup_count; i++) {
        if (slot->lookups[i].rejected)
            continue;
        arguments[1] = slot->lookups[i].key;
        resp_write_command(upstream_command(client->upstream, slot, (unsigned)i), arguments, 2);
    }
}

/* ---- dispatch ---- */

/* Without a guarded key the command is the cache's alone, and its reply need not be taken apart. */
static bool any_guarded(const struct serving *serving, const struct request *request)
{
    for (size_t i = 1; i < request->count; i++)
        if (guard_match(serving_config(serving), request->arguments[i]) != NOT_GUARDED)
            return true;
    return false;
}

bool lookup_is_guarded(const struct client *client, const struct request *request)
{
    enum command_kind kind = request->command->kind;
    return request->keyspace != NOT_GUARDED || ((kind == COMMAND_MGET || kind == COMMAND_EXISTS) &&
                                                any_guarded(client->serving, request));
}

/* Decides on some of the keys, at most as many as can be asked for together. */
static void decide_some(struct serving *serving, struct lookup *lookups, size_t count,
                        bool (*decide)(struct serving *, int, struct span, bool))
{
    struct key_probes probes;
    probes.count = 0; /* the rest is written before it is read */
    for (size_t i = 0; i < count; i++) {
        struct lookup *lookup = &lookups[i];
        lookup->keyspace = guard_match(serving_config(serving), lookup->key);
        if (lookup->keyspace != NOT_GUARDED)
            key_probes_add(&probes, serving->view, lookup->keyspace, lookup->key);
    }
    key_probes_end(&probes);
    for (size_t i = 0, probe = 0; i < count; i++)
        if (lookups[i].keyspace != NOT_GUARDED)
            lookups[i].rejected =
                decide(serving, lookups[i].keyspace, lookups[i].key, probes.at[probe++].held);
}

/* Decides on each key of an MGET or EXISTS; returns how many are not rejected. */
static size_t decide_all(struct reply_slot *slot, bool is_mget)
{
    struct serving *serving = slot->serving;
    size_t passing = 0;
    for (size_t i = 0; i < slot->lookup_count; i += KEY_PROBES_MAX) {
        size_t rest = slot->lookup_count - i;
        decide_some(serving, &slot->lookups[i], rest < KEY_PROBES_MAX ? rest : KEY_PROBES_MAX,
                    slot->replies->no_fallback ? rejects_user : rejects);
    }
    for (size_t i = 0; i < slot->lookup_count; i++) {
        struct lookup *lookup = &slot->lookups[i];
        size_t begun = lookup_begin(lookup);
        if (lookup->rejected && is_mget)
            write_absent(&slot->reply, keyspace_of(serving, lookup->keyspace), nil_of(slot), true);
        else if (lookup->rejected)
            resp_write_integer(&slot->reply, 0); /* says it plainly, whatever on_absent is */
        else
            passing++;
        lookup_end(lookup, begun);
    }
    return passing;
}

static void dispatch_many(struct client *client, const struct request *request)
{
    bool is_mget = request->command->kind == COMMAND_MGET;
    struct reply_slot *slot =
        reply_slot_open(&client->replies, is_mget ? &mget_kind : &exists_kind);
    size_t most = request->raw.length + 3 * RESP_HEADER_ROOM * request->count; /* EXISTS' */
    if (!reply_slot_try_lookups(slot, &request->arguments[1], request->count - 1) ||
        !upstream_has_room(client->upstream, most)) {
        request_refuse_memory(slot);
        return;
    }
    size_t passing = decide_all(slot, is_mget);
    client->account.rejected_keys += slot->lookup_count - passing;
    is_mget ? mget_ask(client, slot, passing) : exists_ask(client, slot);
    reply_slot_answered(slot);
}

/* The one answer that needs no slot, unless earlier replies are still to come. */
static void reject(struct client *client, const struct request *request)
{
    const struct keyspace *keyspace = keyspace_of(client->serving, request->keyspace);
    bool is_get = request->command->kind == COMMAND_GET, resp3 = client->replies.resp3;
    if (is_get && keyspace->on_absent == ABSENT_NIL)
        resp_write_nil(client_reply(client), resp3); /* the commonest of all */
    else
        write_absent(client_reply(client), keyspace, request->command->absent[resp3], is_get);
}

/* Apart from the rejects, which are so compiled without regard to it. */
__attribute__((noinline)) static void pass(struct client *client, const struct request *request)
{
    if (request->command->kind == COMMAND_GET)
        dispatch_get(client, request);
    else
        request_forward(request, client);
}

void lookup_dispatch(struct client *client, const struct request *request)
{
    struct span key = request->arguments[request->command->first_key];
    if (rejects(client->serving, request->keyspace, key, request->held)) {
        reject(client, request);
    } else {
        client->account.others++;
        pass(client, request);
    }
}

/* It was counted among others before. */
void lookup_dispatch_user(struct client *client, const struct request *request)
{
    struct span key = request->arguments[request->command->first_key];
    if (client->replies.no_fallback
            ? rejects_user(client->serving, request->keyspace, key, request->held)
            : rejects(client->serving, request->keyspace, key, request->held)) {
        client->account.others--;
        reject(client, request);
    } else {
        pass(client, request);
    }
}

bool lookup_dispatch_many(struct client *client, const struct request *request)
{
    enum command_kind kind = request->command->kind;
    if ((kind != COMMAND_MGET && kind != COMMAND_EXISTS) || !any_guarded(client->serving, request))
        return false;
    dispatch_many(client, request);
    return true;
}
