/* One question at a time, over a connection of its own:
 *
 *   timer, wal_probe_now(), wal_probe_soon() ─▶ ask() ─▶ PostgreSQL ─▶ take() ─▶ probed()
 *                                                 ▲                └─▶ complain() ─▶ failed()
 *                                                 └─ `again`: it was wanted meanwhile
 *
 * The time of a probe is the moment before its question was sent, so that whatever had committed by
 * then lies before the log's end that it is answered with.
 */
#include "follow/wal_probe.h"

#include "base/clock.h"
#include "base/memory.h"
#include "database/publication.h"
#include "follow/lag.h"

#include <stdlib.h>

enum {
    SLOWEST_MS = 250,   /* between two questions, whatever max_lag is */
    FASTEST_MS = 5,     /* likewise: each costs the database something */
    SOON_MS = 50,       /* wal_probe_soon(): so long after the last answer */
    PROBES_PER_LAG = 4, /* so many in the time of max_lag */
    TIMEOUT_MS = 5000,  /* without an answer the connection is given up */
    PROBE = 0           /* the pool's one statement */
};

struct wal_probe {
    struct wal_probe_options options;
    struct pg_pool *pool;
    struct pg_statement statement;
    char *sql; /* the statement's; of the keyspaces that are configured */
    uv_timer_t timer;
    uint64_t interval; /* ms from one question to the next */
    uint64_t asked;    /* when the question on its way was sent; 0: none is */
    uint64_t answered; /* the last question, or not; clock_ms() */
    bool again;        /* wal_probe_now() while one was on its way */
    bool outdated;     /* the question on its way */
    bool complained;   /* the last answer was a failure: the next one is no news */
    void (*closed)(void *arg);
    void *closed_arg;
};

static void ask(struct wal_probe *wal_probe);

/* Nothing is on its way any more. */
static void note_answer(struct wal_probe *wal_probe)
{
    wal_probe->asked = 0;
    wal_probe->answered = clock_ms();
}

static void take(struct wal_probe *wal_probe, const PGresult *result)
{
    uint64_t insert = strtoull(PQgetvalue(result, 0, 2), NULL, 10);
    uint64_t flush = strtoull(PQgetvalue(result, 0, 3), NULL, 10);
    struct probe probe = {.time = wal_probe->asked,
                          .fingerprint = PQgetvalue(result, 0, 0),
                          .snapshot = PQgetvalue(result, 0, 4),
                          .values = PQgetvalue(result, 0, 5),
                          .names = PQgetvalue(result, 0, 7),
                          .end = lag_end_of_log(insert, flush)};
    wal_probe->complained = false;
    note_answer(wal_probe);
    wal_probe->options.probed(wal_probe->options.arg, &probe);
}

static void complain(struct wal_probe *wal_probe, const struct pg_answer *answer)
{
    bool is_news = !wal_probe->complained;
    note_answer(wal_probe);
    wal_probe->complained = true;
    wal_probe->options.failed(wal_probe->options.arg,
                              answer->error.text[0] ? answer->error.text : "no answer", is_news);
}

/* An answer to what was asked of other keyspaces is not looked at: it says nothing of those that
 * are configured now. */
static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct wal_probe *wal_probe = arg;
    if (wal_probe->closed)
        return;
    if (wal_probe->outdated) {
        wal_probe->outdated = false;
        ask(wal_probe);
        return;
    }
    if (answer->outcome == PG_DONE && PQntuples(answer->result) == 1)
        take(wal_probe, answer->result);
    else
        complain(wal_probe, answer);
    if (wal_probe->again && !wal_probe->closed)
        ask(wal_probe);
}

static void ask(struct wal_probe *wal_probe)
{
    wal_probe->again = false;
    wal_probe->asked = clock_ms();
    pg_pool_submit(wal_probe->pool, PROBE, NULL, on_answer, wal_probe);
}

static void on_timer(uv_timer_t *timer)
{
    struct wal_probe *wal_probe = timer->data;
    if (!wal_probe->asked)
        ask(wal_probe);
}

void wal_probe_now(struct wal_probe *wal_probe)
{
    if (wal_probe->asked)
        wal_probe->again = true;
    else
        ask(wal_probe);
}

void wal_probe_soon(struct wal_probe *wal_probe)
{
    uint64_t rested = clock_ms() - wal_probe->answered;
    if (wal_probe->asked)
        return;
    if (rested >= SOON_MS)
        ask(wal_probe);
    else if (uv_timer_get_due_in(&wal_probe->timer) > SOON_MS - rested)
        uv_timer_start(&wal_probe->timer, on_timer, SOON_MS - rested, wal_probe->interval);
}

static void wal_probe_free(struct wal_probe *wal_probe)
{
    free(wal_probe->sql);
    free(wal_probe);
}

/* Often enough for `known` to stay within max_lag. */
static uint64_t interval_of(const struct config *config)
{
    uint64_t interval = config->max_lag_ms / PROBES_PER_LAG;
    if (interval > SLOWEST_MS)
        return SLOWEST_MS;
    return interval < FASTEST_MS ? FASTEST_MS : interval;
}

int wal_probe_create(struct wal_probe **out, uv_loop_t *loop,
                     const struct wal_probe_options *options, const char **error)
{
    struct wal_probe *wal_probe = xcalloc(1, sizeof *wal_probe);
    wal_probe->options = *options;
    wal_probe->sql = publication_probe_sql(options->config);
    wal_probe->statement.sql = wal_probe->sql;
    struct pg_pool_options pool = {.conninfo = options->config->database,
                                   .application = "nestguard",
                                   .connections = 1,
                                   .timeout_ms = TIMEOUT_MS,
                                   .statements = &wal_probe->statement,
                                   .statement_count = 1};
    int status = pg_pool_create(&wal_probe->pool, loop, &pool, error);
    if (status) {
        wal_probe_free(wal_probe);
        return status;
    }
    wal_probe->interval = interval_of(options->config);
    uv_timer_init(loop, &wal_probe->timer);
    wal_probe->timer.data = wal_probe;
    uv_timer_start(&wal_probe->timer, on_timer, wal_probe->interval, wal_probe->interval);
    *out = wal_probe;
    return 0;
}

void wal_probe_use_config(struct wal_probe *wal_probe, const struct config *config)
{
    char *sql = publication_probe_sql(config);
    wal_probe->statement.sql = sql;
    pg_pool_use_statements(wal_probe->pool, &wal_probe->statement, 1);
    free(wal_probe->sql);
    wal_probe->sql = sql;
    wal_probe->outdated = wal_probe->asked != 0;
    if (wal_probe->interval == interval_of(config))
        return;
    wal_probe->interval = interval_of(config);
    uv_timer_start(&wal_probe->timer, on_timer, wal_probe->interval, wal_probe->interval);
}

struct pg_pool *wal_probe_pool(struct wal_probe *wal_probe)
{
    return wal_probe->pool;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct wal_probe *wal_probe = timer->data;
    void (*closed)(void *arg) = wal_probe->closed;
    void *arg = wal_probe->closed_arg;
    wal_probe_free(wal_probe);
    closed(arg);
}

static void on_pool_closed(void *arg)
{
    struct wal_probe *wal_probe = arg;
    uv_close((uv_handle_t *)&wal_probe->timer, on_timer_closed);
}

void wal_probe_close(struct wal_probe *wal_probe, void (*closed)(void *arg), void *arg)
{
    if (!wal_probe) {
        closed(arg);
        return;
    }
    wal_probe->closed = closed;
    wal_probe->closed_arg = arg;
    uv_timer_stop(&wal_probe->timer);
    pg_pool_close(wal_probe->pool, on_pool_closed, wal_probe);
}
