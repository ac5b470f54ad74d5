/* What a client had subscribed to, when it listens no more. */
#ifndef NESTGUARD_LISTENING_REMAINS_H
#define NESTGUARD_LISTENING_REMAINS_H

#include "worker/client/client.h"

/* Frees all subscriptions: many of them some at a time, which outlive the client. All posts are
 * closed. */
void listening_leave_remains(struct client *client);

#endif
