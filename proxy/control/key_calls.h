/* The control port's calls about one key: explained, admitted, rejected. What they answer is told
 * in admin.h.
 */
#ifndef NESTGUARD_KEY_CALLS_H
#define NESTGUARD_KEY_CALLS_H

#include "http/http.h"

/* Of struct http_route; the argument is the keeper. */
void key_calls_get(struct http_call *call, void *arg);
void key_calls_put(struct http_call *call, void *arg);
void key_calls_delete(struct http_call *call, void *arg);

#endif
