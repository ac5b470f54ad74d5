/* What a query reads. A view's rule says that of itself in the catalogue (pg_depend); of a query
 * there is no such entry, and its text is not understood here: the server is asked to plan it, in a
 * transaction of its own, and then which relations that has locked.
 *
 * Why none is missing that the query names: the server opens each one while it parses the statement
 * and puts the views' own queries in place of the views, in any corner of it (a subquery, a WITH
 * that nobody reads, a branch that is never taken), before the planner leaves anything out; and
 * none is opened without a lock that lasts to the transaction's end. The plan itself would not do:
 * it has only what is left. Nor is a plan found that was made before: the statement is new each
 * time.
 *
 * What is read without being named, by a function, nobody can tell before it was read, no more than
 * of a view: build_locks_compare() sees it afterwards, by its locks, which the transaction that
 * reads holds to its end, too, and without parallel workers, who would take theirs away with them.
 * The same is true of what a name has come to mean between this question and the locks: so this one
 * serves the locks that are taken before the snapshot, and what is believed is compared after
 * reading.
 */
#ifndef NESTGUARD_QUERIED_H
#define NESTGUARD_QUERIED_H

#include "base/buffer.h"
#include "config/config.h"
#include "postgres/pg_session.h"

struct queried {
    char *names;    /* ,"public.items","public.others": each behind a comma, for an array of SQL's;
                       without a parent whose children are not read */
    char *lockable; /* public.items, public.others: those that LOCK TABLE takes from the role */
};

/* Zeroed ones, or those before. With the session outside of a transaction, before and after. 0;
 * -EAGAIN: somebody has locked one of them, which is not waited for; else as pg_session_exec():
 * after -EPROTO the query is refused. */
int queried_find(struct queried *queried, struct pg_session *session,
                 const struct keyspace *keyspace, struct pg_error *error);
void queried_finish(struct queried *queried);

/* An element of such an array. */
void queried_put_name(struct buffer *out, const char *name);

#endif
