/* Where a cluster's keys are: its slot map, asked of one node at a time and followed.
 *
 *   seeds, and whoever the map names ─▶ one is connected to ─▶ CLUSTER SLOTS ─▶ map ─▶ changed()
 *        ▲ the next, when it fails, knows nothing or is cut off   ▲ once a second, when a key was
 *        └────────────────────────────────────────────────────────┘ found elsewhere, a node lost
 *
 * For a minute after one of the last two it is asked four times a second. However often that is
 * wanted, a node is asked ten times a second at most. Who is named by a MOVED is asked next: of all
 * nodes he knows best what is his. */
#ifndef NESTGUARD_REDIS_CLUSTER_H
#define NESTGUARD_REDIS_CLUSTER_H

#include "redis/topology/redis_map.h"
#include "redis/topology/redis_redirect.h"
#include "redis/topology/redis_topology.h"

struct redis_cluster;

/* Texts, seeds and context are copied, or held. */
struct redis_cluster_options {
    const struct redis_seed *seeds;
    size_t count;
    const char *user, *password; /* NULL: none */
    struct ssl_ctx_st *tls;      /* NULL: not encrypted */
};

/* It is asked from now on, until it is closed. `changed` is called on the loop, and never from
 * inside a function of this header: when the first map is there, whenever something has another
 * owner, and when the first round through all seeds has brought nothing. */
struct redis_cluster *redis_cluster_create(uv_loop_t *loop,
                                           const struct redis_cluster_options *options,
                                           void (*changed)(void *arg), void *arg);

/* Empty before the first answer. Others change it by the functions of this header alone. */
const struct redis_map *redis_cluster_map(const struct redis_cluster *cluster);

/* There is a map, or there was no way to get one: nobody need wait any longer. */
bool redis_cluster_is_settled(const struct redis_cluster *cluster);

/* Why there is no map, or the last one is not followed just now; "": it is. */
const char *redis_cluster_why(const struct redis_cluster *cluster);

/* Something is not where the map has it, or a node was lost. */
void redis_cluster_refresh(struct redis_cluster *cluster);

/* Something may be elsewhere, as somebody else has found: nothing is amiss here. */
void redis_cluster_ask(struct redis_cluster *cluster);

/* The number of the node at that place, whether the map names it or not; or -ENOSPC. */
int redis_cluster_number(struct redis_cluster *cluster, const struct redis_place *place);

/* The same of one that has a slot by now; -ENOENT: there is no such. */
int redis_cluster_owner_at(struct redis_cluster *cluster, const struct redis_place *place);

/* The number of the node that a redirection names, or -ENOSPC. Of MOVED the map learns; *changed:
 * it has. */
int redis_cluster_follow(struct redis_cluster *cluster, const struct redis_redirect *redirect,
                         bool *changed);

/* Nobody uses the node's number any more. It is forgotten unless a slot is its own. */
void redis_cluster_drop(struct redis_cluster *cluster, int number);

/* `closed` (may be NULL) is called when the memory has been freed. */
void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg);

#endif
