/* A hash in the form in which DUMP gives it and RESTORE takes it: Redis' own of a snapshot, see
 * rdb.c of its sources.
 */
#ifndef NESTGUARD_REDIS_DUMP_H
#define NESTGUARD_REDIS_DUMP_H

#include "redis/protocol/redis_answer.h"

/* `words` are names and values in turn, `pairs` of them, at least one; no two names are the same.
 * New memory, `*length` bytes of it. */
char *redis_dump_hash(const struct redis_bytes *words, size_t pairs, size_t *length);

#endif
