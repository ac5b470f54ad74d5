/* What differs between TCP and unix sockets, in one place; all else takes the uv_stream_t that
 * both begin with.
 */
#include "stream.h"

/* Idle for so long, a peer is asked whether it is still there: one that vanished says nothing. */
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

/* Writes are gathered by turn.h, so that waiting for more (Nagle) would only delay them. */
void stream_tune(union stream *stream)
{
    if (stream->handle.type != UV_TCP)
        return;
    uv_tcp_nodelay(&stream->tcp, 1);
    uv_tcp_keepalive(&stream->tcp, 1, KEEPALIVE_SECONDS);
}
