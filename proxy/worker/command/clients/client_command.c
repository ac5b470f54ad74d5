/* A client is the guard's: all that CLIENT tells of clients, and does to them, is about those of
 * the guard, and of no connection to the cache, which many may share. REPLY mutes the client's
 * queue of replies. Only PAUSE is the cache's, which then answers nobody.
 *
 * A user of the cache's own may be denied each of this: his commands go there first, and what they
 * would tell of his connection is replaced in the reply.
 */
#include "worker/command/clients/client_command.h"

#include "base/memory.h"
#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/client/tracking.h"
#include "worker/command/clients/client_words.h"
#include "worker/command/clients/inquiry.h"
#include "worker/command/clients/leave.h"
#include "worker/upstream/pool.h"

#include <stdint.h>
#include <stdlib.h>

static bool is_foreign(const struct client *client)
{
    return client->pinned.states & PINNED_USER;
}

/* ---- what it is told of itself ---- */

static void write_name(const struct client *client, struct buffer *out, bool resp3)
{
    const char *name = client->self.name;
    if (name)
        resp_write_bulk(out, name, strlen(name));
    else
        resp_write_nil(out, resp3);
}

static void write_id(const struct client *client, struct buffer *out, bool resp3)
{
    (void)resp3;
    resp_write_integer(out, (int64_t)client->id);
}

static void write_info(const struct client *client, struct buffer *out, bool resp3)
{
    struct buffer line = {0};
    roster_describe(&line, client, "info");
    resp_write_text(out, buffer_span(&line), resp3);
    buffer_finish(&line);
}

static void write_redirect(const struct client *client, struct buffer *out, bool resp3)
{
    const struct pinned *pinned = &client->pinned;
    (void)resp3;
    resp_write_integer(out, pinned->states & PINNED_TRACKING ? (int64_t)pinned->redirect : -1);
}

/* One form for all, so that a table can have them. */
typedef void (*writer)(const struct client *, struct buffer *, bool resp3);

static const writer writers[] = {write_name, write_id, write_info, write_redirect};

static bool is_name(struct span reply)
{
    return reply_is_text(reply) || reply_is_nil(reply);
}

/* What the cache says in their place. */
static bool (*const forms[])(struct span) = {is_name, reply_is_number, reply_is_text,
                                             reply_is_number};

/* The request's index says which. */
static void told_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (leave_is_given(cache_reply, forms[index](cache_reply)))
        writers[index](client_of(slot->replies), reply_slot_output(slot), slot->resp3);
    else
        request_take_answer(slot, cache_reply, false);
}

static const struct reply_slot_kind told_kind = {.on_cache = told_reply,
                                                 .on_cache_failure = request_take_failure};

static void tell(struct client *client, const struct request *request, unsigned which)
{
    if (!is_foreign(client)) {
        writers[which](client, client_reply(client), client->replies.resp3);
        return;
    }
    struct reply_slot *slot = reply_slot_open(&client->replies, &told_kind);
    request_to_cache(request, client, slot, which);
    reply_slot_answered(slot);
}

static void get_name(struct client *client, const struct request *request)
{
    tell(client, request, 0);
}

static void tell_id(struct client *client, const struct request *request)
{
    tell(client, request, 1);
}

static void tell_info(struct client *client, const struct request *request)
{
    tell(client, request, 2);
}

static void tell_redirect(struct client *client, const struct request *request)
{
    tell(client, request, 3);
}

/* ---- what it says of itself ---- */

static bool is_plain(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '!' || text.at[i] > '~')
            return false;
    return true;
}

static char *text_of(struct span text)
{
    return text.length ? xspandup(text) : NULL;
}

const char *client_name_error(struct span name)
{
    if (!introduction_has_room(name))
        return "ERR Client names cannot be longer than 1024 bytes.";
    if (!is_plain(name))
        return "ERR Client names cannot contain spaces, newlines or special characters.";
    return NULL;
}

void client_ask_for_name(struct client *client, const struct span *name)
{
    introduction_set(&client->self.asked_name, name ? xspandup(*name) : NULL);
}

void client_take_name(struct client *client)
{
    const char *name = client->self.asked_name;
    if (name)
        introduction_set(&client->self.name, text_of(span_of(name)));
    client_ask_for_name(client, NULL);
}

enum said { SAID_NAME, SAID_LIBRARY, SAID_VERSION };

/* What was asked for becomes true, unless the cache denies it. One that is older than SETINFO says
 * so, which does not matter here. */
static void said_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    struct introduction *self = &client_of(slot->replies)->self;
    char **what[] = {&self->name, &self->library, &self->library_version};
    if (!leave_is_given(cache_reply, reply_is_ok(cache_reply))) {
        request_take_answer(slot, cache_reply, false);
        return;
    }
    introduction_set(what[index], self->asked);
    self->asked = NULL;
    resp_write_status(reply_slot_output(slot), "OK");
}

static const struct reply_slot_kind said_kind = {.on_cache = said_reply,
                                                 .on_cache_failure = request_take_failure};

static void ask_to_say(struct client *client, const struct request *request, enum said what)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &said_kind);
    introduction_set(&client->self.asked, text_of(request->arguments[request->count - 1]));
    request_to_cache(request, client, slot, what);
    reply_slot_answered(slot);
    client_settle(client);
}

/* A connection that the client has of its own goes by its name, too. */
static void set_name(struct client *client, const struct request *request)
{
    struct span name = request->arguments[2];
    const char *error = client_name_error(name);
    if (!error && client->pinned.own) {
        ask_to_say(client, request, SAID_NAME);
        return;
    }
    if (!error)
        introduction_set(&client->self.name, text_of(name));
    client_answer(client, error);
}

/* What libraries say of themselves. A field that there is not, the cache refuses. */
static void set_info(struct client *client, const struct request *request)
{
    struct span field = request->arguments[2], value = request->arguments[3];
    bool is_name = span_is_word(field, "LIB-NAME");
    if (!is_name && !span_is_word(field, "LIB-VER")) {
        request_forward(request, client);
    } else if (!introduction_has_room(value)) {
        resp_write_error(client_reply(client), "ERR %.*s cannot be longer than %d bytes.",
                         (int)field.length, field.at, INTRODUCED_BYTES);
    } else if (!is_plain(value)) {
        resp_write_error(client_reply(client),
                         "ERR %.*s cannot contain spaces, newlines or special characters.",
                         (int)field.length, field.at);
    } else if (is_foreign(client)) {
        ask_to_say(client, request, is_name ? SAID_LIBRARY : SAID_VERSION);
    } else {
        introduction_set(is_name ? &client->self.library : &client->self.library_version,
                         text_of(value));
        client_answer(client, NULL);
    }
}

/* ---- others ---- */

static void list(struct client *client, const struct request *request)
{
    struct client_filter filter = {0};
    if (client_words_list(&filter, request, client_reply(client)))
        inquiry_list(client, &filter);
    else
        client_filter_finish(&filter);
}

/* The old form has the address alone, and may mean the client itself. */
static void kill_clients(struct client *client, const struct request *request)
{
    struct client_filter filter = {.but = client->id};
    if (request->count == 3) {
        filter = (struct client_filter){.address = client_words_text(request->arguments[2])};
        inquiry_kill(client, &filter, KILL_BY_ADDRESS);
    } else if (client_words_kill(&filter, request, client_reply(client))) {
        inquiry_kill(client, &filter, KILL_BY_FILTERS);
    } else {
        client_filter_finish(&filter);
    }
}

static void unblock(struct client *client, const struct request *request)
{
    if (client_words_id(request->arguments[2]))
        inquiry_unblock(client, request);
    else
        request_forward(request, client);
}

/* ---- whether it gets replies ---- */

/* OFF and SKIP have no reply of their own. While they are off, SKIP has nothing to add. */
static void set_replies(struct client *client, const struct request *request)
{
    struct span mode = request->arguments[2];
    if (span_is_word(mode, "ON")) {
        client->replies.muted = client->reply_off = false;
        client_answer(client, NULL);
    } else if (span_is_word(mode, "OFF")) {
        client->replies.muted = client->reply_off = true;
    } else if (!span_is_word(mode, "SKIP")) {
        client_answer(client, "ERR syntax error");
    } else if (!client->reply_off) {
        client->pinned.states |= PINNED_SKIP;
    }
}

/* ---- what its connection does ---- */

/* Refused, it has changed nothing: what was there before goes on. In a cluster other nodes are
 * asked then, by requests with other numbers: of one that cannot be reached the client is told when
 * it can. */
static void tracking_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    struct client *client = client_of(slot->replies);
    if (index)
        return;
    if (!reply_is_ok(cache_reply)) {
        redirection_end(&client->pinned.asked_redirection);
        request_take_change(slot, cache_reply, false);
        return;
    }
    client->pinned.states |= PINNED_TRACKING;
    client->pinned.redirect = client->pinned.asked_redirect;
    redirection_move(&client->pinned.redirection, &client->pinned.asked_redirection);
    slot->joined = true;
    if (pool_is_cluster(client_pool(client)))
        tracking_begin(client, slot);
}

static void tracking_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    if (index)
        return;
    redirection_end(&client_of(slot->replies)->pinned.asked_redirection);
    request_take_failure(slot, index, why);
}

static void tracking_done(struct reply_slot *slot)
{
    client_of(slot->replies)->pinned.tracking.beginning = NULL;
    if (slot->joined)
        resp_write_status(reply_slot_output(slot), "OK");
}

static void untracking_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    struct pinned *pinned = &client_of(slot->replies)->pinned;
    (void)index;
    redirection_end(&pinned->asked_redirection);
    if (!request_take_change(slot, cache_reply, reply_is_ok(cache_reply)))
        return;
    pinned->states &= ~(unsigned)PINNED_TRACKING;
    pinned->redirect = 0;
    redirection_end(&pinned->redirection);
    tracking_end(client_of(slot->replies));
}

/* Its `joined` says whether it is on. */
static const struct reply_slot_kind tracking_kind = {
    .on_cache = tracking_reply, .on_cache_failure = tracking_failure, .finish = tracking_done};
static const struct reply_slot_kind untracking_kind = {.on_cache = untracking_reply,
                                                       .on_cache_failure = request_take_failure};

enum { TRACKING_BYTES = 64 * 1024 };

/* What other nodes are asked for as well. NULL, or why it cannot be had in a cluster. */
static const char *note_tracking(struct client *client, const struct request *request)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    struct buffer *bytes = &tracking->asked.bytes;
    if (client->pinned.asked_redirect)
        return "NESTGUARD unsupported: in a cluster CLIENT TRACKING has no REDIRECT, each node "
               "would "
               "tell its own clients alone; use RESP3 (HELLO 3)";
    if (request->raw.length + buffer_length(&tracking->words.bytes) > TRACKING_BYTES)
        return "NESTGUARD unsupported: in a cluster CLIENT TRACKING has 64 kB of prefixes at most";
    buffer_clear(bytes);
    request_write(request, bytes);
    tracking->asked.commands = 1;
    return NULL;
}

/* With BCAST, to all primaries at once. */
static bool has_room(struct client *client)
{
    const struct pool *pool = client_pool(client);
    unsigned count = 0;
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;)
        count++;
    return !client->pinned.tracking.asked.broadcast || pinned_make_room(client, count);
}

static bool begin_tracking(struct client *client, const struct request *request)
{
    bool is_cluster = pool_is_cluster(client_pool(client));
    const char *error = is_cluster ? note_tracking(client, request) : NULL;
    if (error)
        client_answer(client, error);
    else if (is_cluster && !has_room(client))
        pinned_refuse_busy(client);
    else
        return pinned_begin(client) == 0;
    return false;
}

/* The id behind REDIRECT is that of a client here. It has subscribed already, and so has a
 * connection to the cache that has an id there. */
static void track(struct client *client, const struct request *request)
{
    bool on = span_is_word(request->arguments[2], "ON");
    size_t at = client_words_tracking(request, &client->pinned);
    if (!begin_tracking(client, request))
        return;
    struct reply_slot *slot =
        reply_slot_open(&client->replies, on ? &tracking_kind : &untracking_kind);
    slot->joined = false;
    if (at) {
        inquiry_translate(client, request, at, slot, true);
    } else {
        request_to_cache(request, client, slot, 0);
        reply_slot_answered(slot);
    }
    client_settle(client);
}

/* In a cluster it is for the node that the next command goes to. What is wrong with it the cache
 * says. */
static void set_caching(struct client *client, const struct request *request)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    bool yes = span_is_word(request->arguments[2], "YES");
    bool no = span_is_word(request->arguments[2], "NO");
    if ((yes && tracking->words.opts_in) || (no && tracking->words.opts_out)) {
        tracking->caching = yes ? CACHING_YES : CACHING_NO;
        client_answer(client, NULL);
    } else {
        client->pinned.caching = client->pinned.states & PINNED_TRACKING;
        request_forward(request, client);
    }
}

/* The index says which was asked for: 1 is ON. */
static void no_evict_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (request_take_change(slot, cache_reply, reply_is_ok(cache_reply)))
        client_of(slot->replies)->no_evict = index;
}

static const struct reply_slot_kind no_evict_kind = {.on_cache = no_evict_reply,
                                                     .on_cache_failure = request_take_failure};

/* Of the connections to the cache only the client's own is meant, if it has one. */
static void set_no_evict(struct client *client, const struct request *request)
{
    bool on = span_is_word(request->arguments[2], "ON");
    if (!on && !span_is_word(request->arguments[2], "OFF")) {
        request_forward(request, client);
    } else if (client->pinned.own) {
        struct reply_slot *slot = reply_slot_open(&client->replies, &no_evict_kind);
        request_to_cache(request, client, slot, on);
        reply_slot_answered(slot);
    } else {
        client->no_evict = on;
        client_answer(client, NULL);
    }
}

/* What it did is not known: the client keeps its connection until RESET. */
static void alter(struct client *client, const struct request *request)
{
    if (pinned_begin(client) < 0)
        return;
    client->pinned.states |= PINNED_ALTERED;
    request_forward(request, client);
}

static void forward(struct client *client, const struct request *request)
{
    request_forward(request, client);
}

/* With another number of words it is an error, which the cache tells. Subcommands that nobody knows
 * yet may do anything to their connection. */
void client_command(struct client *client, const struct request *request)
{
    static const struct {
        const char *name;
        size_t least, most; /* words */
        void (*run)(struct client *, const struct request *);
    } rows[] = {{"SETNAME", 3, 3, set_name},
                {"GETNAME", 2, 2, get_name},
                {"ID", 2, 2, tell_id},
                {"INFO", 2, 2, tell_info},
                {"SETINFO", 4, 4, set_info},
                {"REPLY", 3, 3, set_replies},
                {"TRACKING", 3, SIZE_MAX, track},
                {"LIST", 2, SIZE_MAX, list},
                {"KILL", 3, SIZE_MAX, kill_clients},
                {"UNBLOCK", 3, 4, unblock},
                {"NO-EVICT", 3, 3, set_no_evict},
                {"GETREDIR", 2, 2, tell_redirect},
                {"PAUSE", 3, SIZE_MAX, forward},
                {"UNPAUSE", 2, 2, forward},
                {"HELP", 2, 2, forward},
                {"TRACKINGINFO", 2, 2, forward},
                {"CACHING", 3, 3, set_caching}};
    const struct span *words = request->arguments;
    bool known = request->count < 2;
    for (size_t i = 0; request->count > 1 && i < sizeof rows / sizeof *rows; i++) {
        if (!span_is_word(words[1], rows[i].name))
            continue;
        known = true;
        if (request->count >= rows[i].least && request->count <= rows[i].most) {
            rows[i].run(client, request);
            return;
        }
    }
    if (known)
        request_forward(request, client);
    else
        alter(client, request);
}
