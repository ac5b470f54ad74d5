/* `nestguard check --json`: the findings for programs. */
#ifndef NESTGUARD_CHECK_JSON_H
#define NESTGUARD_CHECK_JSON_H

#include "base/problem.h"

#include <jansson.h>

/* {"ok": no errors, "errors", "warnings", "notes": how many, "cache", "database": the versions, or
 * null where one was not asked or has not answered, "findings": [{"level": "error" | "warning" |
 * "note", "place", "text", "sql": what mends it, if statements do, "remedy": what mends it, if
 * something does}]}. An empty version is not known. A new reference. */
json_t *check_json(const struct problems *problems, const char *cache, const char *database);

#endif
