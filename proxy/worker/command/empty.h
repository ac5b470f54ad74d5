/* A command of no words: an empty line, or an array of none. */
#ifndef NESTGUARD_EMPTY_H
#define NESTGUARD_EMPTY_H

#include "worker/client/client.h"

/* One or more of them, which have no reply. */
void empty_dispatch(struct client *client);

#endif
