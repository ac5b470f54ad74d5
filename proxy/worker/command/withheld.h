/* EXEC of a transaction that tells of rows, at a server that may have forgotten what was deleted
 * from it (upstream_is_doubted()); and of one for whose keys there are no hints any more.
 *
 *   MULTI ─▶ GET of a row ─▶ QUEUED      EXEC ─┬─ believed ─▶ sent
 *                                              └─ doubted ──▶ DISCARD in its place, and an error
 *
 * What counts is the doubt when EXEC is served, for it is then that the values are read. The error
 * says that nothing was done. It is none of Redis' own: a nil, as of a WATCH that failed, would
 * have clients try again at once and as often as they can, and those that watch nothing do not
 * expect it; EXECABORT would blame one of the commands.
 */
#ifndef NESTGUARD_WITHHELD_H
#define NESTGUARD_WITHHELD_H

#include "worker/request/request.h"

/* Whether the server is doubted is not known yet, or may not be by the time that EXEC is written:
 * so it waits for the replies to all before it. */
bool withheld_must_wait(const struct client *client, const struct request *request);

/* EXEC is sent, or withheld. */
void withheld_execute(struct client *client, const struct request *request);

/* DISCARD. Its client is served no further before the answer: refused, it has ended nothing. */
void withheld_discard(struct client *client, const struct request *request);

#endif
