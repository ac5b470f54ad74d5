/* Pool connections are driven by an event loop, sessions by a thread that may wait, but both begin
 * alike: without blocking, with the same settings, and in silence.
 */
#include "postgres/pg_connect.h"
#include "net/allocate.h"
#include "postgres/pg_pooler.h"

#include <errno.h>

/* libpq's own receiver prints to standard error. */
static void drop_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

void pg_connect_start(struct pg_connecting *connecting, const struct pg_connect_options *options,
                      const struct pg_hosts *hosts)
{
    bool replication = options->replication;
    bool refused = pg_pooler_refuses_options(options->conninfo);
    char *session = refused ? NULL : pg_settings_options(options->conninfo, replication);
    /* What stands before dbname is a default that the conninfo may override; what stands behind it
     * overrides the conninfo; NULL is as if it were not there. Keepalives end the wait for a host
     * that vanished in mid-copy. A replication connection is never silent long enough for them:
     * there tcp_user_timeout (ms) does it. */
    const char *const settings[][2] = {
        {"keepalives_idle", "30"},     {"keepalives_interval", "10"},
        {"keepalives_count", "3"},     {"tcp_user_timeout", replication ? "30000" : NULL},
        {"dbname", options->conninfo}, {"fallback_application_name", options->application},
        {"client_encoding", "UTF8"},   {"replication", replication ? "database" : NULL},
        {"options", session},          {"host", hosts->host},
        {"hostaddr", hosts->hostaddr}, {"port", hosts->port},
    };
    enum { COUNT = sizeof settings / sizeof settings[0] };
    const char *keywords[COUNT + 1] = {NULL}, *values[COUNT + 1] = {NULL};
    for (size_t i = 0; i < COUNT; i++) {
        keywords[i] = settings[i][0];
        values[i] = settings[i][1];
    }
    PGconn *pq = allocated(PQconnectStartParams(keywords, values, 1));
    free(session);
    /* libpq reports a refused connection as text alone; verbose text holds the SQLSTATE. */
    PQsetErrorVerbosity(pq, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(pq, drop_notice, NULL);
    *connecting = (struct pg_connecting){.pq = pq, .settings.conninfo = options->conninfo};
}

static PostgresPollingStatusType flush(const struct pg_connecting *connecting)
{
    int left = PQflush(connecting->pq);
    if (left < 0)
        return PGRES_POLLING_FAILED;
    return left ? PGRES_POLLING_WRITING : PGRES_POLLING_READING;
}

/* Sends the statement of the next step that needs one. */
static PostgresPollingStatusType settle(struct pg_connecting *connecting)
{
    PGconn *pq = connecting->pq;
    struct pg_settings_of *settings = &connecting->settings;
    char *sql = NULL;
    while (settings->step != SETTINGS_DONE &&
           !(sql = pg_settings_statement(pq, settings, &connecting->server)))
        settings->step++;
    if (!sql) {
        PQsetErrorVerbosity(pq, PQERRORS_DEFAULT);
        return PGRES_POLLING_OK;
    }
    connecting->server.moment = pg_server_moment();
    int sent = PQsendQuery(pq, sql);
    free(sql);
    connecting->answered = false;
    return sent ? flush(connecting) : PGRES_POLLING_FAILED;
}

/* Once: what this server has by itself it takes. True: the step begins anew. */
static bool finds_again(struct pg_connecting *connecting, const PGresult *result)
{
    struct pg_settings_of *settings = &connecting->settings;
    if (settings->step != SETTINGS_SET || settings->again || !pg_settings_are_refused(result))
        return false;
    settings->again = true;
    settings->step = SETTINGS_ENCODING; /* the next one that needs a statement is to find them */
    return true;
}

/* Of a step that was answered well. False: the answer makes no sense. */
static bool read_result(struct pg_connecting *connecting, const PGresult *result)
{
    const struct pg_settings_of *settings = &connecting->settings;
    struct pg_server *server = &connecting->server;
    switch (settings->step) {
    case SETTINGS_FIND:
        return pg_settings_found(settings->conninfo, result, settings->again);
    case SETTINGS_SET:
        return pg_settings_read_server(server, connecting->pq, settings->conninfo, result) == 0;
    case SETTINGS_POSITION:
        pg_server_read_position(server, result);
        break;
    case SETTINGS_ENCODING:
    case SETTINGS_DONE:
        break;
    }
    return true;
}

/* False: the server refused the statement, or its answer makes no sense. */
static bool take(struct pg_connecting *connecting, PGresult *result)
{
    bool good =
        PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    bool spared =
        !good && PQstatus(connecting->pq) == CONNECTION_OK &&
        (connecting->settings.step == SETTINGS_POSITION || finds_again(connecting, result));
    if (good)
        good = read_result(connecting, result);
    PQclear(result);
    connecting->answered = true;
    return good || spared;
}

/* The answer to a step's statement, and then the next step. */
static PostgresPollingStatusType read_answer(struct pg_connecting *connecting)
{
    PGconn *pq = connecting->pq;
    if (!PQconsumeInput(pq))
        return PGRES_POLLING_FAILED;
    while (!PQisBusy(pq)) {
        PGresult *result = PQgetResult(pq);
        if (!result && connecting->answered) {
            connecting->settings.step++;
            return settle(connecting);
        }
        if (!result || !take(connecting, result))
            return PGRES_POLLING_FAILED;
    }
    return flush(connecting);
}

PostgresPollingStatusType pg_connect_poll(struct pg_connecting *connecting)
{
    if (connecting->accepted)
        return read_answer(connecting);
    PostgresPollingStatusType next = PQconnectPoll(connecting->pq);
    if (next == PGRES_POLLING_FAILED)
        connecting->refused_options =
            pg_pooler_refuses(connecting->settings.conninfo, PQerrorMessage(connecting->pq));
    if (next != PGRES_POLLING_OK)
        return next;
    connecting->accepted = true;
    return PQsetnonblocking(connecting->pq, 1) == 0 ? settle(connecting) : PGRES_POLLING_FAILED;
}
