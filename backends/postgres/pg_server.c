/* What tells one server from another is asked once, when a connection is opened, and is true of
 * that moment: a standby that is promoted later keeps its old words until it is connected to anew.
 * The cluster is told by an identifier that initdb drew, if the role may ask for it, and what has
 * become of it since by its timeline. Another database of the cluster has other rows, and another
 * role may see others: both are told by their oids, whatever a pooler made of the names.
 */
#include "postgres/pg_server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The log's file says which timeline it is of at once, the control file only some time after a
 * promotion. */
const char pg_server_columns[] =
    "pg_catalog.pg_is_in_recovery(),"
    " EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::pg_catalog.text,"
    " CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby' ELSE pg_catalog.\"left\"("
    "pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END,"
    " (SELECT pg_catalog.concat(datid, '.', usesysid) FROM"
    " pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())),"
    " pg_catalog.pg_backend_pid()";
const char pg_server_identifier[] =
    "(SELECT system_identifier FROM pg_catalog.pg_control_system())";
const char pg_server_place_column[] =
    "(SELECT pg_catalog.concat(EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time()), '/',"
    " datid) FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()))";
const char pg_server_may_identify[] =
    "pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute')";

const char pg_server_position[] =
    "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0')";

/* In the order of the columns above; the last may be missing. */
enum { IS_STANDBY, STARTED, TIMELINE, PLACE, PID, IDENTIFIER, COLUMNS };

int pg_server_read(struct pg_server *server, const PGresult *row, int column)
{
    int columns = PQnfields(row) - column;
    if (PQntuples(row) != 1 || columns < IDENTIFIER || columns > COLUMNS)
        return -EPROTO;
    server->standby = PQgetvalue(row, 0, column + IS_STANDBY)[0] == 't';
    snprintf(server->started, sizeof server->started, "%s", PQgetvalue(row, 0, column + STARTED));
    server->pid = (int)strtol(PQgetvalue(row, 0, column + PID), NULL, 10);
    snprintf(server->history, sizeof server->history, "%s/%s/%s",
             columns > IDENTIFIER ? PQgetvalue(row, 0, column + IDENTIFIER) : "",
             PQgetvalue(row, 0, column + TIMELINE), PQgetvalue(row, 0, column + PLACE));
    return 0;
}

/* "…/DATABASE.ROLE" is how a history ends. */
void pg_server_place(const struct pg_server *server, char place[PG_SERVER_PLACE])
{
    const char *last = strrchr(server->history, '/');
    const char *database = last ? last + 1 : "";
    snprintf(place, PG_SERVER_PLACE, "%s/%.*s", server->started, (int)strcspn(database, "."),
             database);
}

uint64_t pg_server_moment(void)
{
    static atomic_uint_least64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

void pg_server_read_position(struct pg_server *server, const PGresult *row)
{
    if (PQntuples(row) == 1 && PQnfields(row) == 1)
        server->position = strtoull(PQgetvalue(row, 0, 0), NULL, 10);
}

bool pg_server_is_known(const struct pg_server *server)
{
    return server->history[0] != '\0';
}

/* Without the cluster's identifier others look alike: a restart is all that can be told then. */
static bool is_identified(const struct pg_server *server)
{
    return server->history[0] != '/';
}

bool pg_server_is_same(const struct pg_server *server, const struct pg_server *other,
                       bool unrestarted)
{
    bool one_history = server->standby == other->standby && server->settings == other->settings &&
                       strcmp(server->history, other->history) == 0;
    return one_history && ((!unrestarted && !server->standby && is_identified(server)) ||
                           strcmp(server->started, other->started) == 0);
}

bool pg_server_is_set_otherwise(const struct pg_server *server, const struct pg_server *other)
{
    return server->settings != other->settings && strcmp(server->history, other->history) == 0;
}

bool pg_server_has_gone_back(const struct pg_server *server, const struct pg_server *before)
{
    return server->standby && server->position && server->moment > before->moment &&
           server->position < before->position;
}

/* "2023-11-14T22:13:20.5Z", with what fraction the server told: it may be all that differs. */
static void print_time(char text[48], const char *seconds)
{
    time_t whole = (time_t)strtoll(seconds, NULL, 10);
    struct tm broken = {0};
    char stamp[24] = "";
    gmtime_r(&whole, &broken);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &broken);
    snprintf(text, 48, "%s%.10sZ", stamp, seconds + strcspn(seconds, "."));
}

/* What differs: who it is and where, or only since when it runs. */
static void say_other(const struct pg_server *server, const struct pg_server *known,
                      struct pg_error *error)
{
    char now[48], then[48];
    print_time(now, server->started);
    print_time(then, known->started);
    if (strcmp(server->history, known->history) != 0)
        pg_error_say(error,
                     "the connection leads to another server than the filter is of (%s, not %s)",
                     server->history, known->history);
    else
        pg_error_say(error,
                     is_identified(server)
                         ? "the server was restarted since the filter was built (it runs since %s, "
                           "not %s)"
                         : "the server was restarted since the filter was built, or is another (it "
                           "runs since %s, not %s, and the role may not ask who it is)",
                     now, then);
}

/* Of one that the rule's server is known of. */
static bool is_rules(const struct pg_server *server, const struct pg_server_rule *rule,
                     struct pg_error *error)
{
    const struct pg_server *known = &rule->server;
    if (pg_server_is_set_otherwise(server, known))
        pg_error_say(error, "the server does not take the settings any more that the filter was "
                            "built by, and the connection has others");
    else if (!pg_server_is_same(server, known, rule->unrestarted))
        say_other(server, known, error);
    else if (pg_server_has_gone_back(server, known))
        pg_error_say(error, "the standby has begun its recovery anew, and has not come again to "
                            "where it was when the filter was built");
    else
        return true;
    return false;
}

bool pg_server_fits(const struct pg_server *server, const struct pg_server_rule *rule,
                    struct pg_error *error)
{
    if (rule->primary && server->standby) {
        pg_error_say(error, "the connection leads to a standby: what it shows may be older than "
                            "what the primary's log tells");
        return false;
    }
    return !pg_server_is_known(&rule->server) || is_rules(server, rule, error);
}
