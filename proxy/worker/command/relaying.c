/* Whether the cache has agreed is nowhere looked at, for that would be a guess: what it sends may
 * be anything. So nothing goes there that could mean something where it has not. A lookup would be
 * answered without the guard, and AUTH by a server whose "default" may need no password.
 */
#include "worker/command/relaying.h"

#include "worker/client/pinned.h"
#include "worker/upstream/upstream.h"

void relaying_begin(struct client *client, const struct request *request)
{
    struct buffer bytes = {0};
    if (pinned_begin(client) < 0)
        return;
    client->pinned.states |= PINNED_RELAY;
    request_write(request, &bytes);
    upstream_relay(client->upstream, buffer_span(&bytes));
    buffer_finish(&bytes);
    client_settle(client);
}

/* A client that is ending may have lost its connection by now. */
static bool relays(const struct client *client)
{
    return client->pinned.states & PINNED_RELAY && client->pinned.own;
}

bool relaying_pass(struct client *client, const struct request *request)
{
    struct buffer bytes = {0};
    if (!relays(client))
        return false;
    if (span_is_word(request->arguments[0], "REPLCONF")) {
        request_write(request, &bytes);
        upstream_relay(client->pinned.own, buffer_span(&bytes));
        buffer_finish(&bytes);
    } else {
        client_answer(client, "NESTGUARD unsupported: behind SYNC and PSYNC only REPLCONF is "
                              "passed on; connect anew");
        client_leave(client);
    }
    return true;
}

void relaying_pass_empty(struct client *client)
{
    if (relays(client))
        upstream_relay(client->pinned.own, span_of("\n"));
}
