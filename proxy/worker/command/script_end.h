/* SCRIPT KILL and FUNCTION KILL in a cluster: nobody but its nodes knows on which of them a script
 * runs, so all primaries are asked. The reply is what one server would say that had all scripts:
 * OK, when one was ended. */
#ifndef NESTGUARD_SCRIPT_END_H
#define NESTGUARD_SCRIPT_END_H

#include "worker/request/request.h"

void script_end_dispatch(struct client *client, const struct request *request);

#endif
