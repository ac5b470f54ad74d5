/* What a keyspace's filter says of itself (BF.INFO, BF.CARD, CF.INFO), and what is not done to it.
 */
#ifndef NESTGUARD_FILTER_REPORT_H
#define NESTGUARD_FILTER_REPORT_H

#include "worker/request/request.h"

/* Answers a COMMAND_FILTER of this keyspace. */
void filter_report(struct client *client, const struct request *request, int keyspace);

#endif
