/* A client that listens before a cluster and speaks RESP2 may ask for nothing else, as at Redis. */
#ifndef NESTGUARD_BOUND_H
#define NESTGUARD_BOUND_H

#include "worker/request/request.h"

bool bound_is(const struct client *client);

/* Answers PING, and refuses all else. */
void bound_serve(struct client *client, const struct request *request);

/* As Redis does, whom this is not asked. */
void bound_refuse(struct client *client, const struct request *request);

#endif
