/* Which of a cluster's nodes has which slots.
 *
 *   CLUSTER SLOTS ─▶ redis_map_take() ─▶ owner of each slot ─▶ a node's number ─▶ its place
 *   MOVED ─────────▶ redis_map_move() ─────────┘
 *
 * A node keeps its number for as long as anybody uses it (redis_map_drop()), so that what belongs
 * to it, its connections or what it is owed, is found by that. A number that is given up is the
 * last to be given again.
 *
 * Numbers are each map's own: who hears of nodes in another order numbers them otherwise. What all
 * maps of a cluster have in common are the nodes' ranks and the digest, once they know the same.
 *
 * Of a slot that an answer leaves out the owner stays who it was: he knows best whether he serves
 * it.
 */
#ifndef NESTGUARD_REDIS_MAP_H
#define NESTGUARD_REDIS_MAP_H

#include "redis/topology/redis_place.h"
#include "redis/topology/redis_slot.h"

struct redisReply;

/* An answer may name half as many nodes as there are numbers (Redis advises against more than 1000
 * nodes, replicas and all): so there are some for the next, whoever the last one named. */
enum { REDIS_MAP_NODES = 1024, REDIS_MAP_NAMED = REDIS_MAP_NODES / 2 };

/* Who was named in none of so many answers, a few minutes, is none of the cluster any more. Some
 * answers leave somebody out: who gives them may have been cut off, or taken him for dead. */
enum { REDIS_MAP_IDS = 4 * REDIS_MAP_NODES, REDIS_MAP_REMEMBERED = 1000 };

struct redis_map_id {
    uint64_t hash;
    uint64_t named; /* by which answer, the last time */
};

struct redis_map_node {
    struct redis_place place; /* host "": the number is free */
    unsigned slots;           /* that it owns */
    bool is_named;            /* by an answer: not only by a redirection so far */
    uint64_t mark;            /* of its place: the same in all maps */
};

struct redis_map {
    uint16_t owners[REDIS_SLOTS]; /* a number and one; 0: nobody */
    struct redis_map_node *nodes; /* by number; REDIS_MAP_NODES, so that they never move */
    unsigned count;               /* numbers below it have been given */
    unsigned next;                /* the number that is looked at first for another node */
    unsigned left_out;            /* slots that the last answer had no owner of */
    struct redis_map_id *ids;     /* of the nodes that answers named, replicas too */
    size_t id_count;              /* REDIS_MAP_IDS at most */
    uint64_t answers;             /* that were taken so far */
    uint64_t digest; /* of which place has which slot: another as soon as one has moved */
};

void redis_map_init(struct redis_map *map);
void redis_map_finish(struct redis_map *map);

/* The owner's number; -ENOENT: nobody is known to have that slot. */
int redis_map_owner(const struct redis_map *map, unsigned slot);

/* The number of the node at that place, which gets one if it has none; -ENOSPC: there are too many.
 */
int redis_map_number(struct redis_map *map, const struct redis_place *place);

/* The answer to CLUSTER SLOTS of the node at `asked`, which does not always know its own name. 1:
 * something has another owner than before; 0: nothing has; or -EPROTO and *why (static text): it is
 * no such answer, and nothing was changed. */
int redis_map_take(struct redis_map *map, const struct redisReply *answer,
                   const struct redis_place *asked, const char **why);

/* Whether the answer may be of the same cluster as those before: they have a node's id in common,
 * or it tells none, or they did not. A node's address may be another cluster's by now. */
bool redis_map_is_akin(const struct redis_map *map, const struct redisReply *answer);

/* The same of a node that says that its cluster is down: it changes no owner, but what it leaves
 * out is counted. */
void redis_map_look_over(struct redis_map *map, const struct redisReply *answer,
                         const struct redis_place *asked);

/* Whether the node at that place is of another cluster, as the id shows by which it calls itself
 * (CLUSTER MYID; "": it does not tell): its address has been given to somebody else. Whom no answer
 * has named so far may have come a moment ago. */
bool redis_map_is_stranger(const struct redis_map *map, const struct redis_place *place,
                           const char *id, size_t length);
extern const char redis_stranger_text[]; /* why it is not connected to then */

/* A slot is the node's from now on; false: it was before. */
bool redis_map_move(struct redis_map *map, unsigned slot, int number);

/* Nothing is the node's any more, and nobody uses its number: it is given up. */
void redis_map_drop(struct redis_map *map, int number);

/* The number of the next node behind that one (from -1 on) that owns a slot; -ENOENT: none. */
int redis_map_next(const struct redis_map *map, int number);

/* Whether the node at that place owns one. With NULL for either: no. */
bool redis_map_owns(const struct redis_map *map, const struct redis_place *place);

/* How many nodes own a slot; and the number of the one of that rank among them: -ENOENT: there are
 * not so many. */
unsigned redis_map_owners(const struct redis_map *map);
int redis_map_ranked(const struct redis_map *map, unsigned rank);

/* The slots that nobody is known to have. */
unsigned redis_map_uncovered(const struct redis_map *map);

#endif
