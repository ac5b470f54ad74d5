/* What the client has written went over connections that others share, while WAIT is about what its
 * own connection wrote (since Redis 7.2; before, about all). So each primary is asked how far it
 * is, when all that the client sent before has been answered, and then how many replicas have
 * acknowledged as much: the numbers that WAIT goes by, too.
 *
 *   WAIT 0 1 ─ may the client, and is it a primary?     WAIT all 1, 2, 4 ... ─ has replicas tell
 *   INFO ───── so far it is                             INFO                   how far they are,
 *                  └──────────── not enough ──────────────▶ │ ▲                and is the pause
 *                                                           └─┘
 */
#include "worker/command/wait.h"

#include "base/clock.h"
#include "redis/topology/redis_standing.h"
#include "resp/reply.h"
#include "resp/resp_number.h"
#include "worker/client/pinned.h"
#include "worker/client/waits.h"
#include "worker/command/whole.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/standing_text.h"
#include "worker/upstream/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_MS = 1, MOST_MS = 100 };

/* More than there are. */
static const char all_replicas[] = "1000000";

/* Redis' own. */
static const char unblocked[] = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";

/* The number of a request: that of the primary, and which of the two. */
enum request_kind { PAUSE, STANDING, REQUEST_KINDS };

static void end(struct reply_slot *slot, unsigned number, struct span reply)
{
    reply_slot_append(slot, reply_slot_output(slot), reply);
    /* with an error nothing is left to wait for */
    waits_close(client_of(slot->replies), number, reply_is_error(reply));
}

static void ask(struct reply_slot *slot, unsigned number, const char *replicas, uint64_t ms)
{
    struct upstream *upstream = client_of(slot->replies)->pinned.waits[number].upstream;
    char pause[24];
    snprintf(pause, sizeof pause, "%llu", (unsigned long long)ms);
    const struct span wait[] = {span_of("WAIT"), span_of(replicas), span_of(pause)};
    const struct span info[] = {span_of("INFO"), span_of("replication")};
    unsigned first = number * REQUEST_KINDS;
    resp_write_command(upstream_command(upstream, slot, first + PAUSE), wait, 3);
    resp_write_command(upstream_command(upstream, slot, first + STANDING), info, 2);
}

/* A silent server is noticed all the same: it is asked again well before cache_timeout. */
static unsigned longest_pause(const struct client *client)
{
    uint64_t half = serving_config(client->serving)->cache_timeout_ms / 2;
    return half < MOST_MS ? (unsigned)half : MOST_MS;
}

static void pause_and_ask(struct reply_slot *slot, unsigned number, uint64_t left)
{
    struct client *client = client_of(slot->replies);
    struct pinned_wait *wait = &client->pinned.waits[number];
    unsigned longest = longest_pause(client);
    wait->pause = wait->pause ? wait->pause * 2 : FIRST_MS;
    if (wait->pause > longest)
        wait->pause = longest;
    ask(slot, number, all_replicas, wait->pause < left ? wait->pause : left);
}

static bool is_enough(const struct pinned *pinned, const struct pinned_wait *wait,
                      unsigned acknowledged, uint64_t now)
{
    return acknowledged >= pinned->wait_replicas || now >= wait->until ||
           pinned->wait_end == WAIT_TIMED_OUT;
}

/* A primary's word, from which on the time counts. */
static void count(struct reply_slot *slot, unsigned number, uint64_t offset, const char *text)
{
    struct pinned *pinned = &client_of(slot->replies)->pinned;
    struct pinned_wait *wait = &pinned->waits[number];
    uint64_t now = clock_ms();
    char reply[32];
    if (!wait->pause) {
        wait->offset = offset;
        wait->until = pinned->wait_limit ? now + pinned->wait_limit : UINT64_MAX;
    }
    unsigned acknowledged = redis_standing_acknowledged(text, wait->offset);
    if (pinned->wait_end == WAIT_UNBLOCKED) {
        end(slot, number, span_of(unblocked));
    } else if (!is_enough(pinned, wait, acknowledged, now)) {
        pause_and_ask(slot, number, wait->until - now);
    } else {
        snprintf(reply, sizeof reply, ":%u\r\n", acknowledged);
        end(slot, number, span_of(reply));
    }
}

static void take_standing(struct reply_slot *slot, unsigned number, struct span reply)
{
    char *text = standing_text(reply);
    struct redis_standing standing;
    redis_standing_read(&standing, text ? text : "");
    if (standing.role == REDIS_PRIMARY && standing.history[0])
        count(slot, number, standing.offset, text);
    else
        end(slot, number, span_of("-NESTGUARD cache error: it does not say how far it is\r\n"));
    free(text);
}

/* It has an answer, or there is none to come. */
static bool is_over(const struct reply_slot *slot, unsigned number)
{
    const struct pinned *pinned = &client_of(slot->replies)->pinned;
    return !pinned->waits || !pinned->waits[number].upstream;
}

static void on_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    unsigned number = index / REQUEST_KINDS;
    if (is_over(slot, number))
        return;
    request_take_failure(slot, index, why);
    waits_close(client_of(slot->replies), number, true);
}

static void on_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    unsigned number = index / REQUEST_KINDS;
    if (is_over(slot, number))
        return;
    if (reply_is_error(reply))
        end(slot, number, reply);
    else if (index % REQUEST_KINDS == PAUSE && !reply_is_number(reply))
        on_failure(slot, index, REQUEST_STRANGE);
    else if (index % REQUEST_KINDS == STANDING)
        take_standing(slot, number, reply);
}

static const struct reply_slot_kind wait_kind = {.on_cache = on_reply,
                                                 .on_cache_failure = on_failure};

/* ---- as it came ---- */

static void on_answer(struct reply_slot *slot, unsigned index, struct span reply)
{
    if (!is_over(slot, index))
        end(slot, index, reply);
}

static void on_no_answer(struct reply_slot *slot, unsigned index, const char *why)
{
    on_failure(slot, index * REQUEST_KINDS, why);
}

static const struct reply_slot_kind passed_kind = {.on_cache = on_answer,
                                                   .on_cache_failure = on_no_answer};

static void pass(struct client *client, const struct request *request, struct reply_slot *slot,
                 unsigned number)
{
    struct upstream *upstream = client->pinned.waits[number].upstream;
    request_write(request, upstream_command(upstream, slot, number));
    upstream_be_patient(upstream, true);
}

/* ---- its beginning ---- */

static bool read_number(struct span word, int64_t *number)
{
    char line[24];
    const char *at = line;
    if (word.length > sizeof line - 3)
        return false;
    int length = snprintf(line, sizeof line, "%.*s\r\n", (int)word.length, word.at);
    return resp_read_number(&at, line + length, number) == RESP_DONE && at == line + length;
}

/* What it asks for. False: it is WAITAOF, or the cache says best what is wrong with it. */
static bool read_wait(struct client *client, const struct request *request)
{
    struct pinned *pinned = &client->pinned;
    int64_t replicas, limit;
    if (strcmp(request->command->name, "WAIT") != 0 || request->count != 3 ||
        !read_number(request->arguments[1], &replicas) ||
        !read_number(request->arguments[2], &limit) || limit < 0)
        return false;
    pinned->wait_replicas = replicas > 0 ? (uint64_t)replicas : 0;
    pinned->wait_limit = (uint64_t)limit;
    return true;
}

static void ask_first(struct client *client, const struct request *request, struct reply_slot *slot,
                      unsigned number)
{
    (void)client;
    (void)request;
    ask(slot, number, "0", FIRST_MS);
}

static int open_waits(struct client *client)
{
    if (!pool_is_cluster(client_pool(client)) && pinned_begin(client) < 0)
        return -EBUSY;
    return waits_open(client);
}

void wait_ask_all(struct client *client, const struct request *request, enum command_join join,
                  const struct reply_slot_kind *kind, wait_ask *ask_one)
{
    int opened = open_waits(client);
    if (opened == 0)
        whole_to_all(client, request, join); /* it fails, at once */
    if (opened <= 0)
        return;
    struct whole whole = whole_begin(client, join);
    client->pinned.wait_slot = whole.slot;
    for (unsigned i = 0; i < (unsigned)opened; i++) {
        struct reply_slot *slot = reply_slot_open(&client->replies, kind);
        ask_one(client, request, slot, i);
        reply_slot_answered(slot);
    }
    whole_end(&whole);
    client_settle(client);
}

/* Where the client has written is not remembered: it waits for the replicas of all. */
void wait_dispatch(struct client *client, const struct request *request)
{
    bool is_read = read_wait(client, request);
    client->pinned.wait_is_counted = is_read;
    client->pinned.wait_end = WAIT_BY_ITSELF;
    wait_ask_all(client, request, JOIN_LEAST, is_read ? &wait_kind : &passed_kind,
                 is_read ? ask_first : pass);
}
