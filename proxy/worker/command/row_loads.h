/* The rows that a command's lookups need, asked of the keeper:
 *
 *   row_load() ─▶ in line behind others of its slot ─▶ keeper ─▶ row_loaded() ─▶ the kind's
 * on_loaded
 */
#ifndef NESTGUARD_ROW_LOADS_H
#define NESTGUARD_ROW_LOADS_H

#include "worker/reply/reply_slot.h"

/* Asks the keeper for the row: the slot waits for one answer more. Only so many loads of one slot
 * are with the keeper at a time; the others follow as answers come, so that one command can have
 * more keys than the load budget. */
void row_load(struct lookup *lookup);

/* The keeper's answer; ends with reply_slot_answered(). */
void row_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value);

#endif
