/* The configuration in force: what it is, and what became of reading the file again. */
#ifndef NESTGUARD_CONFIGURATION_H
#define NESTGUARD_CONFIGURATION_H

#include "config/config.h"
#include "http/http.h"
#include "keeper/reload.h"

/* A new reference. `now`: what is in force after it.
 *
 *   error      only when it was refused
 *   changes    each setting that the file has otherwise: before, after, taken, and why not where
 *              that is not because it needs a restart
 *   restart    the names of those that need one
 *   keyspaces  added, changed, removed, left (as they are): names
 *   problems   what is wrong with the file, or with the database for it: place, text, level, and
 *              what mends it (remedy), or null */
json_t *configuration_reload_json(const struct reload *reload, const struct config *now);

/* GET /v1/config: YAML, without secrets. POST /v1/reload: 200, 409 when the file was refused, or
 * 503 when the guard is ending or has a file to read already. It is answered when a cache that is
 * named anew was reached, or was not, and the database has said what it has to say of it. */
void configuration_get(struct http_call *call, void *arg);    /* the argument is the keeper */
void configuration_reload(struct http_call *call, void *arg); /* likewise */

#endif
