#include "fakes/pg_stream.h"

struct fake_stream stream;

int pg_stream_start(struct pg_stream *of, uv_loop_t *loop, const struct pg_stream_events *events,
                    void *arg, struct pg_error *error)
{
    (void)of, (void)loop, (void)error;
    stream.events = events;
    stream.arg = arg;
    return 0;
}

void pg_stream_close(struct pg_stream *of, void (*closed)(void *arg), void *arg)
{
    (void)of;
    stream.closed = true;
    stream.on_closed = closed;
    stream.closed_arg = arg;
}

void pg_stream_confirm(struct pg_stream *of, uint64_t lsn)
{
    (void)of;
    stream.confirmed = lsn;
}

void pg_stream_ask(struct pg_stream *of)
{
    (void)of;
}

void pg_stream_pause(struct pg_stream *of, bool paused)
{
    (void)of;
    stream.paused = paused;
}
