/* Whom a build waits for: of transactions, prepared ones too, and of locks, who is in the way since
 * when, and the statement that ends it.
 *
 * Slots wait for every transaction under way, and whoever waits says nothing meanwhile; so over a
 * second session, opened now and then for one question, it is found out what the server waits for.
 */
#ifndef NESTGUARD_BUILD_WAIT_H
#define NESTGUARD_BUILD_WAIT_H

#include "postgres/pg_session.h"

#include <uv.h>

enum { BUILD_WAIT_TEXT = 512 };

struct build_wait {
    uv_mutex_t lock;            /* for the text */
    char text[BUILD_WAIT_TEXT]; /* "": for nobody, or not yet for long */
    uv_cond_t changed;          /* `ended` is */
    uv_thread_t thread;         /* the watch's, while `watching` */
    bool watching;
    atomic_bool ended;                 /* the watching; looked at by its session */
    struct pg_session_options session; /* how the watch asks */
    char pid[16];                      /* of the build's own process on the server */
};

void build_wait_init(struct build_wait *wait);
void build_wait_finish(struct build_wait *wait);

/* Sets and copies the text, on any thread; its line breaks become blanks. */
void build_wait_say(struct build_wait *wait, const char *text);
void build_wait_read(struct build_wait *wait, char text[BUILD_WAIT_TEXT]);

/* Between these two a thread of its own looks, every few seconds and first after some, whom slots
 * that are being made wait for, and the server's process `pid` ("123"; copied). Where there is no
 * thread or no session, nothing is said. */
void build_wait_watch(struct build_wait *wait, const struct pg_session_options *session,
                      const char *pid);
void build_wait_end_watch(struct build_wait *wait);

/* SQL: describes who holds a lock, of columns `pid` (NULL: a prepared transaction) and
 * `virtualtransaction` of pg_locks under the name `holder`. Without the right to see more of
 * another's session it is his process, application and role. */
#define SQL_DESCRIBE_HOLDER                                                                        \
    "coalesce((SELECT format('prepared transaction %L of database %I, since %s; this ends it, run" \
    " there: ROLLBACK PREPARED %L', p.gid, p.database, date_trunc('second', p.prepared), p.gid)"   \
    "    FROM pg_prepared_xacts p JOIN pg_locks own ON own.transactionid = p.transaction"          \
    "   WHERE holder.pid IS NULL AND own.pid IS NULL AND own.granted"                              \
    "     AND own.virtualtransaction = holder.virtualtransaction LIMIT 1),"                        \
    " (SELECT format('process %s (%s)%s; this ends it: SELECT pg_terminate_backend(%s)', a.pid,"   \
    "         concat_ws(', ', nullif(a.application_name, ''), 'role ' || quote_ident(a.usename),"  \
    "                   'database ' || quote_ident(a.datname)),"                                   \
    "         ', since ' || date_trunc('second', a.xact_start), a.pid)"                            \
    "    FROM pg_stat_activity a WHERE a.pid = holder.pid AND a.usename IS NOT NULL),"             \
    " 'process ' || holder.pid, 'a transaction')"

#endif
