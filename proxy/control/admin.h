/* What the control port's calls do. */
#ifndef NESTGUARD_ADMIN_H
#define NESTGUARD_ADMIN_H

#include "http/http.h"

extern const struct http_route admin_routes[]; /* their argument is the keeper */

/* The log's line for a call that may change something. */
void admin_log(void *arg, const char *who, const char *method, const char *url, unsigned code);

#endif
