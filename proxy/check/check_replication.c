/* From the server, without which nothing works, over the right to replicate, to the publication,
 * where the inspector found that something is missing.
 *
 * That the server would take a condition as a row filter can only be found out by giving it one:
 * the publication is created in a transaction that is rolled back, by a role that may create it.
 */
#include "check/check_replication.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "check/check_ports.h"
#include "check/check_session.h"

#include <stdlib.h>
#include <string.h>

/* One that serves, and one that is built beside it. */
enum { OWN_SLOTS = 2 };

enum server_cell {
    SERVER_WAL_LEVEL,
    SERVER_STANDBY,
    SERVER_ROLE, /* who connects, quoted; replication does not look at a role that was SET */
    SERVER_MAY,  /* open a replication connection */
    SERVER_SLOTS,
    SERVER_SLOTS_USED,
    SERVER_SENDERS,
    SERVER_SENDERS_USED,
    SERVER_NO_TIMEOUT,
    SERVER_OF_A_GUARD /* how many slots, and so senders, a guard of this database has: the most */
};

/* A guard is told from others by what is in the names of its slots (pg_slot.c), and by its host. */
static const char describe_server[] =
    "SELECT current_setting('wal_level'), pg_is_in_recovery(), quote_ident(r.rolname),"
    "       r.rolsuper OR r.rolreplication OR EXISTS (SELECT FROM pg_roles g"
    "           WHERE g.rolname = 'rds_replication' AND pg_has_role(r.oid, g.oid, 'MEMBER')),"
    "       current_setting('max_replication_slots'), (SELECT count(*) FROM pg_replication_slots),"
    "       current_setting('max_wal_senders'), (SELECT count(*) FROM pg_stat_replication),"
    "       current_setting('wal_sender_timeout') = '0',"
    "       (SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM pg_replication_slots l"
    "           LEFT JOIN pg_stat_replication w ON w.pid = l.active_pid"
    "         WHERE l.temporary AND l.database = current_database()"
    "           AND l.slot_name ~ '^nestguard_[0-9]+_[0-9a-f]{16}$'"
    "         GROUP BY split_part(l.slot_name, '_', 2), w.client_addr) AS guards)"
    "  FROM pg_roles r WHERE r.rolname = session_user";

static void check_standby(const struct check_replication *check)
{
    problems_add(check->problems, PROBLEM_ERROR, check->place, NULL,
                 "the server is a standby, and sync: replication follows the primary alone; let "
                 "`database` name that, or use sync: poll");
}

static void check_level(const struct check_replication *check, const PGresult *server)
{
    const char *level = answer_text(server, 0, SERVER_WAL_LEVEL);
    if (strcmp(level, "logical") == 0)
        return;
    char *remedy = provider_remedy_of_level(check->provider);
    problems_add(check->problems, PROBLEM_ERROR, check->place, remedy,
                 "wal_level is %s, which keeps in the log too little to follow it: it must be "
                 "logical",
                 level);
    free(remedy);
}

static void check_right(const struct check_replication *check, const PGresult *server)
{
    const char *role = answer_text(server, 0, SERVER_ROLE);
    if (answer_true(server, 0, SERVER_MAY))
        return;
    char *remedy = provider_remedy_of_right(check->provider, role);
    problems_add(check->problems, PROBLEM_ERROR, check->place, remedy,
                 "role %s may not follow the database's log", role);
    free(remedy);
}

/* Of a guard that runs it is not known whether it is that of this file: somebody who has its
 * address is likely to be. */
static void tell_of_guard(const struct check_replication *check, const char *room, int of_a_guard,
                          int missing, const char *remedy)
{
    problems_add(check->problems,
                 check_ports_are_taken(check->config) ? PROBLEM_NOTE : PROBLEM_WARNING,
                 check->place, remedy,
                 "%s, %d by a guard of this database: enough for that one, which needs %d in all, "
                 "one while it follows and one more while the filter is built anew; another guard "
                 "beside it needs %d more",
                 room, of_a_guard, OWN_SLOTS, missing);
}

/* Those of a guard that runs already are among the used ones. */
static void check_room(const struct check_replication *check, const PGresult *server,
                       const char *setting, enum server_cell most)
{
    int allowed = atoi(answer_text(server, 0, (int)most));
    int used = atoi(answer_text(server, 0, (int)most + 1));
    int of_a_guard = atoi(answer_text(server, 0, SERVER_OF_A_GUARD));
    int missing = used + OWN_SLOTS - allowed;
    if (missing <= 0)
        return;
    char value[16];
    snprintf(value, sizeof value, "%d", used + OWN_SLOTS);
    char *remedy = provider_remedy_of_setting(check->provider, setting, value, true);
    char *room = xasprintf("%s is %d, of which %d are in use", setting, allowed, used);
    if (missing <= of_a_guard)
        tell_of_guard(check, room, of_a_guard, missing, remedy);
    else
        problems_add(check->problems, PROBLEM_ERROR, check->place, remedy,
                     "%s: the guard needs %d, one while it follows and one more while the filter "
                     "is built anew",
                     room, OWN_SLOTS);
    free(room);
    free(remedy);
}

static void check_timeout(const struct check_replication *check, const PGresult *server)
{
    if (!answer_true(server, 0, SERVER_NO_TIMEOUT))
        return;
    char *remedy = provider_remedy_of_setting(check->provider, "wal_sender_timeout", "60s", false);
    problems_add(check->problems, PROBLEM_WARNING, check->place, remedy,
                 "wal_sender_timeout is off: when the guard's machine vanishes, the server "
                 "keeps its log for it, until TCP gives the connection up");
    free(remedy);
}

/* Appends name='value', as libpq reads it. */
static void put_parameter(struct buffer *out, const char *name, const char *value)
{
    buffer_printf(out, "%s='", name);
    for (; *value; value++)
        buffer_printf(out, "%s%c", *value == '\'' || *value == '\\' ? "\\" : "", *value);
    buffer_printf(out, "' ");
}

/* A new string: the same connection, for replication. */
static char *replication_conninfo(const char *conninfo)
{
    struct buffer out = {0};
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && strcmp(option->keyword, "replication") != 0)
            put_parameter(&out, option->keyword, option->val);
    put_parameter(&out, "replication", "database");
    PQconninfoFree(options);
    return buffer_string(&out);
}

/* Poolers, for one, refuse what an ordinary connection does not ask for. */
static void check_connection(const struct check_replication *check)
{
    char *conninfo = replication_conninfo(check->config->database);
    struct pg_session_options options = {
        .conninfo = conninfo,
        .application = "nestguard",
        .connect_timeout = CHECK_SECONDS,
        .answer_timeout = CHECK_SECONDS,
        .stop = check->stop,
    };
    struct pg_session *session = NULL;
    struct pg_error error;
    if (pg_session_open(&session, &options, &error) < 0)
        problems_add(check->problems, questions_severity(&error), check->place, NULL,
                     "no replication connection, though others are accepted: %s; `database` must "
                     "name the server itself, no connection pooler",
                     error.text);
    pg_session_close(session);
    free(conninfo);
}

/* The connection is tried when nothing was found that would refuse it: so its failure is news. */
static void check_primary(const struct check_replication *check, const PGresult *server)
{
    size_t errors = check->problems->errors;
    check_level(check, server);
    check_right(check, server);
    check_room(check, server, "max_replication_slots", SERVER_SLOTS);
    check_room(check, server, "max_wal_senders", SERVER_SENDERS);
    check_timeout(check, server);
    if (check->problems->errors == errors)
        check_connection(check);
}

static void report_refusal(const struct check_replication *check, const char *what,
                           const struct pg_error *error)
{
    if (!questions_lost(check->questions))
        problems_add(check->problems, questions_severity(error), check->place, NULL, "%s: %s", what,
                     error->text);
}

void check_replication_server(const struct check_replication *check)
{
    struct pg_error error;
    PGresult *server = questions_ask(check->questions, describe_server, 0, NULL, &error);
    if (!server)
        report_refusal(check, "the server does not describe its replication", &error);
    else if (answer_true(server, 0, SERVER_STANDBY))
        check_standby(check);
    else
        check_primary(check, server);
    PQclear(server);
}

static void report_missing(const struct check_replication *check,
                           const struct publication_plan *plan)
{
    const char *name = check->config->publication;
    if (plan->exists)
        problems_add(check->problems, PROBLEM_ERROR, check->place, plan->missing,
                     "publication %s lacks tables, and role %s may not add them: that takes the "
                     "owner of publication and tables",
                     name, plan->role);
    else /* nothing is published at all */
        problems_add(check->problems, PROBLEM_ERROR, check->place, plan->missing,
                     "there is no publication %s, and role %s may not create it: that takes the "
                     "owner of the tables, with CREATE on the database",
                     name, plan->role);
    if (plan->exists)
        check->problems->at[check->problems->count - 1].about = plan->hindered;
}

/* False with *error: refused, or there is nobody to ask any more. */
static bool run(const struct check_replication *check, const char *sql, struct pg_error *error)
{
    PGresult *result = questions_ask(check->questions, sql, 0, NULL, error);
    PQclear(result);
    return result != NULL;
}

/* Shorter than the time after which a waiting lock puts an autovacuum off. A table that is locked
 * is no finding. */
static void rehearse(const struct check_replication *check, const char *sql)
{
    struct pg_error error;
    if (!run(check, "BEGIN", &error))
        return;
    if (run(check, "SET LOCAL lock_timeout = '200ms'", &error) && !run(check, sql, &error) &&
        strcmp(error.sqlstate, "55P03") != 0)
        report_refusal(check, "the publication cannot be created as the keyspaces need it", &error);
    run(check, "ROLLBACK", &error);
}

void check_replication_plan(const struct check_replication *check,
                            const struct publication_plan *plan)
{
    if (plan->missing && !plan->allowed)
        report_missing(check, plan);
    else if (plan->missing && plan->filtered)
        rehearse(check, plan->missing);
}
