/* Lets commits return that wait for this guard while it rejects nothing.
 *
 * With synchronous_standby_names a commit waits until the guard confirms its log position. While no
 * generation is in force there is nobody to confirm it, nor anything to wait for: no key can be
 * rejected. Worse, the next generation's slot is only made when every transaction under way has
 * ended, those that wait for the guard among them. So for that time another standby takes the
 * generation's place, under the guard's name: one that reads the log and confirms it unseen.
 *
 * It reads all of the log, so it is there only where synchronous_standby_names has the guard's name
 * in it. On the keeper's thread.
 */
#ifndef NESTGUARD_CONFIRMER_H
#define NESTGUARD_CONFIRMER_H

#include "config/config.h"
#include <stdbool.h>
#include <uv.h>

struct confirmer;

/* `config` outlives it. */
struct confirmer *confirmer_create(uv_loop_t *loop, const struct config *config);

/* From the next look on it asks the database of this configuration, which outlives it or is
 * replaced by another call. */
void confirmer_use_config(struct confirmer *confirmer, const struct config *config);

/* From now on every commit is let go; tries again and again where it can't. To be called only when
 * no worker can reject a key any more. Does nothing when it has been begun. */
void confirmer_begin(struct confirmer *confirmer);

/* Returns the furthest position that was confirmed since the beginning, 0 when none was or it was
 * not begun. Nothing behind that is confirmed any more; but what is on its way to the server may
 * still let commits go that lie before it. */
uint64_t confirmer_end(struct confirmer *confirmer);

bool confirmer_is_at_work(const struct confirmer *confirmer); /* commits are let go */

/* Ends it; its memory goes as the loop runs on. NULL is allowed. */
void confirmer_destroy(struct confirmer *confirmer);

#endif
