/* What the control port's calls do.
 *
 *   201, 204   it is done, at every worker and in the cache
 *   400, 404   the call is wrong: nothing was done
 *   409        the database, or the file, says otherwise: nothing was done
 *   503        somebody who had to be asked did not answer, there is no room, or the guard is
 * ending; the text says what was done all the same
 *
 * A call that asks somebody is answered from that one's callback; whoever goes meanwhile is not
 * answered, and what the call began goes on.
 */
#ifndef NESTGUARD_ADMIN_H
#define NESTGUARD_ADMIN_H

#include "http/http.h"

/* In the order in which GET /v1 lists them. Their argument is the keeper, on whose thread they run.
 */
extern const struct http_route admin_routes[];

/* The log's line for a call that may have changed something; of those that were refused, which
 * anybody can send, and any page have a browser send, a short one in a while. As
 * http_options.on_call. */
void admin_log(void *arg, const struct http_finished *call);

#endif
