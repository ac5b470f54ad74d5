#include "follow/prober.h"

#include "base/clock.h"
#include "base/memory.h"
#include "database/publication.h"
#include "follow/lag.h"

#include <stdlib.h>

enum {
    SLOWEST_MS = 250,
    FASTEST_MS = 5,
    PROBES_PER_LAG = 4, /* so many in the time of max_lag */
    TIMEOUT_MS = 5000,
    PROBE = 0 /* the pool's one statement */
};

struct prober {
    struct prober_options options;
    struct pg_pool *pool;
    struct pg_statement statement;
    char *sql;
    uv_timer_t timer;
    uint64_t asked; /* when the question on its way was sent; 0: none is */
    bool again;     /* prober_now() while one was on its way */
    bool complained;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void ask(struct prober *prober);

static void take(struct prober *prober, const PGresult *result)
{
    uint64_t insert = strtoull(PQgetvalue(result, 0, 2), NULL, 10);
    uint64_t flush = strtoull(PQgetvalue(result, 0, 3), NULL, 10);
    struct probe probe = {.time = prober->asked,
                          .fingerprint = PQgetvalue(result, 0, 0),
                          .snapshot = PQgetvalue(result, 0, 4),
                          .values = PQgetvalue(result, 0, 5),
                          .end = lag_end_of_log(insert, flush)};
    prober->complained = false;
    prober->asked = 0;
    prober->options.probed(prober->options.arg, &probe);
}

static void complain(struct prober *prober, const struct pg_answer *answer)
{
    bool is_news = !prober->complained;
    prober->asked = 0;
    prober->complained = true;
    prober->options.failed(prober->options.arg,
                           answer->error.text[0] ? answer->error.text : "no answer", is_news);
}

static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct prober *prober = arg;
    if (prober->closed)
        return;
    if (answer->outcome == PG_DONE && PQntuples(answer->result) == 1)
        take(prober, answer->result);
    else
        complain(prober, answer);
    if (prober->again && !prober->closed)
        ask(prober);
}

static void ask(struct prober *prober)
{
    prober->again = false;
    prober->asked = clock_ms();
    pg_pool_submit(prober->pool, PROBE, NULL, on_answer, prober);
}

static void on_timer(uv_timer_t *timer)
{
    struct prober *prober = timer->data;
    if (!prober->asked)
        ask(prober);
}

void prober_now(struct prober *prober)
{
    if (prober->asked)
        prober->again = true;
    else
        ask(prober);
}

static void prober_free(struct prober *prober)
{
    free(prober->sql);
    free(prober);
}

static uint64_t interval_of(const struct config *config)
{
    uint64_t interval = config->max_lag_ms / PROBES_PER_LAG;
    if (interval > SLOWEST_MS)
        return SLOWEST_MS;
    return interval < FASTEST_MS ? FASTEST_MS : interval;
}

int prober_create(struct prober **out, uv_loop_t *loop, const struct prober_options *options,
                  const char **error)
{
    struct prober *prober = xcalloc(1, sizeof *prober);
    prober->options = *options;
    prober->sql = publication_probe_sql(options->config);
    prober->statement.sql = prober->sql;
    struct pg_pool_options pool = {.conninfo = options->config->database,
                                   .application = "nestguard",
                                   .connections = 1,
                                   .timeout_ms = TIMEOUT_MS,
                                   .statements = &prober->statement,
                                   .statement_count = 1};
    int status = pg_pool_create(&prober->pool, loop, &pool, error);
    if (status) {
        prober_free(prober);
        return status;
    }
    uint64_t interval = interval_of(options->config);
    uv_timer_init(loop, &prober->timer);
    prober->timer.data = prober;
    uv_timer_start(&prober->timer, on_timer, interval, interval);
    *out = prober;
    return 0;
}

struct pg_pool *prober_pool(struct prober *prober)
{
    return prober->pool;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct prober *prober = timer->data;
    void (*closed)(void *arg) = prober->closed;
    void *arg = prober->closed_arg;
    prober_free(prober);
    closed(arg);
}

static void on_pool_closed(void *arg)
{
    struct prober *prober = arg;
    uv_close((uv_handle_t *)&prober->timer, on_timer_closed);
}

void prober_close(struct prober *prober, void (*closed)(void *arg), void *arg)
{
    if (!prober) {
        closed(arg);
        return;
    }
    prober->closed = closed;
    prober->closed_arg = arg;
    uv_timer_stop(&prober->timer);
    pg_pool_close(prober->pool, on_pool_closed, prober);
}
