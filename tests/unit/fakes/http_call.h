/* Calls of the control port without a port: it stands in for http/http_call.c. The test makes the
 * call, and looks at the answer. */
#ifndef NESTGUARD_FAKES_HTTP_CALL_H
#define NESTGUARD_FAKES_HTTP_CALL_H

#include "http/http.h"

struct http_call {
    const char *rest;              /* of the path, or NULL */
    const char *parameter, *value; /* of the query, or NULL */
    unsigned status;               /* 0: not answered yet */
    json_t *body;                  /* or NULL */
    char *text;                    /* of an answer that is no JSON */
    void *upload;                  /* what the route has made of the body */
    unsigned gone_on;              /* how often more of that was asked for */
};

/* Calls a handler of the routes. */
void fake_call(struct http_call *call, const struct http_route *routes, const char *method,
               const char *path, void *arg);

/* It was answered so, and `error` is found in what it says ("": there is none). Forgets it. */
void fake_call_must_end(struct http_call *call, unsigned status, const char *error);

#endif
