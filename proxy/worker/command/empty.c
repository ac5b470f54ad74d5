/* To Redis it is a command all the same: what was said of the next one was said of it. */
#include "worker/command/empty.h"

#include "worker/command/relaying.h"
#include "worker/upstream/upstream.h"

/* Inside MULTI what CLIENT CACHING said stands until EXEC. */
static void end_caching(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    if (pinned->states & PINNED_MULTI)
        return;
    pinned->tracking.caching = CACHING_UNSAID;
    if (pinned->caching && pinned->own)
        upstream_append(pinned->own, span_of("\r\n"));
    pinned->caching = false;
}

void empty_dispatch(struct client *client)
{
    client->pinned.states &= ~(unsigned)PINNED_SKIP;
    end_caching(client);
    relaying_pass_empty(client);
}
