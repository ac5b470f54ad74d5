/* What stream_tls.c and stream_tls_reading.c share. */
#ifndef NESTGUARD_STREAM_TLS_INTERNAL_H
#define NESTGUARD_STREAM_TLS_INTERNAL_H

#include "net/handshakes.h"
#include "net/stream.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

struct tls_stream {
    struct stream *stream;
    SSL *ssl;
    BIO *in, *out; /* ciphertext; the SSL owns them */
    uv_idle_t idle;
    /* the handshake; NULL when it is over */
    stream_secured_cb secured;
    void *secured_arg;
    struct handshake handshake;
    /* reading, as the owner wants it; NULL: it does not */
    uv_alloc_cb room;
    uv_read_cb read;
    unsigned messages; /* of TLS itself, since data came */
    ssize_t end; /* what the socket said last: a negative error, told after all that came before */
    /* ciphertext that the kernel has not taken */
    uv_write_t sending;
    char *piece;
    int failed; /* a negative error of sending; nothing more can be written */
    /* the owner's write */
    uv_write_t *write;
    uv_write_cb written;
    const char *rest;
    size_t rest_length;
    bool waits; /* for the next turn; no ciphertext is read meanwhile */
    bool closing;
    uv_close_cb closed;
};

/* Ciphertext that comes from now on is read. */
void stream_tls_listen(struct tls_stream *tls);

/* What OpenSSL has to say: data, an answer of the handshake, an alert. */
void stream_tls_send_out(struct tls_stream *tls);

/* Calls the owner's read() with what there is, or for as long as may be. */
void stream_tls_deliver(struct tls_stream *tls);

/* What is due is done in the next turn of the loop. */
void stream_tls_wake(struct tls_stream *tls);

#endif
