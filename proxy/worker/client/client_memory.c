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

struct taken {
    size_t bytes;
    size_t heap; /* malloc()'s part of them */
};

static struct taken taken_by(const struct client *client)
{
    const struct replies *replies = &client->replies;
    const struct pinned *pinned = &client->pinned;
    const struct buffer *const buffers[] = {
        &client->in,
        &client->sending,
        &replies->out,
        &replies->unheard,
        &pinned->late,
        &pinned->deleted,
        &pinned->written,
        &pinned->tracking.words.bytes,
        &pinned->tracking.asked.bytes,
        &pinned->asked.text,
    };
    size_t others = listening_bytes(client) + stream_memory(&client->stream) + in_slots(replies) +
                    in_own(client) + incomplete_bytes(client);
    struct taken taken = {others, others};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        taken.bytes += buffers[i]->size;
        taken.heap += buffer_heap(buffers[i]);
    }
    return taken;
}

size_t client_memory_of(const struct client *client)
{
    return taken_by(client).bytes;
}

/* Its clients have taken so much more; of the first of them the last look's is forgotten. */
static void add_to_host(const struct clients *clients, struct host *host, size_t bytes)
{
    if (host->weighed != clients->weighings)
        host->bytes = host->largest = 0;
    host->weighed = clients->weighings;
    host->bytes += bytes;
    host->largest = bytes > host->largest ? bytes : host->largest;
}

/* The host is noted as it is now, for in the course of a look it may go. */
static void weigh(struct client_weight *weight, const struct client *client)
{
    const struct host *host = client->host;
    struct taken taken = taken_by(client);
    weight->heap += taken.heap;
    if (client->state >= CLIENT_CLOSING)
        return;
    weight->total += taken.bytes;
    add_to_host(client->clients, client->host, taken.bytes);
    if (host->bytes <= weight->bytes)
        return;
    weight->origin = host->origin;
    weight->bytes = host->bytes;
    weight->largest = host->largest;
}

static struct client_weight begin(struct clients *clients)
{
    return (struct client_weight){.number = ++clients->weighings, .came = clients->memory_came};
}

static void show(const struct clients *clients, uint64_t origin, size_t bytes, size_t largest)
{
    struct heaviest_host *here = &clients->memory->heaviest[clients->serving->index];
    atomic_store(&here->origin, origin);
    atomic_store(&here->bytes, bytes);
    atomic_store(&here->largest, largest);
}

/* The difference may be below zero: it wraps around, and so does the sum, which is right again. The
 * host is shown first, so that nobody sees too much and not yet whose it is. */
static void tell(struct clients *clients, const struct client_weight *weight)
{
    show(clients, weight->origin, weight->bytes, weight->largest);
    atomic_fetch_add(&clients->memory->total, weight->total - clients->memory_told);
    clients->memory_told = weight->total;
}

/* All have been looked at. What came meanwhile may not have been seen. */
static void take(struct clients *clients, const struct client_weight *weight)
{
    clients->memory_came -= weight->came;
    clients->memory_heap = weight->heap;
    peak_note(&clients->memory_peak, weight->heap);
    if (clients->memory)
        tell(clients, weight);
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

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

/* What other workers show of a host; `largest`: of one client. */
static size_t bytes_elsewhere(const struct clients *clients, uint64_t origin, size_t *largest)
{
    const struct heaviest_host *heaviest = clients->memory->heaviest;
    size_t bytes = 0;
    *largest = 0;
    for (unsigned i = 0; i < serving_config(clients->serving)->workers; i++)
        if (i != clients->serving->index && atomic_load(&heaviest[i].origin) == origin) {
            bytes += atomic_load(&heaviest[i].bytes);
            *largest = larger(*largest, atomic_load(&heaviest[i].largest));
        }
    return bytes;
}

/* The host that takes most, here and elsewhere. */
struct choice {
    struct host *host; /* NULL: none takes anything here */
    size_t bytes, largest_elsewhere;
    size_t next; /* what the one behind it takes, also if it has no client here */
};

static void compare(struct choice *choice, struct host *host, size_t bytes, size_t largest)
{
    if (choice->host && bytes <= choice->bytes) {
        choice->next = larger(choice->next, bytes);
        return;
    }
    *choice = (struct choice){host, bytes, largest, larger(choice->next, choice->bytes)};
}

static struct choice choose(const struct clients *clients)
{
    const struct heaviest_host *heaviest = clients->memory->heaviest;
    struct choice choice = {.host = NULL};
    size_t largest;
    for (struct client *client = clients->first; client; client = client->following) {
        struct host *host = client->host;
        if (client->state >= CLIENT_CLOSING || host == choice.host || !host->bytes)
            continue;
        size_t elsewhere = bytes_elsewhere(clients, host->origin, &largest);
        compare(&choice, host, host->bytes + elsewhere, largest);
    }
    for (unsigned i = 0; choice.host && i < serving_config(clients->serving)->workers; i++) {
        uint64_t origin = atomic_load(&heaviest[i].origin);
        if (i != clients->serving->index && origin != choice.host->origin)
            choice.next = larger(choice.next, bytes_elsewhere(clients, origin, &largest));
    }
    return choice;
}

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

static void find_candidates(const struct clients *clients, const struct host *heaviest,
                            struct candidates *candidates)
{
    candidates->count = 0;
    for (struct client *client = clients->first; client; client = client->following)
        if (client->state < CLIENT_CLOSING && client->host == heaviest)
            consider(candidates, client, client_memory_of(client));
}

static bool is_too_much(const struct clients *clients)
{
    return clients->memory && atomic_load(&clients->memory->total) >
                                  serving_config(clients->serving)->max_client_memory;
}

/* Of the heaviest host, for as long as it is that, and has its largest client here. What is cut is
 * told at once, or other workers would do so for the same excess. False: it is another's turn. */
static bool cut_some(struct clients *clients)
{
    struct choice choice = choose(clients);
    struct candidates candidates;
    size_t i = 0;
    if (!choice.host)
        return false;
    show(clients, choice.host->origin, choice.host->bytes, choice.host->largest);
    find_candidates(clients, choice.host, &candidates);
    for (; i < candidates.count && is_too_much(clients); i++) {
        size_t bytes = candidates.at[i].bytes;
        if (choice.bytes < choice.next || bytes < choice.largest_elsewhere || !bytes)
            break;
        cut(candidates.at[i].client, bytes);
        choice.bytes -= bytes;
        choice.host->bytes -= bytes;
        clients->memory_told -= bytes;
        atomic_fetch_sub(&clients->memory->total, bytes);
    }
    return i > 0;
}

static void weigh_all(struct clients *clients)
{
    struct client_weight weight = begin(clients);
    for (struct client *client = clients->first; client; client = client->following)
        weigh(&weight, client);
    take(clients, &weight);
}

/* What is given back is judged by what there was before anybody was cut off: that is the larger
 * part of it. */
void client_memory_check(struct clients *clients)
{
    do
        weigh_all(clients);
    while (is_too_much(clients) && cut_some(clients));
}

/* ---- in pieces ---- */

void client_memory_begin(struct clients *clients)
{
    clients->weight = begin(clients);
}

/* If all were weighed in one go since it began, that is later than this. */
static bool is_outdated(const struct clients *clients)
{
    return clients->weight.number != clients->weighings;
}

void client_memory_look(struct client *client)
{
    if (!is_outdated(client->clients))
        weigh(&client->clients->weight, client);
}

/* What was seen is of no one moment, and some of it may have been freed since: who is to be cut off
 * is looked for in one go. */
void client_memory_settle(struct clients *clients)
{
    if (!is_outdated(clients)) {
        take(clients, &clients->weight);
        if (is_too_much(clients))
            client_memory_check(clients);
    }
    if (!peak_is_over(&clients->memory_peak, clients->memory_heap))
        return;
    resp_arguments_finish(&clients->serving->arguments);
    malloc_trim(0);
}
