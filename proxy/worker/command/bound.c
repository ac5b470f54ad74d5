#include "worker/command/bound.h"

#include "resp/resp.h"
#include "worker/client/client.h"

#include <string.h>

bool bound_is(const struct client *client)
{
    return client->pinned.states & PINNED_LISTENS && !client->replies.resp3;
}

static void answer_ping(struct client *client, const struct request *request)
{
    struct buffer *out = client_reply(client);
    struct span text = request->count > 1 ? request->arguments[1] : span_of("");
    resp_write_array(out, 2);
    resp_write_bulk(out, "pong", 4);
    resp_write_bulk(out, text.at, text.length);
}

/* As Redis does. The connections by which the client listens are not asked: a shard channel may be
 * on its way, and then a node would serve anything there, unguarded. */
void bound_serve(struct client *client, const struct request *request)
{
    if (strcmp(request->command->name, "PING") == 0 && request->count <= 2)
        answer_ping(client, request);
    else
        bound_refuse(client, request);
}

void bound_refuse(struct client *client, const struct request *request)
{
    char name[64];
    span_lower(request->arguments[0], name, sizeof name);
    resp_write_error(client_reply(client),
                     "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                     "/ RESET are allowed in this context",
                     name);
}
