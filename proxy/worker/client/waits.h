/* The connections of a client's WAIT, and of SCRIPT KILL: its own, or in a cluster one to each
 * primary, over which nothing else goes (struct pinned_wait). */
#ifndef NESTGUARD_WAITS_H
#define NESTGUARD_WAITS_H

#include "worker/client/client.h"

/* Opens pinned.waits, to each primary, on which nothing is sent before all is answered that was
 * asked for so far; of one server it is the client's own, which it has. How many there are, or
 * -EBUSY, answered, as pinned_begin(). The second: one is not needed any more; `all`: the others
 * are given up, too. */
int waits_open(struct client *client);
void waits_close(struct client *client, unsigned number, bool all);

/* Of pinned_is_blocked(): it is a WAIT whose replicas are counted here, and all before it is
 * answered. The second has it end as soon as they are counted next: with their number, or with an
 * error. */
bool waits_count(const struct client *client);
void waits_end_count(struct client *client, bool with_error);

/* As pinned_flush(), pinned_check(), pinned_finish(); and, as pinned_follow() when it is late,
 * gives up those that lead elsewhere than to where the cache is now. */
void waits_flush(struct client *client);
void waits_check(struct client *client);
void waits_finish(struct client *client);
void waits_leave(struct client *client);

#endif
