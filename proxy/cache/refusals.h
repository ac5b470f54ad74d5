/* Loads that the database refused: a grant, a column or a function is gone, or a row's contents
 * make its value fail. The filter is as true as before, so the keyspace goes on guarding while each
 * lookup that misses is an error: only this account says why. For status and log; on the keeper's
 * thread.
 */
#ifndef NESTGUARD_REFUSALS_H
#define NESTGUARD_REFUSALS_H

#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

struct refusals;

/* For the configuration's keyspaces; until another configuration is used, of no fewer. */
struct refusals *refusals_create(const struct config *config);
void refusals_use_config(struct refusals *refusals, const struct config *config);
void refusals_destroy(struct refusals *refusals); /* NULL is allowed */

/* A load of this keyspace was refused in these words, which are copied. The log has one such line a
 * second at most. */
void refusals_add(struct refusals *refusals, size_t keyspace, const char *error);

/* The database has given a row of this keyspace: what it refused before is over. That there is no
 * row proves less, for keys that no column can hold are found absent without the table. */
void refusals_end(struct refusals *refusals, size_t keyspace);

/* The latest, since the last row that was given; `count` is 0 while there is none. */
struct refused_load {
    uint64_t count, time; /* how many there were; clock_ms() of the latest */
    char text[512];       /* its words, cut off where they are longer */
};
/* Lives until another configuration is used. */
const struct refused_load *refusals_latest(const struct refusals *refusals, size_t keyspace);

#endif
