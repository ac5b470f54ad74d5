/* The floor for a server on this event loop: it finds the commands in what it reads, looks at each
 * byte of their words, as whoever hashes a key must, and answers nil to each. It decides nothing,
 * looks nothing up, and allocates nothing after a client has come.
 *
 *   limit PORT
 */
#include "limit_command.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    IN_SIZE = 65536,
    NIL_SIZE = 5,
    COMMAND_LEAST = 4, /* "*0\r\n": so many nils at most follow from one buffer */
    OUT_SIZE = IN_SIZE / COMMAND_LEAST * NIL_SIZE
};

struct peer {
    uv_tcp_t tcp;
    size_t have;
    char in[IN_SIZE];
    char out[OUT_SIZE];
};

static void on_close(uv_handle_t *handle)
{
    free(handle);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    struct peer *peer = (struct peer *)handle;
    (void)suggested;
    *room = uv_buf_init(peer->in + peer->have, (unsigned)(sizeof peer->in - peer->have));
}

/* Answers each whole command in `in`, keeps the rest, and returns the bytes of the answers. */
static size_t answer(struct peer *peer)
{
    const char *p = peer->in, *end = peer->in + peer->have, *next;
    char *out = peer->out;
    uint64_t mixed = 0;
    while ((next = take_command(p, end, &mixed))) {
        /* The choice, which is always the same, keeps the compiler from dropping the mixing. */
        memcpy(out, mixed == 1 ? "$-1\n\r" : "$-1\r\n", NIL_SIZE);
        out += NIL_SIZE;
        p = next;
    }
    peer->have = (size_t)(end - p);
    memmove(peer->in, p, peer->have);
    return (size_t)(out - peer->out);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *room)
{
    struct peer *peer = (struct peer *)stream;
    (void)room;
    if (length < 0) {
        uv_close((uv_handle_t *)stream, on_close);
        return;
    }
    peer->have += (size_t)length;
    uv_buf_t out = uv_buf_init(peer->out, (unsigned)answer(peer));
    bool is_stuck = peer->have == sizeof peer->in;
    /* A client that does not read what it asked for measures nothing. */
    if (is_stuck || (out.len && uv_try_write(stream, &out, 1) != (int)out.len))
        uv_close((uv_handle_t *)stream, on_close);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *peer = malloc(sizeof *peer);
    if (status < 0 || !peer)
        abort();
    peer->have = 0;
    uv_tcp_init(listener->loop, &peer->tcp);
    if (uv_accept(listener, (uv_stream_t *)&peer->tcp) < 0) {
        uv_close((uv_handle_t *)&peer->tcp, on_close);
        return;
    }
    uv_tcp_nodelay(&peer->tcp, 1);
    uv_read_start((uv_stream_t *)&peer->tcp, on_room, on_read);
}

int main(int argc, char **argv)
{
    uv_tcp_t tcp;
    if (argc != 2) {
        fputs("usage: limit PORT\n", stderr);
        return 2;
    }
    int error = listen_at(&tcp, atoi(argv[1]), on_connection);
    if (error) {
        fprintf(stderr, "limit: port %s: %s\n", argv[1], uv_strerror(error));
        return 1;
    }
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
