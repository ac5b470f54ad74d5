/* A TCP or unix-socket handle: which one it is matters only when it is opened. */
#ifndef NESTGUARD_STREAM_H
#define NESTGUARD_STREAM_H

#include <stdbool.h>
#include <uv.h>

union stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

/* Initialises for TCP or, with `is_unix`, for a unix socket. 0 or a negative errno. */
int stream_init(union stream *stream, uv_loop_t *loop, bool is_unix);

/* Takes over an open descriptor. 0 or a negative errno. */
int stream_open(union stream *stream, int fd);

/* No delay and keep-alive, where they apply. */
void stream_tune(union stream *stream);

#endif
