/* GET /v1/keys/{key}: what happens to a key, and why. */
#ifndef NESTGUARD_EXPLAIN_H
#define NESTGUARD_EXPLAIN_H

#include "guard/key.h"
#include "http/http.h"
#include <jansson.h>

struct keeper;

/* Asks whom it needs and then answers the call. The key is copied. */
void explain_key(struct keeper *keeper, struct http_call *call, struct key key);

/* Text of JSON: `before`, and that the row's own key is `own`. */
json_t *explain_spelling(const char *before, struct span own);

#endif
