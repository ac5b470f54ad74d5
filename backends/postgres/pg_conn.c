/* What an event means follows from the state; one timer serves every kind of waiting:
 *
 *   state        the socket is ready     the timer has run out
 *   WAITING      (there is none)         the backoff is over: connects
 *   CONNECTING   pg_connect_poll()       too slow: lost         (first names are looked up)
 *   SETTING      reads the answer        too slow: lost         (lost at once: another server)
 *   UP           reads answers           the oldest query is overdue, or sending failed: lost
 *
 * A connection that is lost ends its queries at once and goes back to WAITING by itself.
 */
#include "postgres/pg_conn.h"
#include "net/allocate.h"
#include "net/backoff.h"
#include "postgres/pg_connect.h"
#include "postgres/pg_pipeline.h"
#include "postgres/pg_pooler.h"
#include "postgres/pg_resolve.h"
#include "postgres/pg_watch.h"

#include <assert.h>

enum {
    CONNECT_MIN_MS = 5000, /* a short timeout for queries must not make connecting impossible */
    GRACE_MS = 1000        /* for the server's own timeout to arrive before ours */
};

static const struct backoff_bounds backoff_bounds = {100, 5000};

enum conn_state { CONN_WAITING, CONN_CONNECTING, CONN_SETTING, CONN_UP, CONN_CLOSED };

struct pg_conn {
    struct pg_conn_options options;
    enum conn_state state;
    PGconn *pq;
    struct pg_resolve *resolve;      /* CONNECTING: names are looked up, and there is no `pq` yet */
    struct pg_connecting connecting; /* while it does; the server, once it has */
    struct pg_pipeline *pipeline;
    struct pg_watch watch;
    uv_timer_t timer; /* backoff, the limit for connecting, or the oldest query's deadline */
    struct backoff backoff;
    unsigned first_host; /* to try; the one after it when that says nothing */
    bool timer_closed;
    bool is_new;           /* no attempt has ended yet, or none since it hung */
    bool told_stranger;    /* on_change need not say again that it leads to one that will not do */
    bool broken;           /* sending failed; the timer is about to deal with it */
    bool dying;            /* `error` holds the server's last words */
    bool retiring;         /* takes no more queries; opened anew behind the last */
    struct pg_error error; /* why it is, or was last, down */
    unsigned told_reasons; /* how many on_change was told since it was up */
    uint64_t told_at;      /* the loop's time when that was last told one */
    struct pg_error told;  /* the last of them: it need not be said again */
};

/* A server that is gone, is there again, and refuses the password: the last is what to act on. But
 * of two addresses each has its own, turn by turn: after so many one is told in so many ms. */
enum { REASONS_TOLD = 10, REASONS_EVERY_MS = 60000 };

/* For each state, the states that it may follow, a bit each. */
static void set_state(struct pg_conn *conn, enum conn_state state)
{
    static const unsigned from[] = {
        [CONN_WAITING] = 1U << CONN_CONNECTING | 1U << CONN_SETTING | 1U << CONN_UP,
        [CONN_CONNECTING] = 1U << CONN_WAITING,
        [CONN_SETTING] = 1U << CONN_CONNECTING,
        [CONN_UP] = 1U << CONN_SETTING,
        [CONN_CLOSED] = ~(1U << CONN_CLOSED),
    };
    assert(from[state] & 1U << conn->state);
    (void)from; /* without assertions */
    conn->state = state;
}

/* Watchers that were dropped may outlive the timer: the memory goes with the last of them. */
static void release(void *arg)
{
    struct pg_conn *conn = arg;
    if (!conn->timer_closed || conn->watch.open)
        return;
    struct pg_conn_options options = conn->options;
    pg_pipeline_destroy(conn->pipeline);
    free((char *)options.conninfo);
    free(conn);
    options.on_closed(options.arg);
}

static int watch(struct pg_conn *conn, int events)
{
    return pg_watch(&conn->watch, PQsocket(conn->pq), events);
}

static void on_timer(uv_timer_t *timer);

/* The loop's clock stands still while a callback runs: without
 * the update a deadline could lie in the past before anything was sent. */
static void start_timer(struct pg_conn *conn, uint64_t after_ms)
{
    uv_update_time(conn->options.loop);
    uv_timer_start(&conn->timer, on_timer, after_ms, 0);
}

/* Lets go of the server; the queries under way end with `outcome`. */
static void disconnect(struct pg_conn *conn, enum pg_outcome outcome)
{
    pg_pipeline_fail(conn->pipeline, outcome, &conn->error, uv_now(conn->options.loop));
    pg_resolve_cancel(conn->resolve);
    conn->resolve = NULL;
    pg_watch_drop(&conn->watch);
    PQfinish(conn->pq);
    conn->pq = NULL;
    conn->broken = conn->dying = conn->retiring = conn->is_new = false;
}

static bool is_to_be_told(const struct pg_conn *conn)
{
    if (!conn->told_reasons)
        return true;
    return strcmp(conn->told.text, conn->error.text) != 0 &&
           (conn->told_reasons < REASONS_TOLD ||
            uv_now(conn->options.loop) - conn->told_at >= REASONS_EVERY_MS);
}

/* The reason is in conn->error. */
static void lose(struct pg_conn *conn, enum pg_outcome outcome)
{
    disconnect(conn, outcome);
    set_state(conn, CONN_WAITING);
    /* It begins anew only when a connection has come up: a server that accepts and then fails is
     * not tried faster than one that is not there. */
    start_timer(conn, backoff_next(&conn->backoff, &backoff_bounds));
    if (!is_to_be_told(conn))
        return;
    conn->told_reasons++;
    conn->told_at = uv_now(conn->options.loop);
    conn->told = conn->error;
    conn->options.on_change(conn->options.arg, &conn->error);
}

/* Nobody asked it anything that is still open, and nobody need be told. */
static void reopen(struct pg_conn *conn)
{
    disconnect(conn, PG_DOWN);
    set_state(conn, CONN_WAITING);
    conn->is_new = true;
    start_timer(conn, 0);
}

/* Keeps libpq's reason, unless the server itself gave one. */
static void keep_reason(struct pg_conn *conn)
{
    if (!conn->dying)
        pg_error_from_connection(&conn->error, conn->pq);
}

/* Connecting failed. */
static void give_up(struct pg_conn *conn)
{
    keep_reason(conn);
    lose(conn, PG_DOWN);
}

/* The server says why it ends a connection in a notice when no query is under way. */
static void on_notice(void *arg, const PGresult *result)
{
    struct pg_conn *conn = arg;
    if (!pg_result_is_fatal(result))
        return;
    pg_error_from_result(&conn->error, result);
    conn->dying = true;
}

/* Looks again when the oldest query is due. New queries need not touch the timer: it only wakes up
 * early, and finds that there is time left. */
static void arm_deadline(struct pg_conn *conn)
{
    if (pg_pipeline_depth(conn->pipeline) == 0)
        return;
    uint64_t now = uv_now(conn->options.loop);
    uint64_t due = pg_pipeline_deadline(conn->pipeline);
    uint64_t most = conn->options.timeout_ms + GRACE_MS;
    uint64_t left = due > now ? due - now : 0;
    start_timer(conn, left < most ? left : most);
}

/* Sending failed: the reason is kept now, while libpq has it, and the loss is dealt with later. */
static void mark_broken(struct pg_conn *conn)
{
    keep_reason(conn);
    conn->broken = true;
}

/* Interest in writing follows from what libpq could not hand to the kernel. */
static void rewatch(struct pg_conn *conn)
{
    int left = PQflush(conn->pq);
    if (left < 0 || watch(conn, left ? UV_READABLE | UV_WRITABLE : UV_READABLE) < 0)
        mark_broken(conn);
}

/* Amid a caller's function the loss cannot be dealt with: its time comes on the loop. */
static void after_send(struct pg_conn *conn, int sent)
{
    if (sent < 0)
        mark_broken(conn);
    else
        rewatch(conn);
    if (conn->broken)
        start_timer(conn, 0);
    else if (!uv_is_active((uv_handle_t *)&conn->timer))
        arm_deadline(conn);
}

static uint64_t deadline(const struct pg_conn *conn)
{
    uv_update_time(conn->options.loop);
    return uv_now(conn->options.loop) + conn->options.timeout_ms + GRACE_MS;
}

void pg_conn_send(struct pg_conn *conn, struct pg_query *query)
{
    assert(pg_conn_is_up(conn));
    query->deadline = deadline(conn);
    after_send(conn, pg_pipeline_query(conn->pipeline, query));
}

/* The server's own limit comes first, GRACE_MS before ours: then it says which query it ended, and
 * the connection lives on. */
static int send_timeout(struct pg_conn *conn)
{
    return pg_pipeline_set_timeout(conn->pipeline, conn->options.timeout_ms, deadline(conn));
}

void pg_conn_set_timeout(struct pg_conn *conn, uint64_t timeout_ms)
{
    conn->options.timeout_ms = timeout_ms;
    if ((conn->state != CONN_SETTING && conn->state != CONN_UP) || conn->broken)
        return;
    after_send(conn, send_timeout(conn));
    if (!conn->broken && conn->state == CONN_UP)
        arm_deadline(conn);
}

/* The server has accepted statement_timeout: queries may follow. */
static void come_up(struct pg_conn *conn)
{
    set_state(conn, CONN_UP);
    uv_timer_stop(&conn->timer);
    backoff_reset(&conn->backoff);
    conn->is_new = conn->told_stranger = false;
    conn->told_reasons = 0;
    conn->first_host = 0;
    conn->options.on_change(conn->options.arg, NULL);
}

/* Takes what the socket has. What came before the end of a lost connection still counts. */
static void receive(struct pg_conn *conn)
{
    bool gone = !PQconsumeInput(conn->pq);
    if (gone)
        keep_reason(conn);
    if (pg_pipeline_read(conn->pipeline, &conn->error) < 0)
        gone = true;
    if (!gone)
        rewatch(conn);
    if (gone || conn->broken)
        lose(conn, PG_DOWN);
    else if (conn->retiring && pg_pipeline_depth(conn->pipeline) == 0)
        reopen(conn);
    else if (conn->state == CONN_SETTING && pg_pipeline_depth(conn->pipeline) == 0)
        come_up(conn);
}

/* Connected. No query is sent before the server has accepted the first setting. */
static void begin_use(struct pg_conn *conn)
{
    set_state(conn, CONN_SETTING);
    PQsetNoticeReceiver(conn->pq, on_notice, conn);
    if (pg_pipeline_attach(conn->pipeline, conn->pq) < 0 || send_timeout(conn) < 0)
        mark_broken(conn);
    else
        rewatch(conn);
    if (conn->broken)
        lose(conn, PG_DOWN);
}

/* The next attempt may lead to another one; of several hosts it begins with the next. */
static void leave(struct pg_conn *conn)
{
    conn->first_host++;
    lose(conn, PG_DOWN);
}

static void look_at_server(struct pg_conn *conn)
{
    const struct pg_server *server = &conn->connecting.server;
    if (!pg_pooler_allows(conn->options.conninfo, conn->pq, server, &conn->error)) {
        leave(conn);
        return;
    }
    if (pg_server_fits(server, conn->options.rule, &conn->error)) {
        begin_use(conn);
        return;
    }
    if (!conn->told_stranger) /* however many were said before */
        conn->told_reasons = 0;
    conn->told_stranger = true;
    leave(conn);
    conn->options.on_stranger(conn->options.arg, conn, server);
}

/* Does what pg_connect_poll() asks for. */
static void act_on(struct pg_conn *conn, PostgresPollingStatusType next)
{
    if (next == PGRES_POLLING_OK)
        look_at_server(conn);
    else if (next == PGRES_POLLING_FAILED || PQstatus(conn->pq) == CONNECTION_BAD ||
             watch(conn, next == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE) < 0)
        give_up(conn);
}

static void start_connecting(struct pg_conn *conn, const struct pg_hosts *hosts)
{
    const struct pg_connect_options how = {conn->options.conninfo, conn->options.application,
                                           false};
    pg_connect_start(&conn->connecting, &how, hosts);
    conn->pq = conn->connecting.pq;
    act_on(conn, PGRES_POLLING_WRITING);
}

static void on_resolved(void *arg, struct pg_hosts *hosts, const char *error)
{
    struct pg_conn *conn = arg;
    conn->resolve = NULL;
    if (hosts) {
        start_connecting(conn, hosts);
        pg_hosts_finish(hosts);
    } else {
        pg_error_say(&conn->error, "%s", error);
        lose(conn, PG_DOWN);
    }
    conn->options.on_event(conn->options.arg);
}

static void open_connection(struct pg_conn *conn)
{
    uint64_t limit = conn->options.timeout_ms;
    set_state(conn, CONN_CONNECTING);
    start_timer(conn, limit > CONNECT_MIN_MS ? limit : CONNECT_MIN_MS);
    conn->resolve = pg_resolve_start(conn->options.loop, conn->options.conninfo, conn->first_host,
                                     on_resolved, conn);
    if (conn->resolve)
        return;
    struct pg_hosts hosts;
    pg_hosts_begin_with(&hosts, conn->options.conninfo, conn->first_host);
    start_connecting(conn, &hosts);
    pg_hosts_finish(&hosts);
}

static void on_socket(void *arg)
{
    struct pg_conn *conn = arg;
    if (conn->state == CONN_CONNECTING) {
        pg_watch_stop(&conn->watch);
        act_on(conn, pg_connect_poll(&conn->connecting));
    } else if (!conn->broken) {
        receive(conn);
    }
    conn->options.on_event(conn->options.arg);
}

/* After a pause of the whole process the answer may lie in the socket: it is looked at first. */
static void check_deadline(struct pg_conn *conn)
{
    if (conn->broken) {
        lose(conn, PG_DOWN);
        return;
    }
    receive(conn);
    if (conn->state != CONN_UP || pg_pipeline_depth(conn->pipeline) == 0)
        return;
    if (pg_pipeline_deadline(conn->pipeline) > uv_now(conn->options.loop)) {
        arm_deadline(conn);
        return;
    }
    pg_error_say(&conn->error, "the server did not answer within %llu ms",
                 (unsigned long long)conn->options.timeout_ms + GRACE_MS);
    lose(conn, PG_TIMEOUT);
    conn->is_new = true; /* the server is there, and who is answered by nobody yet asks again */
}

static void on_timer(uv_timer_t *timer)
{
    struct pg_conn *conn = timer->data;
    if (conn->state == CONN_WAITING) {
        open_connection(conn);
    } else if (conn->state == CONN_UP) {
        check_deadline(conn);
    } else if (conn->broken) {
        lose(conn, PG_DOWN);
    } else {
        conn->first_host++;
        pg_error_say(&conn->error, conn->resolve ? "the look-up of its name has no end"
                                                 : "the server did not answer while connecting");
        lose(conn, PG_DOWN);
    }
    conn->options.on_event(conn->options.arg);
}

struct pg_conn *pg_conn_create(const struct pg_conn_options *options)
{
    struct pg_conn *conn = allocate(1, sizeof *conn);
    conn->options = *options;
    conn->options.conninfo = allocate_text(options->conninfo);
    conn->pipeline = pg_pipeline_create(options->statements, options->ended);
    conn->is_new = true;
    uv_timer_init(options->loop, &conn->timer);
    conn->timer.data = conn;
    conn->watch = (struct pg_watch){
        .loop = options->loop, .ready = on_socket, .closed = release, .arg = conn};
    start_timer(conn, 0);
    return conn;
}

/* One that is still connecting is let go when it has connected. */
void pg_conn_renew(struct pg_conn *conn)
{
    if (conn->state == CONN_WAITING || conn->state == CONN_CLOSED)
        return;
    conn->retiring = true;
    if (conn->state == CONN_UP && pg_pipeline_depth(conn->pipeline) == 0)
        start_timer(conn, 0);
}

void pg_conn_hasten(struct pg_conn *conn)
{
    conn->is_new |= conn->state == CONN_WAITING || conn->state == CONN_CONNECTING;
    if (conn->state == CONN_WAITING)
        start_timer(conn, 0);
}

void pg_conn_check_server(struct pg_conn *conn)
{
    struct pg_error error;
    if ((conn->state != CONN_SETTING && conn->state != CONN_UP) ||
        pg_server_fits(&conn->connecting.server, conn->options.rule, &error))
        return;
    conn->error = error;
    leave(conn);
}

static void timer_closed(uv_handle_t *handle)
{
    struct pg_conn *conn = handle->data;
    conn->timer_closed = true;
    release(conn);
}

void pg_conn_close(struct pg_conn *conn)
{
    pg_error_say(&conn->error, "closed");
    disconnect(conn, PG_DOWN);
    set_state(conn, CONN_CLOSED);
    uv_close((uv_handle_t *)&conn->timer, timer_closed);
}

bool pg_conn_is_up(const struct pg_conn *conn)
{
    return conn->state == CONN_UP && !conn->broken && !conn->retiring;
}

bool pg_conn_is_new(const struct pg_conn *conn)
{
    return conn->is_new || conn->retiring;
}

size_t pg_conn_depth(const struct pg_conn *conn)
{
    return pg_pipeline_depth(conn->pipeline);
}

size_t pg_conn_large(const struct pg_conn *conn)
{
    return pg_pipeline_large(conn->pipeline);
}
