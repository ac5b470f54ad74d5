/* When a write was answered is not noted one by one: it was when nothing at all is under way. A
 * client that always has something under way is made to wait for its replies once.
 */
#include "worker/client/reads.h"

#include "base/clock.h"
#include "worker/client/client.h"

void reads_note_write(struct client *client)
{
    if (!client->reads.wrote)
        client->reads.wrote_at = clock_ms();
    client->reads.wrote = true;
}

/* Nothing is under way: all was answered by now. */
static void note_answered(struct client *client, uint64_t lag)
{
    client->reads.wrote = false;
    client->reads.primary_until = clock_ms() + lag;
}

bool reads_may_go_to_replica(struct client *client)
{
    struct reads *reads = &client->reads;
    uint64_t lag = serving_config(client->serving)->cache_max_lag_ms;
    if (client->pinned.own || client->replies.no_fallback || client->settling)
        return false;
    if (reads->wrote && !client->replies.first)
        note_answered(client, lag);
    if (reads->wrote && clock_ms() - reads->wrote_at > lag)
        client_settle(client);
    return !reads->wrote && clock_ms() >= reads->primary_until;
}
