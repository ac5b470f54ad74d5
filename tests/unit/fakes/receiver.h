/* What the tests of streams share: a server, an SQL connection beside the stream, and a receiver
 * that keeps what it is told.
 */
#ifndef NESTGUARD_FAKES_RECEIVER_H
#define NESTGUARD_FAKES_RECEIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fakes/servers.h"
#include "postgres/log/pg_stream.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, STEP_MS = 5 };

extern struct server server;

extern PGconn *db;

extern uv_loop_t loop;

extern uv_timer_t step;

extern atomic_bool stop;

const char *conninfo(const char *more);

/* The first value of the answer, "" when there is none. */
const char *ask_on(PGconn *pq, const char *sql);
const char *sql(const char *statement);

uint64_t lsn_of(const char *text);

uint64_t now_ms(void);

/* The receiver. */

struct seen {
    struct pg_stream *stream;
    size_t messages, inserts, commits, positions, lost, closed;
    int64_t sum;        /* of the inserted ids */
    unsigned char *ids; /* how often each was inserted; may be NULL */
    uint64_t end, position;
    struct pg_error error;
    bool confirms; /* each commit and position */
    void (*on_insert)(struct seen *seen);
    int refuse;    /* what message() returns */
    bool in_block; /* of a transaction in progress */
};

/* What it does with what a stream tells, for a `struct seen`. */
extern const struct pg_stream_events seeing;
int see_message(void *arg, uint64_t lsn, const char *bytes, size_t length);
void see_position(void *arg, uint64_t lsn);
void see_lost(void *arg, const struct pg_error *error);
void see_closed(void *arg);

/* The loop. */

void run_for(uint64_t ms);

/* Runs the loop until *counter has reached `wanted`. */
void run_until(const size_t *counter, size_t wanted);

void run_until_sql(const char *query, const char *wanted);

/* ALTER SYSTEM for one setting; the server takes it up when it is started or told to. */
void set_in_server(const char *assignment);

/* Commits that wait for a standby. */

void start_insert(PGconn *pq);

bool is_busy(PGconn *pq);

void finish_insert(PGconn *pq);

void name_standbys(const char *names);

bool waits_for_standby(PGconn *pq);

/* Returns how many were needed: the process that shows a setting has learnt of it, but commits do
 * not wait until the last of the server's processes has. The last insert is under way. */
size_t insert_until_one_waits(PGconn *pq);

/* A stream's life. */

int try_open(struct pg_stream **out, const char *more, struct pg_error *error);

void open_stream(struct seen *seen, const char *more);

void start_stream(struct seen *seen);

/* Nothing comes after the call, and the slot is gone soon. */
void close_stream(struct seen *seen);

/* Fixtures: a loop for each test, which it leaves empty, and a server for all. */

int open_loop(void **state);

int close_loop(void **state);

void connect_db(void);

int start_server(void **state);

int end_server(void **state);

void restart_server(int signal);

#define in_a_loop(test) cmocka_unit_test_setup_teardown(test, open_loop, close_loop)

#endif
