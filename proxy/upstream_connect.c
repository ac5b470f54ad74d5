/* CLOSED ─▶ RESOLVING ─▶ CONNECTING ─▶ GREETING: from the cache's name to a connection that speaks.
 * A name may stand for several addresses, which are tried one after the other.
 */
#include "upstream_internal.h"

#include "greeting.h"

#include <stdio.h>

void upstream_forget_addresses(struct upstream *upstream)
{
    uv_freeaddrinfo(upstream->found);
    upstream->found = upstream->next = NULL;
}

/* Requests may be waiting already: the answers to AUTH and SELECT come before theirs. */
static void greet(struct upstream *upstream)
{
    const struct cache_url *cache = &serving_config(upstream->serving)->cache;
    size_t requests = upstream->pending.count;
    unsigned left = greeting_write(&upstream->greeting, cache, upstream->resp3, NULL);
    while (left)
        upstream_push(upstream, NULL, --left);
    pending_rotate(&upstream->pending, requests);
}

/* A name may stand for several addresses ("localhost" for ::1 and 127.0.0.1): requests wait until
 * the last has failed. */
void upstream_connect_failed(struct upstream *upstream, const char *why)
{
    if (!upstream->next) {
        upstream_lose(upstream, why);
        return;
    }
    upstream_close_stream(upstream);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct upstream *upstream = connect->data;
    if (upstream->state != CONNECTING)
        return;
    if (status < 0) {
        upstream_connect_failed(upstream, uv_strerror(status));
        return;
    }
    upstream_forget_addresses(upstream);
    stream_tune(&upstream->stream);
    upstream_set_state(upstream, GREETING);
    greet(upstream);
    upstream_begin(upstream);
}

/* Every attempt needs a fresh handle: libuv's are not to be used again once closed. */
static void open_stream(struct upstream *upstream, bool is_unix)
{
    upstream_set_state(upstream, CONNECTING);
    stream_init(&upstream->stream, &upstream->serving->loop, is_unix);
    upstream->stream.handle.data = upstream;
}

void upstream_connect_next(struct upstream *upstream)
{
    const struct addrinfo *address = upstream->next;
    upstream->next = address->ai_next;
    open_stream(upstream, false);
    int status =
        uv_tcp_connect(&upstream->connect, &upstream->stream.tcp, address->ai_addr, on_connected);
    if (status < 0)
        upstream_connect_failed(upstream, uv_strerror(status));
}

/* The state is still RESOLVING: a look-up cannot be broken off, and whoever closes meanwhile waits
 * for it. */
static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct upstream *upstream = resolve->data;
    upstream->found = found;
    if (status < 0 || upstream->finishing) {
        upstream_lose(upstream, status < 0 ? uv_strerror(status) : "closing");
        return;
    }
    upstream->next = found;
    upstream_connect_next(upstream);
}

void upstream_start(struct upstream *upstream)
{
    const struct address *address = &serving_config(upstream->serving)->cache.address;
    if (address->path) {
        open_stream(upstream, true);
        uv_pipe_connect(&upstream->connect, &upstream->stream.pipe, address->path, on_connected);
        return;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    upstream_set_state(upstream, RESOLVING);
    int status = uv_getaddrinfo(&upstream->serving->loop, &upstream->resolve, on_resolved,
                                address->host, port, &hints);
    if (status < 0)
        upstream_lose(upstream, uv_strerror(status));
}
