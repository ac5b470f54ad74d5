/* Writes and deletions that answer what was there before: GETDEL, GETSET, SET with GET. */
#ifndef NESTGUARD_WRITE_READS_H
#define NESTGUARD_WRITE_READS_H

#include "worker/request/request.h"

/* It answers the value of a row, and the client's connection leads to a server that is doubted, or
 * may turn out to be: then it is to fail, as a lookup does. */
bool write_reads_in_doubt(const struct client *client, const struct request *request);

#endif
