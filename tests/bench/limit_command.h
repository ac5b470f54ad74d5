/* What the floors read: whole RESP commands, each byte of whose words is looked at once, as whoever
 * hashes a key must. All of it is inline, for the floors to be as low as they can.
 */
#ifndef NESTGUARD_BENCH_LIMIT_COMMAND_H
#define NESTGUARD_BENCH_LIMIT_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <uv.h>

enum { LIMIT_BACKLOG = 512 };

/* The number of a line that is there as a whole, or NULL; returns where the next line begins. */
static inline const char *take_number(const char *p, const char *end, size_t *number)
{
    size_t value = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (size_t)(*p - '0');
    *number = value;
    return end - p >= 2 ? p + 2 : NULL;
}

static inline uint64_t mix_word(const char *p, size_t length, uint64_t mixed)
{
    uint64_t part;
    for (size_t i = 0; i + sizeof part <= length; i += sizeof part) {
        memcpy(&part, p + i, sizeof part);
        mixed = (mixed ^ part) * 0x9E3779B97F4A7C15u;
    }
    return mixed;
}

/* Returns what follows one whole command, or NULL; *mixed takes in its words. */
static inline const char *take_command(const char *p, const char *end, uint64_t *mixed)
{
    size_t words, length;
    if (p >= end || *p != '*' || !(p = take_number(p + 1, end, &words)))
        return NULL;
    while (words--) {
        if (p >= end || !(p = take_number(p + 1, end, &length)) || (size_t)(end - p) < length + 2)
            return NULL;
        *mixed = mix_word(p, length, *mixed);
        p += length + 2;
    }
    return p;
}

/* Returns what follows one whole reply, a line or one bulk, or NULL. */
static inline const char *take_reply(const char *p, const char *end)
{
    size_t length;
    if (p < end && *p == '$' && p + 1 < end && p[1] != '-') {
        p = take_number(p + 1, end, &length);
        return p && (size_t)(end - p) >= length + 2 ? p + length + 2 : NULL;
    }
    const char *line = memchr(p, '\n', (size_t)(end - p));
    return line ? line + 1 : NULL;
}

/* Has the loop call on_connection() for each client of 127.0.0.1:port; 0, or libuv's error. */
static inline int listen_at(uv_tcp_t *tcp, int port, uv_connection_cb on_connection)
{
    struct sockaddr_in address;
    int error = uv_ip4_addr("127.0.0.1", port, &address);
    error = error ? error : uv_tcp_init(uv_default_loop(), tcp);
    error = error ? error : uv_tcp_bind(tcp, (struct sockaddr *)&address, 0);
    return error ? error : uv_listen((uv_stream_t *)tcp, LIMIT_BACKLOG, on_connection);
}

#endif
