/* No worker looks into another's clients. Each adds what its own take to a common total, and shows
 * its heaviest host:
 *
 *   too much in all ─▶ is mine the heaviest of all, with what it takes elsewhere, and has it its
 *                      largest client here?
 *                       ├─yes─▶ cut off, and all is looked at again
 *                       └─no──▶ another worker does that at its next look
 *
 * What is seen of others is as old as their last look. Of two that take the same each worker cuts
 * its own.
 */
#include "worker/client/client_memory.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "worker/client/incomplete.h"
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
           in_own(client) + incomplete_bytes(client);
}

static size_t heap_of(const struct client *client)
{
    const struct replies *replies = &client->replies;
    return buffer_heap(&client->in) + buffer_heap(&client->sending) + buffer_heap(&replies->out) +
           buffer_heap(&replies->unheard) + buffer_heap(&client->pinned.late) +
           buffer_heap(&client->pinned.deleted) + buffer_heap(&client->pinned.written) +
           listening_bytes(client) + stream_memory(&client->stream) + in_slots(replies) +
           in_own(client) + incomplete_bytes(client);
}

/* What all take, and which host takes most. */
struct weight {
    size_t total;
    size_t heap; /* malloc()'s part, with that of those who are closing: it is not freed yet */
    struct host *heaviest; /* NULL: nobody takes anything */
};

/* Its clients have taken so much more; of the first of them the last look's is forgotten. */
static void add_to_host(const struct clients *clients, struct host *host, size_t bytes)
{
    if (host->weighed != clients->weighings)
        host->bytes = host->largest = 0;
    host->weighed = clients->weighings;
    host->bytes += bytes;
    host->largest = bytes > host->largest ? bytes : host->largest;
}

static struct weight weigh(struct clients *clients)
{
    struct weight weight = {0};
    clients->weighings++;
    for (struct client *client = clients->first; client; client = client->following) {
        weight.heap += heap_of(client);
        if (client->state >= CLIENT_CLOSING)
            continue;
        size_t bytes = client_memory_of(client);
        weight.total += bytes;
        add_to_host(clients, client->host, bytes);
        if (bytes && (!weight.heaviest || client->host->bytes > weight.heaviest->bytes))
            weight.heaviest = client->host;
    }
    return weight;
}

/* The difference may be below zero: it wraps around, and so does the sum, which is right again. */
static void tell(struct clients *clients, const struct weight *weight)
{
    struct client_memory *memory = clients->memory;
    struct heaviest_host *here = &memory->heaviest[clients->serving->index];
    const struct host *host = weight->heaviest;
    atomic_fetch_add(&memory->total, weight->total - clients->memory_told);
    atomic_store(&here->origin, host ? host->origin : 0);
    atomic_store(&here->bytes, host ? host->bytes : 0);
    atomic_store(&here->largest, host ? host->largest : 0);
    clients->memory_told = weight->total;
}

/* What other workers say beside a host of this one. */
struct rivals {
    size_t elsewhere; /* its clients take there */
    size_t largest;   /* of these, one */
    size_t next;      /* the clients of another host take */
};

static size_t bytes_of(const struct clients *clients, uint64_t origin)
{
    const struct heaviest_host *heaviest = clients->memory->heaviest;
    size_t bytes = 0;
    for (unsigned i = 0; i < serving_config(clients->serving)->workers; i++)
        if (i != clients->serving->index && atomic_load(&heaviest[i].origin) == origin)
            bytes += atomic_load(&heaviest[i].bytes);
    return bytes;
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

static struct rivals find_rivals(const struct clients *clients, uint64_t origin)
{
    const struct heaviest_host *heaviest = clients->memory->heaviest;
    struct rivals rivals = {.elsewhere = bytes_of(clients, origin)};
    for (unsigned i = 0; i < serving_config(clients->serving)->workers; i++) {
        uint64_t there = atomic_load(&heaviest[i].origin);
        if (i == clients->serving->index)
            continue;
        if (there == origin)
            rivals.largest = larger(rivals.largest, atomic_load(&heaviest[i].largest));
        else
            rivals.next = larger(rivals.next, bytes_of(clients, there));
    }
    return rivals;
}

static void cut(struct client *client, size_t bytes)
{
    static struct log_pace pace;
    uint64_t left_out;
    char said[LOG_PACE_SAID];
    counter_add(&client->serving->counters.clients_cut, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("client %llu of %s was cut off: it took %zu MiB, and its host %zu MiB, the "
                    "most of all, when max_client_memory was used up%s",
                    (unsigned long long)client->id, client->address, bytes / 1024 / 1024,
                    client->host->bytes / 1024 / 1024, log_pace_said(left_out, said));
    client_close(client);
}

/* ---- whom to cut off ---- */

struct candidate {
    struct client *client;
    size_t bytes;
};

/* The heaviest clients of the heaviest host, by their weight. As many as are found by one walk over
 * all, for there may be many small ones. */
struct candidates {
    struct candidate at[64];
    size_t count;
};

static void consider(struct candidates *candidates, struct client *client, size_t bytes)
{
    enum { MOST = sizeof candidates->at / sizeof *candidates->at };
    size_t at = candidates->count < MOST ? candidates->count++ : MOST;
    if (at == MOST && bytes <= candidates->at[--at].bytes)
        return;
    for (; at && candidates->at[at - 1].bytes < bytes; at--)
        candidates->at[at] = candidates->at[at - 1];
    candidates->at[at] = (struct candidate){client, bytes};
}

/* Returns what the next host takes here. */
static size_t find_candidates(const struct clients *clients, const struct host *heaviest,
                              struct candidates *candidates)
{
    size_t next = 0;
    candidates->count = 0;
    for (struct client *client = clients->first; client; client = client->following) {
        if (client->state >= CLIENT_CLOSING)
            continue;
        if (client->host == heaviest)
            consider(candidates, client, client_memory_of(client));
        else
            next = larger(next, client->host->bytes);
    }
    return next;
}

/* Of the heaviest host, for as long as it is that, and has its largest client here, until so much
 * is free. False: it is another worker's turn. */
static bool cut_some(struct clients *clients, struct host *host, size_t excess)
{
    struct rivals rivals = find_rivals(clients, host->origin);
    struct candidates candidates;
    size_t next = larger(find_candidates(clients, host, &candidates), rivals.next), i = 0;
    for (size_t freed = 0; i < candidates.count && freed < excess; i++) {
        size_t bytes = candidates.at[i].bytes;
        if (host->bytes + rivals.elsewhere < next || bytes < rivals.largest)
            break;
        cut(candidates.at[i].client, bytes);
        freed += bytes;
        host->bytes -= bytes;
    }
    return i > 0;
}

/* By how much all workers' clients are above the ceiling. */
static size_t find_excess(const struct clients *clients)
{
    size_t total = atomic_load(&clients->memory->total);
    size_t most = serving_config(clients->serving)->max_client_memory;
    return total > most ? total - most : 0;
}

static struct weight check(struct clients *clients)
{
    struct weight weight = weigh(clients);
    clients->memory_came = 0;
    /* before anybody is cut off: what that one took is the larger part of it */
    peak_note(&clients->memory_peak, weight.heap);
    if (!clients->memory)
        return weight;
    tell(clients, &weight);
    for (size_t excess; weight.heaviest && (excess = find_excess(clients));) {
        if (!cut_some(clients, weight.heaviest, excess))
            break;
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
