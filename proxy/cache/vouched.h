/* Servers of the cache that have not forgotten a deletion, as far as the keeper knows, by their
 * run_id: a server draws one when it starts.
 *
 *   a server is another than before ─▶ the keeper sweeps it ─▶ vouched for
 *                 └─▶ a worker is connected to it, too, and maybe sooner: guarded keys are not read
 *                     there before
 *
 * Asked when a connection to the cache comes up, and then again and again; never by a lookup.
 */
#ifndef NESTGUARD_VOUCHED_H
#define NESTGUARD_VOUCHED_H

#include <stdbool.h>
#include <stdint.h>

enum { RUN_ID_SIZE = 41 }; /* with the closing zero; "" stands for a server that does not say */

struct vouched;

struct vouched *vouched_create(void);
void vouched_destroy(struct vouched *vouched); /* NULL is allowed */

/* The keeper. Who keeps a server swept vouches for that one, and for none before; NULL: for none
 * any more. */
void vouched_set(struct vouched *vouched, const void *by, const char *run_id);

/* The keeper. Who is to sweep a server doubts that one, until it vouches or leaves, or somebody
 * else does who began to doubt it later, and has so swept it since: nobody's word counts for the
 * server meanwhile. */
void vouched_doubt(struct vouched *vouched, const void *by, const char *run_id);

/* The keeper: somebody does. */
bool vouched_is_doubted(struct vouched *vouched, const char *run_id);

/* The keeper: the cache was up as a whole, or all of it is doubted. Until then all are believed
 * that are not doubted: what was deleted before the guard was started nobody knows. */
void vouched_settle(struct vouched *vouched);

/* Any thread: while it stays the same, who was believed still is. */
uint64_t vouched_version(const struct vouched *vouched);

/* Any thread; `now` is clock_ms(). True also of a server that does not say who it is, and of one
 * that the keeper did not come to, or was not let sweep, for a minute in which it was asked for
 * each second: then loads have lasted long enough. */
bool vouched_believes(struct vouched *vouched, const char *run_id, uint64_t now);

#endif
