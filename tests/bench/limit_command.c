#include "limit_command.h"

#include <string.h>

enum { BACKLOG = 512 };

/* The number of a line that is there as a whole, or NULL; returns where the next line begins. */
static const char *take_number(const char *p, const char *end, size_t *number)
{
    size_t value = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (size_t)(*p - '0');
    *number = value;
    return end - p >= 2 ? p + 2 : NULL;
}

static uint64_t mix_word(const char *p, size_t length, uint64_t mixed)
{
    uint64_t part;
    for (size_t i = 0; i + sizeof part <= length; i += sizeof part) {
        memcpy(&part, p + i, sizeof part);
        mixed = (mixed ^ part) * 0x9E3779B97F4A7C15u;
    }
    return mixed;
}

const char *take_command(const char *p, const char *end, uint64_t *mixed)
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

const char *take_reply(const char *p, const char *end)
{
    size_t length;
    if (p < end && *p == '$' && p + 1 < end && p[1] != '-') {
        p = take_number(p + 1, end, &length);
        return p && (size_t)(end - p) >= length + 2 ? p + length + 2 : NULL;
    }
    const char *line = memchr(p, '\n', (size_t)(end - p));
    return line ? line + 1 : NULL;
}

int listen_at(uv_tcp_t *tcp, int port, uv_connection_cb on_connection)
{
    struct sockaddr_in address;
    int error = uv_ip4_addr("127.0.0.1", port, &address);
    error = error ? error : uv_tcp_init(uv_default_loop(), tcp);
    error = error ? error : uv_tcp_bind(tcp, (struct sockaddr *)&address, 0);
    return error ? error : uv_listen((uv_stream_t *)tcp, BACKLOG, on_connection);
}
