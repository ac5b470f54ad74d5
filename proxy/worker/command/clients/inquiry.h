/* What a client asks about other clients: these live on all workers, so the question goes round.
 *
 *   the cache: may this client ask? ─▶ keeper ─▶ worker ─▶ keeper ─▶ ... ─▶ the asker's worker
 *
 * The asker settles until it is answered.
 */
#ifndef NESTGUARD_INQUIRY_H
#define NESTGUARD_INQUIRY_H

#include "guard/messages.h"
#include "worker/client/roster.h"
#include "worker/request/request.h"

enum kill_form {
    KILL_BY_FILTERS, /* answered with how many have gone */
    KILL_BY_ADDRESS  /* with OK, or that nobody has it */
};

/* Each takes the filter. */
void inquiry_list(struct client *client, struct client_filter *filter);
void inquiry_kill(struct client *client, struct client_filter *filter, enum kill_form form);

/* Sends the command to the cache for the slot, which the caller has opened, with the number that
 * the cache knows a client by in place of argument `at`, which is that client's id here. The cache
 * hears of one that it does not know when there is no such client, or it shares its connection, or
 * has one to another server than the command goes to. Of
 * a cluster it is the node whose number that is which gets the command. `in_own`: it changes its
 * connection, which is the client's own, or it fails. */
void inquiry_translate(struct client *client, const struct request *request, size_t at,
                       struct reply_slot *slot, bool in_own);

/* CLIENT UNBLOCK: the same, with the second argument. One whose WAIT goes on here waits for nothing
 * in the cache: if that has no objection, its WAIT is ended. */
void inquiry_unblock(struct client *client, const struct request *request);

/* A worker's part: a few clients at a time, in turn with who has sent much. Then the message goes
 * on to the keeper. */
void inquiry_visit(struct roll_call *call, struct clients *clients);
/* What a worker's own question has come to, which is freed. */
void inquiry_returned(struct roll_call *call);

/* The client goes, while the inquiry is its own. */
void inquiry_drop(struct client *client);

#endif
