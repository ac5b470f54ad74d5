/* The encrypted half of stream.h, called by stream_io.c alone, for streams that have a `tls`; the
 * contracts are those of stream.h. stream_tls_close() frees it, before `closed` is called. Private
 * to backends/. */
#ifndef NESTGUARD_STREAM_TLS_H
#define NESTGUARD_STREAM_TLS_H

#include "net/stream.h"

void stream_tls_read_start(struct tls_stream *tls, uv_alloc_cb room, uv_read_cb read);
void stream_tls_read_stop(struct tls_stream *tls);
int stream_tls_try_write(struct tls_stream *tls, const char *bytes, size_t length);
int stream_tls_write(struct tls_stream *tls, uv_write_t *write, const char *bytes, size_t length,
                     uv_write_cb written);
size_t stream_tls_memory(const struct tls_stream *tls);
size_t stream_tls_queued(const struct tls_stream *tls);
void stream_tls_close(struct tls_stream *tls, uv_close_cb closed);

#endif
