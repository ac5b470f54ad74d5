/* The rows that a client's lookups need, asked of the keeper:
 *
 *   row_load() ─▶ in line behind the client's others ─▶ keeper ─▶ row_loaded() ─▶ on_loaded()
 *
 * Only so many loads of one client are with the keeper at a time, where all clients have turns; the
 * others follow as answers come. So a client's own loads never make it fail, however many they are,
 * and what waits costs the keeper nothing.
 */
#ifndef NESTGUARD_ROW_LOADS_H
#define NESTGUARD_ROW_LOADS_H

#include "worker/reply/reply_slot.h"

/* Asks the keeper for the row: the slot, whose client is there, waits for one answer more. */
void row_load(struct lookup *lookup);

/* The keeper's answer; ends with reply_slot_answered(). */
void row_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value);

#endif
