/* A stream of the database's log that the test holds in its hands: it feeds messages to whoever
 * listens. */
#ifndef NESTGUARD_FAKES_PG_STREAM_H
#define NESTGUARD_FAKES_PG_STREAM_H

#include "postgres/log/pg_stream.h"

extern struct fake_stream {
    const struct pg_stream_events *events;
    void *arg;
    bool closed, paused;
    void (*on_closed)(void *arg);
    void *closed_arg;
    uint64_t confirmed;
    uint32_t committed; /* the last transaction that was */
    uint32_t writer;    /* whose changes are fed in a streamed block; 0: outside of one */
} stream;

#endif
