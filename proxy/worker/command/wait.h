/* WAIT: until so many replicas of each primary have what the client has written. */
#ifndef NESTGUARD_WAIT_H
#define NESTGUARD_WAIT_H

#include "resp/command_way.h"
#include "worker/request/request.h"

/* WAIT; in a cluster WAITAOF, too. Nothing is served behind it before its reply is out. */
void wait_dispatch(struct client *client, const struct request *request);

/* One of its parts, in this slot: over the connection of that number (waits_open()). */
typedef void wait_ask(struct client *client, const struct request *request, struct reply_slot *slot,
                      unsigned number);

/* Any command that asks each primary over a connection that is for this alone, which whoever takes
 * the reply closes (waits_close()). */
void wait_ask_all(struct client *client, const struct request *request, enum command_join join,
                  const struct reply_slot_kind *kind, wait_ask *ask_one);

#endif
