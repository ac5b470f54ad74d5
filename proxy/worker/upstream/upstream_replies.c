/* From bytes to replies: each belongs to the oldest request, or is the owner's.
 *
 *   on_read() ─▶ read_replies() ─ whole ─▶ deliver() ─┬─ unasked ─▶ goes_beside()
 *                     │                               ├─ a slot's ─▶ reply_slot_cache_reply()
 *                     │                               └─ its own ─▶ upstream_greeted(), take_role()
 *                     └─ a part of a large one ─▶ take_part() ─┬─▶ reply_slot_cache_part()
 *                                                              ├─ wanted whole ─▶ upstream_gather()
 *                                                              └─ by nobody ─▶ upstream_skip()
 */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "cache/greeting.h"
#include "redis/topology/redis_cluster.h"
#include "resp/reply.h"
#include "worker/reply/at_replica.h"

#include <errno.h>
#include <stdio.h>

enum {
    READ_BYTES = 64 * 1024,        /* room for one read */
    LARGE_BYTES = 256 * 1024,      /* of a reply that is not all there */
    STALL_BYTES = 4 * 1024 * 1024, /* waiting for its client */
    IDLE_MS = 500, /* a connection that was closed earlier than this was refused, not idle */
    PASSING_NS = 250 * 1000 /* of a turn, for bytes that only pass */
};

static const char no_reply_text[] = "the cache sent something that is no reply";

/* Redis closes idle connections after its own `timeout`, and proxies do. Nothing was asked, so
 * nothing is lost. */
static bool is_idle(const struct upstream *upstream)
{
    return upstream->state == UP && !upstream->in_flight.count &&
           upstream->tenure != TENURE_FINISHED && !upstream_is_own(upstream) &&
           clock_ms() - upstream->since > IDLE_MS;
}

/* As at the first attempt, requests wait for this one. */
static void connect_again(struct upstream *upstream)
{
    upstream->attempt = ATTEMPT_AGAIN;
    upstream->fresh = 0;
    upstream->is_doubted = false;
    buffer_clear(&upstream->in);
    upstream->frame = (struct resp_frame){0};
    upstream_close_stream(upstream);
}

/* ---- replies ---- */

/* Not all that comes is a reply. */
static bool listens(const struct upstream *upstream)
{
    return upstream_is_own(upstream) || upstream->options.resp3;
}

/* ---- the role ---- */

/* What any connection holds of a server that is no primary any more is not to be trusted. But a
 * cluster's node sends what is asked of it to who is the primary now, writes as well. Where the
 * answer is none, the replies that clients get are others', too. */
static void take_role(struct upstream *upstream, struct span reply)
{
    const char *objection = greeting_judge_role(reply);
    bool is_demoted = objection && objection != greeting_out_of_step;
    upstream->asking_role = false;
    if (!objection)
        return;
    if (upstream->keeps && !upstream_is_own(upstream) && is_demoted) {
        redis_cluster_refresh(upstream->route->cluster);
        return;
    }
    upstream_lose(upstream, objection);
    if (is_demoted)
        upstream_note_demotion(upstream);
}

/* In a transaction it is queued. */
static void take_ahead(struct upstream *upstream, struct span reply)
{
    if (!reply_is_ok(reply) && !reply_is_queued(reply) && !reply_is_error(reply))
        upstream_lose(upstream, greeting_out_of_step);
}

static void take_own(struct upstream *upstream, unsigned asked, struct span reply)
{
    if (asked == ASKED_AHEAD)
        take_ahead(upstream, reply);
    else if (asked == ASKED_STANDING)
        upstream_take_standing(upstream, reply);
    else if (asked == ASKED_ROLE && !upstream->options.replica)
        take_role(upstream, reply);
}

/* A script may give such an error, too: of a shared connection the server is asked. A client's own
 * has a state that the question could disturb, and would be of no use: there Redis' own words must
 * stand behind the code. */
static bool is_suspicious(const struct upstream *upstream, struct span reply)
{
    return greeting_is_readonly(reply) &&
           (!upstream_is_own(upstream) || span_starts(reply, "-READONLY You can't write against"));
}

static void suspect(struct upstream *upstream)
{
    if (upstream->state != UP || upstream->tenure == TENURE_FINISHED)
        return;
    if (upstream_is_own(upstream))
        upstream_lose(upstream, "its server is a replica");
    else
        upstream_ask_role(upstream);
}

/* On a connection that is in step, what belongs to no request can only be its owner's. */
static bool owner_takes(struct upstream *upstream, struct span frame)
{
    const struct upstream_options *options = &upstream->options;
    return upstream->state == UP && upstream_is_own(upstream) &&
           upstream->tenure != TENURE_FINISHED &&
           options->owner->takes(options->client, upstream, frame);
}

/* A push on a shared connection is part of what its oldest command does. */
static bool goes_beside(struct upstream *upstream, struct span frame)
{
    struct reply_slot *slot = upstream_next_slot(upstream);
    if (upstream_is_own(upstream))
        return !upstream_takes_pong(upstream, frame) && owner_takes(upstream, frame);
    if (frame.at[0] != '>')
        return false;
    if (slot && slot->replies)
        replies_push(slot->replies, slot, frame);
    return true;
}

/* Its bytes, which leave no later than the next one's are written. */
static struct span command_of(const struct upstream *upstream, const struct in_flight *request)
{
    const struct in_flight *next = in_flight_first(&upstream->in_flight);
    if (!upstream->keeps || upstream->state != UP)
        return span_of("");
    return kept_bytes(&upstream->kept, request->begin, next ? next->begin : UINT64_MAX);
}

/* What a node says that is no plain reply, if that is for the client; at NULL: it has been seen to.
 * Apart from the rest, which is so compiled without regard to it. */
__attribute__((noinline)) static struct span
judge(struct upstream *upstream, const struct in_flight *request, struct span reply, bool whole)
{
    if (request->slot && upstream->options.replica) {
        at_replica_reply(request->slot, request->index, reply);
        return (struct span){NULL, 0};
    }
    if (request->slot && whole && reply.at[0] == '-' &&
        upstream_redirect(upstream, request, &reply, command_of(upstream, request)))
        return (struct span){NULL, 0};
    if (request->leads_on) {
        reply_slot_cache_failure(request->slot, request->index, upstream_doubted_text);
        return (struct span){NULL, 0};
    }
    return reply;
}

/* The same of whatever one says that is known by its place. */
static inline struct span by_node(struct upstream *upstream, const struct in_flight *request,
                                  struct span reply, bool whole)
{
    if (reply.at[0] == '-' || upstream->options.replica || request->leads_on)
        return judge(upstream, request, reply, whole);
    if (!upstream->in_flight.count)
        kept_clear(&upstream->kept);
    return reply;
}

/* The slot may be gone, and its client with it, when this returns; and so may the owner. Where the
 * reply was skipped, it is as if the cache had not answered. */
static void deliver(struct upstream *upstream, struct span reply)
{
    bool whole = true;
    if (upstream->reply != REPLY_GATHERED) {
        enum reply_state state = upstream_end_reply(upstream);
        whole = state == REPLY_COUNTED;
        if (state == REPLY_SKIPPED)
            reply = span_of("");
    }
    if (whole && listens(upstream) && goes_beside(upstream, reply))
        return;
    if (!upstream_awaits_reply(upstream)) {
        upstream_lose(upstream, no_reply_text);
        return;
    }
    if (reply.length >= upstream->weighed)
        upstream_weigh_whole(upstream, reply.length);
    struct in_flight request = in_flight_pop(&upstream->in_flight);
    bool suspicious = is_suspicious(upstream, reply);
    if (upstream->options.node) {
        reply = by_node(upstream, &request, reply, whole);
        if (!reply.at)
            return;
    }
    if (request.slot)
        reply_slot_cache_reply(request.slot, request.index, reply);
    else if (upstream->state == UP)
        take_own(upstream, request.index, reply);
    else
        upstream_greeted(upstream, request.index, reply);
    if (suspicious)
        suspect(upstream);
}

/* The rest of the reply is taken in, whether its client reads or not. One that has used up what all
 * have, and not just what one has at once, is slow. */
static void hurry(struct upstream *upstream, struct replies *replies)
{
    upstream->reply = REPLY_HURRIED;
    if (replies)
        replies->slow = true;
}

static void on_stall_over(uv_timer_t *timer)
{
    struct upstream *upstream = timer->data;
    const struct reply_slot *slot = upstream_next_slot(upstream);
    upstream_read(upstream, true);
    hurry(upstream,
          slot && !stall_budget_left(&upstream->stalls, clock_ms()) ? slot->replies : NULL);
}

/* One that would have to wait in memory for a client that reads slowly makes the cache wait
 * instead; one that waits for an earlier reply does not, which no reading helps. That others share
 * the connection bounds how long that may be, for all slow ones together; who needs more gets a
 * connection of its own (pinned_check()). */
static void stall(struct upstream *upstream, const struct reply_slot *slot)
{
    struct replies *replies = slot->replies;
    if (upstream_is_own(upstream) || upstream->intake == INTAKE_STALLED ||
        upstream->reply == REPLY_HURRIED || replies_waiting(replies) - slot->arrived < STALL_BYTES)
        return;
    uint64_t now = clock_ms(), left = stall_budget_left(&upstream->stalls, now);
    if (!left) {
        hurry(upstream, replies);
        return;
    }
    upstream->stalled = now;
    replies->stalls = upstream;
    upstream_set_intake(upstream, INTAKE_STALLED);
    uv_timer_start(&upstream->timer, on_stall_over, left, 0);
}

/* A large reply need not be whole to be passed on, when it is one and its kind takes it so. */
static bool can_pass(const struct upstream *upstream, const struct reply_slot *slot)
{
    bool begun = upstream->reply == REPLY_PASSING || upstream->reply == REPLY_HURRIED;
    return slot->kind->on_part && !in_flight_first(&upstream->in_flight)->leads_on &&
           (begun || !listens(upstream) || buffer_span(&upstream->in).at[0] == '$');
}

static void pass_on(struct upstream *upstream, struct reply_slot *slot)
{
    const char *at = buffer_span(&upstream->in).at;
    size_t passed = resp_frame_pass(&upstream->frame);
    if (upstream->reply == REPLY_GATHERED)
        upstream->reply = REPLY_PASSING;
    upstream_weigh(upstream, passed);
    reply_slot_cache_part(slot, (struct span){at, passed});
    if (upstream->state == CLOSING)
        return;
    buffer_take(&upstream->in, passed);
    if (slot->replies)
        stall(upstream, slot);
}

static void take_part(struct upstream *upstream)
{
    struct reply_slot *slot = upstream_next_slot(upstream);
    size_t before = buffer_length(&upstream->in);
    if (before < LARGE_BYTES || !slot)
        return;
    if (upstream_skip(upstream, slot)) {
        upstream_weigh(upstream, before - buffer_length(&upstream->in));
        return;
    }
    if (can_pass(upstream, slot))
        pass_on(upstream, slot);
    else
        upstream_gather(upstream, slot);
}

static void read_replies(struct upstream *upstream)
{
    struct buffer *in = &upstream->in;
    size_t taken;
    while (buffer_length(in) && upstream->state != CLOSING) {
        if (upstream->relays && !upstream->in_flight.count) {
            owner_takes(upstream, buffer_span(in));
            buffer_clear(in);
            return;
        }
        struct span ready = buffer_span(in);
        enum resp_status status =
            resp_frame_reply(&upstream->frame, ready.at, ready.length, &taken);
        if (status == RESP_MORE) {
            take_part(upstream);
            return;
        }
        if (status == RESP_BAD) {
            upstream_lose(upstream, no_reply_text);
            return;
        }
        deliver(upstream, (struct span){ready.at, taken});
        if (upstream->state != CLOSING) /* else they went with the connection */
            buffer_take(in, taken);
    }
}

/* Whoever waits behind a large reply waits for as many turns as it takes, and under an attack each
 * of them is long: what of it is there already is read, as long as that takes no longer than a
 * turn's line. */
static bool goes_on_passing(struct upstream *upstream)
{
    if (upstream->reply == REPLY_GATHERED && buffer_length(&upstream->in) < LARGE_BYTES)
        return false;
    uint64_t now = clock_ns();
    if (upstream->passing_turn != upstream->turn)
        upstream->passing_until = now + PASSING_NS;
    upstream->passing_turn = upstream->turn;
    return now < upstream->passing_until;
}

/* Once in a turn: what has come is to leave before there is more. */
static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct upstream *upstream = handle->data;
    bool later = upstream->turn == upstream->serving->turn.number && !goes_on_passing(upstream);
    (void)wanted;
    char *at = buffer_try_reserve(&upstream->in, READ_BYTES);
    *room = (uv_buf_t){.base = at, .len = at && !later ? READ_BYTES : 0}; /* no place: ENOBUFS */
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct upstream *upstream = stream->data;
    if (count == UV_ENOBUFS && room->base)
        return;
    if (count == UV_EOF && is_idle(upstream)) {
        connect_again(upstream);
        return;
    }
    if (count < 0) {
        upstream_lose(upstream, count == UV_EOF ? "the cache closed the connection"
                                                : uv_strerror((int)count));
        return;
    }
    buffer_commit(&upstream->in, (size_t)count);
    upstream->heard = uv_now(&upstream->serving->loop);
    upstream->turn = upstream->serving->turn.number;
    read_replies(upstream);
    buffer_trim(&upstream->in, UPSTREAM_KEEP_BYTES);
}

void upstream_follow_intake(struct upstream *upstream, bool was_reading)
{
    bool is_reading = upstream_is_reading(upstream);
    if (is_reading && !was_reading)
        stream_read_start(&upstream->stream, on_room, on_read);
    else if (was_reading && !is_reading)
        stream_read_stop(&upstream->stream);
}

void upstream_set_intake(struct upstream *upstream, enum intake intake)
{
    bool was_reading = upstream_is_reading(upstream);
    upstream->intake = intake;
    if (!was_reading) /* what has come meanwhile is read next */
        upstream->heard = uv_now(&upstream->serving->loop);
    upstream_follow_intake(upstream, was_reading);
}

void upstream_begin(struct upstream *upstream)
{
    upstream_follow_intake(upstream, false);
    upstream_mark_dirty(upstream);
}

static void end_stall(struct upstream *upstream)
{
    uint64_t now = clock_ms();
    stall_budget_use(&upstream->stalls, upstream->stalled, now);
    counter_add(&upstream->serving->counters.stalled_ms, now - upstream->stalled);
    uv_timer_stop(&upstream->timer);
}

void upstream_read(struct upstream *upstream, bool wanted)
{
    if (upstream->intake == INTAKE_STALLED)
        end_stall(upstream);
    upstream_set_intake(upstream, wanted ? INTAKE_WANTED : INTAKE_UNWANTED);
}
