/* How fast a client's subscriptions are worked on, by a command or on a walk through all of them:
 * in turn with what others have in line (turn.h), and no further than its nodes follow. So little
 * is under way whenever a node is lost, or the client goes. */
#ifndef NESTGUARD_LISTENING_PACE_H
#define NESTGUARD_LISTENING_PACE_H

#include "worker/client/listening_names.h"

/* Requests at a client's posts without their replies, beyond which there will be no more. */
enum { MOST_ASKED = 512 };

static inline bool listening_has_asked_much(const struct listening *listening)
{
    return listening->asked >= MOST_ASKED;
}

/* The rest of the command, or of the walk: in line, or there once enough is answered. */
void listening_go_on(struct listening *listening, struct turn_task *task);

/* One request less. */
void listening_answered(struct listening *listening);

#endif
