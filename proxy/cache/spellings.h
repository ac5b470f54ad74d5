/* Keys that were asked for in another spelling than their row's: `item:042` of item:42, a uuid in
 * capitals. The guard compares texts, so they are absent, though SQL finds the row: an application
 * that writes its keys so is denied every one of them. This is the account of them, for metrics,
 * status and log. On the keeper's thread.
 */
#ifndef NESTGUARD_SPELLINGS_H
#define NESTGUARD_SPELLINGS_H

#include "base/span.h"
#include "config/config.h"
#include "guard/counters.h"
#include "guard/key.h"

struct spellings;

/* For the configuration's keyspaces, each of which has its counters; until another configuration is
 * used, of no fewer. */
struct spellings *spellings_create(const struct config *config, struct load_counters *counters);
void spellings_use_config(struct spellings *spellings, const struct config *config);
void spellings_destroy(struct spellings *spellings); /* NULL is allowed */

/* The key `asked` is no row's; the row that SQL finds by it has the key `own`. Both are copied. The
 * log has the first of a keyspace, and one a minute later on. Nothing is done for NULL. */
void spellings_add(struct spellings *spellings, struct key asked, struct span own);

/* The latest of a keyspace, cut off where it is very long; empty while there is none. */
struct spelling {
    char asked[300], own[300];
};
/* Lives until another configuration is used. */
const struct spelling *spellings_latest(const struct spellings *spellings, size_t keyspace);

#endif
