/* All connections speak with one server:
 *
 *   a generation is built ─▶ its server ─▶ loads, checks, probes: no other will do
 *   a connection leads to another ─▶ the generation is given up, any server will do ─▶ a new one
 *
 * A row that the log has told of is on the server of that log; another server, asked for it, may
 * say that there is none. So what another server would answer is not even asked for.
 *
 * New connections lead to where the application's lead: when that is another primary, the database
 * has moved, though the old one may live on, with a stream that never ends. A standby is another
 * matter: it may lag behind what is known already, and behind a balancer a later attempt finds the
 * primary again. Only where no log is followed it may be the database itself, if there was no
 * primary before it; then another standby takes its place when no load's connection finds it any
 * more. If it has gone back (pg_server.h) it is waited for: it comes again to where it was.
 *
 * While no server is known, at the start and after the one before was left, any that is good enough
 * will do: nothing is rejected then, and what is filled is purged when a log is followed. But when
 * two probes were answered by different servers, what was opened before leads to what was the
 * database then: its rows, or its lack of them, are nothing to answer with.
 */
#ifndef NESTGUARD_SERVER_WATCH_H
#define NESTGUARD_SERVER_WATCH_H

#include "postgres/pg_pool.h"

enum { SERVER_POOLS = 3 };

struct server_watch_options {
    bool follows; /* a log: of a primary, which holds only until that is restarted */
    /* They are kept to the server; the first is the loads'. NULL: there is none. */
    struct pg_pool *pools[SERVER_POOLS];
    /* What is of the server before is to be given up. */
    void (*left)(void *arg, const char *why);
    /* Another conninfo leads to another server, while the one before still serves (pg_pool_move()):
     * a generation of that one is to be built first. */
    void (*moves)(void *arg);
    void *arg;
};

struct server_watch {
    struct server_watch_options options;
    struct pg_server_rule rule; /* for all connections */
    char heard[32];             /* when the server that was heard of last was started; "": none */
    bool ended;
};

/* Any server that is good enough will do. */
void server_watch_open(struct server_watch *watch, const struct server_watch_options *options);
void server_watch_end(struct server_watch *watch); /* the guard is ending: nothing is left */

/* A generation is built, of that server. False: it is a standby where a primary was before, or has
 * gone back behind what the one before was built from, and nothing was done. */
bool server_watch_keep_to(struct server_watch *watch, const struct pg_server *server);

/* A probe was answered by the server that was started then, in the words of pg_server.started. */
void server_watch_heard(struct server_watch *watch, const char *started);

#endif
