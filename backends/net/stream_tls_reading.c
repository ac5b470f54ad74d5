/* From ciphertext that has come to the owner's read(). */
#include "net/stream_tls_internal.h"

#include "net/stream_tls.h"

#include <limits.h>
#include <openssl/err.h>

enum { READ_BYTES = 64 * 1024 }; /* that an owner is asked to have room for */

/* A visit decrypts for so long; small records take as much of it as large ones. In a turn of the
 * loop that has taken more than a millisecond, accepted streams give way at once: anybody may bring
 * many of them. Dialed ones are few, and many may wait for what would come a record a turn. */
enum { VISIT_NS = 250 * 1000, NS_OF_MS = 1000 * 1000 };

/* A peer may change its keys, but whoever does so more often, and says nothing between, wants us to
 * be busy with that (BoringSSL has the same bound). */
enum { MESSAGES_MOST = 32 };

static void tell_end(struct tls_stream *tls, ssize_t end)
{
    uv_buf_t none = {0};
    uv_read_cb read = tls->read;
    stream_tls_read_stop(tls);
    read(&tls->stream->stream, end, &none);
}

/* After SSL_read() gave nothing: the end that this is, or 0 when there may be more. A peer that
 * leaves without its farewell is taken like one that closed: replies and commands say themselves
 * where they end. */
static ssize_t end_of_reading(struct tls_stream *tls, int count)
{
    switch (SSL_get_error(tls->ssl, count)) {
    case SSL_ERROR_WANT_READ:
        return tls->end;
    case SSL_ERROR_ZERO_RETURN:
        return UV_EOF;
    default:
        return UV_EPROTO;
    }
}

/* Of what OpenSSL has already, and of an end that was seen, no event of the socket will tell. */
static bool has_input(const struct tls_stream *tls)
{
    return tls->end || SSL_pending(tls->ssl) || BIO_pending(tls->in);
}

/* A message of TLS itself was read, and there is more behind it: OpenSSL tells each
 * (SSL_MODE_AUTO_RETRY), or it would go through any number of them in one call. */
static bool has_passed_message(struct tls_stream *tls, int count)
{
    return SSL_get_error(tls->ssl, count) == SSL_ERROR_WANT_READ && BIO_pending(tls->in) > 0 &&
           ++tls->messages <= MESSAGES_MOST;
}

static bool must_give_way(const struct tls_stream *tls, uint64_t begun)
{
    uint64_t now = uv_hrtime(), turn = uv_now(tls->stream->handle.loop);
    bool is_late = SSL_is_server(tls->ssl) && now / NS_OF_MS > turn + 1;
    return tls->read && !tls->closing && has_input(tls) && (is_late || now - begun > VISIT_NS);
}

/* It goes on in the next turn. Until then nothing is read, so that the peer feels it, too. */
static void wait_for_turn(struct tls_stream *tls)
{
    tls->waits = true;
    uv_read_stop(&tls->stream->stream);
    stream_tls_wake(tls);
}

static void read_on(struct tls_stream *tls)
{
    if (tls->waits && tls->read && !tls->closing && !tls->end)
        stream_tls_listen(tls);
    tls->waits = false;
}

/* After SSL_read() gave nothing, and will not now. */
static void stop_delivering(struct tls_stream *tls, int count)
{
    ssize_t end = tls->messages > MESSAGES_MOST ? UV_EPROTO : end_of_reading(tls, count);
    stream_tls_send_out(tls);
    if (end)
        tell_end(tls, end);
    else
        read_on(tls);
}

/* The owner may stop reading, or close, whenever it is called; and may have a place for the bytes,
 * but none of them now. */
void stream_tls_deliver(struct tls_stream *tls)
{
    uv_buf_t room;
    uint64_t begun = uv_hrtime();
    while (tls->read && !tls->closing) {
        tls->room(&tls->stream->handle, READ_BYTES, &room);
        if (room.base && !room.len) {
            wait_for_turn(tls);
            return;
        }
        if (!room.base) { /* as libuv does it */
            tell_end(tls, UV_ENOBUFS);
            return;
        }
        ERR_clear_error();
        int count = SSL_read(tls->ssl, room.base, room.len < INT_MAX ? (int)room.len : INT_MAX);
        if (count > 0) {
            tls->messages = 0;
            tls->read(&tls->stream->stream, count, &room);
        } else if (!has_passed_message(tls, count)) {
            stop_delivering(tls, count);
            return;
        }
        if (must_give_way(tls, begun)) {
            wait_for_turn(tls);
            return;
        }
    }
}

void stream_tls_read_start(struct tls_stream *tls, uv_alloc_cb room, uv_read_cb read)
{
    tls->room = room;
    tls->read = read;
    if (has_input(tls))
        stream_tls_wake(tls);
    if (!tls->end)
        stream_tls_listen(tls);
}

void stream_tls_read_stop(struct tls_stream *tls)
{
    tls->room = NULL;
    tls->read = NULL;
    tls->waits = false;
    uv_read_stop(&tls->stream->stream);
}
