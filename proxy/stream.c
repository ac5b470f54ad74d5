#include "stream.h"

enum { KEEPALIVE_SECONDS = 60 };

int stream_init(union stream *stream, uv_loop_t *loop, bool is_unix)
{
    return is_unix ? uv_pipe_init(loop, &stream->pipe, 0) : uv_tcp_init(loop, &stream->tcp);
}

int stream_open(union stream *stream, int fd)
{
    return stream->handle.type == UV_NAMED_PIPE ? uv_pipe_open(&stream->pipe, fd)
                                                : uv_tcp_open(&stream->tcp, fd);
}

void stream_tune(union stream *stream)
{
    if (stream->handle.type != UV_TCP)
        return;
    uv_tcp_nodelay(&stream->tcp, 1);
    uv_tcp_keepalive(&stream->tcp, 1, KEEPALIVE_SECONDS);
}
