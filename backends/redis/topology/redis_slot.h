/* Which of a cluster's slots a key belongs to: CRC16 (XMODEM) of the key, or of what stands between
 * its first { and the } behind that, if that is anything; modulo the number of slots. (Redis
 * Cluster Specification, "Key distribution model" and "Hash tags".) */
#ifndef NESTGUARD_REDIS_SLOT_H
#define NESTGUARD_REDIS_SLOT_H

#include <stddef.h>

enum { REDIS_SLOTS = 16384 };

unsigned redis_slot_of(const char *key, size_t length);

#endif
