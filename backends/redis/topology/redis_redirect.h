/* What a node of a cluster answers where it does not have a key: who has it, for good (MOVED) or
 * for this one command, which then has ASKING before it (ASK). */
#ifndef NESTGUARD_REDIS_REDIRECT_H
#define NESTGUARD_REDIS_REDIRECT_H

#include "redis/topology/redis_place.h"
#include "redis/topology/redis_slot.h"

struct redis_redirect {
    bool asks; /* ASK; else MOVED */
    unsigned slot;
    struct redis_place place;
};

/* The error, without its sign, means to be a redirection, whether it can be read or not. */
bool redis_redirect_is_meant(const char *error, size_t length);

/* Of an error without its sign: "MOVED 3999 127.0.0.1:6381". A node that does not know the other's
 * host leaves it out: it is that of `from`, then. False: it is no redirection, or not a right one,
 * such as to "?:6381", whose address only CLUSTER SLOTS tells. */
bool redis_redirect_read(struct redis_redirect *out, const char *error, size_t length,
                         const struct redis_place *from);

#endif
