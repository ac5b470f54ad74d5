/* The purgers of a cache: one for its server, or in a cluster one for each node, by the nodes'
 * numbers (redis.h). What is owed is so remembered by node, and what one of them cannot be told
 * just now waits for that one alone.
 *
 *   key ─▶ the node that has it ─▶ its purger          keyspace ─▶ every purger
 *
 * A node that takes a key over takes over what is owed of it, too; and a node that was made a
 * primary has all keyspaces swept on it, since a replica may lack what its primary had confirmed.
 * What it kept may have gone on, with a slot, to a node that lacks nothing, before the sweep came
 * to it: so a node that is given slots is swept as well if the giver may have kept something.
 */
#ifndef NESTGUARD_PURGERS_H
#define NESTGUARD_PURGERS_H

#include "cache/purger.h"

struct purgers {
    struct purger_options options; /* of each, but for `redis`: that is the cache, one server or all
                                    */
    struct purger **at;            /* by number; NULL: no such node */
    size_t count;                  /* that there is room for */
    struct purger **retired;       /* of nodes that have ended, while something is under way */
    size_t retired_count;
    bool owes_whole; /* something was told before any node was known */
};

/* `options.all` is not looked at. Of a cluster those nodes have joined that are known. */
void purgers_open(struct purgers *purgers, const struct purger_options *options);

/* As the functions of these names in purger.h. */
void purgers_use_config(struct purgers *purgers, const struct config *config);
void purgers_key(struct purgers *purgers, struct key key);
void purgers_keyspace(struct purgers *purgers, int keyspace);
size_t purgers_owed(const struct purgers *purgers);
bool purgers_are_swept(const struct purgers *purgers); /* each of them is */
void purgers_give_up(const struct purgers *purgers);

/* purger_doubt() of each, and of each node that is to be known first. */
void purgers_doubt(struct purgers *purgers, const char *why);
bool purgers_are_doubted(const struct purgers *purgers); /* one of them is */

/* Of each whose server somebody doubts, purger_doubt(). */
void purgers_doubt_too(struct purgers *purgers);

/* As purger_cache_is(), of one server (number 0) or of a node. */
void purgers_cache_is(struct purgers *purgers, int number, bool up);

/* What struct redis_nodes tells. */
void purgers_joined(struct purgers *purgers, int number, struct redis *node, bool late);
void purgers_ended(struct purgers *purgers, int number);
void purgers_gave(struct purgers *purgers, int from, int to);
void purgers_moved(struct purgers *purgers);

/* Once in a while, and when something of the above has changed: what the purger of a node that has
 * ended could not get done is for whoever has the key now. Zeroed memory: does nothing. */
void purgers_check_time(struct purgers *purgers);

/* As purger_destroy(). Zeroed memory, too. */
void purgers_close(struct purgers *purgers);

#endif
