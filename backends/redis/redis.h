/* The guard's own commands to the cache: fills, purges and questions, over one connection on an
 * event loop, with hiredis for the protocol. Their order on the wire is the order of the calls. The
 * connection is opened at once and comes back by itself with backoff (100 ms doubling to 2 s).
 *
 * Only a primary will do. A server that is found to be a replica or a sentinel is as good as none:
 * it is asked at connecting, once a second from then on, and when it refuses a write as a replica.
 */
#ifndef NESTGUARD_REDIS_H
#define NESTGUARD_REDIS_H

#include "net/tls.h"
#include "redis/protocol/redis_answer.h"
#include "redis/protocol/redis_role.h"

#include <stdint.h>
#include <uv.h>

struct redis;
struct redis_cluster_options; /* see redis_cluster.h */
struct redis_map;             /* see redis_map.h */
struct redis_sentinels;       /* see redis_topology.h */

/* Of a cluster, whose nodes come and go: each is a struct redis, with a number of its own. All of
 * these are called on the loop, with the `arg` of redis_create(). */
struct redis_nodes {
    const struct redis_cluster_options *cluster; /* copied */
    /* `late`: it is not one of the first that were known, and may lack what others confirmed. */
    void (*joined)(void *arg, int number, struct redis *node, bool late);
    void (*state)(void *arg, int number, bool up, const char *error); /* as redis_state_cb */
    void (*ended)(void *arg, int number); /* no key is its any more, and nothing under way on it */
    void (*gave)(void *arg, int from, int to); /* one has slots that were the other's */
    void (*moved)(void *arg); /* keys may have another node than before; gave() has told of all */
};

struct redis_options {
    const char *host; /* NULL with a path */
    uint16_t port;
    const char *path;            /* unix socket, or NULL */
    const char *user, *password; /* NULL: none */
    int db;
    struct ssl_ctx_st *tls; /* NULL: not encrypted; a reference of its own is taken */
    /* Not NULL: they know where it is, and host, port and path count for nothing. Copied. */
    const struct redis_sentinels *sentinels;
    /* Not NULL: of a cluster's node, whose map this is. It outlives every answer: commands that the
     * end of all finds under way have none. */
    const struct redis_map *map;
    /* Not NULL: it is a cluster, and what follows is for each of its nodes, but for their
     * addresses. Texts outlive it. */
    const struct redis_nodes *nodes;
    uint64_t timeout_ms; /* for connecting, and for the oldest command without an answer: then the
                            connection is given up */
};

/* For the log: `error` is NULL when the connection came up (AUTH and SELECT accepted). Called on
 * each change. */
typedef void (*redis_state_cb)(void *arg, bool up, const char *error);

/* 0, or -EINVAL: there is neither an address nor a sentinel, or no time for it. Texts are copied.
 * This and all that follows is for the loop's thread. */
int redis_create(struct redis **out, uv_loop_t *loop, const struct redis_options *options,
                 redis_state_cb state, void *arg);

/* `done` (may be NULL) is called exactly once, on the loop, never before the function has returned.
 * Keys and values are copied. */

/* SET key value PX ttl_ms NX (no PX when ttl_ms is 0): a value that the application wrote meanwhile
 * stays. */
void redis_fill(struct redis *redis, struct redis_bytes key, struct redis_bytes value,
                uint64_t ttl_ms, redis_answer_cb done, void *arg);
/* The same of a hash (RESTORE key ttl_ms ...), which comes whole and with its TTL, or not at all.
 */
void redis_fill_hash(struct redis *redis, struct redis_bytes key, struct redis_hash hash,
                     uint64_t ttl_ms, redis_answer_cb done, void *arg);
/* DEL key */
void redis_purge(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg);
/* DEL key key...: `number` is how many were there; at least one key, and in a cluster no more */
void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg);
/* (Of one node of a cluster, not of all:) SCAN cursor MATCH pattern COUNT count: a step through all
 * keys, from cursor "0" until that comes back; `page` is what it gave */
void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg);
/* EXISTS key: `number` is 1 or 0 */
void redis_exists(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg);
/* Any command of that many words, the first of them its name, at least one. Of an array in reply
 * nothing is told but that it came, when it holds numbers only. */
void redis_send(struct redis *redis, const struct redis_bytes *words, size_t count,
                redis_answer_cb done, void *arg);

bool redis_is_up(const struct redis *redis); /* of a cluster: all of its nodes */

/* Nothing that was sent may still be run: each command has its answer, and none was lost on the way
 * with a connection. */
bool redis_is_settled(const struct redis *redis);

/* What is known of a server: for status and metrics. */
struct redis_node {
    char address[300]; /* "127.0.0.1:6379", or "unix:/path"; "": not known */
    bool up;           /* of a sentinel: it names a primary */
    enum redis_role role;
    const char *why;  /* it is not up, or up and in trouble; NULL: nothing is wrong. Lives until
                         anything is done with the struct redis */
    uint64_t down_ms; /* for how long it has not been up; 0 when it is */
};
/* The first is the server that commands go to; behind it stand the sentinels. Of a cluster: its
 * nodes that have keys. */
size_t redis_node_count(const struct redis *redis);
void redis_describe(const struct redis *redis, size_t number, struct redis_node *node);

/* In a cluster the number of the node that has this key, -1: none is known; else 0. */
int redis_number_of(const struct redis *redis, struct redis_bytes key);
bool redis_is_cluster(const struct redis *redis);

/* Of a cluster: how many slots no node has, as it said last; else 0. */
unsigned redis_left_out(const struct redis *redis);

/* Of a cluster: the node with this number, or the next behind it; NULL: none. *number: which it is.
 */
struct redis *redis_next_node(const struct redis *redis, int *number);

/* Of the connection that is up: why what was confirmed over those before it may be lost (static
 * text): another server, or another history of its data, or it does not say. NULL: nothing speaks
 * for that, or this is the first connection. Of what a server loses while the connection stays
 * nobody knows. */
const char *redis_doubt(const struct redis *redis);

/* Of the server that the last connection led to, whose greeting went well; "": none, or it does not
 * say. At most 40 characters. */
const char *redis_run_id(const struct redis *redis);

/* Why what was confirmed over the one may not hold for what the other leads to (static text):
 * another server, another database of it, or one of them is not up. Of clusters: the other has a
 * node that is none of the one's. NULL: nothing speaks for that. */
const char *redis_differ(const struct redis *one, const struct redis *other);

/* Ends every command with REDIS_DOWN; `closed` is called when the memory has been freed. */
void redis_close(struct redis *redis, void (*closed)(void *arg), void *arg);

#endif
