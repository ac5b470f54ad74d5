/* What a server is, by its answer to ROLE or by INFO. Whoever writes to it wants a primary: what
 * another takes it loses, and what another holds may be older than what was deleted.
 */
#ifndef NESTGUARD_REDIS_ROLE_H
#define NESTGUARD_REDIS_ROLE_H

#include <stdbool.h>
#include <stddef.h>

/* Unknown: it did not say, for ROLE is not for everybody, and not for now while a script keeps the
 * server busy. */
enum redis_role { REDIS_ROLE_UNKNOWN, REDIS_PRIMARY, REDIS_REPLICA, REDIS_SENTINEL };

/* Of the word that ROLE's answer begins with; need not end with a 0. */
enum redis_role redis_role_of(const char *word, size_t length);

/* Of the text that INFO gives, as far as that tells. */
enum redis_role redis_role_read(const char *info);

/* "primary", "replica", "sentinel", "unknown" */
const char *redis_role_name(enum redis_role role);

/* Why such a server is no cache (static text); NULL: nothing speaks against it. */
const char *redis_role_objection(enum redis_role role);

/* An error that says nothing against the server or the connection, and nothing of later: it still
 * reads its data, a script keeps it busy, its primary is away. `error` has no sign before it. */
bool redis_is_passing_trouble(const char *error, size_t length);

/* An error to writes alone: its memory is full, or its disk, or it has too few replicas. */
bool redis_is_full(const char *error, size_t length);

/* An error of a cluster's node that cannot say who has the key now, or not all of a command's. */
bool redis_is_cluster_down(const char *error, size_t length);

/* redis_is_passing_trouble() or redis_is_cluster_down(): it may do to ask again soon. */
bool redis_may_pass(const char *error);

/* -READONLY: a write to a replica. */
bool redis_is_readonly(const char *error, size_t length);

#endif
