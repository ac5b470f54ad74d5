#include "build/queried.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "build/build_session.h"
#include "database/keyspace_sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What this transaction has locked, as SQL names it, whether it can be locked by LOCK TABLE, and
 * whether it is read without the children that it has (FROM ONLY), who would have been locked; a
 * partition is locked with its parent. What is in a schema that the role may not use it reaches
 * through a view alone, which stands here, too. */
static const char locked_sql[] =
    "WITH locked AS ("
    " SELECT DISTINCT relation AS oid FROM pg_locks"
    "  WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted AND relation >= 16384"
    "    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    "SELECT format('%I.%I', n.nspname, c.relname),"
    "       c.relkind IN ('r', 'p', 'v') AND has_table_privilege(c.oid, 'SELECT'),"
    "       EXISTS (SELECT FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid"
    "                WHERE i.inhparent = c.oid AND NOT k.relispartition"
    "                  AND k.oid NOT IN (SELECT oid FROM locked))"
    "  FROM locked l JOIN pg_class c ON c.oid = l.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_schema_privilege(n.oid, 'USAGE')"
    "   AND NOT EXISTS (SELECT FROM pg_inherits i JOIN locked p ON p.oid = i.inhparent"
    "                    WHERE i.inhrelid = c.oid)"
    " ORDER BY 1";

static int execute(struct pg_session *session, const char *sql, struct pg_error *error)
{
    return pg_session_exec(session, sql, 0, NULL, NULL, error);
}

/* A lock that is not to be had at once is not waited for: a time limit of 0 would be none. */
static int plan(struct pg_session *session, const struct keyspace *keyspace, struct pg_error *error)
{
    char *question = keyspace_sql_columns(keyspace), *sql = xasprintf("EXPLAIN %s", question);
    int status = execute(session, "SET LOCAL lock_timeout = '1ms'", error);
    if (!status)
        status = execute(session, sql, error);
    free(sql);
    free(question);
    return status;
}

static void take(struct queried *queried, const PGresult *locked)
{
    struct buffer names = {0}, list = {0};
    for (int row = 0; row < PQntuples(locked); row++) {
        const char *name = PQgetvalue(locked, row, 0);
        if (PQgetvalue(locked, row, 2)[0] == 'f') {
            buffer_printf(&names, ",");
            queried_put_name(&names, name);
        }
        if (PQgetvalue(locked, row, 1)[0] == 't')
            buffer_printf(&list, "%s%s", buffer_length(&list) ? ", " : "", name);
    }
    queried->names = buffer_string(&names);
    queried->lockable = buffer_string(&list);
}

static int ask(struct queried *queried, struct pg_session *session, const struct keyspace *keyspace,
               struct pg_error *error)
{
    PGresult *locked;
    int status = plan(session, keyspace, error);
    if (!status)
        status = pg_session_exec(session, locked_sql, 0, NULL, &locked, error);
    if (status)
        return status;
    take(queried, locked);
    PQclear(locked);
    return 0;
}

int queried_find(struct queried *queried, struct pg_session *session,
                 const struct keyspace *keyspace, struct pg_error *error)
{
    struct pg_error ending;
    queried_finish(queried);
    int status = build_session_begin(session, error);
    if (status)
        return status;
    status = ask(queried, session, keyspace, error);
    if (status && status != -EPROTO) /* the session is lost */
        return status;
    int ended = execute(session, "ROLLBACK", &ending);
    if (ended)
        *error = ending;
    else if (status && strcmp(error->sqlstate, "55P03") == 0)
        return -EAGAIN;
    return ended ? ended : status;
}

void queried_put_name(struct buffer *out, const char *name)
{
    buffer_printf(out, "\"");
    for (; *name; name++)
        buffer_printf(out, "%s%c", *name == '"' || *name == '\\' ? "\\" : "", *name);
    buffer_printf(out, "\"");
}

void queried_finish(struct queried *queried)
{
    free(queried->names);
    free(queried->lockable);
    *queried = (struct queried){0};
}
