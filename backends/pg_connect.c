/* Pool connections are driven by an event loop, sessions by a thread that may wait, but both begin
 * alike: without blocking, with the same settings, and in silence.
 */
#include "pg_connect.h"
#include "allocate.h"
#include "pg_hosts.h"
#include "pg_options.h"

#include <errno.h>

/* Past this much, a walsender sends the changes of transactions in progress instead of keeping them
 * until they end: the less it keeps, the sooner all of a large transaction is known after its
 * commit. Small transactions, most of all, still come whole. */
static const char decoding[] = " -c logical_decoding_work_mem=4MB";

/* libpq's own receiver prints to standard error. */
static void drop_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

static PGconn *start(const char *conninfo, const char *application, unsigned first_host,
                     bool replication)
{
    char *options = pg_options_make(conninfo, replication ? decoding : "");
    struct pg_hosts hosts;
    pg_hosts_begin_with(&hosts, conninfo, first_host);
    /* What stands before dbname is a default that the conninfo may override; what stands behind it
     * overrides the conninfo; NULL is as if it were not there. Keepalives end the wait for a host
     * that vanished in mid-copy. A replication connection is never silent long enough for them:
     * there tcp_user_timeout (ms) does it. */
    const char *const settings[][2] = {
        {"keepalives_idle", "30"},    {"keepalives_interval", "10"},
        {"keepalives_count", "3"},    {"tcp_user_timeout", replication ? "30000" : NULL},
        {"dbname", conninfo},         {"fallback_application_name", application},
        {"client_encoding", "UTF8"},  {"replication", replication ? "database" : NULL},
        {"options", options},         {"host", hosts.host},
        {"hostaddr", hosts.hostaddr}, {"port", hosts.port},
    };
    enum { COUNT = sizeof settings / sizeof settings[0] };
    const char *keywords[COUNT + 1] = {NULL}, *values[COUNT + 1] = {NULL};
    for (size_t i = 0; i < COUNT; i++) {
        keywords[i] = settings[i][0];
        values[i] = settings[i][1];
    }
    PGconn *pq = allocated(PQconnectStartParams(keywords, values, 1));
    free(options);
    pg_hosts_finish(&hosts);
    /* libpq reports a refused connection as text alone; verbose text holds the SQLSTATE. */
    PQsetErrorVerbosity(pq, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(pq, drop_notice, NULL);
    return pq;
}

PGconn *pg_connect_start(const char *conninfo, const char *application, unsigned first_host)
{
    return start(conninfo, application, first_host, false);
}

PGconn *pg_connect_start_replication(const char *conninfo, const char *application,
                                     unsigned first_host)
{
    return start(conninfo, application, first_host, true);
}

bool pg_connect_done(PGconn *pq, const char *conninfo)
{
    PQsetErrorVerbosity(pq, PQERRORS_DEFAULT);
    return pg_options_hold(pq, conninfo);
}

int pg_conninfo_check(const char *conninfo, struct pg_error *error)
{
    char *why = NULL;
    PQconninfoOption *parsed = PQconninfoParse(conninfo, &why);
    if (!parsed)
        pg_error_say(error, "%s", why ? why : "out of memory");
    PQfreemem(why);
    PQconninfoFree(parsed);
    return parsed ? 0 : -EINVAL;
}
