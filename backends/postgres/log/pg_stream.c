/* All work with the connection is done in three callbacks of the loop; the functions of the header
 * only leave word, and see to it that the idle handle runs. So no event can come from inside them,
 * and what is asked for several times before it is sent is sent once.
 *
 *   confirm, ask ──▶ status_due ─┐
 *   pause ──▶ paused ────────────┤    on_idle    the next batch, when more is at hand
 *                                ├──▶ on_socket  reads, then a batch       ──▶ settle(): sends,
 *   the server's bytes ──────────┘    on_tick    repeats the last status       watches
 */
#include "postgres/log/pg_stream.h"
#include "net/allocate.h"
#include "postgres/log/pg_slot.h"
#include "postgres/log/pg_walmessage.h"

#include <assert.h>

/* In one turn of the loop so many messages are delivered at most, or as many as come in so long
 * (ns). A silent stream says after STATUS_MS that it is there, long before wal_sender_timeout (a
 * minute, unless it was set). */
enum {
    BATCH_MESSAGES = 2000,
    BATCH_NS = 2000000,
    CLOCK_EVERY = 16, /* messages from one look at the clock to the next */
    STATUS_MS = 1000
};

enum stream_state {
    STREAM_OPEN,      /* the slot is there; no loop yet */
    STREAM_STARTING,  /* START_REPLICATION is on its way */
    STREAM_FOLLOWING, /* in the COPY of both directions */
    STREAM_LOST,
    STREAM_CLOSED
};

struct pg_stream {
    struct pg_slot slot; /* its connection is NULL when it is closed */
    char *publication;
    enum stream_state state;
    struct pg_stream_events events;
    void *arg;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t idle;
    unsigned handles; /* not yet closed */
    int watched;      /* what poll was started with */
    bool paused;
    bool more;     /* libpq may hold another message */
    bool gone;     /* nothing more can be read or sent; libpq may still hold messages */
    bool dropping; /* a paused stream has ended: what is held back is skipped, to find the reason */
    bool status_due;
    bool answer_wanted; /* to the next status */
    uint64_t confirmed; /* 0: nothing yet; then a server that ends waits for `position` alone */
    uint64_t position;  /* of the last keepalive */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* For each state, the states that it may follow, a bit each. */
static void set_state(struct pg_stream *stream, enum stream_state state)
{
    static const unsigned from[] = {
        [STREAM_OPEN] = 0,
        [STREAM_STARTING] = 1U << STREAM_OPEN,
        [STREAM_FOLLOWING] = 1U << STREAM_STARTING,
        [STREAM_LOST] = 1U << STREAM_OPEN | 1U << STREAM_STARTING | 1U << STREAM_FOLLOWING,
        [STREAM_CLOSED] =
            1U << STREAM_OPEN | 1U << STREAM_STARTING | 1U << STREAM_FOLLOWING | 1U << STREAM_LOST,
    };
    assert(from[state] & 1U << stream->state);
    (void)from; /* without assertions */
    stream->state = state;
}

static bool is_live(const struct pg_stream *stream)
{
    return stream->state == STREAM_STARTING || stream->state == STREAM_FOLLOWING;
}

/* Whether messages have to wait. */
static bool is_held(const struct pg_stream *stream)
{
    return stream->paused && !stream->dropping;
}

/* The end of a stream. */

static void release(struct pg_stream *stream)
{
    void (*closed)(void *arg) = stream->closed;
    void *arg = stream->closed_arg;
    free(stream->publication);
    free(stream);
    if (closed)
        closed(arg);
}

static void handle_closed(uv_handle_t *handle)
{
    struct pg_stream *stream = handle->data;
    if (--stream->handles == 0)
        release(stream);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, handle_closed);
}

/* The watcher goes before the socket, or as soon as libpq may have closed it: once the number
 * belongs to another socket, closing the watcher would take that one out of the loop. The other
 * handles stay until pg_stream_close(), so that the memory does too. */
static void disconnect(struct pg_stream *stream)
{
    if (stream->handles > 0) {
        close_handle((uv_handle_t *)&stream->poll);
        uv_timer_stop(&stream->timer);
        uv_idle_stop(&stream->idle);
    }
    PQfinish(stream->slot.pq);
    stream->slot.pq = NULL;
}

static void mark_gone(struct pg_stream *stream)
{
    close_handle((uv_handle_t *)&stream->poll);
    stream->gone = stream->more = true;
}

static void lose(struct pg_stream *stream, const struct pg_error *error)
{
    set_state(stream, STREAM_LOST);
    disconnect(stream);
    stream->events.lost(stream->arg, error);
}

static void lose_saying(struct pg_stream *stream, const char *why)
{
    struct pg_error error;
    pg_error_say(&error, "%s", why);
    lose(stream, &error);
}

/* libpq says why. */
static void lose_connection(struct pg_stream *stream)
{
    struct pg_error error;
    pg_error_from_connection(&error, stream->slot.pq);
    lose(stream, &error);
}

/* The server has ended the stream, or not begun it: with an error, or because it shuts down. */
static void lose_by_result(struct pg_stream *stream, PGresult *result)
{
    struct pg_error error;
    if (result && PQresultStatus(result) == PGRES_FATAL_ERROR)
        pg_error_from_result(&error, result);
    else
        pg_error_say(&error, "the server has ended the replication");
    PQclear(result);
    lose(stream, &error);
}

/* Reading. */

static void take(struct pg_stream *stream, const char *bytes, size_t length)
{
    struct pg_walmessage message;
    if (stream->dropping)
        return;
    if (pg_walmessage_read(&message, bytes, length) < 0) {
        lose_saying(stream, "the server sent something that is no part of the protocol");
        return;
    }
    if (message.kind == PG_WALMESSAGE_KEEPALIVE) {
        stream->status_due |= message.reply_wanted;
        stream->position = message.lsn;
        stream->events.position(stream->arg, message.lsn);
        return;
    }
    int rc = stream->events.message(stream->arg, message.lsn, message.bytes, message.length);
    if (rc != 0 && is_live(stream))
        lose_saying(stream, "a message was refused by its receiver");
}

/* libpq reads no more than it has room for, so it is only asked when it has handed over all it had:
 * a slow receiver is felt by the server, and does not fill our memory. */
static void read_socket(struct pg_stream *stream)
{
    stream->more = true;
    if (!PQconsumeInput(stream->slot.pq))
        mark_gone(stream);
}

/* A socket does not show the bytes that a layer of encryption has taken from it and still holds: of
 * a record of 16 kB libpq may take half. (Servers up to 16 send records of 8 kB, for which it
 * always has room.) */
static bool hides_input(const struct pg_stream *stream)
{
    return PQsslInUse(stream->slot.pq) || PQgssEncInUse(stream->slot.pq);
}

/* PQgetCopyData() gave no message, but 0: no whole one is there; -1: the COPY is over; -2: broken.
 * `some` came before. */
static void take_end(struct pg_stream *stream, int length, bool some)
{
    stream->more = false;
    if (length == -1)
        lose_by_result(stream, PQisBusy(stream->slot.pq) ? NULL : PQgetResult(stream->slot.pq));
    else if (length < 0 || stream->gone)
        lose_connection(stream);
    else if (some && hides_input(stream))
        read_socket(stream);
}

/* Hands over what libpq holds, but not so much that the loop's other duties would wait. */
static void deliver(struct pg_stream *stream)
{
    uint64_t until = uv_hrtime() + BATCH_NS;
    for (int i = 0; i < BATCH_MESSAGES; i++) {
        char *bytes = NULL;
        int length = PQgetCopyData(stream->slot.pq, &bytes, 1);
        if (length <= 0) {
            take_end(stream, length, i > 0);
            return;
        }
        take(stream, bytes, (size_t)length);
        PQfreemem(bytes);
        if (stream->state != STREAM_FOLLOWING || is_held(stream))
            return;
        if (i % CLOCK_EVERY == CLOCK_EVERY - 1 && uv_hrtime() >= until)
            return;
    }
}

/* The server's answer to START_REPLICATION. */
static void take_answer(struct pg_stream *stream)
{
    stream->more = false;
    if (PQisBusy(stream->slot.pq)) {
        if (stream->gone)
            lose_connection(stream);
        return;
    }
    PGresult *result = PQgetResult(stream->slot.pq);
    if (PQresultStatus(result) == PGRES_COPY_BOTH) {
        set_state(stream, STREAM_FOLLOWING);
        stream->more = true;
        PQclear(result);
    } else {
        lose_by_result(stream, result);
    }
}

/* One turn's share of what was read. */
static void work(struct pg_stream *stream)
{
    if (!stream->more || is_held(stream))
        return;
    if (stream->state == STREAM_STARTING)
        take_answer(stream);
    else if (stream->state == STREAM_FOLLOWING)
        deliver(stream);
}

/* Sending. */

static int put_status(struct pg_stream *stream)
{
    char status[PG_STATUS_SIZE];
    uint64_t written = stream->confirmed ? stream->confirmed : stream->position;
    pg_status_write(status, written, stream->confirmed, stream->answer_wanted);
    return PQputCopyData(stream->slot.pq, status, sizeof status);
}

/* As PQflush(). A status waits until the one before it has gone: one is as good as many. */
static int send_output(struct pg_stream *stream)
{
    int left = PQflush(stream->slot.pq);
    if (left != 0 || !stream->status_due || stream->state != STREAM_FOLLOWING)
        return left;
    if (put_status(stream) != 1)
        return -1;
    stream->status_due = stream->answer_wanted = false;
    uv_timer_again(&stream->timer);
    return PQflush(stream->slot.pq);
}

static void on_socket(uv_poll_t *poll, int status, int events);

static void watch(struct pg_stream *stream, int events)
{
    if (stream->gone || events == stream->watched)
        return;
    stream->watched = events;
    if (uv_poll_start(&stream->poll, events, on_socket) < 0)
        lose_saying(stream, "the event loop cannot watch the connection");
}

static void on_idle(uv_idle_t *idle);

/* The end of every callback: does what has become due, and sees to it that the next event comes. */
static void settle(struct pg_stream *stream)
{
    if (!is_live(stream))
        return;
    int left = stream->gone ? 0 : send_output(stream);
    if (left < 0)
        mark_gone(stream);
    if (stream->gone && stream->paused)
        stream->dropping = true;
    if (stream->more && !is_held(stream))
        uv_idle_start(&stream->idle, on_idle);
    else
        uv_idle_stop(&stream->idle);
    watch(stream, (is_held(stream) ? UV_DISCONNECT : UV_READABLE) | (left > 0 ? UV_WRITABLE : 0));
}

/* Events. */

static void receive(struct pg_stream *stream)
{
    if (stream->more || stream->gone || is_held(stream))
        return;
    read_socket(stream);
    work(stream);
}

/* Whatever the event is: libpq also reads when it cannot write. */
static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct pg_stream *stream = poll->data;
    if (status < 0)
        stream->watched = 0; /* libuv stopped it; libpq finds out what is wrong */
    if (stream->paused && (status < 0 || events & UV_DISCONNECT))
        stream->dropping = true;
    receive(stream);
    settle(stream);
}

static void on_idle(uv_idle_t *idle)
{
    struct pg_stream *stream = idle->data;
    work(stream);
    settle(stream);
}

static void on_tick(uv_timer_t *timer)
{
    struct pg_stream *stream = timer->data;
    stream->status_due = true;
    receive(stream);
    settle(stream);
}

/* What the owner asks for. */

static void wake(struct pg_stream *stream)
{
    uv_idle_start(&stream->idle, on_idle);
}

void pg_stream_confirm(struct pg_stream *stream, uint64_t lsn)
{
    if (!is_live(stream))
        return;
    if (lsn > stream->confirmed)
        stream->confirmed = lsn;
    stream->status_due = true;
    wake(stream);
}

void pg_stream_ask(struct pg_stream *stream)
{
    if (!is_live(stream))
        return;
    stream->status_due = stream->answer_wanted = true;
    wake(stream);
}

void pg_stream_pause(struct pg_stream *stream, bool paused)
{
    if (!is_live(stream))
        return;
    stream->paused = paused;
    stream->more = true;
    wake(stream);
}

/* Life. */

int pg_stream_open(struct pg_stream **out, const struct pg_stream_options *options,
                   struct pg_error *error)
{
    const struct pg_session_options session = {.conninfo = options->conninfo,
                                               .application = options->application,
                                               .connect_timeout = options->connect_timeout,
                                               .stop = options->stop};
    struct pg_stream *stream = allocate(1, sizeof *stream);
    int rc = options->publication ? pg_slot_create(&stream->slot, &session, error)
                                  : pg_slot_skip(&stream->slot, &session, error);
    if (rc < 0) {
        free(stream);
        return rc;
    }
    if (options->publication)
        stream->publication = allocate_text(options->publication);
    *out = stream;
    return 0;
}

const char *pg_stream_snapshot(const struct pg_stream *stream)
{
    return stream->slot.snapshot;
}

const struct pg_server *pg_stream_server(const struct pg_stream *stream)
{
    return &stream->slot.server;
}

uint64_t pg_stream_consistent_point(const struct pg_stream *stream)
{
    return stream->slot.consistent_point;
}

static int open_handles(struct pg_stream *stream, uv_loop_t *loop, struct pg_error *error)
{
    int rc = uv_poll_init(loop, &stream->poll, PQsocket(stream->slot.pq));
    if (rc < 0) {
        pg_error_say(error, "the event loop cannot watch the connection: %s", uv_strerror(rc));
        return rc;
    }
    uv_timer_init(loop, &stream->timer);
    uv_idle_init(loop, &stream->idle);
    stream->poll.data = stream->timer.data = stream->idle.data = stream;
    stream->handles = 3;
    return 0;
}

int pg_stream_start(struct pg_stream *stream, uv_loop_t *loop,
                    const struct pg_stream_events *events, void *arg, struct pg_error *error)
{
    int rc = pg_slot_start(&stream->slot, stream->publication, error);
    if (rc == 0)
        rc = open_handles(stream, loop, error);
    if (rc < 0) {
        set_state(stream, STREAM_LOST);
        disconnect(stream);
        return rc;
    }
    stream->events = *events;
    stream->arg = arg;
    set_state(stream, STREAM_STARTING);
    uv_timer_start(&stream->timer, on_tick, STATUS_MS, STATUS_MS);
    wake(stream);
    return 0;
}

void pg_stream_close(struct pg_stream *stream, void (*closed)(void *arg), void *arg)
{
    bool started = stream->handles > 0;
    set_state(stream, STREAM_CLOSED);
    stream->closed = closed;
    stream->closed_arg = arg;
    disconnect(stream);
    if (!started) {
        release(stream);
        return;
    }
    close_handle((uv_handle_t *)&stream->timer);
    close_handle((uv_handle_t *)&stream->idle);
}
