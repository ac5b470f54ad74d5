/* What a server says of its replication (INFO replication): a primary how far it has come, and who
 * follows it; a replica how far it has followed.
 */
#ifndef NESTGUARD_REDIS_STANDING_H
#define NESTGUARD_REDIS_STANDING_H

#include "redis/protocol/redis_role.h"
#include "redis/topology/redis_place.h"

enum { REDIS_HISTORY_SIZE = 48 };

struct redis_standing {
    enum redis_role role;
    bool is_linked; /* a replica: to its primary, and it is not in the middle of being copied to */
    /* Offsets of the same history compare: a promoted replica, or one that has been given another's
     * data, has another. "": it does not say. */
    char history[REDIS_HISTORY_SIZE];
    uint64_t offset; /* a primary: of all that it has done; a replica: of what it has done of it */
};

/* Of INFO's text, as far as that tells. */
void redis_standing_read(struct redis_standing *out, const char *text);

/* The next of those who follow a primary and are up to date or nearly: *at is the text at first,
 * and goes on. False: there is no more. */
bool redis_standing_next(const char **at, struct redis_place *place);

/* How many of those have told their primary, whose text it is, that they have done as much. */
unsigned redis_standing_acknowledged(const char *text, uint64_t offset);

#endif
