/* RESET: as at Redis it never fails, whatever the cache is at. */
#ifndef NESTGUARD_RESET_H
#define NESTGUARD_RESET_H

#include "worker/request/request.h"

void reset_dispatch(struct client *client, const struct request *request);

#endif
