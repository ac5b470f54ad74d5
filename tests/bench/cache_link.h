/* One pipelined connection to a cache, for lookups.c: GETs and SETs go out in batches, and replies
 * find the lookup that waits for them by their order. Errors of the connection end the program.
 */
#ifndef NESTGUARD_BENCH_CACHE_LINK_H
#define NESTGUARD_BENCH_CACHE_LINK_H

#include "get.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lookup {
    uint64_t id;
    uint64_t due;        /* when it was to be sent, ns of CLOCK_MONOTONIC */
    struct lookup *next; /* for whoever keeps a list of them */
};

/* `line` is the reply's first line, which ends with CR LF. */
typedef void cache_link_reply_fn(struct lookup *lookup, enum reply reply, const char *line);

struct cache_link;

/* Connects to the port of this host. */
struct cache_link *cache_link_create(int port, cache_link_reply_fn *on_reply);
void cache_link_destroy(struct cache_link *link);

int cache_link_fd(const struct cache_link *link);

/* Both put a command down to be sent. on_reply gets the lookup of a GET; nobody hears of a SET. */
void cache_link_get(struct cache_link *link, struct lookup *lookup);
void cache_link_set(struct cache_link *link, uint64_t id, const char *value, unsigned ttl_seconds);

/* The first command, if it is called: the password of the default user. */
void cache_link_authenticate(struct cache_link *link, const char *password);

/* Sends what the kernel takes. True when something is left: call again when it is writable. */
bool cache_link_flush(struct cache_link *link);

/* Reads what has come and calls on_reply for each whole reply. */
void cache_link_read(struct cache_link *link);

#endif
