/* The order between what clients read from replicas and what they write; see client/reads.h. */
#ifndef NESTGUARD_READS_ORDER_H
#define NESTGUARD_READS_ORDER_H

#include "worker/request/request.h"

/* Before the request is served, where replicas are read from. True: it has to wait until what the
 * client has under way is answered. */
bool reads_order_holds(struct client *client, const struct request *request);

#endif
