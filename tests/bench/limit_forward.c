/* The floor for a proxy on this event loop: it finds the commands in what it reads, sends each to
 * one of its servers, by its words, over one connection each, and gives the replies to its clients
 * in their order. A turn's bytes to somebody leave in one write at its end. It looks nothing up,
 * watches nothing, and whoever does not keep up is an error. With N it is the floor for a guard as
 * well: for a key whose number, behind its colon, is N or more it answers nil, and asks nobody.
 *
 *   limit_forward [--absent-from N] PORT SERVER-PORT...
 */
#include "limit_command.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    IN_SIZE = 65536,
    OUT_SIZE = 1 << 20,
    PENDING = 4096,
    OWED = 64 * PENDING,
    REPLY_SIZE = 240,
    SERVERS = 16
};

/* Of one command, in its client's order. */
struct pending {
    bool is_there;
    unsigned length;
    char reply[REPLY_SIZE]; /* that came before its turn */
};

struct peer {
    uv_tcp_t tcp;
    uv_connect_t connect;
    struct peer *next_dirty;
    bool is_dirty;
    size_t have, out_length;
    char in[IN_SIZE], out[OUT_SIZE];
};

struct client {
    struct peer peer;
    unsigned first, end; /* of `pending`, counted on */
    struct pending pending[PENDING];
};

struct owed {
    struct client *client;
    unsigned place;
};

struct server {
    struct peer peer;
    unsigned first, end;
    struct owed owed[OWED];
};

static struct server *servers[SERVERS];
static unsigned server_count;
static unsigned long long absent_from = ULLONG_MAX;
static struct peer *dirty;

static void fail(const char *what)
{
    fprintf(stderr, "limit_forward: %s\n", what);
    exit(1);
}

/* ---- writing ---- */

static void append(struct peer *peer, const char *bytes, size_t length)
{
    if (peer->out_length + length > OUT_SIZE)
        fail("somebody does not read");
    memcpy(peer->out + peer->out_length, bytes, length);
    peer->out_length += length;
    if (peer->is_dirty)
        return;
    peer->is_dirty = true;
    peer->next_dirty = dirty;
    dirty = peer;
}

static void on_turn_end(uv_check_t *check)
{
    (void)check;
    for (; dirty; dirty = dirty->next_dirty) {
        uv_buf_t out = uv_buf_init(dirty->out, (unsigned)dirty->out_length);
        dirty->is_dirty = false;
        dirty->out_length = 0;
        int status = uv_try_write((uv_stream_t *)&dirty->tcp, &out, 1);
        bool has_gone = status == UV_EPIPE || status == UV_ECONNRESET || status == UV_EBADF;
        if (status != (int)out.len && !has_gone)
            fail("somebody does not keep up");
    }
}

/* ---- reading ---- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    struct peer *peer = (struct peer *)handle;
    (void)suggested;
    *room = uv_buf_init(peer->in + peer->have, (unsigned)(sizeof peer->in - peer->have));
}

static void keep(struct peer *peer, const char *rest)
{
    peer->have -= (size_t)(rest - peer->in);
    memmove(peer->in, rest, peer->have);
}

static void take(struct owed *owed, const char *reply, size_t length)
{
    struct client *client = owed->client;
    struct pending *pending = &client->pending[owed->place % PENDING];
    if (owed->place != client->first) {
        if (length > REPLY_SIZE)
            fail("a reply is too long");
        memcpy(pending->reply, reply, length);
        pending->length = (unsigned)length;
        pending->is_there = true;
        return;
    }
    append(&client->peer, reply, length);
    for (client->first++; client->first != client->end; client->first++) {
        pending = &client->pending[client->first % PENDING];
        if (!pending->is_there)
            return;
        append(&client->peer, pending->reply, pending->length);
        pending->is_there = false;
    }
}

static void on_replies(uv_stream_t *stream, ssize_t length, const uv_buf_t *room)
{
    struct server *server = (struct server *)stream;
    struct peer *peer = &server->peer;
    (void)room;
    if (length < 0)
        fail("a server has gone");
    peer->have += (size_t)length;
    const char *p = peer->in, *end = peer->in + peer->have, *next;
    while (p < end && (next = take_reply(p, end))) {
        take(&server->owed[server->first++ % OWED], p, (size_t)(next - p));
        p = next;
    }
    keep(peer, p);
}

static bool is_absent(const char *command, const char *end)
{
    const char *colon =
        absent_from == ULLONG_MAX ? NULL : memrchr(command, ':', (size_t)(end - command));
    return colon && strtoull(colon + 1, NULL, 10) >= absent_from;
}

static void send_to(struct server *server, struct client *client, const char *command,
                    size_t length)
{
    append(&server->peer, command, length);
    server->owed[server->end++ % OWED] = (struct owed){client, client->end++};
}

/* Clients that have gone are kept: replies may still be owed to them. */
static void on_commands(uv_stream_t *stream, ssize_t length, const uv_buf_t *room)
{
    struct client *client = (struct client *)stream;
    struct peer *peer = &client->peer;
    (void)room;
    if (length < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    peer->have += (size_t)length;
    const char *p = peer->in, *end = peer->in + peer->have, *next;
    uint64_t mixed = 0;
    while ((next = take_command(p, end, &mixed))) {
        struct server *server = servers[(mixed >> 32) % server_count];
        if (client->end - client->first == PENDING || server->end - server->first == OWED)
            fail("a client asks for too much at a time");
        if (is_absent(p, next))
            take(&(struct owed){client, client->end++}, "$-1\r\n", 5);
        else
            send_to(server, client, p, (size_t)(next - p));
        p = next;
        mixed = 0;
    }
    keep(peer, p);
}

/* ---- life ---- */

static void *new (size_t size)
{
    void *made = calloc(1, size);
    if (!made)
        fail("no memory");
    return made;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct client *client = new (sizeof *client);
    if (status < 0)
        fail(uv_strerror(status));
    uv_tcp_init(listener->loop, &client->peer.tcp);
    if (uv_accept(listener, (uv_stream_t *)&client->peer.tcp) < 0)
        fail("cannot accept");
    uv_tcp_nodelay(&client->peer.tcp, 1);
    uv_read_start((uv_stream_t *)&client->peer.tcp, on_room, on_commands);
}

static void on_connected(uv_connect_t *connect, int status)
{
    if (status < 0)
        fail(uv_strerror(status));
    uv_read_start(connect->handle, on_room, on_replies);
}

static void connect_to(int port)
{
    struct sockaddr_in address;
    struct server *server = new (sizeof *server);
    uv_ip4_addr("127.0.0.1", port, &address);
    uv_tcp_init(uv_default_loop(), &server->peer.tcp);
    uv_tcp_nodelay(&server->peer.tcp, 1);
    if (uv_tcp_connect(&server->peer.connect, &server->peer.tcp, (struct sockaddr *)&address,
                       on_connected) < 0)
        fail("cannot connect");
    servers[server_count++] = server;
}

int main(int argc, char **argv)
{
    uv_tcp_t tcp;
    uv_check_t check;
    if (argc > 2 && strcmp(argv[1], "--absent-from") == 0) {
        absent_from = strtoull(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    if (argc < 3 || argc > SERVERS + 2) {
        fputs("usage: limit_forward [--absent-from N] PORT SERVER-PORT...\n", stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        connect_to(atoi(argv[i]));
    uv_check_init(uv_default_loop(), &check);
    uv_check_start(&check, on_turn_end);
    int error = listen_at(&tcp, atoi(argv[1]), on_connection);
    if (error)
        fail(uv_strerror(error));
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
