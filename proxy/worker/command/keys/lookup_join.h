/* The reply to a command of many keys, from what was answered to each: the `finish` of its kind. Of
 * more than LOOKUPS_AT_ONCE keys some are joined at a time, in turn with other clients.
 */
#ifndef NESTGUARD_LOOKUP_JOIN_H
#define NESTGUARD_LOOKUP_JOIN_H

#include "worker/reply/reply_slot.h"

enum { LOOKUPS_AT_ONCE = 512 }; /* of a command, before other clients have their turn */

/* All parts, in the order of the keys. */
void lookup_join_list(struct reply_slot *slot);

/* The sum of numbers that are 0 or 1, or the first error of a key that was not rejected: a count
 * that leaves out a key would be wrong. */
void lookup_join_sum(struct reply_slot *slot);

#endif
