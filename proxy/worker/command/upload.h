/* A command too large to be gathered first: its bytes go over the client's own connection to the
 * cache as they come. On a shared one, a client that stops in the middle would hold up all others.
 */
#ifndef NESTGUARD_UPLOAD_H
#define NESTGUARD_UPLOAD_H

#include "worker/client/incomplete.h" /* UPLOAD_BYTES */
#include "worker/request/request.h"

/* Begins with the command at the start of the input, which is not all there. Returns how many bytes
 * are done with; 0: it has to be gathered, as its keys or effects are not known from its beginning.
 */
size_t upload_begin(struct client *client, const char *input, size_t length);

/* Goes on while PINNED_UPLOAD is set. */
size_t upload_go_on(struct client *client, const char *input, size_t length);

/* One as large that was gathered takes that way, too, where it can: to be called before its slot is
 * opened. */
void upload_lead(struct client *client, const struct request *request);

/* The rest will not come, or has nowhere to go. Nothing happens when none is under way. */
void upload_abort(struct client *client);

#endif
