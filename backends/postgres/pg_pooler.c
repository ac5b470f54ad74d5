/* A pooler makes up what a client is told to cancel its statements by; hence it is seen. That it
 * shares sessions is seen by two connections, none of them in a transaction, that find themselves
 * in the same process of the server, or one that finds itself in another than before. A pooler
 * prefers the session that was used last, so that two that ask in turn meet at once.
 */
#include "postgres/pg_pooler.h"

#include "net/allocate.h"
#include "postgres/pg_options.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 4, SECONDS = 5 /* to open the other one, if nothing else is said */ };

/* Of a connection string; never removed, for a process has few. Sessions are opened on several
 * threads. */
struct known {
    char *conninfo;
    bool refuses_options;
    bool is_vouched_for; /* a session that was opened through it had the server's for itself */
    struct known *next;
};

static struct known *all_known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static struct known *known_of(const char *conninfo)
{
    struct known *known = all_known;
    while (known && strcmp(known->conninfo, conninfo) != 0)
        known = known->next;
    if (known)
        return known;
    known = allocate(1, sizeof *known);
    known->conninfo = allocate_text(conninfo);
    known->next = all_known;
    return all_known = known;
}

/* A person's own `options` would be lost without a word. */
static bool has_own_options(const char *conninfo)
{
    char *own = pg_options_own(conninfo);
    bool has = own && *own;
    free(own);
    return has;
}

bool pg_pooler_refuses(const char *conninfo, const char *message)
{
    const char *parameter = strstr(message, "unsupported startup parameter");
    if (!parameter || !strstr(parameter, "options") || has_own_options(conninfo))
        return false;
    pthread_mutex_lock(&known_lock);
    struct known *known = known_of(conninfo);
    bool is_new = !known->refuses_options;
    known->refuses_options = true;
    pthread_mutex_unlock(&known_lock);
    return is_new;
}

bool pg_pooler_refuses_options(const char *conninfo)
{
    pthread_mutex_lock(&known_lock);
    bool refuses = known_of(conninfo)->refuses_options;
    pthread_mutex_unlock(&known_lock);
    return refuses;
}

static const char sharing[] =
    "a connection pooler stands between that gives one session of the server to several "
    "connections, but settings and snapshots are a session's: it needs pool_mode = session for "
    "this database and user, or `database` must name the server itself";

static int refuse(struct pg_error *error)
{
    pg_error_say(error, "%s", sharing);
    memcpy(error->sqlstate, "0A000", sizeof "0A000");
    return -EPROTO;
}

bool pg_pooler_allows(const char *conninfo, const PGconn *pq, const struct pg_server *server,
                      struct pg_error *error)
{
    if (PQbackendPID(pq) == server->pid)
        return true;
    pthread_mutex_lock(&known_lock);
    bool allows = known_of(conninfo)->is_vouched_for;
    pthread_mutex_unlock(&known_lock);
    if (!allows)
        pg_error_say(error, "a connection pooler stands between, and has not been seen yet to give "
                            "each connection a session of its own: pool_mode = session");
    return allows;
}

static int ask(struct pg_session *session, int *pid, struct pg_error *error)
{
    PGresult *result = NULL;
    int rc =
        pg_session_exec(session, "SELECT pg_catalog.pg_backend_pid()", 0, NULL, &result, error);
    *pid = result ? atoi(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return rc;
}

/* Both are idle between any two of these questions. */
static int compare(struct pg_session *session, struct pg_session *other, int own, bool *shares,
                   struct pg_error *error)
{
    for (int round = 0; round < ROUNDS && !*shares; round++) {
        int pid = 0, its = 0, rc = ask(other, &its, error);
        if (!rc)
            rc = ask(session, &pid, error);
        if (rc < 0)
            return rc;
        *shares = pid != own || its == pid;
    }
    return 0;
}

int pg_pooler_check(struct pg_session *session, const struct pg_session_options *options,
                    pg_session_opener *open, struct pg_error *error)
{
    struct pg_session_options how = *options;
    struct pg_session *other = NULL;
    bool shares = false;
    int own = pg_session_server(session)->pid;
    if (own == pg_session_told_pid(session))
        return 0;
    how.connect_timeout = how.connect_timeout ? how.connect_timeout : SECONDS;
    int rc = open(&other, &how, error);
    if (!rc)
        rc = compare(session, other, own, &shares, error);
    pg_session_close(other);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&known_lock);
    known_of(options->conninfo)->is_vouched_for = !shares;
    pthread_mutex_unlock(&known_lock);
    return shares ? refuse(error) : 0;
}
