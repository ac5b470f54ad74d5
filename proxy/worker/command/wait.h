/* WAIT: until so many replicas of each primary have what the client has written. */
#ifndef NESTGUARD_WAIT_H
#define NESTGUARD_WAIT_H

#include "worker/request/request.h"

/* WAIT; in a cluster WAITAOF, too. Nothing is served behind it before its reply is out. */
void wait_dispatch(struct client *client, const struct request *request);

#endif
