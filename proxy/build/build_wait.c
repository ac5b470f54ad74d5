/* Two threads may tell what is waited for: the build itself, of locks that it asks for again and
 * again (build_locks.c), and the watch, while the build's own thread hears nothing from a server
 * that makes a slot. They take turns, and the keeper reads the text whenever it likes: hence the
 * lock. The watch opens a session for each look, so that a server that has few connections left
 * gets it back at once.
 */
#include "build/build_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_SECONDS = 2, ANSWER_SECONDS = 5 };

/* A slot in the making waits for one transaction after another to end, as for a lock. */
static const char watch_sql[] =
    "SELECT concat('for ', (CASE WHEN w.locktype = 'relation'"
    "                            THEN 'a lock on ' || w.relation::regclass || ' behind ' "
    "END), " SQL_DESCRIBE_HOLDER ")"
    "  FROM pg_locks w JOIN pg_locks holder ON holder.locktype = w.locktype"
    "   AND holder.transactionid IS NOT DISTINCT FROM w.transactionid"
    "   AND holder.relation IS NOT DISTINCT FROM w.relation"
    "   AND holder.database IS NOT DISTINCT FROM w.database"
    "   AND coalesce(holder.pid, 0) = ANY (pg_blocking_pids(w.pid))"
    " WHERE NOT w.granted AND w.locktype IN ('transactionid', 'relation')"
    "   AND (w.pid = $1::int OR w.pid IN (SELECT pid FROM pg_stat_replication))"
    " ORDER BY w.pid = $1::int DESC, holder.granted DESC LIMIT 1";

void build_wait_init(struct build_wait *wait)
{
    *wait = (struct build_wait){0};
    if (uv_mutex_init(&wait->lock) || uv_cond_init(&wait->changed))
        abort();
}

void build_wait_finish(struct build_wait *wait)
{
    uv_cond_destroy(&wait->changed);
    uv_mutex_destroy(&wait->lock);
}

void build_wait_say(struct build_wait *wait, const char *text)
{
    struct pg_error line;
    pg_error_say(&line, "%s", text);
    uv_mutex_lock(&wait->lock);
    snprintf(wait->text, sizeof wait->text, "%s", line.text);
    uv_mutex_unlock(&wait->lock);
}

void build_wait_read(struct build_wait *wait, char text[BUILD_WAIT_TEXT])
{
    uv_mutex_lock(&wait->lock);
    memcpy(text, wait->text, BUILD_WAIT_TEXT);
    uv_mutex_unlock(&wait->lock);
}

/* ---- the watch ---- */

/* What could not be asked says nothing: the text stays as it was. */
static void look(struct build_wait *wait)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    PGresult *result = NULL;
    const char *values[] = {wait->pid};
    if (pg_session_open(&session, &wait->session, &error) < 0)
        return;
    if (pg_session_exec(session, watch_sql, 1, values, &result, &error) == 0)
        build_wait_say(wait, PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    pg_session_close(session);
}

/* True after a while, false as soon as the watch has ended. */
static bool pause_watch(struct build_wait *wait)
{
    uint64_t until = uv_hrtime() + LOOK_EVERY_SECONDS * (uint64_t)1000000000, now;
    uv_mutex_lock(&wait->lock);
    while (!atomic_load(&wait->ended) && (now = uv_hrtime()) < until)
        uv_cond_timedwait(&wait->changed, &wait->lock, until - now);
    uv_mutex_unlock(&wait->lock);
    return !atomic_load(&wait->ended);
}

static void on_thread(void *arg)
{
    struct build_wait *wait = arg;
    while (pause_watch(wait))
        look(wait);
}

void build_wait_watch(struct build_wait *wait, const struct pg_session_options *session,
                      const char *pid)
{
    snprintf(wait->pid, sizeof wait->pid, "%s", pid);
    wait->session = *session;
    wait->session.connect_timeout = wait->session.answer_timeout = ANSWER_SECONDS;
    wait->session.stop = &wait->ended;
    atomic_store(&wait->ended, false);
    wait->watching = uv_thread_create(&wait->thread, on_thread, wait) == 0;
}

/* The signal is given with the lock held, so that it cannot fall between the watch's look at
 * `ended` and its waiting. A look that is under way ends by its stop flag. */
void build_wait_end_watch(struct build_wait *wait)
{
    if (!wait->watching)
        return;
    uv_mutex_lock(&wait->lock);
    atomic_store(&wait->ended, true);
    uv_cond_signal(&wait->changed);
    uv_mutex_unlock(&wait->lock);
    uv_thread_join(&wait->thread);
    wait->watching = false;
    build_wait_say(wait, "");
}
