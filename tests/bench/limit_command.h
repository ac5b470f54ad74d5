/* What the floors read: whole RESP commands, each byte of whose words is looked at once, as whoever
 * hashes a key must. */
#ifndef NESTGUARD_BENCH_LIMIT_COMMAND_H
#define NESTGUARD_BENCH_LIMIT_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* Returns what follows one whole command, or NULL; *mixed takes in its words. */
const char *take_command(const char *p, const char *end, uint64_t *mixed);

/* Returns what follows one whole reply, a line or one bulk, or NULL. */
const char *take_reply(const char *p, const char *end);

/* Has the loop call on_connection() for each client of 127.0.0.1:port; 0, or libuv's error. */
int listen_at(uv_tcp_t *tcp, int port, uv_connection_cb on_connection);

#endif
