/* What a client asks for, put down in the worker's ledger: once a second, and when it goes. */
#ifndef NESTGUARD_ACCOUNT_H
#define NESTGUARD_ACCOUNT_H

#include "worker/client/client.h"

/* It is connected: from where is told later, when nobody may be at the other end any more. */
void account_open(struct client *client);

/* Since the last time. */
void account_settle(struct client *client);

#endif
