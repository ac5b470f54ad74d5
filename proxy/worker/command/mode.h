/* What would tell a client library that it speaks with a cluster, or could make it do so: CLUSTER,
 * READONLY, READWRITE, ASKING, and what INFO says of the mode. Whatever the cache is, clients see
 * one plain Redis, unless cluster_commands is `pass`.
 */
#ifndef NESTGUARD_MODE_H
#define NESTGUARD_MODE_H

#include "worker/request/request.h"

/* A command of COMMAND_MODE. */
void mode_dispatch(struct client *client, const struct request *request);

#endif
