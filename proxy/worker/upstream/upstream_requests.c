/* Only order ties a reply to its request: `in_flight` has an entry for each request that was sent
 * or waits in `out`, oldest first, and a reply belongs to the first. A connection that is out of
 * step can therefore only be given up as a whole.
 *
 *   in flight AUTH  SELECT │ GET a   SET b   GET c
 *   bytes       greeting   │         out
 *
 * `out` is not written before the greeting's replies were good.
 */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "cache/greeting.h"
#include "redis/topology/redis_cluster.h"
#include "worker/reply/at_replica.h"

#include <stdlib.h>

static const struct backoff_bounds backoff_bounds = {100, 2000};
/* Sentinels tell who is next, and nobody shall wait for long after that. */
static const struct backoff_bounds followed_bounds = {100, 500};

static const char down_text[] = "NESTGUARD cache down";
static const char nowhere_text[] = "CLUSTERDOWN Hash slot not served"; /* Redis' own, likewise */
static const char too_old_text[] = "NOPROTO unsupported protocol version"; /* Redis' own */

/* ---- the queue of requests in flight ---- */

void upstream_push(struct upstream *upstream, struct reply_slot *slot, unsigned index)
{
    uint64_t now = uv_now(&upstream->serving->loop);
    in_flight_push(&upstream->in_flight,
                   (struct in_flight){.slot = slot, .index = index, .since = now});
}

__attribute__((noinline)) static void keep_command(struct upstream *upstream, unsigned hops)
{
    struct in_flight *command = in_flight_last(&upstream->in_flight);
    command->begin = upstream->left + buffer_length(&upstream->out);
    command->hops = (uint8_t)hops;
    upstream_mark_doubted(upstream);
}

void upstream_push_command(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                           unsigned hops)
{
    upstream_push(upstream, slot, index);
    upstream->gathered++;
    if (upstream->keeps)
        keep_command(upstream, hops);
}

/* A caller in the middle of dispatching must not get an answer before its call has returned. */
void upstream_fail_later(struct upstream *upstream, struct in_flight request)
{
    in_flight_push(&upstream->failed, request);
    upstream_mark_dirty(upstream);
}

/* Requests of the connection's own, which have no slot, fail silently. */
static void fail_in_flight(struct upstream *upstream)
{
    upstream_uncount(upstream);
    while (upstream->in_flight.count) {
        struct in_flight request = in_flight_pop(&upstream->in_flight);
        if (request.slot)
            upstream_fail_later(upstream, request);
    }
    kept_clear(&upstream->kept);
}

static void clear_out(struct upstream *upstream)
{
    buffer_clear(&upstream->out);
    upstream->gathered = 0;
}

/* The first attempt has failed: whoever hoped for it need not wait for the next one. */
void upstream_fail_waiting(struct upstream *upstream)
{
    upstream->attempt = ATTEMPT_OVER;
    fail_in_flight(upstream);
    clear_out(upstream);
    upstream_mark_dirty(upstream);
    upstream_tell_relief(upstream);
}

/* ---- losing the connection ---- */

static void on_retry(uv_timer_t *timer);

/* The timer is the last of its handles. */
static void free_if_done(uv_handle_t *timer)
{
    struct upstream *upstream = timer->data;
    upstream->route->connections--;
    turn_cancel(&upstream->serving->turn, &upstream->task);
    buffer_finish(&upstream->opening);
    buffer_finish(&upstream->greeting);
    buffer_finish(&upstream->in);
    buffer_finish(&upstream->out);
    buffer_finish(&upstream->sending);
    buffer_finish(&upstream->unsent);
    kept_finish(&upstream->kept);
    in_flight_finish(&upstream->in_flight);
    in_flight_finish(&upstream->failed);
    free(upstream->name);
    free(upstream);
}

/* Either try again, or that was all. */
void upstream_closed(struct upstream *upstream)
{
    if (upstream->tenure == TENURE_FINISHED) {
        uv_close((uv_handle_t *)&upstream->timer, free_if_done);
        return;
    }
    if (upstream->attempt == ATTEMPT_AGAIN) {
        upstream->attempt = ATTEMPT_FIRST;
        upstream_start(upstream);
        return;
    }
    if (upstream->attempt == ATTEMPT_TOO_OLD || upstream_is_own(upstream))
        return;
    bool followed = upstream->route->topology || upstream->options.node;
    uv_timer_start(&upstream->timer, on_retry,
                   backoff_next(&upstream->backoff, followed ? &followed_bounds : &backoff_bounds),
                   0);
}

static void on_stream_closed(uv_handle_t *handle)
{
    struct upstream *upstream = handle->data;
    upstream_set_state(upstream, CLOSED);
    upstream_closed(upstream);
}

/* Whatever is open, or about to be. */
void upstream_close_stream(struct upstream *upstream)
{
    bool has_stream = upstream->state != DIALING;
    upstream_set_state(upstream, CLOSING);
    upstream_set_intake(upstream, INTAKE_WANTED); /* of the next */
    if (has_stream) {
        stream_close(&upstream->stream, on_stream_closed);
    } else if (redis_dial_is_over(&upstream->dial)) {
        upstream_set_state(upstream, CLOSED);
        upstream_closed(upstream);
    } else {
        redis_dial_stop(&upstream->dial);
    }
}

/* Its owner hears of it at the end of the turn. */
static void take_from_owner(struct upstream *upstream)
{
    if (upstream_is_own(upstream) && upstream->tenure == TENURE_HELD)
        upstream_set_tenure(upstream, TENURE_LOST);
}

/* What was sent may have run or not; nobody is told that it did. Counted when it is news, not at
 * every attempt. */
void upstream_lose(struct upstream *upstream, const char *why)
{
    if (upstream->state == CLOSING || upstream->state == CLOSED)
        return;
    bool finished = upstream->tenure == TENURE_FINISHED;
    if (!finished && !upstream_is_own(upstream) && !upstream->options.replica &&
        (upstream->state == UP || !upstream_was_tried(upstream)))
        counter_add(&upstream->serving->counters.upstream_failures, 1);
    if (!finished && (!upstream_is_own(upstream) || upstream->state != UP))
        upstream_log(upstream, why);
    bool congested = upstream_is_congested(upstream);
    /* One client's own may have ended for what that client did, and says nothing of the server. */
    if (!finished && !(upstream_is_own(upstream) && upstream->state == UP))
        redis_dial_distrust(&upstream->dial);
    if (upstream->route->cluster)
        redis_cluster_refresh(upstream->route->cluster);
    if (upstream->attempt != ATTEMPT_TOO_OLD)
        upstream->attempt = ATTEMPT_OVER;
    if (why != upstream->trouble)
        upstream->trouble[0] = '\0';
    upstream_forget_questions(upstream);
    upstream->is_doubted = false;
    uv_timer_stop(&upstream->timer); /* of a stall, or of a busy cache */
    take_from_owner(upstream);
    fail_in_flight(upstream);
    upstream_mark_dirty(upstream);
    buffer_clear(&upstream->in);
    buffer_clear(&upstream->greeting);
    clear_out(upstream);
    upstream->frame = (struct resp_frame){0};
    upstream->reply = REPLY_GATHERED;
    if (congested)
        upstream_tell_relief(upstream);
    upstream_close_stream(upstream);
}

/* ---- requests ---- */

/* The cache may have been replaced by a newer one. */
static void start_anew(struct upstream *upstream)
{
    upstream->attempt = ATTEMPT_FIRST;
    upstream_start(upstream);
}

/* While no attempt has ended requests wait in `out`; later, what cannot be sent fails. */
__attribute__((noinline)) static bool takes(struct upstream *upstream,
                                            const struct reply_slot *slot, unsigned index)
{
    if (upstream->attempt == ATTEMPT_TOO_OLD && upstream->state == CLOSED)
        start_anew(upstream);
    if (upstream->tenure == TENURE_FINISHED ||
        (upstream->state != UP && upstream_was_tried(upstream)))
        return false;
    return !upstream->is_doubted || upstream_takes_doubted(upstream, slot, index);
}

/* Its bytes go to `unsent`, which nobody reads. */
__attribute__((noinline)) static struct buffer *refuse(struct upstream *upstream,
                                                       struct reply_slot *slot, unsigned index)
{
    upstream_fail_later(upstream, (struct in_flight){.slot = slot, .index = index});
    buffer_clear(&upstream->unsent);
    buffer_trim(&upstream->unsent, UPSTREAM_KEEP_BYTES);
    return &upstream->unsent;
}

__attribute__((always_inline)) static inline struct buffer *
command_of(struct upstream *upstream, struct reply_slot *slot, unsigned index, unsigned hops)
{
    slot->waiting++;
    if ((upstream->state != UP || upstream->tenure == TENURE_FINISHED || upstream->is_doubted) &&
        !takes(upstream, slot, index))
        return refuse(upstream, slot, index);
    upstream_push_command(upstream, slot, index, hops);
    counter_add(&upstream->serving->counters.forwarded, 1);
    upstream_mark_dirty(upstream);
    return &upstream->out;
}

struct buffer *upstream_command(struct upstream *upstream, struct reply_slot *slot, unsigned index)
{
    return command_of(upstream, slot, index, 0);
}

static void add_question(struct upstream *upstream, unsigned asked, const struct span *words,
                         size_t count)
{
    bool goes = upstream->state == UP || !upstream_was_tried(upstream);
    if (!goes || upstream->tenure == TENURE_FINISHED)
        return;
    upstream_push_command(upstream, NULL, asked, 0);
    resp_write_command(&upstream->out, words, count);
}

void upstream_precede(struct upstream *upstream, const struct span *words, size_t count)
{
    add_question(upstream, ASKED_AHEAD, words, count);
}

void upstream_tell(struct upstream *upstream, const struct span *words, size_t count)
{
    add_question(upstream, ASKED_BY_OWNER, words, count);
    upstream_mark_dirty(upstream);
}

void upstream_send_on(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                      struct span bytes, unsigned hops, bool asking)
{
    struct span word = span_of("ASKING");
    if (asking)
        upstream_precede(upstream, &word, 1);
    buffer_append(command_of(upstream, slot, index, hops), bytes.at, bytes.length);
}

void upstream_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                   struct span bytes)
{
    buffer_append(upstream_command(upstream, slot, index), bytes.at, bytes.length);
}

bool upstream_try_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct span bytes)
{
    if (!buffer_try_reserve(&upstream->out, bytes.length))
        return false;
    upstream_send(upstream, slot, index, bytes);
    return true;
}

bool upstream_try_pour(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct buffer *bytes)
{
    bool fits = upstream_has_room(upstream, buffer_length(bytes));
    if (fits) /* or they go where nobody reads them */
        buffer_try_pour_much(upstream_command(upstream, slot, index), bytes);
    return fits;
}

bool upstream_has_room(struct upstream *upstream, size_t bytes)
{
    return buffer_try_reserve(&upstream->out, bytes);
}

/* More may have gathered in `out` meanwhile. */
static void on_written(uv_write_t *write, int status)
{
    struct upstream *upstream = write->data;
    bool congested = upstream_is_congested(upstream);
    buffer_clear(&upstream->sending);
    buffer_trim(&upstream->sending, UPSTREAM_KEEP_BYTES);
    if (congested)
        upstream_tell_relief(upstream);
    if (status < 0)
        upstream_lose(upstream, uv_strerror(status));
    else
        upstream_mark_dirty(upstream);
}

/* What libuv has been given must not move until it is written: the buffers change places. */
static void write_rest(struct upstream *upstream, struct buffer *from)
{
    struct buffer empty = upstream->sending;
    if (from == &upstream->out)
        upstream->left += buffer_length(from);
    upstream->sending = *from;
    *from = empty;
    struct span rest = buffer_span(&upstream->sending);
    int status =
        stream_write(&upstream->stream, &upstream->write, rest.at, rest.length, on_written);
    if (status < 0) {
        buffer_clear(&upstream->sending); /* none of it may go out on the next connection */
        upstream_lose(upstream, uv_strerror(status));
    }
}

static bool may_write(const struct upstream *upstream)
{
    return !buffer_length(&upstream->sending) &&
           (upstream->state == UP ? !upstream->held : upstream->state == GREETING);
}

/* Without a command in flight they are none of any. */
static bool keep_bytes(struct upstream *upstream, struct span out)
{
    const struct in_flight *oldest = in_flight_first(&upstream->in_flight);
    if (oldest)
        return kept_copy(&upstream->kept, oldest->begin, upstream->left, out);
    kept_clear(&upstream->kept);
    return true;
}

/* Requests wait in `out` until the cache has accepted the greeting: behind a refused SELECT they
 * would run in the wrong database. */
static void write_out(struct upstream *upstream)
{
    struct buffer *from = upstream->state == UP ? &upstream->out : &upstream->greeting;
    struct span ready = buffer_span(from);
    if (!ready.length || !may_write(upstream))
        return;
    if (upstream->keeps && from == &upstream->out && !keep_bytes(upstream, ready)) {
        upstream_lose(upstream, uv_strerror(UV_ENOMEM));
        return;
    }
    int count = stream_try_write(&upstream->stream, ready.at, ready.length);
    if (count < 0 && count != UV_EAGAIN) {
        upstream_lose(upstream, uv_strerror(count));
        return;
    }
    bool congested = upstream_is_congested(upstream);
    if (from == &upstream->out)
        upstream->gathered = 0;
    if (count > 0)
        buffer_take(from, (size_t)count);
    if (count > 0 && from == &upstream->out)
        upstream->left += (unsigned)count;
    if (congested && !upstream_is_congested(upstream))
        upstream_tell_relief(upstream);
    if (buffer_length(from))
        write_rest(upstream, from);
    else
        buffer_trim(from, UPSTREAM_KEEP_BYTES);
}

/* What clients are told; without its dash. */
static const char *failure_text(const struct upstream *upstream)
{
    if (upstream->attempt == ATTEMPT_TOO_OLD)
        return too_old_text;
    if (upstream->options.nowhere)
        return nowhere_text;
    if (upstream->is_doubted)
        return upstream_doubted_text;
    return upstream->trouble[0] ? upstream->trouble : down_text;
}

/* The end of a loop turn: writes what was gathered, and delivers failures. */
static void flush(struct turn_task *task)
{
    struct upstream *upstream = container_of(task, struct upstream, task);
    write_out(upstream);
    struct in_flight_queue failed = upstream->failed;
    upstream->failed = (struct in_flight_queue){0}; /* a failure may make the client send more */
    while (failed.count) {
        struct in_flight request = in_flight_pop(&failed);
        const char *why = failure_text(upstream);
        if (upstream->options.replica)
            at_replica_failure(request.slot, request.index, why);
        else
            reply_slot_cache_failure(request.slot, request.index, why);
    }
    in_flight_finish(&failed);
    buffer_clear(&upstream->unsent);
    buffer_trim(&upstream->unsent, UPSTREAM_KEEP_BYTES);
    if (upstream->tenure == TENURE_LOST) {
        upstream_set_tenure(upstream, TENURE_TOLD);
        upstream->options.owner->lost(upstream->options.client, upstream);
    }
}

/* ---- life ---- */

static void on_retry(uv_timer_t *timer)
{
    upstream_start(timer->data);
}

void upstream_retry_now(struct upstream *upstream)
{
    uv_timer_start(&upstream->timer, on_retry, 0, 0);
}

/* One that leads nowhere is as one whose first attempt has failed, for good. */
static void go(struct upstream *upstream)
{
    if (!upstream->options.nowhere) {
        upstream_start(upstream);
        return;
    }
    upstream->attempt = ATTEMPT_OVER;
    if (upstream_is_own(upstream)) {
        take_from_owner(upstream);
        upstream_mark_dirty(upstream);
    }
}

static void set_node(struct upstream *upstream, const struct redis_place *node)
{
    if (!node)
        return;
    upstream->node = *node;
    upstream->options.node = &upstream->node;
    upstream->keeps = !upstream->options.replica;
}

struct upstream *upstream_create(struct serving *serving, const struct upstream_options *options)
{
    struct upstream *upstream = xcalloc(1, sizeof *upstream);
    upstream->serving = serving;
    upstream->route = options->route ? options->route : serving->route;
    upstream->route->connections++;
    upstream->demotions = upstream->route->demotions;
    upstream->options = *options;
    set_node(upstream, options->node);
    upstream_set_window(upstream);
    if (options->name)
        upstream->options.name = upstream->name = xstrdup(options->name);
    if (options->opening.length)
        buffer_append(&upstream->opening, options->opening.at, options->opening.length);
    upstream->options.opening = buffer_span(&upstream->opening);
    upstream->task = (struct turn_task){.run = flush, .phase = TURN_WRITE};
    uv_timer_init(&serving->loop, &upstream->timer);
    upstream->timer.data = upstream;
    upstream->write.data = upstream;
    go(upstream);
    return upstream;
}

void upstream_stop_waiting(struct upstream *upstream)
{
    take_from_owner(upstream);
    upstream_fail_waiting(upstream);
}

void upstream_close(struct upstream *upstream)
{
    upstream_set_tenure(upstream, TENURE_FINISHED);
    fail_in_flight(upstream);
    if (upstream->state == CLOSED) {
        uv_timer_stop(&upstream->timer);
        upstream_closed(upstream);
    } else {
        upstream_lose(upstream, "closing");
    }
}
