/* The choice between the two halves of a stream: as soon as it is to be encrypted it has a `tls`,
 * and every call goes to stream_tls.c, which moves its bytes over the same libuv handle. What only
 * libuv knows, addresses and options of the socket, is the same for both.
 */
#include "net/stream.h"

#include "net/stream_tls.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Idle for so long, a peer is asked whether it is still there: one that vanished says nothing. */
enum { KEEPALIVE_SECONDS = 60 };

int stream_init(struct stream *stream, uv_loop_t *loop, bool is_unix)
{
    stream->tls = NULL;
    return is_unix ? uv_pipe_init(loop, &stream->pipe, 0) : uv_tcp_init(loop, &stream->tcp);
}

int stream_open(struct stream *stream, int fd)
{
    return stream->handle.type == UV_NAMED_PIPE ? uv_pipe_open(&stream->pipe, fd)
                                                : uv_tcp_open(&stream->tcp, fd);
}

/* Users gather what they write by themselves, so that waiting for more (Nagle) would only delay
 * it. */
void stream_tune(struct stream *stream)
{
    if (stream->handle.type != UV_TCP)
        return;
    uv_tcp_nodelay(&stream->tcp, 1);
    uv_tcp_keepalive(&stream->tcp, 1, KEEPALIVE_SECONDS);
}

void stream_read_start(struct stream *stream, uv_alloc_cb room, uv_read_cb read)
{
    if (stream->tls)
        stream_tls_read_start(stream->tls, room, read);
    else
        uv_read_start(&stream->stream, room, read);
}

void stream_read_stop(struct stream *stream)
{
    if (stream->tls)
        stream_tls_read_stop(stream->tls);
    else
        uv_read_stop(&stream->stream);
}

int stream_try_write(struct stream *stream, const char *bytes, size_t length)
{
    if (stream->tls)
        return stream_tls_try_write(stream->tls, bytes, length);
    uv_buf_t piece = {.base = (char *)bytes, .len = length};
    return uv_try_write(&stream->stream, &piece, 1);
}

int stream_write(struct stream *stream, uv_write_t *write, const char *bytes, size_t length,
                 uv_write_cb written)
{
    if (stream->tls)
        return stream_tls_write(stream->tls, write, bytes, length, written);
    uv_buf_t piece = {.base = (char *)bytes, .len = length};
    return uv_write(write, &stream->stream, &piece, 1, written);
}

size_t stream_queued(const struct stream *stream)
{
    return stream->tls ? stream_tls_queued(stream->tls)
                       : uv_stream_get_write_queue_size(&stream->stream);
}

size_t stream_memory(const struct stream *stream)
{
    return stream->tls ? stream_tls_memory(stream->tls) : 0;
}

void stream_close(struct stream *stream, uv_close_cb closed)
{
    if (stream->tls)
        stream_tls_close(stream->tls, closed);
    else
        uv_close(&stream->handle, closed);
}

typedef int (*name_of)(const uv_tcp_t *, struct sockaddr *, int *);

static void write_address(const struct stream *stream, name_of name, char text[STREAM_PEER_SIZE])
{
    struct sockaddr_storage at = {0};
    int length = sizeof at;
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in6 *at6 = (const struct sockaddr_in6 *)&at;
    const struct sockaddr_in *at4 = (const struct sockaddr_in *)&at;
    if (stream->handle.type != UV_TCP || name(&stream->tcp, (struct sockaddr *)&at, &length) < 0)
        snprintf(text, STREAM_PEER_SIZE, "%s", stream->handle.type == UV_TCP ? "unknown" : "unix");
    else if (at.ss_family == AF_INET6 && uv_ip6_name(at6, host, sizeof host) == 0)
        snprintf(text, STREAM_PEER_SIZE, "[%s]:%u", host, ntohs(at6->sin6_port));
    else if (uv_ip4_name(at4, host, sizeof host) == 0)
        snprintf(text, STREAM_PEER_SIZE, "%s:%u", host, ntohs(at4->sin_port));
}

void stream_peer(const struct stream *stream, char text[STREAM_PEER_SIZE])
{
    write_address(stream, uv_tcp_getpeername, text);
}

void stream_local(const struct stream *stream, char text[STREAM_PEER_SIZE])
{
    write_address(stream, uv_tcp_getsockname, text);
}
