/* The plain way of a command: to the cache as it came, and its reply back as it came. */
#include "worker/request/request.h"

#include "resp/reply.h"
#include "worker/client/incomplete.h"
#include "worker/upstream/upstream.h"

void request_take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    reply_slot_append(slot, reply_slot_output(slot), reply);
}

void request_take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(reply_slot_output(slot), "%s", why);
}

bool request_take_answer(struct reply_slot *slot, struct span reply, bool is_expected)
{
    if (is_expected || reply_is_error(reply))
        request_take_reply(slot, 0, reply);
    else
        request_take_failure(slot, 0, REQUEST_STRANGE);
    return is_expected;
}

bool request_take_change(struct reply_slot *slot, struct span reply, bool is_expected)
{
    struct client *client = client_of(slot->replies);
    if (!request_take_answer(slot, reply, is_expected) && !reply_is_error(reply))
        client_leave(client);
    return is_expected;
}

static void take_part(struct reply_slot *slot, struct span bytes)
{
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

/* Parts are passed on as they come: nobody looks into the reply. */
static const struct reply_slot_kind forward_kind = {
    .on_cache = request_take_reply, .on_part = take_part, .on_cache_failure = request_take_failure};

static const struct reply_slot_kind row_kind = {.on_cache = request_take_reply,
                                                .on_part = take_part,
                                                .on_cache_failure = request_take_failure,
                                                .reads_row = true};

static const struct reply_slot_kind telling_kind = {.on_cache = request_take_reply,
                                                    .on_part = take_part,
                                                    .on_cache_failure = request_take_failure,
                                                    .reads_row = true,
                                                    .may_write = true};

/* The cache takes inline commands, too; but this one's bytes are parsed already, in place. */
void request_write(const struct request *request, struct buffer *out)
{
    if (request->is_inline)
        resp_write_command(out, request->arguments, request->count);
    else
        buffer_append(out, request->raw.at, request->raw.length);
}

__attribute__((noinline)) static bool send_inline(const struct request *request,
                                                  struct upstream *upstream,
                                                  struct reply_slot *slot, unsigned index)
{
    if (!upstream_has_room(upstream, request->raw.length + RESP_HEADER_ROOM * (request->count + 1)))
        return false;
    request_write(request, upstream_command(upstream, slot, index));
    return true;
}

bool request_is_http(const struct request *request)
{
    struct span name = request->arguments[0];
    return request->is_inline && (span_is_word(name, "post") || span_is_word(name, "host:"));
}

bool request_hides_its_name(const struct request *request)
{
    struct span name = request->arguments[0];
    return command_is_unnamed(request->command) && memchr(name.at, '\0', name.length);
}

/* Megabytes are not copied to the client's own connection, which has nothing else to write: the
 * memory that they were read into goes over. Nothing stands before them in it, and what stands
 * behind is served when they are answered. */
__attribute__((noinline)) static bool give(const struct request *request, struct client *client,
                                           struct reply_slot *slot, unsigned index)
{
    struct upstream *own = client->pinned.own;
    if (client->upstream != own || buffer_span(&client->in).at != request->raw.at ||
        upstream_has_gathered(own))
        return false;
    client_give_input(client, upstream_command(own, slot, index));
    client_settle(client);
    return true;
}

static bool send_as_sent(const struct request *request, struct client *client,
                         struct reply_slot *slot, unsigned index)
{
    bool is_large = request->raw.length > UPLOAD_BYTES;
    return (is_large && give(request, client, slot, index)) ||
           upstream_try_send(client->upstream, slot, index, request->raw);
}

/* Without memory its kind hears of it at once. That cannot end the slot under the caller's hands:
 * it waits for whoever opened it. */
void request_to_cache(const struct request *request, struct client *client, struct reply_slot *slot,
                      unsigned index)
{
    bool sent = request->is_inline ? send_inline(request, client->upstream, slot, index)
                                   : send_as_sent(request, client, slot, index);
    if (!sent)
        slot->kind->on_cache_failure(slot, index, "NESTGUARD out of memory");
}

void request_spoil(struct client *client, struct reply_slot *slot, unsigned index)
{
    static const struct span wrong = {"*1\r\n$3\r\nGET\r\n", 13};
    upstream_send(client->upstream, slot, index, wrong);
}

/* Opened, a slot waits for one thing, this function's end; the request is another. */
struct reply_slot *request_forward_as(const struct request *request, struct client *client,
                                      const struct reply_slot_kind *kind)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
    return slot;
}

struct reply_slot *request_open(struct client *client)
{
    return reply_slot_open(&client->replies, &forward_kind);
}

void request_forward(const struct request *request, struct client *client)
{
    request_forward_as(request, client, &forward_kind);
}

void request_forward_read(const struct request *request, struct client *client)
{
    bool has_row = keyspace_has_rows(serving_keyspace(client->serving, request->keyspace));
    request_forward_as(request, client, has_row ? &row_kind : &forward_kind);
}

void request_forward_telling(const struct request *request, struct client *client)
{
    request_forward_as(request, client, &telling_kind);
}

static const struct reply_slot_kind refused_kind = {0};

void request_refuse_memory(struct reply_slot *slot)
{
    slot->kind = &refused_kind;
    resp_write_error(reply_slot_output(slot), "NESTGUARD out of memory");
    reply_slot_answered(slot);
}
