/* A helper is only for speed: what goes wrong with one is told to nobody, and the build goes on
 * with those that there are, if need be with its first session alone. Once one was not to be had,
 * no more are asked for: the server has no connection left, or somebody wants the table.
 */
#include "build/build_helpers.h"

#include "base/memory.h"
#include "build/build_session.h"
#include "database/keyspace_sql.h"

#include <errno.h>
#include <stdlib.h>

/* It must lead to the very server that has the snapshot, and not have been restarted since: a name
 * may lead elsewhere by now. */
static int add(struct build_helpers *helpers, const struct pg_session_options *options,
               const char *snapshot, const struct pg_server *server)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    int status = pg_session_open(&session, options, &error);
    if (!status && !pg_server_is_same(pg_session_server(session), server, true))
        status = -ESTALE;
    if (!status)
        status = build_session_begin(session, &error);
    if (!status)
        status = build_session_import(session, snapshot, &error);
    if (status)
        pg_session_close(session);
    else
        helpers->at[helpers->count++] = session;
    return status;
}

void build_helpers_get(struct build_helpers *helpers, unsigned wanted,
                       const struct pg_session_options *options, const char *snapshot,
                       const struct pg_server *server)
{
    while (helpers->count < wanted && !helpers->no_more)
        helpers->no_more = add(helpers, options, snapshot, server) != 0;
}

/* A helper must not wait for the table: whoever wants it for himself alone waits for our first
 * session, which waits for the helper's rows, and the helper, in the queue for the table, would
 * wait for him; the server sees no circle in that. So a helper that cannot have its lock at once is
 * done without. With it, its COPY waits for nobody. */
void build_helpers_lock(struct build_helpers *helpers, const struct keyspace *keyspace)
{
    char *table = keyspace_sql_rows(keyspace);
    char *sql = xasprintf("LOCK TABLE ONLY %s IN ACCESS SHARE MODE NOWAIT", table);
    unsigned kept = 0;
    for (unsigned i = 0; i < helpers->count; i++) {
        struct pg_error error;
        if (pg_session_exec(helpers->at[i], sql, 0, NULL, NULL, &error) == 0)
            helpers->at[kept++] = helpers->at[i];
        else
            pg_session_close(helpers->at[i]);
    }
    helpers->no_more |= kept < helpers->count;
    helpers->count = kept;
    free(sql);
    free(table);
}

int build_helpers_compare(const struct build_helpers *helpers, const struct build_locks *locks,
                          struct pg_error *error)
{
    int status = 0;
    for (unsigned i = 0; i < helpers->count && !status; i++)
        status = build_locks_compare(locks, helpers->at[i], error);
    return status;
}

void build_helpers_close(struct build_helpers *helpers)
{
    for (unsigned i = 0; i < helpers->count; i++)
        pg_session_close(helpers->at[i]);
    *helpers = (struct build_helpers){0};
}
