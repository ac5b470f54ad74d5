/* A cluster as the guard's own commands see it: a struct redis that has no connection of its own,
 * but one struct redis for each node, and the map that says which of them a key is for.
 *
 *   redis_fill(all, key) ─▶ redis_fleet_owner() ─▶ that node's struct redis
 *   redis_purge(all, key) ─▶ the same ─ MOVED, ASK ─▶ another node's
 *
 * Private to backends/; who uses it goes by redis.h. */
#ifndef NESTGUARD_REDIS_FLEET_H
#define NESTGUARD_REDIS_FLEET_H

#include "redis/protocol/redis_command.h"
#include "redis/redis.h"

struct redis_fleet;

/* Makes `all` stand for the cluster of its options, whose nodes it tells of by its state_arg. What
 * finds no node ends at once: nobody connects. */
void redis_fleet_open(struct redis *all);

/* The node that has this key; NULL: none is known. */
struct redis *redis_fleet_owner(const struct redis_fleet *fleet, struct redis_bytes key);

/* DEL, or EXISTS, of one key, wherever it turns out to be. */
void redis_fleet_purge(struct redis_fleet *fleet, struct redis_bytes key, redis_answer_cb done,
                       void *arg);
void redis_fleet_exists(struct redis_fleet *fleet, struct redis_bytes key, redis_answer_cb done,
                        void *arg);

/* The node with this number, or the next behind it; NULL: none. *number: which it is. */
struct redis *redis_fleet_next(const struct redis_fleet *fleet, int *number);

/* How many slots nobody has, as the cluster said last. */
unsigned redis_fleet_left_out(const struct redis_fleet *fleet);

/* Why nobody is known to have a key; "": all have one. */
const char *redis_fleet_why(const struct redis_fleet *fleet);

/* `closed` is called when all nodes' connections have ended and the memory was freed. */
void redis_fleet_close(struct redis_fleet *fleet, void (*closed)(void *arg), void *arg);

#endif
