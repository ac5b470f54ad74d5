/* Who is asking, as JSON for /v1/attack. */
#ifndef NESTGUARD_CONTROL_ATTACK_H
#define NESTGUARD_CONTROL_ATTACK_H

#include "keeper/keeper.h"
#include <jansson.h>

/* A new reference. Two windows, each with the heaviest of its time:
 *
 *   last_attack          null before the first; active, number, seconds_since_it_began, seconds,
 *                        rejects, most_per_second
 *   threshold            rejects a second from which on it is one
 *   rejects_per_second   now, minute, hour: of all
 *   fresh                what no figure above has in it yet: seconds, and rejects in them
 *   keyspaces            a list of name, rejects_per_second, without the retired ones
 *   minute, hour         seconds: the time that it really is about
 *       clients          by burden, as "rejects": total, and a list of the heaviest: address, name,
 *                        user, count, error
 *       addresses        likewise, of all clients of an address, whatever they call themselves:
 *                        address, count, error
 *       absent_keys      a list of key, cut (not all of it is there), keyspace, count, error;
 *                        those alone that stand out (traffic/heavy.h) */
json_t *attack_json(const struct keeper *keeper);

#endif
