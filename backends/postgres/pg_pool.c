/* Who holds a query, from its submission to its callback:
 *
 *   submitted ─┬─ a connection is up ───────────────▶ its pipeline ─┐
 *              ├─ first attempts are under way ─▶ `waiting` ────────┤
 *              └─ none is to be expected ───────────────────────────┴─▶ `ended` ─▶ callback
 *
 * `ended` is emptied at the end of a connection's event or, when a query ended elsewhere, by the
 * idle handle: never within pg_pool_submit().
 */
#include "postgres/pg_pool.h"
#include "net/allocate.h"
#include "postgres/pg_conn.h"
#include "postgres/pg_options.h"

#include <assert.h>
#include <errno.h>

enum { LARGE_COST = 32 }; /* of a large answer, in small ones that take about as long */

struct pg_pool {
    uv_loop_t *loop;
    struct pg_pool_options options;  /* with texts of its own */
    struct pg_statements statements; /* in force */
    struct pg_conn **conns; /* as many as the options say, and behind them those that leave */
    unsigned conn_count;
    struct pg_queries waiting; /* for the first connection */
    struct pg_queries ended;   /* their callbacks are still to be called */
    size_t in_flight;
    uv_idle_t idle;        /* runs while something has ended outside of an event */
    uv_timer_t patience;   /* of the first that waits */
    unsigned handles;      /* not yet closed: idle, patience and the connections */
    struct pg_error error; /* of the connection that went down last */
    struct pg_pool_rule rule;
    struct pg_server stranger; /* on_stranger() is still to be told; or not known */
    bool moving;               /* those behind are by the conninfo before, and serve still */
    bool has_other;            /* rule.on_other() is still to be told */
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Ending and delivering. */

/* Calls back all that had ended by now. A callback may submit: what ends at once waits for the next
 * round, so that a caller who tries again and again cannot hold up the loop. */
static void deliver(struct pg_pool *pool)
{
    struct pg_queries ended = pool->ended;
    struct pg_query *query;
    pool->ended = (struct pg_queries){0};
    while ((query = pg_queries_take(&ended))) {
        pool->in_flight--;
        pg_query_deliver(query);
    }
}

static void settle(struct pg_pool *pool);

static bool may_go(const struct pg_pool *pool, unsigned i)
{
    return !pool->moving && i >= pool->options.connections && pg_conn_depth(pool->conns[i]) == 0;
}

static bool has_who_may_go(const struct pg_pool *pool)
{
    for (unsigned i = pool->options.connections; i < pool->conn_count; i++)
        if (may_go(pool, i))
            return true;
    return false;
}

/* Not from within a connection's event. */
static void let_go(struct pg_pool *pool)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < pool->conn_count; i++)
        if (may_go(pool, i))
            pg_conn_close(pool->conns[i]);
        else
            pool->conns[kept++] = pool->conns[i];
    pool->conn_count = kept;
}

static void on_idle(uv_idle_t *idle)
{
    struct pg_pool *pool = idle->data;
    if (!pool->closing)
        let_go(pool);
    settle(pool);
}

static void deliver_later(struct pg_pool *pool)
{
    if (!pool->closing && (pool->ended.first || has_who_may_go(pool)))
        uv_idle_start(&pool->idle, on_idle);
}

/* Ends a query that was not sent. */
static void end_waiting(struct pg_pool *pool, struct pg_query *query, enum pg_outcome outcome,
                        const struct pg_error *error)
{
    pg_query_end(query, outcome, NULL, error);
    pg_queries_append(&pool->ended, query);
}

/* Connections. */

/* Until one by the new conninfo is up, those before take queries. */
static unsigned serving(const struct pg_pool *pool)
{
    return pool->moving ? pool->conn_count : pool->options.connections;
}

/* In small answers. */
static size_t busyness(const struct pg_conn *conn)
{
    return pg_conn_depth(conn) + LARGE_COST * pg_conn_large(conn);
}

/* Its first connection that is up takes what is large only if there is no other. */
static struct pg_conn *least_busy(const struct pg_pool *pool, bool for_large)
{
    struct pg_conn *best = NULL, *kept = NULL;
    for (unsigned i = 0; i < serving(pool); i++) {
        struct pg_conn *conn = pool->conns[i];
        if (!pg_conn_is_up(conn))
            continue;
        if (for_large && !kept)
            kept = conn;
        else if (!best || busyness(conn) < busyness(best))
            best = conn;
    }
    return best ? best : kept;
}

/* Only first attempts are waited for; later an outage is answered at
 * once, so that clients do not pile up behind it. */
static bool may_come_up(const struct pg_pool *pool)
{
    for (unsigned i = 0; i < serving(pool); i++)
        if (pg_conn_is_new(pool->conns[i]))
            return true;
    return false;
}

static void end_move(struct pg_pool *pool)
{
    for (unsigned i = 0; i < pool->options.connections && pool->moving; i++)
        pool->moving = !pg_conn_is_up(pool->conns[i]);
}

/* Sends what waited when a connection has come up, and gives it up when none will. */
static void settle_waiting(struct pg_pool *pool)
{
    struct pg_conn *conn;
    while (pool->waiting.first && (conn = least_busy(pool, pool->waiting.first->large)))
        pg_conn_send(conn, pg_queries_take(&pool->waiting));
    if (!may_come_up(pool))
        while (pool->waiting.first)
            end_waiting(pool, pg_queries_take(&pool->waiting), PG_DOWN, &pool->error);
    if (!pool->waiting.first)
        uv_timer_stop(&pool->patience);
}

/* At the end of everything that may have changed a connection or ended a query. */
static void settle(struct pg_pool *pool)
{
    if (!pool->closing) {
        end_move(pool);
        settle_waiting(pool);
        uv_idle_stop(&pool->idle);
    }
    deliver(pool);
    deliver_later(pool);
}

static void on_event(void *arg)
{
    struct pg_pool *pool = arg;
    struct pg_server stranger = pool->stranger;
    bool has_other = pool->has_other;
    pool->stranger = (struct pg_server){0};
    pool->has_other = false;
    settle(pool);
    if (has_other && pool->rule.on_other && !pool->closing)
        pool->rule.on_other(pool->rule.arg);
    if (pg_server_is_known(&stranger) && pool->rule.on_stranger && !pool->closing)
        pool->rule.on_stranger(pool->rule.arg, &stranger);
}

static bool is_newcomer(const struct pg_pool *pool, const struct pg_conn *conn)
{
    for (unsigned i = 0; i < pool->options.connections && pool->moving; i++)
        if (pool->conns[i] == conn)
            return true;
    return false;
}

static void on_stranger(void *arg, const struct pg_conn *conn, const struct pg_server *server)
{
    struct pg_pool *pool = arg;
    if (is_newcomer(pool, conn))
        pool->has_other = true;
    else
        pool->stranger = *server;
}

static void on_change(void *arg, const struct pg_error *error)
{
    struct pg_pool *pool = arg;
    if (error)
        pool->error = *error;
    if (pool->options.on_state)
        pool->options.on_state(pool->options.arg, pg_pool_live(pool), error);
}

/* Submitting. */

/* In order of deadlines, for all wait equally long, but for a change of the timeout. */
static void on_patience(uv_timer_t *timer)
{
    struct pg_pool *pool = timer->data;
    uint64_t now = uv_now(pool->loop);
    struct pg_error error;
    pg_error_say(&error, "no connection to the database yet");
    while (pool->waiting.first && pool->waiting.first->deadline <= now)
        end_waiting(pool, pg_queries_take(&pool->waiting), PG_TIMEOUT, &error);
    if (pool->waiting.first)
        uv_timer_start(timer, on_patience, pool->waiting.first->deadline - now, 0);
    settle(pool);
}

static void wait_for_connection(struct pg_pool *pool, struct pg_query *query)
{
    uv_update_time(pool->loop); /* it may be stale by the length of the caller's callback */
    query->deadline = uv_now(pool->loop) + pool->options.timeout_ms;
    pg_queries_append(&pool->waiting, query);
    if (!uv_is_active((uv_handle_t *)&pool->patience))
        uv_timer_start(&pool->patience, on_patience, pool->options.timeout_ms, 0);
}

void pg_pool_submit(struct pg_pool *pool, size_t statement, const char *const *values,
                    pg_answer_cb done, void *arg)
{
    assert(statement < pool->statements.count);
    int params = pool->statements.at[statement].params;
    struct pg_query *query = pg_query_create(statement, params, values, done, arg);
    query->large = pool->statements.at[statement].large;
    struct pg_conn *conn = pool->closing ? NULL : least_busy(pool, query->large);
    pool->in_flight++;
    if (conn) {
        pg_conn_send(conn, query);
    } else if (!pool->closing && may_come_up(pool)) {
        wait_for_connection(pool, query);
    } else {
        end_waiting(pool, query, PG_DOWN, &pool->error);
        deliver_later(pool);
    }
}

void pg_pool_use_statements(struct pg_pool *pool, const struct pg_statement *statements,
                            size_t count)
{
    assert(count >= pool->statements.count);
    pool->statements = (struct pg_statements){statements, count, pool->statements.edition + 1};
}

void pg_pool_set_timeout(struct pg_pool *pool, uint64_t timeout_ms)
{
    assert(timeout_ms > 0);
    pool->options.timeout_ms = timeout_ms;
    for (unsigned i = 0; i < pool->conn_count && !pool->closing; i++)
        pg_conn_set_timeout(pool->conns[i], timeout_ms);
}

/* Whether it is to where the new conninfo leads. */
static bool arrives(const struct pg_pool *pool, const struct pg_server_rule *rule)
{
    const struct pg_server_rule *before = &pool->rule.server;
    return pool->moving && pg_server_is_known(&before->server) &&
           !(pg_server_is_known(&rule->server) &&
             pg_server_is_same(&rule->server, &before->server, false));
}

/* What was asked over those before is answered: it was asked before. */
void pg_pool_keep_to(struct pg_pool *pool, const struct pg_pool_rule *rule)
{
    bool arrived = arrives(pool, &rule->server);
    unsigned count = arrived ? pool->options.connections : pool->conn_count;
    pool->moving &= !arrived;
    pool->rule = *rule;
    for (unsigned i = 0; i < count && !pool->closing; i++) {
        pg_conn_check_server(pool->conns[i]);
        if (arrived)
            pg_conn_hasten(pool->conns[i]);
    }
    deliver_later(pool);
}

void pg_pool_renew(struct pg_pool *pool)
{
    for (unsigned i = 0; i < serving(pool) && !pool->closing; i++)
        pg_conn_renew(pool->conns[i]);
}

unsigned pg_pool_live(const struct pg_pool *pool)
{
    unsigned live = 0;
    for (unsigned i = 0; i < serving(pool) && !pool->closing; i++)
        live += pg_conn_is_up(pool->conns[i]);
    return live;
}

const struct pg_error *pg_pool_error(const struct pg_pool *pool)
{
    bool all = pg_pool_live(pool) == pool->options.connections;
    return all || !pool->error.text[0] ? NULL : &pool->error;
}

size_t pg_pool_in_flight(const struct pg_pool *pool)
{
    return pool->in_flight;
}

/* Life. */

/* Closing ended every query; their callbacks run now, and may submit more, which end at once. */
static void release(struct pg_pool *pool)
{
    if (--pool->handles > 0)
        return;
    while (pool->ended.first)
        deliver(pool);
    void (*closed)(void *arg) = pool->closed;
    void *arg = pool->closed_arg;
    free((char *)pool->options.conninfo);
    free((char *)pool->options.application);
    free(pool->conns);
    free(pool);
    if (closed)
        closed(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_conn_closed(void *arg)
{
    release(arg);
}

static struct pg_conn *create_conn(struct pg_pool *pool)
{
    struct pg_conn_options options = {
        .loop = pool->loop,
        .conninfo = pool->options.conninfo,
        .application = pool->options.application,
        .timeout_ms = pool->options.timeout_ms,
        .statements = &pool->statements,
        .ended = &pool->ended,
        .rule = &pool->rule.server,
        .on_stranger = on_stranger,
        .on_change = on_change,
        .on_event = on_event,
        .on_closed = on_conn_closed,
        .arg = pool,
    };
    pool->handles++;
    return pg_conn_create(&options);
}

static void create_conns(struct pg_pool *pool, unsigned count)
{
    struct pg_conn **conns = allocate(count, sizeof *conns);
    for (unsigned i = 0; i < count; i++)
        conns[i] = i < pool->conn_count ? pool->conns[i] : create_conn(pool);
    free(pool->conns);
    pool->conns = conns;
    pool->conn_count = count;
}

/* New ones in front; those that were on their way to an earlier place never served. */
static void replace_conns(struct pg_pool *pool, unsigned count)
{
    unsigned kept = pool->moving ? pool->options.connections : 0;
    struct pg_conn **conns = allocate(count + pool->conn_count, sizeof *conns);
    for (unsigned i = 0; i < kept; i++)
        pg_conn_close(pool->conns[i]);
    for (unsigned i = 0; i < count; i++)
        conns[i] = create_conn(pool);
    for (unsigned i = kept; i < pool->conn_count; i++)
        conns[count + i - kept] = pool->conns[i];
    free(pool->conns);
    pool->conns = conns;
    pool->conn_count = count + pool->conn_count - kept;
    pool->options.connections = count;
    pool->moving = true;
}

void pg_pool_move(struct pg_pool *pool, const char *conninfo)
{
    if (pool->closing)
        return;
    char *copy = allocate_text(conninfo);
    free((char *)pool->options.conninfo);
    pool->options.conninfo = copy;
    replace_conns(pool, pool->options.connections);
}

/* Those that leave stay, if they are wanted again in time. */
void pg_pool_set_connections(struct pg_pool *pool, unsigned count)
{
    assert(count > 0);
    if (pool->closing || !pool->options.conninfo)
        return;
    if (pool->moving) {
        replace_conns(pool, count);
        return;
    }
    pool->options.connections = count;
    if (count > pool->conn_count)
        create_conns(pool, count);
    deliver_later(pool);
}

static int check_options(const struct pg_pool_options *options, const char **error)
{
    static _Thread_local struct pg_error why; /* libpq's reason must outlive the call */
    if (!options->conninfo)
        return 0;
    if (options->connections == 0 || options->timeout_ms == 0) {
        *error = "a pool needs at least one connection and a timeout";
        return -EINVAL;
    }
    if (pg_conninfo_check(options->conninfo, &why) < 0) {
        *error = why.text;
        return -EINVAL;
    }
    return 0;
}

int pg_pool_create(struct pg_pool **out, uv_loop_t *loop, const struct pg_pool_options *options,
                   const char **error)
{
    int rc = check_options(options, error);
    if (rc < 0)
        return rc;
    struct pg_pool *pool = allocate(1, sizeof *pool);
    pool->loop = loop;
    pool->options = *options;
    pool->statements = (struct pg_statements){options->statements, options->statement_count, 0};
    pool->options.conninfo = options->conninfo ? allocate_text(options->conninfo) : NULL;
    pool->options.application = allocate_text(options->application);
    uv_idle_init(loop, &pool->idle);
    uv_timer_init(loop, &pool->patience);
    pool->idle.data = pool->patience.data = pool;
    pool->handles = 2;
    if (!options->conninfo)
        pool->options.connections = 0;
    create_conns(pool, pool->options.connections);
    *out = pool;
    return 0;
}

void pg_pool_close(struct pg_pool *pool, void (*closed)(void *arg), void *arg)
{
    assert(!pool->closing);
    pool->closing = true;
    pool->closed = closed;
    pool->closed_arg = arg;
    pg_error_say(&pool->error, "closed");
    while (pool->waiting.first)
        end_waiting(pool, pg_queries_take(&pool->waiting), PG_DOWN, &pool->error);
    for (unsigned i = 0; i < pool->conn_count; i++)
        pg_conn_close(pool->conns[i]);
    uv_close((uv_handle_t *)&pool->idle, on_handle_closed);
    uv_close((uv_handle_t *)&pool->patience, on_handle_closed);
}
