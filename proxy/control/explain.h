/* GET /v1/keys/{key}: what happens to a key, and why. */
#ifndef NESTGUARD_EXPLAIN_H
#define NESTGUARD_EXPLAIN_H

#include "guard/key.h"
#include "http/http.h"
#include <jansson.h>

struct keeper;

/* Asks whom it needs and then answers the call. The key is copied. Where a thing is not known, or
 * nobody was asked for it, the answer has null.
 *
 *   key, keyspace    what was asked for, and whose it is
 *   verdict          "possible" or "absent", whether the keyspace may reject by it or not
 *   decision, why    "pass", "reject" or "shadow" (it is only counted); and the reason
 *   state            the keyspace's
 *   entry            what is said of the key ahead of the filter
 *   in_flight        a load of it is under way
 *   known_absent     the filter takes it for possible, and the database has no such row
 *   generation       the one in force, and as `position` how far it follows the log
 *   cached, row      whether cache and database have it
 *   other_spelling   the key of a row that the database takes for the same, written otherwise */
void explain_key(struct keeper *keeper, struct http_call *call, struct key key);

/* A JSON string, a new reference: `before`, and that the row's own key is `own`. */
json_t *explain_spelling(const char *before, struct span own);

#endif
