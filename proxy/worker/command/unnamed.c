/* Nothing of the client is served between question and answer, and then the command is the first to
 * be served: so what was said of it can stand with the client until it is.
 *
 * Only the first key counts: that all are in one slot the node makes sure of, and says it best. The
 * same goes for a word of the cache that is wrong, or too old: a node refuses what is another's.
 *
 * That the cache knows no such command is not kept: a module may be loaded at any time.
 */
#include "worker/command/unnamed.h"

#include "resp/command_info.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

/* ---- what is said ---- */

static void say(struct pinned_asked *asked, enum asked_state state, struct span text)
{
    buffer_clear(&asked->text);
    asked->state = state;
    if (buffer_try_append(&asked->text, text.at, text.length))
        return;
    asked->state = ASKED_REFUSED;
    buffer_printf(&asked->text, "NESTGUARD out of memory");
}

static void refuse(struct pinned_asked *asked, struct span reply)
{
    struct buffer error = {0};
    bool is_error = reply.length > 3 && span_starts(reply, "-");
    buffer_printf(&error, "NESTGUARD cache error: it does not say which of this command's words "
                          "are keys");
    if (is_error)
        buffer_printf(&error, ": %.*s", (int)reply.length - 3, reply.at + 1);
    say(asked, ASKED_REFUSED, buffer_span(&error));
    buffer_finish(&error);
}

/* NULL: who asked is served by another cache by now, and asks that. */
static struct pool *pool_asked(struct client *client)
{
    struct pool *pool = client_pool(client);
    return pool == client->pinned.asked.pool ? pool : NULL;
}

static void take_info(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    struct pinned_asked *asked = &client->pinned.asked;
    struct pool *pool = pool_asked(client);
    struct command_info info;
    (void)index;
    if (!command_info_read(reply, &info))
        refuse(asked, reply);
    else if (!info.is_known)
        asked->state = ASKED_NO_KEY;
    else if (pool)
        learned_add(pool_learned(pool), buffer_span(&asked->text), &info);
}

static void take_keys(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct pinned_asked *asked = &client_of(slot->replies)->pinned.asked;
    struct span key;
    (void)index;
    if (!command_first_key_read(reply, &key))
        refuse(asked, reply);
    else
        say(asked, key.length ? ASKED_KEY : ASKED_NO_KEY, key);
}

static void fail(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    say(&client_of(slot->replies)->pinned.asked, ASKED_REFUSED, span_of(why));
}

static const struct reply_slot_kind info_kind = {.on_cache = take_info, .on_cache_failure = fail};
static const struct reply_slot_kind keys_kind = {.on_cache = take_keys, .on_cache_failure = fail};

/* ---- what is asked ---- */

/* As the guard itself, of any node. */
static void ask(struct client *client, const struct reply_slot_kind *kind,
                const struct request *request, size_t words)
{
    struct pinned_asked *asked = &client->pinned.asked;
    struct pool *pool = client_pool(client);
    int node = pool_node_for(pool, client->id);
    struct upstream *upstream = pool_shared(pool, node, client->replies.resp3, client_lane(client));
    const char *subcommand = kind == &info_kind ? "INFO" : "GETKEYS";
    asked->pool = pool;
    say(asked, ASKED_NOTHING, request->arguments[0]);
    if (!upstream_has_room(upstream, request->raw.length + RESP_HEADER_ROOM * (words + 3))) {
        say(asked, ASKED_REFUSED, span_of("NESTGUARD out of memory"));
        return;
    }
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    struct buffer *out = upstream_command(upstream, slot, 0);
    resp_write_array(out, 2 + words);
    resp_write_bulk(out, "COMMAND", strlen("COMMAND"));
    resp_write_bulk(out, subcommand, strlen(subcommand));
    for (size_t i = 0; i < words; i++)
        resp_write_bulk(out, request->arguments[i].at, request->arguments[i].length);
    reply_slot_answered(slot);
}

/* An inline command with quotes was written over when it was parsed, and cannot be parsed again. */
static bool can_wait(const struct request *request)
{
    const struct span *raw = &request->raw;
    return !request->is_inline ||
           (!memchr(raw->at, '"', raw->length) && !memchr(raw->at, '\'', raw->length));
}

static bool begin(struct client *client, const struct reply_slot_kind *kind,
                  const struct request *request, size_t words)
{
    if (can_wait(request))
        ask(client, kind, request, words);
    else
        say(&client->pinned.asked, ASKED_REFUSED,
            span_of("NESTGUARD unsupported: in a cluster an inline command that nestguard does not "
                    "know must be without quotes"));
    return client->pinned.asked.state == ASKED_NOTHING;
}

static const struct command_info *info_of(const struct client *client,
                                          const struct request *request)
{
    return learned_find(pool_learned(client_pool(client)), request->arguments[0]);
}

bool unnamed_must_wait(struct client *client, struct request *request)
{
    struct pinned_asked *asked = &client->pinned.asked;
    if (!command_is_unnamed(request->command))
        return false;
    if (!client->authenticated || !pool_is_cluster(client_pool(client))) {
        asked->state = ASKED_NOTHING;
        return false;
    }
    const struct command_info *info = info_of(client, request);
    if (info && info->blocks)
        request->command = &command_unnamed_waiting;
    if (asked->state != ASKED_NOTHING || request->arguments[0].length > LEARNED_NAME_BYTES)
        return false;
    if (!info)
        return begin(client, &info_kind, request, 1);
    bool hides_keys = info->hides_keys && request->count > 1;
    return hides_keys && begin(client, &keys_kind, request, request->count);
}

/* ---- where it goes ---- */

/* Which word the key is; 0: none. */
static size_t place_of(const struct request *request, struct span key)
{
    for (size_t i = 1; i < request->count; i++)
        if (request->arguments[i].length == key.length &&
            memcmp(request->arguments[i].at, key.at, key.length) == 0)
            return i;
    return 0;
}

static size_t first_key(const struct client *client, const struct request *request)
{
    const struct pinned_asked *asked = &client->pinned.asked;
    if (asked->state == ASKED_KEY)
        return place_of(request, buffer_span(&asked->text));
    const struct command_info *info = info_of(client, request);
    return asked->state == ASKED_NOTHING && info && info->first_key < request->count
               ? info->first_key
               : 0;
}

struct command_way unnamed_way(struct client *client, const struct request *request)
{
    struct pinned_asked *asked = &client->pinned.asked;
    size_t key = first_key(client, request);
    bool is_refused = asked->state == ASKED_REFUSED;
    asked->state = ASKED_NOTHING;
    if (is_refused)
        return (struct command_way){.route = ROUTE_REFUSED};
    buffer_finish(&asked->text);
    return (struct command_way){.route = key ? ROUTE_KEY : ROUTE_ANY, .key = key};
}

struct span unnamed_error(const struct client *client)
{
    return buffer_span(&client->pinned.asked.text);
}
