/* Only order ties a reply to its request: `pending` has an entry for each request that was sent or
 * waits in `out`, oldest first, and a reply belongs to the first. A connection that is out of step
 * can therefore only be given up as a whole.
 *
 *   pending   AUTH  SELECT │ GET a   SET b   GET c
 *   bytes       greeting   │         out
 *
 * `out` is not written before the greeting's replies were good.
 */
#include "upstream.h"

#include "clock.h"
#include "memory.h"
#include "pending.h"
#include "resp.h"
#include "stream.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    READ_BYTES = 64 * 1024,
    KEEP_BYTES = 256 * 1024,
    CONGESTED_BYTES = 16 * 1024 * 1024, /* not yet taken by the kernel; all clients' together */
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 2000
};

enum state { CLOSED, RESOLVING, CONNECTING, GREETING, UP, CLOSING };

struct upstream {
    union stream stream;
    struct serving *serving;
    struct turn_task task;
    enum state state;
    bool tried; /* an attempt has come to its end: from now on requests do not wait for the next */
    bool writing;
    bool finishing;
    uint64_t backoff_ms, since;
    uv_timer_t timer;
    uv_getaddrinfo_t resolve;
    struct addrinfo *found, *next; /* addresses of the cache's name, and the one to try next */
    uv_connect_t connect;
    uv_write_t write;
    struct buffer greeting, in, out, sending;
    struct resp_frame frame;
    struct pending_queue pending;
    struct pending_queue failed; /* to be told at the end of this turn */
};

static const char down_text[] = "NESTGUARD cache down";

/* For each state, the states that may follow it, a bit each. */
static void set_state(struct upstream *upstream, enum state state)
{
    static const unsigned allowed[] = {[CLOSED] = 1u << RESOLVING | 1u << CONNECTING,
                                       [RESOLVING] = 1u << CONNECTING | 1u << CLOSED,
                                       [CONNECTING] = 1u << GREETING | 1u << CLOSING,
                                       [GREETING] = 1u << UP | 1u << CLOSING,
                                       [UP] = 1u << CLOSING,
                                       [CLOSING] = 1u << CLOSED};
    assert(allowed[upstream->state] & 1u << state);
    (void)allowed;
    upstream->state = state;
    upstream->since = clock_ms();
}

/* ---- the queue of pending requests ---- */

static void push(struct upstream *upstream, struct slot *slot, unsigned index)
{
    uint64_t now = uv_now(&upstream->serving->loop);
    pending_push(&upstream->pending, (struct pending){slot, index, now});
}

static void mark_dirty(struct upstream *upstream)
{
    turn_add(&upstream->serving->turn, &upstream->task);
}

/* A caller in the middle of dispatching must not get an answer before its call has returned. */
static void fail_later(struct upstream *upstream, struct pending request)
{
    pending_push(&upstream->failed, request);
    mark_dirty(upstream);
}

static void fail_pending(struct upstream *upstream)
{
    while (upstream->pending.count) {
        struct pending request = pending_pop(&upstream->pending);
        if (request.slot)
            fail_later(upstream, request);
    }
}

/* ---- losing the connection ---- */

static void on_retry(uv_timer_t *timer);

static void free_if_done(uv_handle_t *timer)
{
    struct upstream *upstream = timer->data;
    turn_cancel(&upstream->serving->turn, &upstream->task);
    buffer_finish(&upstream->greeting);
    buffer_finish(&upstream->in);
    buffer_finish(&upstream->out);
    buffer_finish(&upstream->sending);
    pending_finish(&upstream->pending);
    pending_finish(&upstream->failed);
    free(upstream);
}

static void forget_addresses(struct upstream *upstream)
{
    uv_freeaddrinfo(upstream->found);
    upstream->found = upstream->next = NULL;
}

/* CLOSED: nothing is open. Either try again later, or that was all. */
static void closed(struct upstream *upstream)
{
    forget_addresses(upstream);
    if (upstream->finishing) {
        uv_close((uv_handle_t *)&upstream->timer, free_if_done);
        return;
    }
    uv_timer_start(&upstream->timer, on_retry, upstream->backoff_ms, 0);
    upstream->backoff_ms *= 2;
    if (upstream->backoff_ms > BACKOFF_MAX_MS)
        upstream->backoff_ms = BACKOFF_MAX_MS;
}

static void connect_next(struct upstream *upstream);

static void on_stream_closed(uv_handle_t *handle)
{
    struct upstream *upstream = handle->data;
    set_state(upstream, CLOSED);
    if (upstream->next && !upstream->finishing)
        connect_next(upstream);
    else
        closed(upstream);
}

/* What was sent may have run or not; nobody is told that it did. Logged when it is news, not at
 * every attempt. */
static void lose(struct upstream *upstream, const char *why)
{
    if (upstream->state == CLOSING || upstream->state == CLOSED)
        return;
    if (!upstream->finishing && (upstream->state == UP || !upstream->tried)) {
        counter_add(&upstream->serving->counters.upstream_failures, 1);
        serving_log_cache(upstream->serving, why);
    }
    bool congested = upstream_is_congested(upstream);
    upstream->tried = true;
    upstream->next = NULL;
    fail_pending(upstream);
    buffer_clear(&upstream->in);
    buffer_clear(&upstream->greeting);
    buffer_clear(&upstream->out);
    upstream->frame = (struct resp_frame){0};
    if (congested)
        upstream->serving->on_relief(upstream->serving);
    if (upstream->state == RESOLVING) {
        set_state(upstream, CLOSED);
        closed(upstream);
    } else {
        set_state(upstream, CLOSING);
        uv_close(&upstream->stream.handle, on_stream_closed);
    }
}

/* ---- replies ---- */

/* `left` counts the greeting's replies that are still to come. */
static void greeted(struct upstream *upstream, unsigned left, struct span reply)
{
    char why[160];
    if (reply.at[0] == '-') {
        snprintf(why, sizeof why, "the cache refused AUTH or SELECT: %.*s", (int)reply.length - 3,
                 reply.at + 1);
        lose(upstream, why);
    } else if (!left) {
        set_state(upstream, UP);
        upstream->tried = true;
        upstream->backoff_ms = BACKOFF_MIN_MS;
        serving_log_cache(upstream->serving, NULL);
        mark_dirty(upstream);
    }
}

/* The slot may be gone, and its client with it, when this returns. */
static void deliver(struct upstream *upstream, struct span reply)
{
    struct pending request = pending_pop(&upstream->pending);
    if (request.slot)
        slot_cache_reply(request.slot, request.index, reply);
    else
        greeted(upstream, request.index, reply);
}

static void read_replies(struct upstream *upstream)
{
    struct buffer *in = &upstream->in;
    size_t taken;
    while (buffer_length(in) && upstream->state != CLOSING) {
        struct span ready = buffer_span(in);
        enum resp_status status =
            resp_frame_reply(&upstream->frame, ready.at, ready.length, &taken);
        if (status == RESP_MORE)
            return;
        if (status == RESP_BAD || !upstream->pending.count) {
            lose(upstream, "the cache sent something that is no reply");
            return;
        }
        deliver(upstream, (struct span){ready.at, taken});
        if (upstream->state != CLOSING) /* else they went with the connection */
            buffer_take(in, taken);
    }
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct upstream *upstream = handle->data;
    (void)wanted;
    char *at = buffer_reserve(&upstream->in, READ_BYTES);
    *room = (uv_buf_t){.base = at, .len = upstream->in.size - upstream->in.end};
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct upstream *upstream = stream->data;
    (void)room;
    if (count < 0) {
        lose(upstream,
             count == UV_EOF ? "the cache closed the connection" : uv_strerror((int)count));
        return;
    }
    buffer_commit(&upstream->in, (size_t)count);
    read_replies(upstream);
    buffer_trim(&upstream->in, KEEP_BYTES);
}

/* ---- requests ---- */

void upstream_send(struct upstream *upstream, struct slot *slot, unsigned index, struct span bytes)
{
    slot->waiting++;
    if (upstream->finishing || (upstream->state != UP && upstream->tried)) {
        fail_later(upstream, (struct pending){slot, index, 0});
        return;
    }
    push(upstream, slot, index);
    buffer_append(&upstream->out, bytes.at, bytes.length);
    counter_add(&upstream->serving->counters.forwarded, 1);
    mark_dirty(upstream);
}

bool upstream_is_congested(const struct upstream *upstream)
{
    return buffer_length(&upstream->out) + buffer_length(&upstream->sending) > CONGESTED_BYTES;
}

static void on_written(uv_write_t *write, int status)
{
    struct upstream *upstream = write->data;
    bool congested = upstream_is_congested(upstream);
    upstream->writing = false;
    buffer_clear(&upstream->sending);
    buffer_trim(&upstream->sending, KEEP_BYTES);
    if (congested)
        upstream->serving->on_relief(upstream->serving);
    if (status < 0)
        lose(upstream, uv_strerror(status));
    else
        mark_dirty(upstream);
}

/* What libuv has been given must not move until it is written: the buffers change places. */
static void write_rest(struct upstream *upstream, struct buffer *from)
{
    struct buffer empty = upstream->sending;
    upstream->sending = *from;
    *from = empty;
    struct span rest = buffer_span(&upstream->sending);
    uv_buf_t piece = {.base = (char *)rest.at, .len = rest.length};
    int status = uv_write(&upstream->write, &upstream->stream.stream, &piece, 1, on_written);
    upstream->writing = status == 0;
    if (status < 0) {
        buffer_clear(&upstream->sending); /* none of it may go out on the next connection */
        lose(upstream, uv_strerror(status));
    }
}

/* Requests wait in `out` until the cache has accepted the greeting: behind a refused SELECT they
 * would run in the wrong database. */
static void write_out(struct upstream *upstream)
{
    struct buffer *from = upstream->state == UP ? &upstream->out : &upstream->greeting;
    struct span ready = buffer_span(from);
    if (upstream->writing || !ready.length ||
        (upstream->state != UP && upstream->state != GREETING))
        return;
    uv_buf_t piece = {.base = (char *)ready.at, .len = ready.length};
    int count = uv_try_write(&upstream->stream.stream, &piece, 1);
    if (count < 0 && count != UV_EAGAIN) {
        lose(upstream, uv_strerror(count));
        return;
    }
    if (count > 0)
        buffer_take(from, (size_t)count);
    if (buffer_length(from))
        write_rest(upstream, from);
    else
        buffer_trim(from, KEEP_BYTES);
}

/* The end of a loop turn: writes what was gathered, and delivers failures. */
static void flush(struct turn_task *task)
{
    struct upstream *upstream = (struct upstream *)((char *)task - offsetof(struct upstream, task));
    write_out(upstream);
    struct pending_queue failed = upstream->failed;
    upstream->failed = (struct pending_queue){0}; /* a failure may make the client send more */
    while (failed.count) {
        struct pending request = pending_pop(&failed);
        slot_cache_failure(request.slot, request.index, down_text);
    }
    pending_finish(&failed);
}

/* ---- connecting ---- */

/* Requests may be waiting already: the answers to AUTH and SELECT come before theirs. */
static void greet(struct upstream *upstream)
{
    const struct cache_url *cache = &serving_config(upstream->serving)->cache;
    size_t requests = upstream->pending.count;
    char db[16];
    if (cache->password) {
        struct span words[3] = {span_of("AUTH")};
        size_t count = 1;
        if (cache->user)
            words[count++] = span_of(cache->user);
        words[count++] = span_of(cache->password);
        resp_write_command(&upstream->greeting, words, count);
        push(upstream, NULL, 1);
    }
    snprintf(db, sizeof db, "%d", cache->db);
    resp_write_command(&upstream->greeting, (struct span[]){span_of("SELECT"), span_of(db)}, 2);
    push(upstream, NULL, 0);
    while (requests--) {
        struct pending head = pending_pop(&upstream->pending);
        pending_push(&upstream->pending, head);
    }
}

/* A name may stand for several addresses ("localhost" for ::1 and 127.0.0.1): requests wait until
 * the last has failed. */
static void connect_failed(struct upstream *upstream, const char *why)
{
    if (!upstream->next) {
        lose(upstream, why);
        return;
    }
    set_state(upstream, CLOSING);
    uv_close(&upstream->stream.handle, on_stream_closed);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct upstream *upstream = connect->data;
    if (upstream->state != CONNECTING)
        return;
    if (status < 0) {
        connect_failed(upstream, uv_strerror(status));
        return;
    }
    forget_addresses(upstream);
    stream_tune(&upstream->stream);
    set_state(upstream, GREETING);
    greet(upstream);
    uv_read_start(&upstream->stream.stream, on_room, on_read);
    mark_dirty(upstream);
}

/* Every attempt needs a fresh handle: libuv's are not to be used again once closed. */
static void open_stream(struct upstream *upstream, bool is_unix)
{
    set_state(upstream, CONNECTING);
    stream_init(&upstream->stream, &upstream->serving->loop, is_unix);
    upstream->stream.handle.data = upstream;
}

static void connect_next(struct upstream *upstream)
{
    const struct addrinfo *address = upstream->next;
    upstream->next = address->ai_next;
    open_stream(upstream, false);
    int status =
        uv_tcp_connect(&upstream->connect, &upstream->stream.tcp, address->ai_addr, on_connected);
    if (status < 0)
        connect_failed(upstream, uv_strerror(status));
}

/* The state is still RESOLVING: a look-up cannot be broken off, and whoever closes meanwhile waits
 * for it. */
static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct upstream *upstream = resolve->data;
    upstream->found = found;
    if (status < 0 || upstream->finishing) {
        lose(upstream, status < 0 ? uv_strerror(status) : "closing");
        return;
    }
    upstream->next = found;
    connect_next(upstream);
}

static void start(struct upstream *upstream)
{
    const struct address *address = &serving_config(upstream->serving)->cache.address;
    if (address->path) {
        open_stream(upstream, true);
        uv_pipe_connect(&upstream->connect, &upstream->stream.pipe, address->path, on_connected);
        return;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    set_state(upstream, RESOLVING);
    int status = uv_getaddrinfo(&upstream->serving->loop, &upstream->resolve, on_resolved,
                                address->host, port, &hints);
    if (status < 0)
        lose(upstream, uv_strerror(status));
}

static void on_retry(uv_timer_t *timer)
{
    start(timer->data);
}

struct upstream *upstream_create(struct serving *serving)
{
    struct upstream *upstream = xcalloc(1, sizeof *upstream);
    upstream->serving = serving;
    upstream->task.run = flush;
    upstream->backoff_ms = BACKOFF_MIN_MS;
    uv_timer_init(&serving->loop, &upstream->timer);
    upstream->timer.data = upstream;
    upstream->resolve.data = upstream;
    upstream->connect.data = upstream;
    upstream->write.data = upstream;
    start(upstream);
    return upstream;
}

bool upstream_is_up(const struct upstream *upstream)
{
    return upstream->state == UP;
}

void upstream_check_progress(struct upstream *upstream, uint64_t now)
{
    uint64_t patience = serving_config(upstream->serving)->cache_timeout_ms;
    bool late = now - upstream->since > patience;
    if (upstream->state == RESOLVING && late) {
        upstream->tried = true; /* the look-up goes on; nobody waits for it any longer */
        fail_pending(upstream);
        buffer_clear(&upstream->out);
    } else if (upstream->state == CONNECTING && late)
        connect_failed(upstream, "no connection within cache_timeout");
    else if (upstream->state == GREETING && late)
        lose(upstream, "no connection within cache_timeout");
    else if (upstream->state == UP && upstream->pending.count &&
             uv_now(&upstream->serving->loop) -
                     upstream->pending.ring[upstream->pending.first].since >
                 patience)
        lose(upstream, "no reply within cache_timeout");
}

void upstream_close(struct upstream *upstream)
{
    upstream->finishing = true;
    if (upstream->state == CLOSED) {
        uv_timer_stop(&upstream->timer);
        closed(upstream);
    } else if (upstream->state == RESOLVING) {
        fail_pending(upstream); /* the rest happens in on_resolved() */
    } else {
        lose(upstream, "closing");
    }
}
