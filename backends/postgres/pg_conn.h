/* One connection of the pool: opens itself, watches its socket and its deadlines, and opens itself
 * anew with backoff when it is lost. Private to backends/.
 *
 *            ┌──────────── timer ────────────┐
 *            ▼                               │
 *   (new) WAITING ──▶ CONNECTING ──▶ SETTING ──▶ UP      (any of them) ──▶ CLOSED
 *            ▲            │             │         │
 *            └── backoff ─┴─────────────┴─────────┘
 */
#ifndef NESTGUARD_PG_CONN_H
#define NESTGUARD_PG_CONN_H

#include "postgres/pg_query.h"
#include "postgres/pg_server.h"
#include <uv.h>

struct pg_conn;

struct pg_conn_options {
    uv_loop_t *loop;
    const char *conninfo;    /* is copied */
    const char *application; /* must outlive the connection */
    uint64_t timeout_ms;
    const struct pg_statements *statements; /* must outlive the connection */
    const struct pg_server_rule *rule; /* the server that will do; must outlive the connection */
    struct pg_queries *ended;          /* where queries go when they have ended */
    /* It came up (`error` is NULL), or it is down: told again for another reason than the last one,
     * but not for each of many. */
    void (*on_change)(void *arg, const struct pg_error *error);
    /* It led to a server that will not do, and is down. */
    void (*on_stranger)(void *arg, const struct pg_conn *conn, const struct pg_server *server);
    /* At the end of everything that the loop made it do: queries may have ended. */
    void (*on_event)(void *arg);
    void (*on_closed)(void *arg); /* the memory is gone */
    void *arg;
};

struct pg_conn *pg_conn_create(const struct pg_conn_options *options);

bool pg_conn_is_up(const struct pg_conn *conn);
/* The first attempt to connect is under way, or another is about to be made that is worth waiting
 * for: it was opened anew by will, or given up since it hung. */
bool pg_conn_is_new(const struct pg_conn *conn);
size_t pg_conn_depth(const struct pg_conn *conn);
size_t pg_conn_large(const struct pg_conn *conn); /* queries of large answers under way */

/* Only while it is up. Sets the query's deadline. */
void pg_conn_send(struct pg_conn *conn, struct pg_query *query);
void pg_conn_set_timeout(struct pg_conn *conn, uint64_t timeout_ms);

/* Opens it anew when the queries under way have been answered; until then it is not up. */
void pg_conn_renew(struct pg_conn *conn);

/* Its next attempt is made at once, and is worth waiting for: it is new again. */
void pg_conn_hasten(struct pg_conn *conn);

/* The rule has changed: if it leads to a server that will not do any more, its queries end with
 * PG_DOWN, and it is opened anew. */
void pg_conn_check_server(struct pg_conn *conn);

/* Ends its queries with PG_DOWN. No event but on_closed follows. */
void pg_conn_close(struct pg_conn *conn);

#endif
