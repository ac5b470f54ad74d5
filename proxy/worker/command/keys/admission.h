/* Items that are added to a keyspace's filter (BF.ADD and kin): hints, as of keys that are written.
 */
#ifndef NESTGUARD_ADMISSION_H
#define NESTGUARD_ADMISSION_H

#include "worker/request/request.h"

/* Dispatches a COMMAND_ADMIT of keyspace `at`. Its reply leaves when every worker has admitted the
 * keys, or it is refused as a whole. */
void admission_dispatch(struct client *client, const struct request *request, int at);

#endif
