/* A few PostgreSQL connections on an event loop, each in pipeline mode with the same prepared
 * statements.
 *
 *   submit ──▶ least busy live connection ──▶ PQsendQueryPrepared + PQpipelineSync ──▶ answer
 *
 * Answers of one connection come one behind the other, so the first that is up is kept for small
 * ones, where there is another: those never have to wait for a large one to come in.
 *
 * Every query has a Sync of its own, so that one that fails takes no other with it. A connection
 * that is lost fails its queries, and comes back by itself with backoff (100 ms doubling to 5 s).
 */
#ifndef NESTGUARD_PG_POOL_H
#define NESTGUARD_PG_POOL_H

#include "postgres/pg_answer.h"
#include "postgres/pg_server.h"
#include <stdint.h>
#include <uv.h>

struct pg_pool;

/* Connection events, for the log: `error` is NULL when a connection came up. Called on the loop,
 * once for each change, not for every failed attempt. */
typedef void (*pg_pool_state_cb)(void *arg, unsigned live, const struct pg_error *error);

struct pg_pool_options {
    const char *conninfo;    /* NULL: there is no server, and no connection is made */
    const char *application; /* fallback_application_name */
    unsigned connections;    /* 1 or more; all are opened at once */
    uint64_t timeout_ms;     /* statement_timeout of the connections, and how long to wait for a
                                connection */
    const struct pg_statement *statements; /* must outlive the pool */
    size_t statement_count;
    pg_pool_state_cb on_state; /* may be NULL */
    void *arg;
};

/* 0, or -EINVAL with *error, which stays until this thread makes another pool: the conninfo makes
 * no sense, or a number is 0. Its texts are copied. All functions are for the loop's thread. */
int pg_pool_create(struct pg_pool **out, uv_loop_t *loop, const struct pg_pool_options *options,
                   const char **error);

/* Sends statement number `statement` with text parameters, which are copied. `done` is called
 * exactly once, on the loop, never before this function has returned: also with PG_DOWN when every
 * connection is in backoff. While the first attempts to connect are still under way the query waits
 * for them, timeout_ms at most. A connection whose oldest query has had no answer for timeout_ms +
 * 1 s is given up: its queries end with PG_TIMEOUT, those that came later `early`, and it is opened
 * anew. Who asks again then does so over another, or where none is up waits for that one attempt.
 */
void pg_pool_submit(struct pg_pool *pool, size_t statement, const char *const *values,
                    pg_answer_cb done, void *arg);

/* From now on these are the statements, no fewer than before; `statements` takes the place of that
 * of the options, whose texts are not needed any more. Each is prepared anew when next used. A
 * number's parameters stay what they were, for queries may still be on their way. */
void pg_pool_use_statements(struct pg_pool *pool, const struct pg_statement *statements,
                            size_t count);

/* For connections opened, and queries sent, from now on. */
void pg_pool_set_timeout(struct pg_pool *pool, uint64_t timeout_ms);

/* So many from now on, 1 or more. Those that are too many take no more queries, and go when those
 * that they have are answered. */
void pg_pool_set_connections(struct pg_pool *pool, unsigned count);

/* New connections are opened by this conninfo, which must make sense. Those that there are go on
 * as before, by theirs, until one of the new is up; then they go when they have answered. */
void pg_pool_move(struct pg_pool *pool, const char *conninfo);

/* Only connections to a server that will do are up: others are closed, those that are opened and
 * those that there are, whose queries end with PG_DOWN, and tried again with backoff. `on_stranger`
 * (may be NULL) is told of each that was opened and led to another, in an event of its own. To
 * begin with any server will do. */
struct pg_pool_rule {
    struct pg_server_rule server;
    void (*on_stranger)(void *arg, const struct pg_server *server);
    void (*on_other)(void *arg); /* told instead while those before still serve; may be NULL */
    void *arg;
};
void pg_pool_keep_to(struct pg_pool *pool, const struct pg_pool_rule *rule);

/* New connections may lead to another server: every connection is opened anew, once the queries
 * that it has are answered. */
void pg_pool_renew(struct pg_pool *pool);

unsigned pg_pool_live(const struct pg_pool *pool); /* connections that are up */
/* Why the connection that went down last did, while not all are up; or NULL. */
const struct pg_error *pg_pool_error(const struct pg_pool *pool);
size_t pg_pool_in_flight(const struct pg_pool *pool); /* queries without an answer */

/* Ends every query with PG_DOWN and closes all; `closed` is called when the last handle is gone and
 * the pool's memory has been freed. */
void pg_pool_close(struct pg_pool *pool, void (*closed)(void *arg), void *arg);

#endif
