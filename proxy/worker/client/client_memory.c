/* No worker looks into another's clients. Each adds what its own take to a common total, and shows
 * what its heaviest takes:
 *
 *   too much in all ─▶ is mine the heaviest of all? ─yes─▶ cut off, looked at again
 *                                └─no─▶ its worker does that at its next look
 *
 * What is seen of others is as old as their last look. Of two that take the same each worker cuts
 * its own.
 */
#include "worker/client/client_memory.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "worker/client/listening.h"
#include "worker/client/pinned_room.h"
#include "worker/upstream/upstream.h"

#include <malloc.h>
#include <stdatomic.h>

/* Whole buffers, not what is in them; what slots with several lookups gathered, and what is there
 * of large replies that are wanted whole, comes on top. */
static size_t in_slots(const struct replies *replies)
{
    return replies->held + replies_open(replies) + replies->gathered +
           replies->commands * sizeof(struct reply_slot);
}

/* Those of its own for its commands; the others are listening.h's. */
static size_t in_own(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    size_t bytes =
        pinned->own && !pinned_track_of(pinned, pinned->own) ? upstream_memory(pinned->own) : 0;
    for (unsigned i = 0; i < pinned->tracking.count; i++)
        bytes += upstream_memory(pinned->tracking.at[i].upstream);
    for (unsigned i = 0; i < pinned->wait_count; i++)
        if (pinned->waits[i].upstream && pinned->waits[i].upstream != pinned->own)
            bytes += upstream_memory(pinned->waits[i].upstream);
    return bytes;
}

size_t client_memory_of(const struct client *client)
{
    const struct replies *replies = &client->replies;
    return client->in.size + client->sending.size + replies->out.size + replies->unheard.size +
           client->pinned.late.size + client->pinned.deleted.size + client->pinned.written.size +
           listening_bytes(client) + stream_memory(&client->stream) + in_slots(replies) +
           in_own(client);
}

static size_t heap_of(const struct client *client)
{
    const struct replies *replies = &client->replies;
    return buffer_heap(&client->in) + buffer_heap(&client->sending) + buffer_heap(&replies->out) +
           buffer_heap(&replies->unheard) + buffer_heap(&client->pinned.late) +
           buffer_heap(&client->pinned.deleted) + buffer_heap(&client->pinned.written) +
           listening_bytes(client) + stream_memory(&client->stream) + in_slots(replies) +
           in_own(client);
}

struct weight {
    size_t total;
    size_t heap; /* malloc()'s part, with that of those who are closing: it is not freed yet */
    struct client *heaviest;
    size_t most; /* what that takes */
};

static struct weight weigh(const struct clients *clients)
{
    struct weight weight = {0};
    for (struct client *client = clients->first; client; client = client->following) {
        weight.heap += heap_of(client);
        if (client->state >= CLIENT_CLOSING)
            continue;
        size_t bytes = client_memory_of(client);
        weight.total += bytes;
        if (bytes > weight.most) {
            weight.most = bytes;
            weight.heaviest = client;
        }
    }
    return weight;
}

/* The difference may be below zero: it wraps around, and so does the sum, which is right again. */
static void tell(struct clients *clients, const struct weight *weight)
{
    struct client_memory *memory = clients->memory;
    atomic_fetch_add(&memory->total, weight->total - clients->memory_told);
    atomic_store(&memory->heaviest[clients->serving->index], weight->most);
    clients->memory_told = weight->total;
}

/* This worker's own place was just written, and is no heavier than `most`. */
static bool others_have_heavier(const struct clients *clients, size_t most)
{
    for (unsigned i = 0; i < serving_config(clients->serving)->workers; i++)
        if (atomic_load(&clients->memory->heaviest[i]) > most)
            return true;
    return false;
}

static void cut(struct client *client, size_t bytes)
{
    static struct log_pace pace;
    uint64_t left_out;
    char said[LOG_PACE_SAID];
    counter_add(&client->serving->counters.clients_cut, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("client %llu of %s was cut off: it took %zu MiB, the most of all, and "
                    "max_client_memory was used up%s",
                    (unsigned long long)client->id, client->address, bytes / 1024 / 1024,
                    log_pace_said(left_out, said));
    client_close(client);
}

static struct weight check(struct clients *clients)
{
    size_t most = serving_config(clients->serving)->max_client_memory;
    struct weight weight = weigh(clients);
    clients->memory_came = 0;
    /* before anybody is cut off: what that one took is the larger part of it */
    peak_note(&clients->memory_peak, weight.heap);
    if (!clients->memory)
        return weight;
    tell(clients, &weight);
    while (weight.heaviest && atomic_load(&clients->memory->total) > most &&
           !others_have_heavier(clients, weight.most)) {
        cut(weight.heaviest, weight.most);
        weight = weigh(clients);
        tell(clients, &weight);
    }
    return weight;
}

void client_memory_check(struct clients *clients)
{
    check(clients);
}

void client_memory_settle(struct clients *clients)
{
    if (!peak_is_over(&clients->memory_peak, check(clients).heap))
        return;
    resp_arguments_finish(&clients->serving->arguments);
    malloc_trim(0);
}
