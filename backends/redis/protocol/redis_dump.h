/* A hash in the form in which DUMP gives it and RESTORE takes it: Redis' own of a snapshot, see
 * rdb.c of its sources.
 */
#ifndef NESTGUARD_REDIS_DUMP_H
#define NESTGUARD_REDIS_DUMP_H

#include "redis/protocol/redis_answer.h"

/* New memory, `*length` bytes of it. */
char *redis_dump_hash(struct redis_hash hash, size_t *length);

#endif
