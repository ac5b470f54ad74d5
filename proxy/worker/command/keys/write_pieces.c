/* First all named keys are looked at, then those found are noted, then the command is sent: each in
 * turn with other clients.
 */
#include "worker/command/keys/write.h"

#include "base/container_of.h"
#include "worker/client/footing.h"
#include "worker/command/keys/write_internal.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/pool.h"

#include <stdlib.h>
#include <string.h>

struct large_write {
    struct piecemeal piecemeal;
    struct request request; /* of the two that follow */
    struct buffer input;    /* the command as it came, alone */
    struct span *arguments; /* of malloc() */
    struct named named;
    struct buffer found;
    enum worth worth;
    bool is_granted; /* all are found, and there is room for them */
    bool is_queued;  /* they have places for EXEC, too: its client gives them back */
    size_t next;     /* of the named keys, then of those found */
    size_t meant;    /* of serving->hints_meant */
};

static void destroy(struct large_write *large)
{
    buffer_finish(&large->found);
    buffer_finish(&large->input);
    free(large->arguments);
    large->arguments = NULL;
}

/* Megabytes are not copied: what the client has sent, and the list of its arguments, change hands
 * where both are for this command alone. */
static bool take(struct client *client, struct large_write *large)
{
    struct resp_arguments *list = &client->serving->arguments;
    const struct request *request = &large->request;
    if (buffer_span(&client->in).at != request->raw.at || list->at != request->arguments ||
        list->count != request->count)
        return false;
    client_give_input(client, &large->input);
    large->arguments = list->at;
    *list = (struct resp_arguments){.head = list->head};
    return true;
}

static bool copy(struct large_write *large)
{
    struct request *request = &large->request;
    struct span raw = request->raw;
    large->arguments = malloc(request->count * sizeof *large->arguments);
    if (!large->arguments || !buffer_try_append(&large->input, raw.at, raw.length))
        return false;
    request->raw = buffer_span(&large->input);
    for (size_t i = 0; i < request->count; i++)
        large->arguments[i] = (struct span){request->raw.at + (request->arguments[i].at - raw.at),
                                            request->arguments[i].length};
    request->arguments = large->arguments;
    return true;
}

static struct large_write *create(struct client *client, const struct request *request)
{
    struct large_write *large = xcalloc(1, sizeof *large);
    large->request = *request;
    if (take(client, large) || copy(large))
        return large;
    destroy(large);
    free(large);
    return NULL;
}

static void change_meant(struct large_write *large, size_t meant)
{
    large->piecemeal.slot->serving->hints_meant += meant - large->meant;
    large->meant = meant;
}

static bool is_in_multi(const struct large_write *large)
{
    return client_of(large->piecemeal.slot->replies)->pinned.states & PINNED_MULTI;
}

/* The number of the request says why. */
static void refused_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)reply;
    resp_write_error(reply_slot_output(slot), "%s",
                     index ? "NESTGUARD out of memory" : write_refusal);
}

static const struct reply_slot_kind refused_kind = {.on_cache = refused_reply,
                                                    .on_cache_failure = request_take_failure};

static bool refuse(struct large_write *large, bool has_no_memory)
{
    struct reply_slot *slot = large->piecemeal.slot;
    bool in_multi = is_in_multi(large);
    if (!has_no_memory)
        write_count_refusal(client_of(slot->replies));
    slot->kind = &refused_kind;
    if (in_multi)
        request_spoil(client_of(slot->replies), slot, has_no_memory);
    else
        refused_reply(slot, has_no_memory, (struct span){"", 0});
    return false;
}

/* There is room for what was found, or for less, or the write is refused. */
static bool settle_found(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct buffer *found = &large->found;
    large->next = 0;
    large->is_granted = write_is_granted(client_of(slot->replies), &large->named, found);
    if (!large->is_granted && large->worth == LACKED)
        return refuse(large, false);
    if (large->is_granted && found_count(found) && !write_try_room(slot, found)) {
        write_give_back(slot, large->named.deleted ? 0 : found_places(found));
        return refuse(large, true);
    }
    if (!large->is_granted) {
        large->worth = LACKED;
        buffer_clear(found);
    } else if (!large->named.deleted) {
        const struct reply_slot_kind *kind = slot->kind;
        change_meant(large, found_places(found));
        slot->kind = write_kind_in_multi(client_of(slot->replies), kind, &large->named, found);
        large->is_queued = slot->kind != kind;
    }
    return true;
}

static bool find_piece(struct large_write *large)
{
    const struct named *named = &large->named;
    struct serving *serving = large->piecemeal.slot->serving;
    struct range range = write_next_piece(large->next, named->count, named->step);
    write_find_some(serving, named, range.first, range.end, large->worth, &large->found);
    turn_worked(&serving->turn, range.end - range.first);
    large->next = range.end;
    return range.end < named->count || settle_found(large);
}

static void send_large(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct client *client = client_of(slot->replies);
    if (!is_in_multi(large))
        footing_lead(client, large->named.keys[0]);
    if (!upstream_try_pour(client->upstream, slot, 0, &large->input))
        slot->kind->on_cache_failure(slot, 0, "NESTGUARD out of memory");
}

static bool note_piece(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct range range = write_next_piece(large->next, found_count(&large->found), 1);
    size_t count = range.end - range.first, before = overrides_places(&slot->serving->overrides);
    write_note_some(slot, found_keys(&large->found) + range.first, count);
    size_t taken = overrides_places(&slot->serving->overrides) - before;
    change_meant(large, large->meant - (taken < large->meant ? taken : large->meant));
    turn_worked(&slot->serving->turn, count);
    large->next = range.end;
    if (range.end < found_count(&large->found))
        return true;
    send_large(large);
    return false;
}

/* It has places for what was found, and is not to be sent. */
static void give_up(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    const struct made_key *found = found_keys(&large->found);
    size_t places = 0;
    bool gives_back = large->is_granted && !large->is_queued;
    for (size_t i = large->next; gives_back && i < found_count(&large->found); i++)
        places += found[i].granted ? override_places(found[i].text.length) : 0;
    write_give_back(slot, places);
    write_conclude(slot, WRITE_REFUSED);
}

/* Of a client that has gone nothing is sent any more, and what was noted is as if refused. */
static bool go_on(struct piecemeal *piecemeal)
{
    struct large_write *large = container_of(piecemeal, struct large_write, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (slot->replies && (large->is_granted ? note_piece(large) : find_piece(large)))
        return true;
    if (!slot->replies)
        give_up(large);
    change_meant(large, 0);
    reply_slot_let_go(slot, piecemeal->bytes);
    destroy(large);
    return false;
}

/* What is queued, or waits itself, is not; nor an inline command: its bytes were written over. */
static bool may_have_pieces(const struct request *request)
{
    enum command_kind kind = request->command->kind;
    return request->count > WRITES_AT_ONCE && !request->is_inline &&
           (kind == COMMAND_WRITE || kind == COMMAND_DELETE) &&
           command_arity_ok(request->command, request->count);
}

/* Places of what is under way go back if the cache refuses that: until then a refusal here might
 * tell of what that was to write. */
static bool may_exceed(const struct client *client, const struct request *request)
{
    if (!client->replies.no_fallback || !command_arity_ok(request->command, request->count))
        return false;
    enum command_kind kind = request->command->kind;
    const struct named named = named_by(request);
    return (kind == COMMAND_WRITE || (kind == COMMAND_STATEFUL && request->command->first_key)) &&
           write_exceeds_user(client, &named);
}

bool write_must_wait(const struct client *client, const struct request *request)
{
    return client->replies.first && (may_have_pieces(request) || may_exceed(client, request));
}

bool write_begin_pieces(struct client *client, const struct request *request,
                        const struct named *named)
{
    size_t bytes = request->raw.length + request->count * 2 * sizeof(struct span);
    bool few = named->count <= WRITES_AT_ONCE * named->step;
    if (few || client->replies.first || !may_have_pieces(request) ||
        !piecemeal_has_room(client->serving, bytes))
        return false;
    struct large_write *large = create(client, request);
    if (!large)
        return false;
    large->piecemeal = (struct piecemeal){
        .slot = reply_slot_open(&client->replies, write_kind_of(client, &large->request)),
        .go_on = go_on};
    large->named = *named;
    large->named.keys = large->arguments + (named->keys - request->arguments);
    large->worth = ALSO_HELD;
    client_settle(client);
    reply_slot_hold(large->piecemeal.slot, bytes);
    piecemeal_begin(&large->piecemeal, bytes);
    return true;
}
