/* Before a generation may reject: one that knows nothing, or much less than the one that it is to
 * replace, is looked at once more by a fresh question to the database.
 *
 *   rows read under the snapshot ─┬─ at least half of what the generation before has ─▶ believed
 *                                 └─ fewer, or none ─▶ asked anew ─┬─ that few ─▶ believed
 *                                                                  └─ more ─▶ begun anew
 *
 * A snapshot may show less than there is: whatever rewrites a table (ALTER TABLE, TRUNCATE and
 * reload, a restore) leaves older snapshots an empty one. Locks and the comparison of files see to
 * that; this does not trust them, and knows nothing of why.
 */
#ifndef NESTGUARD_SECOND_LOOK_H
#define NESTGUARD_SECOND_LOOK_H

#include "config/config.h"
#include "guard/view.h"
#include "postgres/pg_session.h"

/* At the end of a build: the session is in no transaction, so that the question sees what is there
 * now. `replaced`: the rows of each keyspace in the generation before, 0 where there is none. 0,
 * -ESTALE when the database has clearly more rows than were read, or as pg_session_exec();
 * *keyspace is the number of the one that was asked about last. */
int second_look(struct pg_session *session, const struct config *config,
                const struct generation *built, const uint64_t *replaced, size_t *keyspace,
                struct pg_error *error);

#endif
