/* A replication stream of PostgreSQL, made by a thread that may wait, then followed on an event
 * loop: a logical one (plugin pgoutput, protocol version 2, with transactions in progress), or a
 * physical one, of the log's bytes.
 *
 *   pg_stream_open()   waits: replication connection, temporary slot, exported snapshot
 *        │             meanwhile others COPY under the snapshot
 *   pg_stream_start()  on the loop: from the slot's consistent point ──▶ message(), position()
 *        │                                                           ◀── confirm, ask, pause
 *   pg_stream_close()
 *
 * The slot is temporary: it dies with the connection, so that a guard that is gone never makes the
 * database keep its log. A physical stream has none, and no snapshot: it begins where the log ends
 * when it is opened, and is good for confirming what it is sent.
 */
#ifndef NESTGUARD_PG_STREAM_H
#define NESTGUARD_PG_STREAM_H

#include "postgres/pg_session.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pg_stream;

struct pg_stream_options {
    const char *conninfo, *application; /* these and the next two: as struct pg_session_options */
    unsigned connect_timeout;
    const atomic_bool *stop; /* looked at by pg_stream_open() alone */
    const char *publication; /* its name, unquoted; copied. NULL: a physical stream */
};

/* Waits: for the server and, with a slot, for all transactions that are under way there to end. On
 * 0, *out has a slot whose changes begin at its consistent point. Errors as pg_session_open(), and
 * -EPROTO when the server refuses the slot. The publication must be there before the slot is made.
 * Whether it is, the server only looks when it has a change to send: a wrong one is told by lost().
 */
int pg_stream_open(struct pg_stream **out, const struct pg_stream_options *options,
                   struct pg_error *error);

/* The snapshot of exactly the rows that were committed before the consistent point. It is there to
 * be imported (SET TRANSACTION SNAPSHOT) until pg_stream_start() is called. */
const char *pg_stream_snapshot(const struct pg_stream *stream);
uint64_t pg_stream_consistent_point(const struct pg_stream *stream);
const struct pg_server *pg_stream_server(const struct pg_stream *stream); /* whose log it is */

/* All come on the loop, never from inside a function of this header, and never after
 * pg_stream_close(). Each of them may call every function below. */
struct pg_stream_events {
    /* One message of the plugin, or bytes of the log; they live until the call returns. `lsn` is
     * where the server says that they begin. Anything but 0 ends the stream with lost(). */
    int (*message)(void *arg, uint64_t lsn, const char *bytes, size_t length);
    /* Every transaction whose commit record ends at `lsn` or before it has been delivered. Comes
     * from the server's keepalives alone: not after each commit (whose end_lsn says the same), but
     * often while it reads log that holds nothing for us, and for every pg_stream_ask(). It may
     * come between the messages of a transaction, whose end then lies behind `lsn`, and may be
     * less than an earlier one or than the end of the last commit. */
    void (*position)(void *arg, uint64_t lsn);
    /* The stream has ended, and its connection is closed already; only pg_stream_close() can
     * follow. Comes once. What the server sent before its end has been delivered, unless the
     * stream is paused. */
    void (*lost)(void *arg, const struct pg_error *error);
};

/* Begins to follow, on any loop. 0, or a negative errno with *error: then the stream can only be
 * closed, and no event comes. */
int pg_stream_start(struct pg_stream *stream, uv_loop_t *loop,
                    const struct pg_stream_events *events, void *arg, struct pg_error *error);

/* The three below are called on the loop after pg_stream_start(), and do nothing after lost(). */

/* Tells the server that everything before `lsn` is applied: it may forget that log, and let go
 * commits that wait for this standby. Before the first call no commit waits for it, nor is let go
 * by it. It is sent in this turn of the loop or at the start of the next, once for all calls until
 * then; the highest `lsn` counts. The last one is repeated every second, so that the server does
 * not take a silent stream for a dead one. */
void pg_stream_confirm(struct pg_stream *stream, uint64_t lsn);

/* Asks the server for its position, which comes as position(). Calls that go out together are
 * answered once. */
void pg_stream_ask(struct pg_stream *stream);

/* Stops and goes on reading: while others cannot keep up. No message and no position comes while it
 * is paused, starting with the call; lost() can, up to two seconds late. */
void pg_stream_pause(struct pg_stream *stream, bool paused);

/* Closes the connection, and with it the slot. `closed` (may be NULL) is called when the memory is
 * gone. A stream that was not started, or could not be, may be closed on any thread; `closed` is
 * then called before this returns. NULL is not allowed. */
void pg_stream_close(struct pg_stream *stream, void (*closed)(void *arg), void *arg);

#endif
