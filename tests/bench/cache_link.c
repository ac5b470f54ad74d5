/* See cache_link.h. */
#include "cache_link.h"

#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_SIZE = 1 << 16, COMMAND_MOST = 512, RING_LEAST = 1024 };

/* A queue that grows. */
struct ring {
    struct lookup **items;
    size_t size, first, count; /* the size is a power of two */
};

struct cache_link {
    int fd;
    cache_link_reply_fn *on_reply;
    struct ring waiting; /* NULL for a SET */
    char *out;
    size_t out_size, out_have;
    size_t in_have;
    char in[IN_SIZE];
};

static void ring_grow(struct ring *ring)
{
    size_t size = ring->size ? 2 * ring->size : RING_LEAST;
    struct lookup **items = need(calloc(size, sizeof(struct lookup *)));
    for (size_t i = 0; i < ring->count; i++)
        items[i] = ring->items[(ring->first + i) & (ring->size - 1)];
    free(ring->items);
    *ring = (struct ring){.items = items, .size = size, .count = ring->count};
}

static void ring_put(struct ring *ring, struct lookup *lookup)
{
    if (ring->count == ring->size)
        ring_grow(ring);
    ring->items[(ring->first + ring->count++) & (ring->size - 1)] = lookup;
}

static struct lookup *ring_take(struct ring *ring)
{
    struct lookup *lookup = ring->items[ring->first];
    ring->first = (ring->first + 1) & (ring->size - 1);
    ring->count--;
    return lookup;
}

struct cache_link *cache_link_create(int port, cache_link_reply_fn *on_reply)
{
    struct cache_link *link = need(calloc(1, sizeof *link));
    link->on_reply = on_reply;
    link->fd = connect_to(port);
    return link;
}

void cache_link_destroy(struct cache_link *link)
{
    if (!link)
        return;
    close(link->fd);
    free(link->waiting.items);
    free(link->out);
    free(link);
}

int cache_link_fd(const struct cache_link *link)
{
    return link->fd;
}

static void put_command(struct cache_link *link, const char *command, int length)
{
    if (length < 0 || length >= COMMAND_MOST) {
        errno = EMSGSIZE;
        fail("a command");
    }
    if (link->out_size - link->out_have < COMMAND_MOST) {
        link->out_size = 2 * link->out_size + COMMAND_MOST;
        link->out = need(realloc(link->out, link->out_size));
    }
    memcpy(link->out + link->out_have, command, (size_t)length);
    link->out_have += (size_t)length;
}

void cache_link_get(struct cache_link *link, struct lookup *lookup)
{
    char key[32], command[COMMAND_MOST];
    int length = snprintf(key, sizeof key, "item:%" PRIu64, lookup->id);
    put_command(link, command,
                snprintf(command, sizeof command, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", length, key));
    ring_put(&link->waiting, lookup);
}

void cache_link_set(struct cache_link *link, uint64_t id, const char *value, unsigned ttl_seconds)
{
    char key[32], ttl[16], command[COMMAND_MOST];
    int key_length = snprintf(key, sizeof key, "item:%" PRIu64, id);
    int ttl_length = snprintf(ttl, sizeof ttl, "%u", ttl_seconds);
    put_command(link, command,
                snprintf(command, sizeof command,
                         "*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n%s\r\n$2\r\nEX\r\n$%d\r\n%s\r\n",
                         key_length, key, strlen(value), value, ttl_length, ttl));
    ring_put(&link->waiting, NULL);
}

void cache_link_authenticate(struct cache_link *link, const char *password)
{
    char command[COMMAND_MOST];
    put_command(link, command,
                snprintf(command, sizeof command, "*2\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n",
                         strlen(password), password));
    ring_put(&link->waiting, NULL);
}

bool cache_link_flush(struct cache_link *link)
{
    if (!link->out_have)
        return false;
    ssize_t sent = send(link->fd, link->out, link->out_have, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        fail("sending to the cache");
    if (sent > 0) {
        link->out_have -= (size_t)sent;
        memmove(link->out, link->out + sent, link->out_have);
    }
    return link->out_have > 0;
}

static void take_replies(struct cache_link *link)
{
    const char *p = link->in, *end = p + link->in_have, *next;
    enum reply reply;
    while (link->waiting.count && (reply = reply_take(p, end, &next)) != REPLY_PARTIAL) {
        struct lookup *lookup = ring_take(&link->waiting);
        if (lookup)
            link->on_reply(lookup, reply, p);
        p = next;
    }
    link->in_have = (size_t)(end - p);
    memmove(link->in, p, link->in_have);
}

void cache_link_read(struct cache_link *link)
{
    ssize_t length =
        recv(link->fd, link->in + link->in_have, sizeof link->in - link->in_have, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN)
        return;
    if (length <= 0) {
        errno = length ? errno : ECONNRESET;
        fail("reading from the cache");
    }
    link->in_have += (size_t)length;
    take_replies(link);
}
