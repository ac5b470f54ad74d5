/* A connection over TCP or a unix socket, encrypted or not: what it is matters only when it is
 * opened. All traffic goes through the functions here, with libuv's own callbacks.
 */
#ifndef NESTGUARD_STREAM_H
#define NESTGUARD_STREAM_H

#include <stdbool.h>
#include <uv.h>

struct handshake_line; /* see handshakes.h */
struct ssl_ctx_st;     /* see tls.h */
struct tls_stream;

/* `handle.data` is the owner's. */
struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    struct tls_stream *tls; /* NULL: bytes travel as they are */
};

/* Initialises for TCP or, with `is_unix`, for a unix socket. 0 or a negative errno. */
int stream_init(struct stream *stream, uv_loop_t *loop, bool is_unix);

/* Takes over an open descriptor. 0 or a negative errno. */
int stream_open(struct stream *stream, int fd);

/* No delay and keep-alive, where they apply. */
void stream_tune(struct stream *stream);

/* `error` is NULL, or says what went wrong and lives until the call returns. */
typedef void (*stream_secured_cb)(void *arg, const char *error);

/* Encrypts whatever is sent from now on: as the accepting side, which takes turns with the others
 * of its line, that of the peer's host, and others' lines; or as the calling one, which demands a
 * certificate for `host`, a name or an address. `done` is called once, unless the stream is closed
 * before; only then may it be read and written, and with an error only be closed. 0 or a negative
 * errno. The context is used beyond the call, by a reference of its own; the line, until the stream
 * is closed. */
int stream_secure_accepted(struct stream *stream, struct ssl_ctx_st *context,
                           struct handshake_line *line, stream_secured_cb done, void *arg);
int stream_secure_dialed(struct stream *stream, struct ssl_ctx_st *context, const char *host,
                         stream_secured_cb done, void *arg);

/* As libuv's functions of these names. `room` may give no bytes, but a place, to be asked again in
 * the loop's next turn: nothing is lost, and if `read` is called at all, it is with UV_ENOBUFS and
 * that place. Without a place, that is the end. */
void stream_read_start(struct stream *stream, uv_alloc_cb room, uv_read_cb read);
void stream_read_stop(struct stream *stream);

/* How many bytes were taken, from the first on; UV_EAGAIN: none just now; or another
 * negative errno: none will be any more. */
int stream_try_write(struct stream *stream, const char *bytes, size_t length);

/* `bytes` must stay until `written` was called, which gets 0 when the kernel has taken all of them,
 * and UV_ECANCELED when the stream was closed before. One at a time. 0, or a negative errno: then
 * it is not called. */
int stream_write(struct stream *stream, uv_write_t *write, const char *bytes, size_t length,
                 uv_write_cb written);

/* Bytes that were given and that the kernel has not taken yet. */
size_t stream_queued(const struct stream *stream);

/* Bytes of memory that it has for what is on its way, beside the owner's; 0 without encryption. */
size_t stream_memory(const struct stream *stream);

/* Who is at the other end, for people: "[::1]:40000", or "unix". */
enum { STREAM_PEER_SIZE = 64 };
void stream_peer(const struct stream *stream, char text[STREAM_PEER_SIZE]);
void stream_local(const struct stream *stream, char text[STREAM_PEER_SIZE]); /* and at this one */

/* Of any stream that was initialised, once. `closed` comes later, after the `written` of a write
 * that was under way, and gets the handle, whose memory is the owner's again. */
void stream_close(struct stream *stream, uv_close_cb closed);

#endif
