/* OpenSSL works on memory here, and libuv moves the bytes:
 *
 *   kernel ─▶ on_cipher ─▶ in ─▶ SSL_read ─▶ the owner's read()
 *   kernel ◀─ send ◀────── out ◀─ SSL_write ◀─ try_write(), write()
 *
 * At most one piece of ciphertext is on its way; while it is, nothing more is encrypted. So a value
 * of any size passes through in pieces, and a slow reader holds its writer up as without TLS.
 *
 * The owner's callbacks never run inside its own calls, as with libuv: what is due at once is done
 * by the idle handle.
 */
#include "net/stream_tls.h"

#include "net/allocate.h"
#include "net/stream_tls_internal.h"
#include "net/tls.h"

#include <errno.h>
#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

/* Bytes that are encrypted at a time, and that are read; and what each direction may keep for
 * ciphertext while there is none. */
enum { PIECE = 64 * 1024, CIPHER_BYTES = 64 * 1024, KEPT = 16 * 1024 };

/* ---- memory ---- */

static size_t size_of(BIO *bio)
{
    BUF_MEM *memory;
    BIO_get_mem_ptr(bio, &memory);
    return memory->max;
}

/* OpenSSL's memory only grows, and is wiped as a whole whenever it is emptied. */
static void give_back(BIO *bio)
{
    if (!BIO_pending(bio) && size_of(bio) > KEPT)
        BIO_set_mem_buf(bio, allocated(BUF_MEM_new()), BIO_CLOSE);
}

size_t stream_tls_memory(const struct tls_stream *tls)
{
    return size_of(tls->in) + size_of(tls->out) +
           uv_stream_get_write_queue_size(&tls->stream->stream);
}

/* ---- sending ---- */

static void on_idle(uv_idle_t *idle);

void stream_tls_wake(struct tls_stream *tls)
{
    uv_idle_start(&tls->idle, on_idle);
}

static void go_on(struct tls_stream *tls);

static void on_sent(uv_write_t *sending, int status)
{
    struct tls_stream *tls = sending->data;
    free(tls->piece);
    tls->piece = NULL;
    if (status < 0)
        tls->failed = status;
    if (!tls->closing)
        go_on(tls);
}

/* libuv keeps the bytes, so they leave OpenSSL's buffer, which moves. */
static void send_later(struct tls_stream *tls, const char *bytes, size_t length)
{
    tls->piece = allocate(1, length);
    memcpy(tls->piece, bytes, length);
    tls->sending.data = tls;
    uv_buf_t piece = uv_buf_init(tls->piece, (unsigned)length);
    int status = uv_write(&tls->sending, &tls->stream->stream, &piece, 1, on_sent);
    if (status == 0)
        return;
    free(tls->piece);
    tls->piece = NULL;
    tls->failed = status;
}

void stream_tls_send_out(struct tls_stream *tls)
{
    char *bytes;
    long length = BIO_get_mem_data(tls->out, &bytes);
    if (tls->piece || tls->failed || length <= 0)
        return;
    uv_buf_t piece = uv_buf_init(bytes, (unsigned)length);
    int taken = uv_try_write(&tls->stream->stream, &piece, 1);
    if (taken < 0 && taken != UV_EAGAIN)
        tls->failed = taken;
    size_t done = taken > 0 ? (size_t)taken : 0;
    if (!tls->failed && done < (size_t)length)
        send_later(tls, bytes + done, (size_t)length - done);
    (void)BIO_reset(tls->out);
    if (!tls->write)
        give_back(tls->out);
}

/* Encrypts a piece of it; the number of bytes, or a negative errno. */
static int encrypt(struct tls_stream *tls, const char *bytes, size_t length)
{
    ERR_clear_error();
    int count = SSL_write(tls->ssl, bytes, length < PIECE ? (int)length : PIECE);
    stream_tls_send_out(tls);
    if (count <= 0)
        return UV_EPROTO;
    return tls->failed ? tls->failed : count;
}

/* The owner's write, as far as the kernel takes it. */
static void pump(struct tls_stream *tls)
{
    while (tls->write && !tls->failed && !tls->piece && tls->rest_length) {
        int count = encrypt(tls, tls->rest, tls->rest_length);
        if (count < 0) {
            tls->failed = count;
            return;
        }
        tls->rest += count;
        tls->rest_length -= (size_t)count;
    }
}

static bool is_written(const struct tls_stream *tls)
{
    return tls->write && (tls->failed || (!tls->rest_length && !tls->piece));
}

static void tell_written(struct tls_stream *tls, int status)
{
    uv_write_t *write = tls->write;
    tls->write = NULL;
    give_back(tls->out);
    tls->written(write, status);
}

static void go_on(struct tls_stream *tls)
{
    stream_tls_send_out(tls); /* what the other direction had to say meanwhile */
    pump(tls);
    if (is_written(tls))
        tell_written(tls, tls->failed);
}

int stream_tls_try_write(struct tls_stream *tls, const char *bytes, size_t length)
{
    if (tls->failed)
        return tls->failed;
    if (tls->piece || tls->write || tls->secured)
        return UV_EAGAIN;
    return length ? encrypt(tls, bytes, length) : 0;
}

int stream_tls_write(struct tls_stream *tls, uv_write_t *write, const char *bytes, size_t length,
                     uv_write_cb written)
{
    if (tls->failed)
        return tls->failed;
    tls->write = write;
    tls->written = written;
    tls->rest = bytes;
    tls->rest_length = length;
    write->handle = &tls->stream->stream;
    pump(tls);
    if (is_written(tls))
        stream_tls_wake(tls);
    return 0;
}

size_t stream_tls_queued(const struct tls_stream *tls)
{
    return (tls->write ? tls->rest_length : 0) +
           uv_stream_get_write_queue_size(&tls->stream->stream);
}

/* ---- the handshake ---- */

static void describe(const SSL *ssl, char *out, size_t size)
{
    long verdict = SSL_get_verify_result(ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (verdict != X509_V_OK)
        snprintf(out, size, "TLS: the peer's certificate: %s",
                 X509_verify_cert_error_string(verdict));
    else
        snprintf(out, size, "TLS: %s", reason ? reason : "the handshake failed");
}

static void end_handshake(struct tls_stream *tls, const char *error)
{
    stream_secured_cb secured = tls->secured;
    tls->secured = NULL;
    uv_read_stop(&tls->stream->stream); /* until the owner reads */
    secured(tls->secured_arg, error);
}

static void go_on_shaking(struct tls_stream *tls)
{
    char error[TLS_ERROR_SIZE];
    uint64_t begun = uv_hrtime();
    ERR_clear_error();
    int count = SSL_do_handshake(tls->ssl);
    bool more = count <= 0 && SSL_get_error(tls->ssl, count) == SSL_ERROR_WANT_READ;
    if (count <= 0 && !more)
        describe(tls->ssl, error, sizeof error);
    handshake_took(uv_hrtime() - begun);
    stream_tls_send_out(tls); /* after a failure the alert that tells the peer why */
    if (tls->failed)
        end_handshake(tls, uv_strerror(tls->failed));
    else if (more && tls->end)
        end_handshake(tls, "TLS: the connection was closed during the handshake");
    else if (!more)
        end_handshake(tls, count == 1 ? NULL : error);
}

static void shake_hands(struct tls_stream *tls)
{
    if (handshake_take_turn(&tls->handshake, tls->stream->handle.loop)) {
        go_on_shaking(tls);
        return;
    }
    handshake_line_up(&tls->handshake);
    uv_read_stop(&tls->stream->stream);
    stream_tls_wake(tls);
}

/* ---- the socket ---- */

static void on_idle(uv_idle_t *idle)
{
    struct tls_stream *tls = idle->data;
    if (tls->handshake.waits && !handshake_take_turn(&tls->handshake, idle->loop))
        return;
    uv_idle_stop(idle);
    if (is_written(tls))
        tell_written(tls, tls->failed);
    if (tls->secured) {
        if (!tls->end)
            stream_tls_listen(tls);
        go_on_shaking(tls);
    } else {
        stream_tls_deliver(tls);
    }
    give_back(tls->in);
}

/* Read by the callback that follows at once, so all streams of a thread share it. */
static void cipher_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    static _Thread_local char scratch[CIPHER_BYTES];
    (void)handle;
    (void)wanted;
    *room = uv_buf_init(scratch, sizeof scratch);
}

static void on_cipher(uv_stream_t *handle, ssize_t count, const uv_buf_t *room)
{
    struct tls_stream *tls = ((struct stream *)handle)->tls;
    if (count > 0)
        BIO_write(tls->in, room->base, (int)count);
    else if (count < 0)
        tls->end = count;
    if (count == 0 || tls->closing)
        return;
    if (tls->secured)
        shake_hands(tls);
    else
        stream_tls_deliver(tls);
    give_back(tls->in);
}

void stream_tls_listen(struct tls_stream *tls)
{
    uv_read_start(&tls->stream->stream, cipher_room, on_cipher);
}

/* ---- life ---- */

/* A name, or a number, that the peer's certificate must be for. */
static int expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1)
        return 0;
    ERR_clear_error();
    if (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1)
        return UV_EINVAL;
    return 0;
}

static struct tls_stream *create(struct stream *stream, SSL *ssl, stream_secured_cb done, void *arg)
{
    struct tls_stream *tls = allocate(1, sizeof *tls);
    tls->stream = stream;
    tls->secured = done;
    tls->secured_arg = arg;
    tls->ssl = ssl;
    tls->in = allocated(BIO_new(BIO_s_mem()));
    tls->out = allocated(BIO_new(BIO_s_mem()));
    BIO_set_mem_eof_return(tls->in, -1); /* empty means: not yet */
    SSL_set_bio(ssl, tls->in, tls->out);
    SSL_clear_mode(ssl, SSL_MODE_AUTO_RETRY);
    uv_idle_init(stream->handle.loop, &tls->idle);
    tls->idle.data = tls;
    stream->tls = tls;
    return tls;
}

int stream_secure_accepted(struct stream *stream, struct ssl_ctx_st *context,
                           struct handshake_line *line, stream_secured_cb done, void *arg)
{
    SSL *ssl = allocated(SSL_new(context));
    SSL_set_accept_state(ssl);
    create(stream, ssl, done, arg)->handshake.line = line;
    return uv_read_start(&stream->stream, cipher_room, on_cipher);
}

/* The client speaks first; an error of that comes up in the next step. */
int stream_secure_dialed(struct stream *stream, struct ssl_ctx_st *context, const char *host,
                         stream_secured_cb done, void *arg)
{
    SSL *ssl = allocated(SSL_new(context));
    if (expect(ssl, host) < 0) {
        SSL_free(ssl);
        return UV_EINVAL;
    }
    SSL_set_connect_state(ssl);
    struct tls_stream *tls = create(stream, ssl, done, arg);
    ERR_clear_error();
    SSL_do_handshake(ssl);
    stream_tls_send_out(tls);
    return uv_read_start(&stream->stream, cipher_room, on_cipher);
}

static void on_stream_closed(uv_handle_t *handle)
{
    struct stream *stream = (struct stream *)handle;
    struct tls_stream *tls = stream->tls;
    uv_close_cb closed = tls->closed;
    stream->tls = NULL;
    if (tls->write)
        tell_written(tls, UV_ECANCELED);
    SSL_free(tls->ssl);
    free(tls->piece);
    free(tls);
    if (closed)
        closed(handle);
}

static void on_idle_closed(uv_handle_t *idle)
{
    struct tls_stream *tls = idle->data;
    uv_close(&tls->stream->handle, on_stream_closed);
}

/* The farewell goes out if there is room for it. */
void stream_tls_close(struct tls_stream *tls, uv_close_cb closed)
{
    tls->closing = true;
    tls->closed = closed;
    handshake_leave_line(&tls->handshake);
    uv_read_stop(&tls->stream->stream);
    if (!tls->secured && !tls->failed && SSL_is_init_finished(tls->ssl)) {
        ERR_clear_error();
        SSL_shutdown(tls->ssl);
        stream_tls_send_out(tls);
    }
    uv_close((uv_handle_t *)&tls->idle, on_idle_closed);
}
