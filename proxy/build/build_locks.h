/* What a build reads must not be rewritten between its snapshot and its reading: whatever rewrites
 * a table (ALTER TABLE with a new or retyped column, TRUNCATE and reload, REFRESH, a restore) gives
 * it a new file with rows that no earlier snapshot sees. An empty table would be found, and
 * believed.
 *
 * And each connection must read the table that was locked. A COPY finds its table by name, as of
 * now and not as of the snapshot; and while a lock keeps a table's own name, nothing keeps its
 * schema from being renamed and another put in its place, or before it in the search path, until
 * the COPY has found a table there, and back.
 *
 *   build_locks_begin()     BEGIN ─▶ every table locked (ACCESS SHARE) ─▶ only then the snapshot
 *   build_locks_compare()   at once, for a snapshot that is older than the locks (a slot's); and
 *                           after reading, for what cannot be locked before, and for what was
 *                           found by name; of each connection
 *
 * The application's own locks come first:
 *
 * - While a lock is not to be had, nothing is held: all are taken without waiting or none, and who
 *   is in the way is watched from outside of the queue. Whoever does not wait while he holds
 *   something is part of no circle: so no migration is ever the victim of a deadlock with a build,
 *   in whatever order it locks, and whatever its deadlock_timeout is.
 * - Later, with the locks held, there is still something to wait for: an index that is built anew,
 *   or a table that could not be locked before. That wait ends (lock_timeout) well before the
 *   deadlock_timeout (1 s) of somebody who began to wait for us in it; and so does the build.
 */
#ifndef NESTGUARD_BUILD_LOCKS_H
#define NESTGUARD_BUILD_LOCKS_H

#include "build/build_wait.h"
#include "config/config.h"

struct build_locks {
    const struct config *config;
    const char *exported;    /* the snapshot to read under; NULL: one of the transaction's own */
    const atomic_bool *stop; /* looked at while waiting */
    struct build_wait *wait; /* told who is in the way */
    char **queried;          /* begin() leaves what compare() needs to know of what the queries
                                read; NULL at first, freed by the owner */
    const struct keyspace **blamed; /* after -EPROTO: whose table it was, or NULL */
};

/* Begins the transaction, waiting for as long as it takes. A table that is not there is an error.
 * Not everything can be locked: not what the role may only read some columns of. 0, or as
 * pg_session_exec(). */
int build_locks_begin(const struct build_locks *locks, struct pg_session *session,
                      struct pg_error *error);

/* Whether everything that the transaction has locked until now, by reading it or before, is what
 * its snapshot sees: with the same file, under the same name, in a schema that was not altered,
 * with every partition that it had and, under an exported snapshot, with no more. What is not
 * locked yet is nobody's loss: it is compared after it was read. 0, or -ESTALE with *error: what is
 * read under this snapshot must not be believed. Else as pg_session_exec(). */
int build_locks_compare(const struct build_locks *locks, struct pg_session *session,
                        struct pg_error *error);

#endif
