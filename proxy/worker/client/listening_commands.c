/* A command is sent name by name, each to its node, and answered when all of them are: by
 * confirmations that are written here, since a node counts only what is heard at it. Nothing else
 * of the client is under way then, so that it hears nothing which it published before.
 *
 * Of one with more than NAMES_AT_ONCE names so many are sent at a time, in turn with other clients,
 * and those before are answered meanwhile; what has begun is settled likewise in the end:
 *
 *   names ─▶ asked for ─▶ answered ─▶ settled, all ended again if one was refused ─▶ reply
 */
#include "worker/client/listening_commands.h"

#include "worker/client/listening_pace.h"
#include "worker/client/listening_posts.h"
#include "worker/client/pinned_room.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

/* One server counts shard channels apart from all others. */
static void confirm(struct client *client, enum pubsub_family family, bool ends, struct span name)
{
    const struct pinned *pinned = &client->pinned;
    struct buffer *out = &pinned->listening->reply;
    const char *word = pubsub_word(family, ends);
    buffer_printf(out, "%c3\r\n", client->replies.resp3 ? '>' : '*');
    resp_write_bulk(out, word, strlen(word));
    if (name.at)
        resp_write_bulk(out, name.at, name.length);
    else
        resp_write_nil(out, client->replies.resp3);
    resp_write_integer(out, family == PUBSUB_SHARD ? pinned->shards
                                                   : pinned->channels + pinned->patterns);
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    struct buffer *error = &client_of(slot->replies)->pinned.listening->error;
    (void)index;
    if (!buffer_length(error))
        resp_write_error(error, "%s", why);
}

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct buffer *error = &client_of(slot->replies)->pinned.listening->error;
    (void)index;
    if (reply.at[0] == '-' && !buffer_length(error))
        buffer_append(error, reply.at, reply.length);
}

/* What has begun stays, or ends where it was not refused. Whether there is more of it. */
static bool settle_beginning(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    bool failed = buffer_length(&listening->error);
    struct subscription *subscription;
    for (unsigned i = 0; i < NAMES_AT_ONCE && (subscription = listening->beginning); i++) {
        listening->beginning = subscription->next;
        subscription->begins = false;
        if (!failed)
            continue;
        post_end(subscription, NULL);
        subscription_take_out(client, subscription);
        subscription_let_go(subscription);
    }
    return listening->beginning;
}

/* All is asked for and answered: what is left is settled before the reply leaves. */
static void wait_for_settling(struct reply_slot *slot)
{
    struct listening *listening = client_of(slot->replies)->pinned.listening;
    slot->waiting++;
    listening->command.slot = slot;
    listening_go_on(listening, &listening->command.task);
}

static void finish(struct reply_slot *slot)
{
    struct client *client = client_of(slot->replies);
    struct listening *listening = client->pinned.listening;
    if (settle_beginning(client)) {
        wait_for_settling(slot);
        return;
    }
    bool failed = buffer_length(&listening->error);
    struct buffer *said = failed ? &listening->error : &listening->reply;
    slot->muted = slot->muted && failed; /* replies that are off do not keep a confirmation back */
    if (!buffer_try_pour(reply_slot_output(slot), said))
        reply_slot_starve(slot);
    buffer_finish(&listening->reply);
    buffer_finish(&listening->error);
}

static const struct reply_slot_kind begin_kind = {
    .on_cache = take_reply, .on_cache_failure = take_failure, .finish = finish};

/* However that ends, the client hears no more of it. */
static void ignore_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)slot;
    (void)index;
    (void)reply;
}

static void ignore_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)slot;
    (void)index;
    (void)why;
}

static const struct reply_slot_kind end_kind = {
    .on_cache = ignore_reply, .on_cache_failure = ignore_failure, .finish = finish};

/* What went wrong; NULL: nothing did. */
static const char *begin_one(struct client *client, enum pubsub_family family, struct span name,
                             struct reply_slot *slot)
{
    static const char no_memory[] = "NESTGUARD out of memory";
    struct listening *listening = client->pinned.listening;
    if (!buffer_try_reserve(&listening->reply, name.length + CONFIRMATION_ROOM))
        return no_memory;
    if (!subscription_find(listening, family, name)) {
        struct subscription *subscription = subscription_add(client, family, name);
        if (!subscription)
            return no_memory;
        struct post *post = post_at(client, post_node_for(client, subscription));
        if (!post)
            return pinned_count_busy(client);
        if (!upstream_has_room(post->upstream, name.length + CONFIRMATION_ROOM))
            return no_memory;
        post_begin(post, subscription, slot);
    }
    confirm(client, family, false, name);
    return NULL;
}

static void begin_some(struct client *client, enum pubsub_family family, const struct span *names,
                       size_t count, struct reply_slot *slot)
{
    const char *why = NULL;
    for (size_t i = 0; i < count && !why; i++)
        why = begin_one(client, family, names[i], slot);
    if (why)
        take_failure(slot, 0, why);
}

/* Of somebody else's name nothing ends, and that is confirmed. */
static bool end_one(struct client *client, enum pubsub_family family, struct span name,
                    struct reply_slot *slot)
{
    struct listening *listening = client->pinned.listening;
    struct subscription *subscription = name.at ? subscription_find(listening, family, name) : NULL;
    size_t room = name.length + CONFIRMATION_ROOM;
    if (!buffer_try_reserve(&listening->reply, room))
        return false;
    if (subscription) {
        post_end(subscription, slot);
        subscription_take_out(client, subscription);
    }
    confirm(client, family, true, name);
    if (subscription)
        subscription_let_go(subscription);
    return true;
}

static bool end_some(struct client *client, enum pubsub_family family, const struct span *names,
                     size_t count, struct reply_slot *slot)
{
    bool can = true;
    for (size_t i = 0; i < count && can; i++)
        can = end_one(client, family, names[i], slot);
    return can;
}

/* With a confirmation for each. */
static bool end_oldest(struct client *client, enum pubsub_family family, size_t count,
                       struct reply_slot *slot)
{
    const struct keymap *names = &client->pinned.listening->names[family];
    bool can = true;
    for (size_t i = 0; i < count && can && names->count; i++)
        can = end_one(client, family, names->oldest->key, slot);
    return can;
}

/* ---- in pieces ---- */

/* The client may have been led to another cache, if nothing of it is heard at the one before. */
static void begin_piece(struct client *client, const struct span *names, size_t count)
{
    struct listening_command *command = &client->pinned.listening->command;
    if (pool_is_cluster(client_pool(client)))
        begin_some(client, command->family, names, count, command->slot);
    else
        take_failure(command->slot, 0, "NESTGUARD the cache is elsewhere now");
}

static void end_piece(struct client *client, const struct span *names, size_t count)
{
    struct listening_command *command = &client->pinned.listening->command;
    bool can = command->at ? end_some(client, command->family, names, count, command->slot)
                           : end_oldest(client, command->family, count, command->slot);
    if (can)
        return;
    command->left = 0;
    reply_slot_starve(command->slot);
}

static void do_piece(struct client *client)
{
    struct listening_command *command = &client->pinned.listening->command;
    struct span names[NAMES_AT_ONCE];
    size_t count = command->left < NAMES_AT_ONCE ? command->left : NAMES_AT_ONCE;
    if (command->at)
        resp_measured_next(&command->at, names, count);
    command->left -= count;
    (command->ends ? end_piece : begin_piece)(client, names, count);
}

void listening_command_end(struct listening *listening)
{
    struct listening_command *command = &listening->command;
    struct reply_slot *slot = command->slot;
    if (!slot)
        return;
    command->slot = NULL;
    turn_cancel(&slot->serving->turn, &command->task);
    reply_slot_let_go(slot, command->held);
    command->held = 0; /* it may be in line once more, to be settled */
    buffer_finish(&command->input);
    reply_slot_answered(slot);
}

const struct reply_slot *listening_ending_slot(const struct listening *listening)
{
    return listening->command.ends ? listening->command.slot : NULL;
}

/* Whether there is more to do: names, or what to settle when all are answered. Behind one that is
 * refused no more are asked for. */
static bool do_some(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    struct listening_command *command = &listening->command;
    if (!command->left)
        return settle_beginning(client);
    if (!buffer_length(&listening->error))
        do_piece(client);
    if (buffer_length(&listening->error))
        command->left = 0;
    return command->left;
}

/* Of a client that has gone nothing is done any more: listening_forget() ends its command. */
static void go_on(struct turn_task *task)
{
    struct listening *listening = container_of(task, struct listening, command.task);
    struct client *client = listening->client;
    if (!listening->command.slot->replies)
        return;
    bool is_left = do_some(client);
    turn_worked(&client->serving->turn, NAMES_AT_ONCE);
    if (is_left)
        listening_go_on(listening, task);
    else
        listening_command_end(listening);
}

/* Its names stay where they are, or are few thousand: those that may not are of one read, or of an
 * inline command. */
static void hold_names(struct client *client, const struct listening_words *words)
{
    struct listening_command *command = &client->pinned.listening->command;
    command->left = words->count;
    command->at = words->kept;
    if (words->kept) {
        client_give_input(client, &command->input);
        command->held = client->in.size;
        return;
    }
    for (size_t i = 0; i < words->count; i++)
        resp_write_bulk(&command->input, words->names[i].at, words->names[i].length);
    command->at = buffer_span(&command->input).at;
    command->held = command->input.size;
}

/* For all confirmations at once: moved as they grow, megabytes of them would take milliseconds. If
 * there is no memory for that, the name which finds none says so. */
static void reserve_reply(struct listening *listening)
{
    enum { USUAL = 40, USUAL_NAME = 24 }; /* bytes beside the name; of that */
    const struct listening_command *command = &listening->command;
    size_t names = command->at ? command->held : command->left * USUAL_NAME;
    (void)buffer_try_make_room(&listening->reply, names + command->left * USUAL);
}

static void begin_pieces(struct client *client, struct reply_slot *slot, enum pubsub_family family,
                         const struct listening_words *words)
{
    struct listening *listening = client->pinned.listening;
    listening->command = (struct listening_command){.task = {.run = go_on, .phase = TURN_READ},
                                                    .slot = slot,
                                                    .family = family,
                                                    .ends = slot->kind == &end_kind};
    if (words->count)
        hold_names(client, words);
    else
        listening->command.left = listening->names[family].count;
    reply_slot_hold(slot, listening->command.held);
    reserve_reply(listening);
    listening_go_on(listening, &listening->command.task);
}

/* ---- the two ---- */

bool listening_has_pieces(size_t names)
{
    return names > NAMES_AT_ONCE;
}

void listening_begin(struct client *client, enum pubsub_family family,
                     const struct listening_words *words)
{
    listening_of(client);
    struct reply_slot *slot = reply_slot_open(&client->replies, &begin_kind);
    client_settle(client);
    if (listening_has_pieces(words->count)) {
        begin_pieces(client, slot, family, words);
        return;
    }
    begin_some(client, family, words->names, words->count, slot);
    reply_slot_answered(slot);
}

/* With a confirmation, if there is none. */
static bool end_all(struct client *client, enum pubsub_family family, struct reply_slot *slot)
{
    const struct span none = {NULL, 0};
    size_t count = client->pinned.listening->names[family].count;
    return count ? end_oldest(client, family, count, slot) : end_one(client, family, none, slot);
}

void listening_end(struct client *client, enum pubsub_family family,
                   const struct listening_words *words)
{
    struct listening *listening = listening_of(client);
    struct reply_slot *slot = reply_slot_open(&client->replies, &end_kind);
    size_t count = words->count ? words->count : listening->names[family].count;
    client_settle(client);
    if (listening_has_pieces(count)) {
        begin_pieces(client, slot, family, words);
        return;
    }
    bool can = words->count ? end_some(client, family, words->names, count, slot)
                            : end_all(client, family, slot);
    if (!can)
        reply_slot_starve(slot);
    reply_slot_answered(slot);
}
