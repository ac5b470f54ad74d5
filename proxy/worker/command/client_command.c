/* A client is the guard's: its name, id and what INFO says of it are answered here, and REPLY mutes
 * its queue of replies. LIST, KILL, PAUSE and the like are the cache's: they speak of connections
 * to the cache, shared ones among them.
 */
#include "worker/command/client_command.h"

#include "base/memory.h"
#include "worker/client/pinned.h"

#include <stdint.h>
#include <stdlib.h>

static void reply(struct client *client, const char *error)
{
    struct buffer *out = client_reply(client);
    if (error)
        resp_write_error(out, "%s", error);
    else
        resp_write_status(out, "OK");
}

/* ---- who ---- */

static bool is_plain(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '!' || text.at[i] > '~')
            return false;
    return true;
}

const char *client_set_name(struct client *client, struct span name)
{
    if (!is_plain(name))
        return "ERR Client names cannot contain spaces, newlines or special characters.";
    free(client->name);
    client->name = name.length ? xstrndup(name.at, name.length) : NULL;
    return NULL;
}

/* A connection that the client has of its own goes by its name, too. */
static void set_name(struct client *client, const struct request *request)
{
    const char *error = client_set_name(client, request->arguments[2]);
    if (!error && client->pinned.own)
        request_forward(request, client);
    else
        reply(client, error);
}

static void get_name(struct client *client, const struct request *request)
{
    (void)request;
    if (client->name)
        resp_write_bulk(client_reply(client), client->name, strlen(client->name));
    else
        resp_write_nil(client_reply(client), client->replies.resp3);
}

static void tell_id(struct client *client, const struct request *request)
{
    (void)request;
    resp_write_integer(client_reply(client), (int64_t)client->id);
}

/* The fields of Redis that mean something here. */
static void tell_info(struct client *client, const struct request *request)
{
    const struct pinned *pinned = &client->pinned;
    struct buffer line = {0};
    (void)request;
    buffer_printf(&line,
                  "%sid=%llu name=%s flags=%s db=%d sub=%u psub=%u ssub=%u cmd=client|info "
                  "resp=%d\n",
                  client->replies.resp3 ? "txt:" : "", (unsigned long long)client->id,
                  client->name ? client->name : "", pinned->states & PINNED_TRACKING ? "t" : "N",
                  serving_config(client->serving)->cache.db, pinned->channels, pinned->patterns,
                  pinned->shards, client->replies.resp3 ? 3 : 2);
    struct buffer *out = client_reply(client);
    struct span text = buffer_span(&line);
    if (client->replies.resp3)
        buffer_printf(out, "=%zu\r\n%.*s\r\n", text.length, (int)text.length, text.at);
    else
        resp_write_bulk(out, text.at, text.length);
    buffer_finish(&line);
}

/* What libraries say of themselves; Redis before 7.2 does not want to hear it. A field that there
 * is not, the cache refuses. */
static void set_info(struct client *client, const struct request *request)
{
    struct span field = request->arguments[2];
    if (!span_is_word(field, "LIB-NAME") && !span_is_word(field, "LIB-VER"))
        request_forward(request, client);
    else if (!is_plain(request->arguments[3]))
        resp_write_error(client_reply(client),
                         "ERR %.*s cannot contain spaces, newlines or special characters.",
                         (int)field.length, field.at);
    else
        reply(client, NULL);
}

/* ---- whether it gets replies ---- */

static void set_replies(struct client *client, const struct request *request)
{
    struct span mode = request->arguments[2];
    if (span_is_word(mode, "ON")) {
        client->replies.muted = client->reply_off = false;
        reply(client, NULL);
    } else if (span_is_word(mode, "OFF")) {
        client->replies.muted = client->reply_off = true;
    } else if (!span_is_word(mode, "SKIP")) {
        reply(client, "ERR syntax error");
    } else if (!client->reply_off) {
        client->pinned.states |= PINNED_SKIP;
    }
}

/* ---- what its connection does ---- */

static void tracking_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (cache_reply.at[0] == '+')
        client_of(slot->replies)->pinned.states |= PINNED_TRACKING;
    request_take_reply(slot, index, cache_reply);
}

static void untracking_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (cache_reply.at[0] == '+')
        client_of(slot->replies)->pinned.states &= ~(unsigned)PINNED_TRACKING;
    request_take_reply(slot, index, cache_reply);
}

static const struct reply_slot_kind tracking_kind = {.on_cache = tracking_reply,
                                                     .on_cache_failure = request_take_failure};
static const struct reply_slot_kind untracking_kind = {.on_cache = untracking_reply,
                                                       .on_cache_failure = request_take_failure};

/* The id behind REDIRECT would have to be one of the cache's own. */
static void track(struct client *client, const struct request *request)
{
    for (size_t i = 3; i < request->count; i++) {
        if (span_is_word(request->arguments[i], "REDIRECT")) {
            reply(client, "NESTGUARD tracking: REDIRECT is not supported; with HELLO 3 the client "
                          "hears of changes itself");
            return;
        }
    }
    if (pinned_begin(client) < 0)
        return;
    bool on = span_is_word(request->arguments[2], "ON");
    request_forward_as(request, client, on ? &tracking_kind : &untracking_kind);
    client_settle(client);
}

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
                {"LIST", 2, SIZE_MAX, forward},
                {"KILL", 3, SIZE_MAX, forward},
                {"PAUSE", 3, SIZE_MAX, forward},
                {"UNPAUSE", 2, 2, forward},
                {"UNBLOCK", 3, SIZE_MAX, forward},
                {"HELP", 2, 2, forward},
                {"GETREDIR", 2, 2, forward},
                {"TRACKINGINFO", 2, 2, forward},
                {"CACHING", 3, 3, forward}};
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
