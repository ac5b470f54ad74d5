/* SCRIPT DEBUG behind other commands. */
#ifndef NESTGUARD_SCRIPT_DEBUG_H
#define NESTGUARD_SCRIPT_DEBUG_H

#include "worker/request/request.h"

/* False: it is none, or nothing is to be answered before it, and nothing has happened. */
bool script_debug_refuses(struct client *client, const struct request *request);

#endif
