/* The plain way of a command: to the cache as it came, and its reply back as it came. */
#include "worker/command/request.h"

#include "worker/upstream/upstream.h"

void request_take_reply(struct slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(slot_output(slot), reply.at, reply.length);
}

void request_take_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(slot_output(slot), "%s", why);
}

static void take_part(struct slot *slot, struct span bytes)
{
    buffer_append(slot_output(slot), bytes.at, bytes.length);
}

static const struct slot_kind forward_kind = {
    .on_cache = request_take_reply, .on_part = take_part, .on_cache_failure = request_take_failure};

/* The cache takes inline commands, too; but this one's bytes are parsed already, in place. */
void request_write(const struct request *request, struct buffer *out)
{
    if (request->is_inline)
        resp_write_command(out, request->arguments, request->count);
    else
        buffer_append(out, request->raw.at, request->raw.length);
}

void request_to_cache(const struct request *request, struct client *client, struct slot *slot,
                      unsigned index)
{
    request_write(request, upstream_command(client->upstream, slot, index));
}

struct slot *request_forward_as(const struct request *request, struct client *client,
                                const struct slot_kind *kind)
{
    struct slot *slot = slot_open(&client->replies, kind);
    request_to_cache(request, client, slot, 0);
    slot_answered(slot);
    return slot;
}

struct slot *request_open(struct client *client)
{
    return slot_open(&client->replies, &forward_kind);
}

void request_forward(const struct request *request, struct client *client)
{
    request_forward_as(request, client, &forward_kind);
}
