/* What keyspaces publish: who hears of rows and generations for published.h, and tells of it.
 *
 * What a configuration that is read again wants to be published otherwise is built with the next
 * generation, and what was published stays true until then. Another format or rate takes the
 * place of the one before; what else changes ends with its lease when the other begins. What is not
 * wanted any more ends at once.
 *
 *   the log ─▶ changes ─▶ publisher_hear() ─▶ items of the key ─▶ the bitmap of the generation
 *                                                         that is in force, and a candidate's
 *
 * On the keeper's thread.
 */
#ifndef NESTGUARD_PUBLISHER_H
#define NESTGUARD_PUBLISHER_H

#include "guard/change.h"
#include "guard/view.h"
#include "publish/published.h"

struct publisher;

struct publisher *publisher_create(struct redis *redis);
void publisher_destroy(struct publisher *publisher); /* when redis has ended */

/* All of these do nothing with NULL. The first is a subscriber of changes; `arg` is the publisher.
 */
void publisher_hear(void *arg, const struct key_change *change);
void publisher_use_view(struct publisher *publisher, const struct view *view);
void publisher_known(struct publisher *publisher); /* more rows are: the lease has been extended */
/* The cache is another from now on: the one before was told to be down, and its redis has ended. */
void publisher_use_cache(struct publisher *publisher, struct redis *redis);
void publisher_cache_is(struct publisher *publisher, bool up);
void publisher_node_is(struct publisher *publisher, int node, bool up); /* of a cluster */
void publisher_tick(struct publisher *publisher, uint64_t now);
void publisher_end(struct publisher *publisher); /* leases end here */

/* The first keyspace whose filter should be made anew; NULL. */
const struct keyspace *publisher_worn(const struct publisher *publisher);

/* Of one keyspace; NULL, or zeroed: it publishes nothing. */
const struct published *publisher_of(const struct publisher *publisher, size_t keyspace);
struct published_report publisher_report(const struct publisher *publisher, size_t keyspace);

#endif
