/* A list in order of arrival. The oldest is the first whose time is over, and the first to go when
 * there are too many: who is quick to show who it is, is off the list by then. Of the oldest, that
 * is, one whose host has most: a crowd of strangers from one host pushes out its own.
 */
#include "worker/client/strangers.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "worker/client/pinned_room.h"

/* So long for the first refusal, and as much more for each that follows, up to a bound. */
enum { WAIT_MS = 250, LONGEST_WAIT_MS = 2000 };

enum { OLDEST = 64 }; /* of whom one goes: each newcomer may cost a look at all of them */

static bool is_strange(const struct client *client)
{
    return client->state < CLIENT_CLOSING &&
           (client->state == CLIENT_SECURING || !client->authenticated);
}

/* At the end: who has just become a stranger has waited least. */
static void append(struct strangers *all, struct client *client)
{
    struct acquaintance *one = &client->acquaintance;
    one->strange = true;
    one->since = clock_ms();
    one->older = all->newest;
    one->newer = NULL;
    *(all->newest ? &all->newest->acquaintance.newer : &all->oldest) = client;
    all->newest = client;
    all->count++;
    client->host->strangers++;
}

static void take_out(struct strangers *all, struct client *client)
{
    struct acquaintance *one = &client->acquaintance;
    one->strange = false;
    *(one->older ? &one->older->acquaintance.newer : &all->oldest) = one->newer;
    *(one->newer ? &one->newer->acquaintance.older : &all->newest) = one->older;
    all->count--;
    client->host->strangers--;
}

/* Closed, it is strange no more: the review takes it off the list, which strangers_check() counts
 * on. */
static void send_away(struct client *client, const char *why)
{
    static struct log_pace pace;
    uint64_t left_out;
    char peer[STREAM_PEER_SIZE];
    counter_add(&client->serving->counters.strangers_dropped, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out)) {
        stream_peer(&client->stream, peer);
        log_warning(
            "%llu clients were dropped that had not shown who they are: %s; the last was %s",
            (unsigned long long)left_out + 1, why, peer);
    }
    client_close(client);
    strangers_review(client);
}

/* Each worker has its part of the places. */
static unsigned most(const struct clients *clients)
{
    const struct config *config = serving_config(clients->serving);
    unsigned share = config->max_strangers / config->workers;
    return share ? share : 1;
}

static struct client *most_dispensable(const struct strangers *all)
{
    struct client *found = all->oldest, *client = found;
    for (unsigned i = 0; client && i < OLDEST; i++, client = client->acquaintance.newer)
        if (client->host->strangers > found->host->strangers)
            found = client;
    return found;
}

void strangers_review(struct client *client)
{
    struct strangers *all = &client->clients->strangers;
    bool strange = is_strange(client);
    if (strange == client->acquaintance.strange)
        return;
    if (!strange) {
        take_out(all, client);
        return;
    }
    append(all, client);
    if (all->count > most(client->clients))
        send_away(most_dispensable(all), "more than max_strangers had come");
}

void strangers_check(struct clients *clients, uint64_t now)
{
    uint64_t patience = serving_config(clients->serving)->authentication_timeout_ms;
    struct strangers *all = &clients->strangers;
    while (all->oldest && now - all->oldest->acquaintance.since > patience)
        send_away(all->oldest, "it took longer than authentication_timeout");
}

/* ---- guesses ---- */

static void log_failure(const struct client *client)
{
    static struct log_pace pace;
    uint64_t left_out;
    char peer[STREAM_PEER_SIZE], said[LOG_PACE_SAID];
    if (!log_pace_may(&pace, clock_ms(), &left_out))
        return;
    stream_peer(&client->stream, peer);
    log_warning("failed authentication: %s%s", peer, log_pace_said(left_out, said));
}

static void let_go(struct client *client)
{
    struct reply_slot *slot = client->acquaintance.refused;
    client->acquaintance.refused = NULL;
    if (slot)
        reply_slot_answered(slot);
}

/* Its reply is written within the visit, and its next guess served, so that the line's bound counts
 * them. */
static void release(struct turn_task *task)
{
    struct client *client = container_of(task, struct client, acquaintance.release);
    let_go(client);
    turn_run_now(&client->serving->turn, &client->output_task);
}

/* The slot waits for let_go() as for an answer. The client settles, so that guesses
 * which were sent in one go are answered one by one. */
void strangers_refuse(struct client *client, struct reply_slot *slot)
{
    struct acquaintance *one = &client->acquaintance;
    uint64_t wait = WAIT_MS * (uint64_t)++one->failures;
    counter_add(&client->serving->counters.authentication_failures, 1);
    log_failure(client);
    slot->waiting++;
    one->refused = slot;
    one->release.run = release;
    one->refused_until = clock_ms() + (wait < LONGEST_WAIT_MS ? wait : LONGEST_WAIT_MS);
    client_settle(client);
    pinned_note_idle(client); /* nothing leaves for now: no end of a turn would tell of it */
}

/* Hundreds that have guessed at the same time are due at the same time. */
void strangers_release(struct client *client, uint64_t now)
{
    struct acquaintance *one = &client->acquaintance;
    if (one->refused && now >= one->refused_until)
        turn_line_up(&client->serving->turn, &one->release);
}

void strangers_forget(struct client *client)
{
    turn_cancel(&client->serving->turn, &client->acquaintance.release);
    let_go(client);
}
