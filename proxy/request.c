/* The plain way of a command: to the cache as it came, and its reply back as it came. */
#include "request.h"

#include "upstream.h"

static void forward_reply(struct slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(slot_output(slot), reply.at, reply.length);
}

static void forward_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(slot_output(slot), "%s", why);
}

static const struct slot_kind forward_kind = {.on_cache = forward_reply,
                                              .on_cache_failure = forward_failure};

/* The cache takes inline commands, too; but this one's bytes are parsed already, in place. */
void request_to_cache(const struct request *request, struct client *client, struct slot *slot,
                      unsigned index)
{
    struct span raw = request->raw;
    if (request->is_inline) {
        struct buffer *command = &client->serving->command;
        buffer_clear(command);
        resp_write_command(command, request->arguments, request->count);
        raw = buffer_span(command);
    }
    upstream_send(client->upstream, slot, index, raw);
}

void request_forward(const struct request *request, struct client *client)
{
    struct slot *slot = slot_open(&client->replies, &forward_kind);
    request_to_cache(request, client, slot, 0);
    slot_answered(slot);
}
