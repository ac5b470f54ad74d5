/* How many clients there is room for: each is an open file, and what the process itself needs comes
 * first. Without that reserve, a burst of clients would leave none for a connection to the
 * database, or for /healthz. Pure arithmetic, but for the two that ask the system.
 */
#ifndef NESTGUARD_FILE_LIMITS_H
#define NESTGUARD_FILE_LIMITS_H

#include "config/config.h"

/* Open files that are not for clients, without which nobody is served. */
uint64_t file_limits_reserve(const struct config *config);

/* As many as max_clients and own_connections ask for, and so many as connections to a cache may be
 * of which the file does not say how many servers it has: a cluster is taken to have 16 primaries
 * and 32 replicas, Sentinel's primary 8, and all of them twice while the cache moves. */
uint64_t file_limits_wanted(const struct config *config);

/* What so many files allow; where they are fewer than wanted, those connections get half of what
 * the reserve leaves, at most, and connections of clients' own a quarter of the rest. `clients` is
 * 0: not even the reserve is there. */
struct file_limits file_limits_of(const struct config *config, uint64_t files);

/* The limits that config_load() has worked out are lower than what the file asks for. */
bool file_limits_are_low(const struct config *config);

uint64_t file_limits_hard(void); /* the most that the process may allow itself; 0: not known */
int file_limits_raise(void);     /* the soft limit, to that; 0 or a negative errno */

#endif
