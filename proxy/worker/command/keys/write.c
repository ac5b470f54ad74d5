/* A write of which the keeper must know, and its reply, which waits for the keeper:
 *
 *   SET ─▶ admitted here ─▶ cache ─▶ its reply ─▶ done? ─▶ keeper: what is on its way is stale
 *       ─▶ an entry everywhere ─▶ reply
 *
 * Whoever has seen the reply may read the key through any worker. Until then the key is admitted in
 * the writer's worker alone, so that what is pipelined behind the write finds it; that ends with
 * the write, and if the cache has refused it, or written nothing, nothing is left of it.
 *
 * Why that makes no wrong nil. What was looked up meanwhile was passed on, not rejected. A refused
 * write leaves what filter and entries say, as if it had not been sent; an entry that was there
 * before stands. Two clients may write one key: each write under way is counted, and the entry of
 * the one that was done is no other's to take back. When the connection is lost before the reply,
 * the write may have happened: it counts as done. Of a client that has gone, too. Of those in a
 * transaction each is judged by its own element of EXEC's reply.
 */
#include "worker/command/keys/write.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "resp/reply.h"
#include "worker/client/queued_writes.h"
#include "worker/command/keys/telling.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write_internal.h"
#include "worker/command/keys/write_proof.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/pool.h"

#include <errno.h>
#include <stdlib.h>

const char write_refusal[] = "NESTGUARD busy: too many keys that no row is known for were written "
                             "(max_hints), try again later";

void write_count_refusal(struct client *client)
{
    static struct log_pace pace;
    uint64_t left_out;
    char said[LOG_PACE_SAID];
    counter_add(&client->serving->counters.hints_refused, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("a write of %s was refused: it is of more keys that no row is known for than "
                    "max_hints (%u) has places for, of which no client and no host gets all%s",
                    client->address, serving_config(client->serving)->max_hints,
                    log_pace_said(left_out, said));
}

/* PROOF_EACH: EXEC's. READS: what a doubted server is not asked. QUEUED: of which EXEC says what
 * becomes of it. */
enum { PROOF_EACH = PROOF_NEVER + 1, PROOFS, DELETES = 1, READS = 2, QUEUED = 4 };

/* Of writes and of deletions, one for each proof. */
static const struct reply_slot_kind kinds[2 * QUEUED][PROOFS];

/* Of a slot that has one of them. */
static bool is_of(const struct reply_slot *slot, unsigned part)
{
    return (slot->kind - kinds[0]) / PROOFS & part;
}

static unsigned proof_of(const struct reply_slot_kind *kind)
{
    return (unsigned)((kind - kinds[0]) % PROOFS);
}

/* ---- what it leads to ---- */

static struct key key_of(const struct lookup *lookup)
{
    return key_make(lookup->keyspace, lookup->key);
}

struct key write_key_by_text(const struct serving *serving, struct span text)
{
    return key_make(guard_match(serving_config(serving), text), text);
}

bool write_tell_keeper(const struct lookup *lookup, bool done)
{
    struct reply_slot *slot = lookup->slot;
    struct serving *serving = slot->serving;
    struct key key = key_of(lookup);
    bool deletes = lookup->deleted, makes = done && !deletes;
    enum write_needs needs = makes ? write_needs(serving, key, ALSO_HELD) : WRITE_NEEDS_NOTHING;
    bool takes_place = needs == WRITE_NEEDS_HINT;
    struct write_request *write = xmalloc(sizeof *write + key.text.length);
    *write = (struct write_request){.message = {.kind = MESSAGE_WRITE},
                                    .slot = slot,
                                    .done = done,
                                    .wants_hint = takes_place,
                                    .shares_hint = needs == WRITE_NEEDS_WORD,
                                    .deletes = deletes,
                                    .key = key_copy(key, write->text)};
    if (takes_place)
        counter_add(&serving->keyspaces[lookup->keyspace].hints, 1);
    slot->waiting++;
    serving_ask_keeper(serving, &write->message);
    return takes_place;
}

static const char stranded[] =
    "NESTGUARD handover: what was written may not be known to the process "
    "that has taken over, write again";

void write_returned(struct serving *serving, const struct write_request *request)
{
    if (!request->deletes)
        overrides_end_write(&serving->overrides, request->key);
    if (request->stranded) {
        buffer_clear(&request->slot->reply); /* whatever the cache has said */
        resp_write_error(&request->slot->reply, "%s", stranded);
    }
    reply_slot_answered(request->slot);
}

void write_give_back(struct reply_slot *slot, size_t places)
{
    if (places && slot->replies)
        hints_give_back(client_of(slot->replies), places);
    else if (places)
        hosts_give_back(slot->serving, slot->origin, places);
}

static void take_late(struct reply_slot *slot, size_t places)
{
    if (places && slot->replies)
        write_grant(client_of(slot->replies), places);
    else if (places)
        hosts_grant(slot->serving, slot->origin, places);
}

/* The slot waits for the cache no more; of what it has noted, the keeper hears now or never. What
 * is queued has left its places to EXEC; if it was done instead of being queued, it takes its own.
 * So does what needed none when it was found. Of what was done, too, goes back what needs none:
 * another's hint covers it. */
static void conclude_some(struct reply_slot *slot, struct range range, enum write_outcome outcome)
{
    struct serving *serving = slot->serving;
    size_t needless = 0, late = 0;
    for (size_t i = range.first; i < range.end; i++) {
        const struct lookup *lookup = &slot->lookups[i];
        bool is_done = outcome == WRITE_DONE && !lookup->rejected;
        bool takes_place = is_done && lookup->granted;
        bool has_place = lookup->granted && !is_of(slot, QUEUED);
        bool may_be_old = outcome != WRITE_REFUSED && lookup->watched;
        if ((is_done || may_be_old) && !serving->ending)
            takes_place = write_tell_keeper(lookup, is_done);
        else if (!lookup->deleted)
            overrides_end_write(&serving->overrides, key_of(lookup));
        if (has_place != takes_place)
            *(has_place ? &needless : &late) += override_places(lookup->key.length);
    }
    write_give_back(slot, needless);
    take_late(slot, late);
}

struct conclusion {
    struct piecemeal piecemeal;
    size_t first; /* of the next piece */
    enum write_outcome outcome;
};

static bool conclude_piece(struct piecemeal *piecemeal)
{
    struct conclusion *conclusion = container_of(piecemeal, struct conclusion, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    struct range range = write_next_piece(conclusion->first, slot->lookup_count, 1);
    conclude_some(slot, range, conclusion->outcome);
    turn_worked(&slot->serving->turn, range.end - range.first);
    conclusion->first = range.end;
    return range.end < slot->lookup_count;
}

/* At the worker's end there are no turns any more. */
void write_conclude(struct reply_slot *slot, enum write_outcome outcome)
{
    if (slot->lookup_count <= WRITES_AT_ONCE || slot->serving->ending) {
        conclude_some(slot, (struct range){0, slot->lookup_count}, outcome);
        return;
    }
    struct conclusion *conclusion = xmalloc(sizeof *conclusion);
    *conclusion = (struct conclusion){.piecemeal = {.slot = slot, .go_on = conclude_piece},
                                      .outcome = outcome};
    slot->waiting++;
    piecemeal_begin(&conclusion->piecemeal, 0);
}

/* Nothing is before EXEC, nor if that is nil. But a write of which nothing is noted for it, since
 * there was too much of it, may well come to be done. */
static enum write_outcome outcome_of(const struct reply_slot *slot, struct span reply)
{
    unsigned proof = proof_of(slot->kind);
    if (is_of(slot, DELETES | QUEUED) && reply_is_queued(reply))
        return WRITE_REFUSED;
    if (proof == PROOF_EACH)
        return write_outcome(PROOF_NOT_NIL, reply) == WRITE_DONE ? WRITE_DONE : WRITE_REFUSED;
    return write_outcome(proof, reply);
}

static void conclude_by(struct reply_slot *slot, struct span reply)
{
    if (proof_of(slot->kind) == PROOF_EACH)
        write_reject_each(slot, reply);
    write_conclude(slot, outcome_of(slot, reply));
}

/* The reply must not leave before the keeper has done its part: it waits in the slot. */
static void write_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    reply_slot_append(slot, &slot->reply, reply);
    if (slot->lookup_count)
        conclude_by(slot, reply);
}

static void write_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(&slot->reply, "%s", why);
    write_conclude(slot, WRITE_DONE);
}

static void write_unheard(struct reply_slot *slot, struct span reply)
{
    if (reply.length)
        conclude_by(slot, reply);
    else
        write_conclude(slot, WRITE_DONE);
}

#define KIND(reads)                                                                                \
    {                                                                                              \
        .on_cache = write_reply, .on_cache_failure = write_failure, .on_unheard = write_unheard,   \
        .reads_row = (reads), .may_write = (reads)                                                 \
    }
#define KINDS(reads) KIND(reads), KIND(reads), KIND(reads), KIND(reads), KIND(reads), KIND(reads)
static const struct reply_slot_kind kinds[2 * QUEUED][PROOFS] = {
    {KINDS(false)}, {KINDS(false)}, {KINDS(true)}, {KINDS(true)},
    {KINDS(false)}, {KINDS(false)}, {KINDS(true)}, {KINDS(true)}};

/* ---- which keys the keeper must know of ---- */

bool write_try_room(struct reply_slot *slot, const struct buffer *found)
{
    size_t bytes = 0;
    for (size_t i = 0; i < found_count(found); i++)
        bytes += found_keys(found)[i].text.length;
    return reply_slot_try_lookup_room(slot, found_count(found), bytes);
}

static void make_room(struct reply_slot *slot, const struct buffer *found)
{
    if (!write_try_room(slot, found))
        out_of_memory();
}

struct lookup *write_note_key(struct reply_slot *slot, struct key key, bool deleted)
{
    struct lookup *lookup = &slot->lookups[slot->lookup_count];
    reply_slot_add_lookups(slot, &key.text, 1);
    lookup->keyspace = key.keyspace;
    lookup->deleted = deleted;
    lookup->watched = watch_has(slot->serving->watch, key);
    return lookup;
}

/* Before the command goes to the cache. A key that was found may be of no keyspace any more. */
void write_note_some(struct reply_slot *slot, const struct made_key *keys, size_t count)
{
    struct serving *serving = slot->serving;
    for (size_t i = 0; i < count; i++) {
        int keyspace = guard_match(serving_config(serving), keys[i].text);
        if (keyspace == NOT_GUARDED)
            continue;
        struct key key = key_make(keyspace, keys[i].text);
        bool deletes = is_of(slot, DELETES);
        if (!deletes)
            overrides_begin_write(&serving->overrides, key);
        write_note_key(slot, key, deletes)->granted = keys[i].granted;
    }
}

static void note_found(struct reply_slot *slot, const struct buffer *found)
{
    if (!found_count(found))
        return;
    make_room(slot, found);
    write_note_some(slot, found_keys(found), found_count(found));
}

/* The same of a command that makes keys of others. Queued, its source is none before EXEC. */
static void note_renamed(struct reply_slot *slot, struct buffer *found, struct span source)
{
    const struct named named = {.keys = &source, .count = 1, .step = 1, .deleted = true};
    size_t made = found_count(found);
    write_find_some(slot->serving, &named, 0, 1, LACKED, found);
    if (!found_count(found))
        return;
    make_room(slot, found);
    write_note_some(slot, found_keys(found), made);
    if (found_count(found) > made)
        write_note_key(slot, write_key_by_text(slot->serving, source), true);
}

struct reply_slot *write_open(struct client *client)
{
    return reply_slot_open(&client->replies, &kinds[0][PROOF_NO_ERROR]);
}

/* The end of a large one: it cannot be refused any more, so it is in its client's account whether
 * that has a place left or not, as what goes back with the cache's refusal must have been. */
void write_note(struct reply_slot *slot, enum command_proof proof, struct span key)
{
    slot->kind = &kinds[0][proof];
    const struct named named = {.keys = &key, .count = 1, .step = 1};
    struct client *client = client_of(slot->replies);
    struct buffer found = {0};
    if (write_find_noted(client, &named, &found) < 0)
        write_grant(client, found_places(&found));
    note_found(slot, &found);
    buffer_finish(&found);
}

/* ---- keys that are admitted, and not written ---- */

/* Whether nothing has said yet that the key exists; one that is named twice is new once. */
static bool is_new(const struct serving *serving, struct key key)
{
    return write_needs(serving, key, LACKED) == WRITE_NEEDS_HINT &&
           !overrides_find(&serving->overrides, key, clock_ms()).writes;
}

/* are_new[i]: of each, before those found count as known. */
static void begin_admission(struct serving *serving, const struct named *named,
                            const struct buffer *found, bool *are_new)
{
    size_t next = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct key key = write_key_by_text(serving, named->keys[i]);
        are_new[i] = is_new(serving, key);
        if (next == found_count(found) || found_keys(found)[next].text.at != named->keys[i].at)
            continue;
        overrides_begin_write(&serving->overrides, key);
        next++;
    }
}

static void note_admitted(struct reply_slot *slot, const struct made_key *made)
{
    struct key key = write_key_by_text(slot->serving, made->text);
    write_note_key(slot, key, false)->granted = made->granted;
}

struct reply_slot *write_admit(struct client *client, const struct span *keys, size_t count,
                               bool *are_new)
{
    const struct named named = {.keys = keys, .count = count, .step = 1};
    struct buffer found = {0};
    struct reply_slot *slot = NULL;
    if (write_find_noted(client, &named, &found) == 0) {
        begin_admission(client->serving, &named, &found, are_new);
        slot = write_open(client);
        if (found_count(&found))
            make_room(slot, &found);
        for (size_t i = 0; i < found_count(&found); i++)
            note_admitted(slot, &found_keys(&found)[i]);
    } else {
        write_count_refusal(client);
    }
    buffer_finish(&found);
    return slot;
}

void write_admitted(struct reply_slot *slot)
{
    write_conclude(slot, WRITE_DONE);
    reply_slot_answered(slot);
}

const struct reply_slot_kind *write_kind_of(const struct client *client,
                                            const struct request *request)
{
    bool reads = telling_in_doubt(client, request);
    if (vanishing_has(request))
        return &kinds[DELETES + READS * reads][PROOF_NO_ERROR];
    bool deletes = request->command->kind == COMMAND_DELETE;
    return &kinds[DELETES * deletes + READS * reads]
                 [write_proof(request->command, request->arguments, request->count)];
}

const struct reply_slot_kind *write_kind_of_exec(const struct client *client)
{
    return &kinds[READS * client->pinned.tells][PROOF_EACH];
}

/* ---- and at once ---- */

const struct reply_slot_kind *write_kind_in_multi(struct client *client,
                                                  const struct reply_slot_kind *kind,
                                                  const struct named *named,
                                                  const struct buffer *found)
{
    unsigned proof = proof_of(kind);
    if (!(client->pinned.states & PINNED_MULTI) || proof == PROOF_NEVER)
        return kind;
    bool is_noted = queued_writes_note(client, proof, found_keys(found), found_count(found));
    bool is_left_to_exec = true;
    size_t next = 0;
    for (size_t i = 0; i < named->count && is_left_to_exec; i += named->step) {
        bool is_found =
            next < found_count(found) && found_keys(found)[next].text.at == named->keys[i].at;
        bool is_granted = is_found && found_keys(found)[next].granted;
        next += is_found;
        if (!is_found || !is_noted)
            is_left_to_exec = queued_writes_remember(client, proof, named->keys[i], is_granted);
    }
    is_left_to_exec |= is_noted;
    return is_left_to_exec && found_count(found) ? kind + QUEUED * PROOFS : kind;
}

/* Mostly there is nothing to tell, and the command is forwarded like any other. The keeper deletes
 * behind fills, over a connection of its own: what the client has sent behind a deletion waits for
 * that, or it might be deleted, too. */
static void forward_noted(struct client *client, const struct request *request,
                          const struct named *named, struct buffer *found)
{
    bool in_multi = client->pinned.states & PINNED_MULTI;
    const struct reply_slot_kind *kind = write_kind_of(client, request);
    if (!named->deleted)
        kind = write_kind_in_multi(client, kind, named, found);
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    size_t source = in_multi ? 0 : vanishing_source(request);
    if (source)
        note_renamed(slot, found, request->arguments[source]);
    else
        note_found(slot, found);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
    if ((named->deleted || source) && found_count(found) && !in_multi)
        client_settle(client);
}

int write_dispatch(struct client *client, const struct request *request)
{
    struct buffer found = {0};
    struct named named = named_by(request);
    named.waits &= !(client->pinned.states & PINNED_MULTI);
    bool fits = !write_exceeds_user(client, &named);
    if (fits && write_begin_pieces(client, request, &named))
        return 0;
    fits = fits && write_find_noted(client, &named, &found) == 0;
    if (fits)
        forward_noted(client, request, &named, &found);
    else
        write_count_refusal(client);
    buffer_finish(&found);
    return fits ? 0 : -ENOSPC;
}
