/* Everything is asked over the build's own session: while it waits it is in no transaction.
 */
#include "build/build_locks.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "build/build_session.h"
#include "build/queried.h"
#include "database/keyspace_sql.h"
#include "database/schema_altered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SAY_AFTER_MS = 2000,
    PAUSE_MIN_MS = 10,
    PAUSE_MAX_MS = 200,
    PLAN_MAX_MS = 5000, /* from one plan that is refused to the next */
    PLAN_GONE_MS = 1000 /* likewise, when who was in the way is gone, or nobody knows who it is */
};

struct taking {
    const struct build_locks *locks;
    struct pg_session *session;
    struct queried *queried; /* of each keyspace: what its query reads, if it has one */
    char *names;             /* of the tables: an array, as SQL writes it */
    bool *refused;           /* of each keyspace: its table cannot be locked */
    uint64_t began, pause_ms, plan_ms;
    struct pg_error *error;
};

/* SQL: what a view reads, by the rule that makes it one; its oid follows. A materialized view has
 * such a rule, too, but rows of its own. */
#define SQL_READ_BY                                                                                \
    "SELECT d.refobjid FROM pg_class v, pg_rewrite r, pg_depend d"                                 \
    " WHERE v.relkind = 'v' AND r.ev_class = v.oid AND r.ev_type = '1'"                            \
    "   AND d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid"                                \
    "   AND d.refclassid = 'pg_class'::regclass AND v.oid = "

/* One row: whether each table can be locked ("tft"), and who is in the way, or NULL.
 *
 * Of a table what is below it counts, too, and all indexes; of a view what it reads, which LOCK
 * TABLE locks with it. Who waits in the queue before us would be in the way as well: then those are
 * meant for whom he waits. What is neither is not locked (a materialized view), nor what the role
 * may not read as a whole: it is compared after it was read. */
static const char outlook_sql[] =
    "WITH RECURSIVE guarded AS ("
    " SELECT place, to_regclass(name)::oid AS oid"
    "   FROM unnest($1::text[]) WITH ORDINALITY AS n (name, place)),"
    " tree (oid) AS ("
    " SELECT oid FROM guarded"
    " UNION SELECT b.oid FROM tree t, LATERAL ("
    "  SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = t.oid"
    "  UNION ALL SELECT x.indexrelid FROM pg_index x WHERE x.indrelid = t.oid"
    "  UNION ALL " SQL_READ_BY "t.oid) AS b (oid)),"
    " wanted AS ("
    " SELECT l.* FROM pg_locks l"
    "  WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'"
    "    AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.relation IN (SELECT oid FROM tree)"
    "    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    "  ORDER BY l.granted DESC LIMIT 1)"
    "SELECT (SELECT string_agg(CASE WHEN g.oid IS NULL OR c.relkind IN ('r', 'p', 'v')"
    "               AND has_table_privilege(g.oid, 'SELECT') THEN 't' ELSE 'f' END, ''"
    "               ORDER BY g.place)"
    "          FROM guarded g LEFT JOIN pg_class c ON c.oid = g.oid),"
    "       (SELECT 'for a lock on ' || w.relation::regclass || ' behind ' || coalesce("
    "              (SELECT " SQL_DESCRIBE_HOLDER
    "                 FROM pg_locks holder WHERE holder.granted AND holder.locktype = w.locktype"
    "                  AND holder.database = w.database AND holder.relation = w.relation"
    "                  AND CASE WHEN w.granted THEN holder.mode = w.mode"
    "                      ELSE coalesce(holder.pid, 0) = ANY (pg_blocking_pids(w.pid)) END"
    "                LIMIT 1), 'process ' || w.pid)"
    "          FROM wanted w)";

/* One row: who may be in the way of a query, of whose tables nothing is known while it cannot be
 * planned; their processes; and whether any of those that are given is among them. */
static const char suspects_sql[] =
    "WITH holder AS ("
    " SELECT * FROM pg_locks"
    "  WHERE granted AND locktype = 'relation' AND mode = 'AccessExclusiveLock'"
    "    AND relation >= 16384 AND pid IS DISTINCT FROM pg_backend_pid()"
    "    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    "SELECT 'for a lock on a table that a query reads; locked are: ' || coalesce("
    "       string_agg(DISTINCT holder.relation::regclass || ' by ' || " SQL_DESCRIBE_HOLDER
    ", ', '), 'none by now'),"
    "       coalesce(array_agg(DISTINCT coalesce(holder.pid, 0)), '{}'),"
    "       coalesce(bool_or(coalesce(holder.pid, 0) = ANY ($1::int[])), false) FROM holder";

/* A catalogue's row is read as the snapshot sees it; what the functions say is true now, of what is
 * locked at least. Rows: what is not the same. Indexes and what is behind them may be another's.
 *
 * Not every partition of what is read is locked: where LOCK TABLE was refused nobody locks those
 * that the condition rules out. Such a one was taken away if it says itself that it is nobody's.
 * Children that are no partitions cannot say it; but who reads their parent locks all of them, and
 * before the parent is locked there is nothing to find out. A view that reads the parent alone
 * (FROM ONLY) has none of them locked, which its rule says, and nothing else in the catalogue; of a
 * rule that is not understood it is taken that all are read.
 *
 * A partition whose detachment has begun is read by nobody, though LOCK TABLE locks it.
 *
 * Under a snapshot of the transaction's own, taken after the locks, a table that was added since
 * had none of the rows that the snapshot sees, unless they came from one that was taken away. That
 * is of a partition; what else the snapshot does not know has taken the place of something that it
 * knows: a function finds what it reads by name, and reads it empty. So under a
 * snapshot that is not a slot's whatever was read must have had its name in it, too.
 *
 * And whatever was read must have stayed in its schema under the schema's name: under another it
 * may have been what another table's name led to for a while. */
static const char compare_sql[] =
    "WITH RECURSIVE guarded AS ("
    " SELECT to_regclass(name)::oid AS oid FROM unnest($1::text[]) AS name"
    " UNION SELECT b.oid FROM guarded g, LATERAL (" SQL_READ_BY "g.oid) AS b (oid)),"
    " held AS ("
    " SELECT l.relation AS oid, (pg_identify_object('pg_class'::regclass, l.relation, 0)).*"
    "   FROM (SELECT DISTINCT relation FROM pg_locks"
    "          WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted"
    "            AND relation >= 16384 AND database ="
    "                (SELECT oid FROM pg_database WHERE datname = current_database())) l),"
    " alone AS ("
    " SELECT g.oid FROM guarded g, guarded v"
    "   JOIN pg_rewrite r ON r.ev_class = v.oid AND r.ev_type = '1',"
    "        regexp_matches(r.ev_action::text, format(':relid %s .*?:inh (true|false)', g.oid), "
    "'g')"
    "            AS entry"
    "  WHERE NOT EXISTS (SELECT FROM unnest($1::text[]) AS name WHERE to_regclass(name) = g.oid)"
    "  GROUP BY g.oid HAVING bool_and(entry[1] = 'false')),"
    " tree (root, oid) AS ("
    " SELECT oid, oid FROM (SELECT oid FROM guarded UNION SELECT oid FROM held) roots"
    " UNION SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid"
    "         WHERE NOT i.inhdetachpending)"
    "SELECT h.identity || ' was rewritten' FROM held h JOIN pg_class c ON c.oid = h.oid"
    " WHERE c.relkind IN ('r', 'm') AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)"
    " UNION ALL "
    "SELECT 'the schema of ' || h.identity || ' was altered' FROM held h"
    "  JOIN pg_class c ON c.oid = h.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE " SCHEMA_ALTERED " UNION ALL "
    "SELECT h.identity || ' was created' FROM held h LEFT JOIN pg_class c ON c.oid = h.oid"
    " WHERE c.oid IS NULL AND h.type IN ('table', 'view', 'materialized view', 'foreign table')"
    "   AND NOT EXISTS (SELECT FROM held p JOIN pg_class k ON k.oid = p.oid"
    "                    WHERE p.oid = pg_partition_root(h.oid))"
    " UNION ALL "
    "SELECT i.identity || ' is another table' FROM (SELECT oid FROM guarded"
    "       UNION SELECT h.oid FROM held h WHERE NOT $2::bool AND pg_partition_root(h.oid) IS NULL"
    "         AND h.type IN ('table', 'view', 'materialized view', 'foreign table')) g,"
    "       pg_identify_object('pg_class'::regclass, g.oid, 0) i"
    " WHERE i.identity IS DISTINCT FROM (SELECT format('%I.%I', n.nspname, c.relname)"
    "           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = g.oid)"
    " UNION ALL "
    "SELECT format('%I.%I', n.nspname, c.relname) || ' was taken away'"
    "  FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE t.oid <> t.root AND c.relkind IN ('r', 'p', 'f')"
    "   AND t.oid NOT IN (SELECT oid FROM held)"
    "   AND CASE WHEN c.relispartition"
    "       THEN t.root NOT IN (SELECT relid::oid FROM pg_partition_ancestors(t.oid))"
    "       ELSE t.root IN (SELECT oid FROM guarded INTERSECT SELECT oid FROM held"
    "                        EXCEPT SELECT oid FROM alone) END"
    " UNION ALL "
    "SELECT h.identity || ' was added' FROM held h"
    " WHERE $2::bool AND h.type IN ('table', 'foreign table')"
    "   AND pg_partition_root(h.oid) IS DISTINCT FROM h.oid"
    "   AND NOT EXISTS (SELECT FROM tree t JOIN guarded g ON g.oid = t.root WHERE t.oid = h.oid)"
    " LIMIT 1";

/* {"\"public\".\"items\"","\"orders\""}; of a keyspace without a table NULL, which is no table's
 * name. Behind them what is `queried`. */
static char *names_of(const struct config *config, const char *queried)
{
    struct buffer out = {0};
    for (size_t i = 0; i < config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        buffer_printf(&out, i ? "," : "{");
        if (!keyspace_has_rows(keyspace) || keyspace->query) {
            buffer_printf(&out, "NULL");
            continue;
        }
        char *name = keyspace_sql_rows(keyspace);
        queried_put_name(&out, name);
        free(name);
    }
    buffer_printf(&out, "%s}", queried ? queried : "");
    return buffer_string(&out);
}

/* Of all queries together. */
static char *join_queried(const struct taking *taking)
{
    struct buffer out = {0};
    for (size_t i = 0; i < taking->locks->config->keyspace_count; i++)
        buffer_printf(&out, "%s", taking->queried[i].names ? taking->queried[i].names : "");
    return buffer_string(&out);
}

/* ---- waiting, with nothing held ---- */

/* Rests for a moment, in no transaction, and longer each time. -EAGAIN, or -ECANCELED. */
static int come_again(struct taking *taking, const char *in_the_way)
{
    struct timespec pause = {.tv_nsec = (long)taking->pause_ms * 1000000};
    if (clock_ms() - taking->began >= SAY_AFTER_MS)
        build_wait_say(taking->locks->wait, in_the_way);
    nanosleep(&pause, NULL);
    taking->pause_ms *= 2;
    if (taking->pause_ms > PAUSE_MAX_MS)
        taking->pause_ms = PAUSE_MAX_MS;
    if (!atomic_load_explicit(taking->locks->stop, memory_order_relaxed))
        return -EAGAIN;
    pg_error_say(taking->error, "stopped while waiting for a lock");
    return -ECANCELED;
}

/* Who was in the way at first is taken down; `is_there`: one of them still is. */
static int wait_for_suspects(struct taking *taking, char **first, bool *is_there)
{
    PGresult *result;
    const char *values[] = {*first ? *first : "{}"};
    int status = pg_session_exec(taking->session, suspects_sql, 1, values, &result, taking->error);
    if (status)
        return status;
    *is_there = !*first || PQgetvalue(result, 0, 2)[0] == 't';
    if (!*first)
        *first = xstrdup(PQgetvalue(result, 0, 1));
    status = come_again(taking, PQgetvalue(result, 0, 0));
    PQclear(result);
    return status;
}

/* Each plan that is refused is a line in the server's log. So it is planned again when who was in
 * the way has gone, which is asked without one, and else less and less often. */
static int wait_for_query(struct taking *taking)
{
    uint64_t refused = clock_ms(), longest = taking->plan_ms;
    uint64_t shortest = longest < PLAN_GONE_MS ? longest : PLAN_GONE_MS;
    bool is_there = true;
    char *first = NULL;
    int status;
    do
        status = wait_for_suspects(taking, &first, &is_there);
    while (status == -EAGAIN && clock_ms() - refused < (is_there ? longest : shortest));
    free(first);
    taking->plan_ms = 2 * longest < PLAN_MAX_MS ? 2 * longest : PLAN_MAX_MS;
    return status;
}

/* Anew each time: who was in the way may have made the query read something else. */
static int find_queried(struct taking *taking)
{
    const struct config *config = taking->locks->config;
    int status = 0;
    for (size_t i = 0; i < config->keyspace_count && !status; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        if (!keyspace->query || !keyspace_has_rows(keyspace))
            continue;
        status = queried_find(&taking->queried[i], taking->session, keyspace, taking->error);
        if (status == -EAGAIN)
            status = wait_for_query(taking);
        else if (status == -EPROTO)
            *taking->locks->blamed = keyspace;
    }
    return status;
}

static int look_ahead(struct taking *taking)
{
    PGresult *result;
    free(*taking->locks->queried);
    *taking->locks->queried = join_queried(taking);
    free(taking->names);
    taking->names = names_of(taking->locks->config, *taking->locks->queried);
    const char *values[] = {taking->names};
    int status = pg_session_exec(taking->session, outlook_sql, 1, values, &result, taking->error);
    if (status)
        return status;
    const char *lockable = PQgetvalue(result, 0, 0);
    for (size_t i = 0; lockable[i] && i < taking->locks->config->keyspace_count; i++)
        taking->refused[i] |= lockable[i] == 'f';
    if (!PQgetisnull(result, 0, 1))
        status = come_again(taking, PQgetvalue(result, 0, 1));
    PQclear(result);
    return status;
}

/* ---- the locks ---- */

static int lock(struct taking *taking, size_t i)
{
    const struct keyspace *keyspace = &taking->locks->config->keyspaces[i];
    char *names =
        keyspace->query ? xstrdup(taking->queried[i].lockable) : keyspace_sql_rows(keyspace);
    char *sql = xasprintf("LOCK TABLE %s IN ACCESS SHARE MODE NOWAIT", names);
    int status = *names ? pg_session_exec(taking->session, sql, 0, NULL, NULL, taking->error) : 0;
    free(sql);
    free(names);
    return status;
}

/* Lets go of all of them. Somebody may have come since the outlook (55P03); or the role may no
 * longer read the table (42501), or the name is that of no table by now (42809): then it is done
 * without the lock. What a query reads is looked for anew. */
static int after_refusal(struct taking *taking, size_t keyspace)
{
    struct pg_error error;
    const char *state = taking->error->sqlstate;
    int status = pg_session_exec(taking->session, "ROLLBACK", 0, NULL, NULL, &error);
    if (status)
        *taking->error = error;
    else if (strcmp(state, "55P03") == 0)
        status = come_again(taking, "for a lock");
    else if (strcmp(state, "42P01") == 0 && taking->locks->config->keyspaces[keyspace].query)
        status = come_again(taking, "for a table that a query reads");
    else if (strcmp(state, "42501") == 0 || strcmp(state, "42809") == 0)
        taking->refused[keyspace] = true;
    else {
        *taking->locks->blamed = &taking->locks->config->keyspaces[keyspace];
        status = -EPROTO;
    }
    return status ? status : -EAGAIN;
}

/* The locks of a parallel worker are gone with it, before they are compared with the snapshot:
 * where no log is followed a view may call a function, and nothing else tells what that has read.
 */
static int begin(struct taking *taking)
{
    int status = build_session_begin(taking->session, taking->error);
    if (status || taking->locks->exported)
        return status;
    return pg_session_exec(taking->session, "SET LOCAL max_parallel_workers_per_gather = 0", 0,
                           NULL, NULL, taking->error);
}

static int lock_all(struct taking *taking)
{
    int status = begin(taking);
    size_t i = 0;
    for (; i < taking->locks->config->keyspace_count && !status; i++)
        if (!taking->refused[i] && keyspace_has_rows(&taking->locks->config->keyspaces[i]))
            status = lock(taking, i);
    return status == -EPROTO && i ? after_refusal(taking, i - 1) : status;
}

int build_locks_begin(const struct build_locks *locks, struct pg_session *session,
                      struct pg_error *error)
{
    size_t count = locks->config->keyspace_count;
    struct taking taking = {.locks = locks,
                            .session = session,
                            .queried = xcalloc(count, sizeof(struct queried)),
                            .refused = xcalloc(count, sizeof(bool)),
                            .began = clock_ms(),
                            .pause_ms = PAUSE_MIN_MS,
                            .plan_ms = PAUSE_MIN_MS,
                            .error = error};
    int status;
    *locks->blamed = NULL;
    do {
        status = find_queried(&taking);
        if (!status)
            status = look_ahead(&taking);
        if (!status)
            status = lock_all(&taking);
    } while (status == -EAGAIN);
    build_wait_say(locks->wait, "");
    for (size_t i = 0; i < count; i++)
        queried_finish(&taking.queried[i]);
    free(taking.queried);
    free(taking.refused);
    free(taking.names);
    if (status || !locks->exported)
        return status;
    return build_session_import(session, locks->exported, error);
}

int build_locks_compare(const struct build_locks *locks, struct pg_session *session,
                        struct pg_error *error)
{
    PGresult *result;
    char *names = names_of(locks->config, *locks->queried);
    const char *values[] = {names, locks->exported ? "true" : "false"};
    int status = pg_session_exec(session, compare_sql, 2, values, &result, error);
    free(names);
    if (status)
        return status;
    if (PQntuples(result) > 0) {
        pg_error_say(error, "%s while a generation was built from it", PQgetvalue(result, 0, 0));
        status = -ESTALE;
    }
    PQclear(result);
    return status;
}
