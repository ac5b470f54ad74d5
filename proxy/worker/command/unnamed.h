/* In a cluster: commands that the table does not name, whose node only the cache can tell.
 *
 *   JSON.GET k ─▶ known from before? ─ no ─▶ COMMAND INFO JSON.GET ─▶ kept with the pool ─┐
 *                    │ yes                                                                │
 *                    │◀──────── parsed again, when all replies are out ◀──────────────────┘
 *                    ├─▶ its first key is told by its place, or it has none ─▶ dispatched
 *                    └─▶ only COMMAND GETKEYS tells ─▶ asked of this one, and parsed again likewise
 */
#ifndef NESTGUARD_UNNAMED_H
#define NESTGUARD_UNNAMED_H

#include "resp/command_way.h"
#include "worker/request/request.h"

/* Whether it has to wait for the cache's word, which is on its way then; else its row may have
 * become another one. False of any other command. */
bool unnamed_must_wait(struct client *client, struct request *request);

/* Where it goes, by that word, which counts once. ROUTE_REFUSED: nowhere, and why is said by
 * unnamed_error(). */
struct command_way unnamed_way(struct client *client, const struct request *request);
struct span unnamed_error(const struct client *client);

#endif
