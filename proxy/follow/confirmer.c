/*   begin ─▶ LOOKING: is the guard waited for? ─ yes ─▶ CONFIRMING ─ lost ─┐
 *               ▲ (on a thread: connecting waits)                          │
 *               │                └──────── no ────────▶ WAITING ◀──────────┘
 *               └────────────────────────────────────────┘
 */
#include "follow/confirmer.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "database/session_value.h"
#include "postgres/log/pg_stream.h"

#include <assert.h>
#include <stdlib.h>

enum { RETRY_MS = 500, CONNECT_SECONDS = 10 };

static const char application[] = "nestguard";

enum state { IDLE, LOOKING, CONFIRMING, WAITING };

/* What the thread found. */
struct found {
    bool is_named;
    struct pg_stream *stream; /* not started; NULL: not named, or *error */
    struct pg_error error;
};

struct confirmer {
    uv_loop_t *loop;
    const struct config *config;
    char *conninfo; /* the thread's while LOOKING */
    enum state state;
    uv_work_t work;
    uv_timer_t retry;
    struct found found;       /* the thread's while LOOKING */
    atomic_bool stop;         /* for the thread */
    struct pg_stream *stream; /* while CONFIRMING */
    uint64_t confirmed;       /* since it was begun */
    bool wanted, complained, destroyed;
};

/* For each state, the states that may follow it, a bit each. */
static void set_state(struct confirmer *confirmer, enum state state)
{
    static const unsigned allowed[] = {
        [IDLE] = 1u << LOOKING | 1u << CONFIRMING | 1u << WAITING,
        [LOOKING] = 1u << IDLE,
        [CONFIRMING] = 1u << IDLE,
        [WAITING] = 1u << IDLE | 1u << LOOKING,
    };
    assert(allowed[confirmer->state] & 1u << state);
    (void)allowed;
    confirmer->state = state;
}

/* ---- on the thread ---- */

/* Whether the server may count this guard among those that commits wait for. The list has names in
 * quotes, numbers and more: that the name is somewhere in it is enough to go by, for being a
 * standby that nobody waits for does no harm. Names are compared without regard to case. */
static const char is_named_sql[] =
    "SELECT names <> '' AND (position('*' IN names) > 0 OR position("
    "       lower(replace(current_setting('application_name'), '\"', '\"\"')) IN lower(names)) > 0)"
    "  FROM pg_catalog.current_setting('synchronous_standby_names') AS names";

static int ask_whether_named(struct confirmer *confirmer, bool *is_named, struct pg_error *error)
{
    struct pg_session_options options = {.conninfo = confirmer->conninfo,
                                         .application = application,
                                         .connect_timeout = CONNECT_SECONDS,
                                         .answer_timeout = CONNECT_SECONDS,
                                         .stop = &confirmer->stop};
    struct pg_session *session = NULL;
    char *named = NULL;
    int status = pg_session_open(&session, &options, error);
    if (!status)
        status = session_text(&named, session, is_named_sql, NULL, error);
    if (!status)
        *is_named = named[0] == 't';
    free(named);
    pg_session_close(session);
    return status;
}

static void look(uv_work_t *work)
{
    struct confirmer *confirmer = work->data;
    struct found *found = &confirmer->found;
    struct pg_stream_options options = {.conninfo = confirmer->conninfo,
                                        .application = application,
                                        .connect_timeout = CONNECT_SECONDS,
                                        .stop = &confirmer->stop};
    *found = (struct found){0};
    if (ask_whether_named(confirmer, &found->is_named, &found->error) == 0 && found->is_named)
        (void)pg_stream_open(&found->stream, &options, &found->error);
}

/* ---- on the loop ---- */

static void begin_to_look(struct confirmer *confirmer);

static void on_retry(uv_timer_t *timer)
{
    begin_to_look(timer->data);
}

static void try_later(struct confirmer *confirmer)
{
    set_state(confirmer, WAITING);
    uv_timer_start(&confirmer->retry, on_retry, RETRY_MS, 0);
}

/* That the server is not there at all, others say. */
static void complain(struct confirmer *confirmer, const struct pg_error *error)
{
    if (!confirmer->complained)
        log_warning("database: commits that wait for this guard cannot be let go: %s", error->text);
    confirmer->complained = true;
}

static void confirm(struct confirmer *confirmer, uint64_t lsn)
{
    if (lsn > confirmer->confirmed)
        confirmer->confirmed = lsn;
    pg_stream_confirm(confirmer->stream, lsn);
}

static int on_bytes(void *arg, uint64_t lsn, const char *bytes, size_t length)
{
    (void)bytes;
    confirm(arg, lsn + length);
    return 0;
}

static void on_position(void *arg, uint64_t lsn)
{
    confirm(arg, lsn);
}

static void stop_confirming(struct confirmer *confirmer)
{
    pg_stream_close(confirmer->stream, NULL, NULL);
    confirmer->stream = NULL;
    set_state(confirmer, IDLE);
}

static void on_lost(void *arg, const struct pg_error *error)
{
    struct confirmer *confirmer = arg;
    complain(confirmer, error);
    stop_confirming(confirmer);
    try_later(confirmer);
}

/* Takes what the thread has opened. The server only lets commits go by a standby that has caught
 * up, which it finds out when it has nothing to send: so what it is told before then must be told
 * again, in reply to its answer. */
static void start_confirming(struct confirmer *confirmer)
{
    static const struct pg_stream_events events = {
        .message = on_bytes, .position = on_position, .lost = on_lost};
    struct found *found = &confirmer->found;
    set_state(confirmer, CONFIRMING);
    confirmer->stream = found->stream;
    found->stream = NULL;
    if (pg_stream_start(confirmer->stream, confirmer->loop, &events, confirmer, &found->error)) {
        on_lost(confirmer, &found->error);
        return;
    }
    confirmer->complained = false;
    log_info("commits that wait for this guard return at once while nothing is rejected");
    confirm(confirmer, pg_stream_consistent_point(confirmer->stream));
    pg_stream_ask(confirmer->stream);
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct confirmer *confirmer = timer->data;
    free(confirmer->conninfo);
    free(confirmer);
}

static void discard_found(struct confirmer *confirmer)
{
    if (confirmer->found.stream)
        pg_stream_close(confirmer->found.stream, NULL, NULL);
    confirmer->found.stream = NULL;
}

/* It may have been ended, and begun again, while the thread was at work. */
static void on_looked(uv_work_t *work, int status)
{
    struct confirmer *confirmer = work->data;
    bool stopped = atomic_load_explicit(&confirmer->stop, memory_order_relaxed);
    (void)status; /* it is never cancelled */
    set_state(confirmer, IDLE);
    if (stopped)
        discard_found(confirmer);
    if (confirmer->destroyed)
        uv_close((uv_handle_t *)&confirmer->retry, on_timer_closed);
    else if (confirmer->wanted && stopped)
        begin_to_look(confirmer);
    else if (confirmer->found.stream)
        start_confirming(confirmer);
    else if (confirmer->wanted) {
        if (confirmer->found.is_named)
            complain(confirmer, &confirmer->found.error);
        try_later(confirmer);
    }
}

static void begin_to_look(struct confirmer *confirmer)
{
    free(confirmer->conninfo);
    confirmer->conninfo = xstrdup(confirmer->config->database);
    atomic_store_explicit(&confirmer->stop, false, memory_order_relaxed);
    set_state(confirmer, LOOKING);
    (void)uv_queue_work(confirmer->loop, &confirmer->work, look, on_looked);
}

/* ---- what the owner asks for ---- */

struct confirmer *confirmer_create(uv_loop_t *loop, const struct config *config)
{
    struct confirmer *confirmer = xcalloc(1, sizeof *confirmer);
    confirmer->loop = loop;
    confirmer->config = config;
    confirmer->work.data = confirmer->retry.data = confirmer;
    uv_timer_init(loop, &confirmer->retry);
    return confirmer;
}

void confirmer_use_config(struct confirmer *confirmer, const struct config *config)
{
    confirmer->config = config;
}

void confirmer_begin(struct confirmer *confirmer)
{
    confirmer->wanted = true;
    if (confirmer->state == IDLE)
        begin_to_look(confirmer);
}

uint64_t confirmer_end(struct confirmer *confirmer)
{
    uint64_t confirmed = confirmer->confirmed;
    confirmer->wanted = false;
    confirmer->confirmed = 0;
    atomic_store_explicit(&confirmer->stop, true, memory_order_relaxed);
    if (confirmer->state == CONFIRMING) {
        stop_confirming(confirmer);
    } else if (confirmer->state == WAITING) {
        uv_timer_stop(&confirmer->retry);
        set_state(confirmer, IDLE);
    }
    return confirmed;
}

bool confirmer_is_at_work(const struct confirmer *confirmer)
{
    return confirmer->state == CONFIRMING;
}

void confirmer_destroy(struct confirmer *confirmer)
{
    if (!confirmer)
        return;
    confirmer->destroyed = true;
    confirmer_end(confirmer);
    if (confirmer->state == IDLE)
        uv_close((uv_handle_t *)&confirmer->retry, on_timer_closed);
}
