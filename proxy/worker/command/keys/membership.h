/* The commands of RedisBloom (BF.*, CF.*) where the filter that they name is a keyspace: its filter
 * is the guard's.
 *
 *   BF.EXISTS items 42 ─▶ the keys that 42 may mean ─▶ their ruling ─▶ 1 or 0
 *   BF.ADD    items 43 ─▶ likewise ─▶ a hint for each (admission.h)
 *   BF.INFO   items    ─▶ what the filter says of itself (filter_report.h)
 *
 * 1 means what it means of any such filter: it may exist. Nothing is asked of cache or database.
 */
#ifndef NESTGUARD_MEMBERSHIP_H
#define NESTGUARD_MEMBERSHIP_H

#include "worker/request/request.h"

/* Asks the memory system for what the command will ask the filters, when that is about one item. */
void membership_prefetch(const struct view *view, const struct request *request);

/* Whether the command is about a keyspace's filter. */
bool membership_is_meant(const struct client *client, const struct request *request);

/* Dispatches it then; false: it is not. */
bool membership_dispatch(struct client *client, const struct request *request);

#endif
