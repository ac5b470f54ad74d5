/* A pg_session looks at a stop flag while it waits. A watchman thread raises that flag when the
 * question under way has passed its time:
 *
 *   ask: due = now + 5 s ──▶ pg_session_exec ──▶ due = 0
 *   watchman: sleeps until due, then stop = true ──▶ the wait ends with -ECANCELED
 *
 * The server's own statement_timeout comes first, so that a statement waiting for a lock is refused
 * and the session lives on; the watchman is for servers and networks that say nothing at all.
 */
#include "check/check_questions.h"

#include "base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct questions {
    struct pg_session *session;
    bool lost;
    struct pg_error loss;
    atomic_bool stop;
    uv_thread_t watchman;
    uv_mutex_t lock; /* guards due and ending */
    uv_cond_t changed;
    uint64_t due; /* uv_hrtime(); 0: no question is under way */
    bool ending;
};

static const uint64_t second = 1000000000;

/* The watchman's thread. */
static void watch(void *arg)
{
    struct questions *q = arg;
    uv_mutex_lock(&q->lock);
    while (!q->ending) {
        uint64_t now = uv_hrtime();
        if (q->due == 0) {
            uv_cond_wait(&q->changed, &q->lock);
        } else if (now < q->due) {
            uv_cond_timedwait(&q->changed, &q->lock, q->due - now);
        } else {
            atomic_store(&q->stop, true);
            q->due = 0;
        }
    }
    uv_mutex_unlock(&q->lock);
}

/* Wakes the watchman, who sleeps until the next moment that counts. */
static void set_due(struct questions *q, uint64_t due)
{
    uv_mutex_lock(&q->lock);
    q->due = due;
    uv_cond_signal(&q->changed);
    uv_mutex_unlock(&q->lock);
}

static struct questions *create(void)
{
    struct questions *q = xcalloc(1, sizeof *q);
    atomic_init(&q->stop, false);
    if (uv_mutex_init(&q->lock) || uv_cond_init(&q->changed) ||
        uv_thread_create(&q->watchman, watch, q))
        abort(); /* as for memory: a process that cannot have a thread cannot go on */
    return q;
}

static void set_lost(struct questions *q, int status, struct pg_error *error)
{
    if (status == -ECANCELED)
        *error = (struct pg_error){.text = "it did not answer within 5 seconds"};
    q->lost = true;
    q->loss = *error;
}

/* One question, under the watchman's eye. */
static int exec(struct questions *q, const char *sql, int count, const char *const *values,
                PGresult **out, struct pg_error *error)
{
    set_due(q, uv_hrtime() + QUESTION_SECONDS * second);
    int status = pg_session_exec(q->session, sql, count, values, out, error);
    set_due(q, 0);
    return status;
}

int questions_open(struct questions **out, const char *conninfo, struct pg_error *error)
{
    struct questions *q = create();
    struct pg_session_options options = {.conninfo = conninfo,
                                         .application = "nestguard",
                                         .connect_timeout = QUESTION_SECONDS,
                                         .stop = &q->stop};
    *out = NULL;
    set_due(q, uv_hrtime() + 2 * QUESTION_SECONDS * second); /* name resolution included */
    int status = pg_session_open(&q->session, &options, error);
    set_due(q, 0);
    if (status == 0)
        status = exec(q, "SET statement_timeout = '3s'", 0, NULL, NULL, error);
    if (status != 0) {
        set_lost(q, status, error);
        questions_close(q);
        return status;
    }
    *out = q;
    return 0;
}

void questions_close(struct questions *q)
{
    if (!q)
        return;
    uv_mutex_lock(&q->lock);
    q->ending = true;
    uv_cond_signal(&q->changed);
    uv_mutex_unlock(&q->lock);
    uv_thread_join(&q->watchman);
    pg_session_close(q->session);
    uv_cond_destroy(&q->changed);
    uv_mutex_destroy(&q->lock);
    free(q);
}

PGresult *questions_ask(struct questions *q, const char *sql, int count, const char *const *values,
                        struct pg_error *error)
{
    PGresult *result = NULL;
    if (q->lost) {
        *error = q->loss;
        return NULL;
    }
    int status = exec(q, sql, count, values, &result, error);
    if (status == 0)
        return result;
    if (status != -EPROTO)
        set_lost(q, status, error);
    return NULL;
}

/* Classes and states of PostgreSQL's documentation, appendix A. */
enum problem_level questions_severity(const struct pg_error *error)
{
    static const char *const cut_short[] = {"40", "53", "55P03", "57"};
    for (size_t i = 0; i < sizeof cut_short / sizeof *cut_short; i++)
        if (strncmp(error->sqlstate, cut_short[i], strlen(cut_short[i])) == 0)
            return PROBLEM_WARNING;
    return PROBLEM_ERROR;
}

const struct pg_error *questions_lost(const struct questions *q)
{
    return q->lost ? &q->loss : NULL;
}
