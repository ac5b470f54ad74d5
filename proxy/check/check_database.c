/* The database as a whole: whether it lets us in, its version, its limits; then each keyspace's
 * table. What is printed here never holds the password: the connection string is not repeated, and
 * libpq's complaints about a string that it cannot read are cut down to what they say of its form.
 */
#include "check/check_database.h"

#include "base/memory.h"
#include "base/text/identifier.h"
#include "check/check_memory.h"
#include "check/check_replication.h"
#include "check/check_session.h"
#include "database/catalogue/inspector.h"
#include "postgres/pg_options.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_SERVER = 140000, OWN_CONNECTIONS = 2 };

/* One conversation. check_database() ends what it holds. */
struct database {
    const struct config *config;
    struct problems *problems;
    struct database_check how;
    char *place; /* how findings call it */
    struct questions questions;
    enum provider provider;
    PGresult *server; /* one row, columns as in enum server_cell */
};

enum server_cell {
    SERVER_NUMBER,
    SERVER_VERSION,
    SERVER_SESSION_ROLE, /* whose connections are counted */
    SERVER_NAME,         /* the database, quoted */
    SERVER_ROLE_LIMIT,
    SERVER_DATABASE_LIMIT,
    SERVER_LIMIT,
    SERVER_RESERVED, /* of that limit, for others than this role */
    SERVER_STANDBY
};

/* Limits are -1 where there is none; those of role and database do not bind superusers, who may
 * use the reserved connections too. */
static const char describe_server[] =
    "SELECT current_setting('server_version_num'),"
    "       split_part(current_setting('server_version'), ' ', 1),"
    "       quote_ident(session_user), quote_ident(d.datname),"
    "       CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END,"
    "       CASE WHEN r.rolsuper THEN -1 ELSE d.datconnlimit END,"
    "       current_setting('max_connections'), CASE WHEN r.rolsuper THEN 0 ELSE"
    "           current_setting('superuser_reserved_connections')::int"
    "           + coalesce(current_setting('reserved_connections', true), '0')::int END,"
    "       pg_is_in_recovery()"
    "  FROM pg_roles r, pg_database d"
    " WHERE r.rolname = session_user AND d.datname = current_database()";

/* The value of one connection parameter, or NULL. */
static const char *parameter(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    return NULL;
}

/* "database 127.0.0.1:5432/shop", as far as the connection string says so. */
static char *database_place(const PQconninfoOption *options)
{
    const char *host = parameter(options, "host"), *port = parameter(options, "port");
    const char *name = parameter(options, "dbname");
    host = host ? host : parameter(options, "hostaddr");
    if (!host && !name)
        return xstrdup("database");
    return xasprintf("database %s%s%s%s%s", host ? host : "", host && port ? ":" : "",
                     host && port ? port : "", host && name ? "/" : "", name ? name : "");
}

/* How much of libpq's complaint can be shown: it quotes pieces of the connection string, any of
 * which may be the password or hold quotes itself, so that nothing is shown from the first on. */
static size_t harmless_length(const char *message)
{
    static const char no_sign[] = "missing \"=\"";
    size_t start = strncmp(message, no_sign, strlen(no_sign)) == 0 ? strlen(no_sign) : 0;
    return start + strcspn(message + start, "\"\n");
}

/* The sessions that would be opened are refused by the guard itself. */
static bool check_options(struct database *db)
{
    struct pg_error error;
    if (!pg_conninfo_check(db->config->database, &error))
        return true;
    problems_add(db->problems, PROBLEM_ERROR, db->place, NULL, "%s", error.text);
    return false;
}

/* True when libpq can read the connection string, and the guard takes what it says. */
static bool check_conninfo(struct database *db)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(db->config->database, &message);
    db->place = database_place(options);
    if (!options)
        problems_add(db->problems, PROBLEM_ERROR, db->place, NULL,
                     "the connection string cannot be read: %.*s...; allowed are "
                     "postgresql://user:password@host:port/name?parameter=value and host=... "
                     "dbname=...",
                     message ? (int)harmless_length(message) : 0, message ? message : "");
    PQfreemem(message);
    PQconninfoFree(options);
    return options && check_options(db);
}

/* Whether the server has answered and will answer the same tomorrow, unlike one that is starting
 * up, full or shutting down (classes 53 and 57, PostgreSQL documentation, appendix A). */
static bool is_refusal(const struct database *db, const struct pg_error *error)
{
    const char *keywords[] = {"connect_timeout", "dbname", NULL};
    const char *values[] = {"3", db->config->database, NULL};
    if (error->sqlstate[0])
        return strncmp(error->sqlstate, "53", 2) != 0 && strncmp(error->sqlstate, "57", 2) != 0;
    /* No state: no server, or libpq itself gave up in the middle (it has no password to send). */
    return PQpingParams(keywords, values, 1) == PQPING_OK;
}

/* What to do next, by the state that the server refuses with (PostgreSQL documentation, appendix
 * A) and, where that stands for several causes, a piece of its words; the first that fits. */
static const struct step {
    const char *state, *piece, *text;
} steps[] = {
    {"28P01", "",
     "the password belongs into `database` (postgresql://user:${PGPASSWORD}@host/"
     "name, with the value in the environment) or into a passfile"},
    {"28000", "no encryption",
     "a line of the server's pg_hba.conf must let it in from here; if its lines are hostssl, for "
     "encrypted connections, `database` must ask for one (sslmode=require)"},
    {"28000", "",
     "the role must exist and may log in (CREATE ROLE ... LOGIN), and a line of the "
     "server's pg_hba.conf lets it in from here"},
    {"3D000", "", "`database` must name one that exists: psql -l lists them"},
    {"42501", "", "the role needs the right to connect (GRANT CONNECT ON DATABASE ... TO ...)"},
    {"55000", "", "ALTER DATABASE ... ALLOW_CONNECTIONS true lets connections in"},
    {"53300", "for role", "ALTER ROLE ... CONNECTION LIMIT allows it more"},
    {"53300", "for database", "ALTER DATABASE ... CONNECTION LIMIT allows more"},
    {"53300", "", "the server's max_connections is used up: by whom pg_stat_activity shows"},
    {"57P03", "", "it will, unless it stays so: then its log says why"},
    {"", "no password supplied",
     "postgresql://user:${PGPASSWORD}@host/name, with the value in the "
     "environment"},
};

static const struct step *next_step(const struct pg_error *error)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(error->sqlstate, steps[i].state) == 0 && strstr(error->text, steps[i].piece))
            return &steps[i];
    return NULL;
}

/* A new string: the SQL that gives the right to connect; NULL where the connection string does not
 * say to whom. */
static char *connect_remedy(const struct database *db, const struct pg_error *error)
{
    char *remedy = NULL;
    if (strcmp(error->sqlstate, "42501") != 0)
        return NULL;
    PQconninfoOption *options = PQconninfoParse(db->config->database, NULL);
    const char *name = parameter(options, "dbname"), *user = parameter(options, "user");
    if (name && user) {
        char *quoted_name = identifier_quote(name), *quoted_user = identifier_quote(user);
        remedy = xasprintf("GRANT CONNECT ON DATABASE %s TO %s;", quoted_name, quoted_user);
        free(quoted_name);
        free(quoted_user);
    }
    PQconninfoFree(options);
    return remedy;
}

/* Why there is no session. */
static void report_closed(const struct database *db, const struct pg_error *error, bool refused)
{
    const struct step *step = next_step(error);
    char *remedy = connect_remedy(db, error);
    const char *what = refused            ? "the server refuses the connection"
                       : *error->sqlstate ? "the server takes no connection now"
                                          : "no connection";
    const char *text = step ? step->text
                       : refused || *error->sqlstate
                           ? ""
                           : "is PostgreSQL running there, and is this the address that it listens "
                             "on (its `listen_addresses` and `port`)?";
    problems_add(db->problems, refused ? PROBLEM_ERROR : db->how.down, db->place, remedy,
                 "%s: %s%s%s", what, error->text, *text ? "; " : "", text);
    free(remedy);
}

/* Opens the session; false when there is none, which has been reported. */
static bool enter(struct database *db)
{
    struct pg_error error;
    int status =
        check_session_open(&db->questions.session, db->config->database, db->how.stop, &error);
    if (status)
        report_closed(db, &error, status != -ECANCELED && is_refusal(db, &error));
    return !status;
}

static int number(const struct database *db, enum server_cell cell)
{
    return atoi(answer_text(db->server, 0, (int)cell));
}

static const char *text(const struct database *db, enum server_cell cell)
{
    return answer_text(db->server, 0, (int)cell);
}

/* True when it answers and can be worked with. */
static bool check_server(struct database *db)
{
    struct pg_error error;
    db->server = questions_ask(&db->questions, describe_server, 0, NULL, &error);
    if (!db->server) {
        if (!questions_lost(&db->questions))
            problems_add(db->problems, questions_severity(&error), db->place, NULL,
                         "the server does not describe itself: %s", error.text);
        return false;
    }
    if (number(db, SERVER_NUMBER) < OLDEST_SERVER) {
        problems_add(db->problems, PROBLEM_ERROR, db->place, NULL,
                     "PostgreSQL %s is too old: 14 or newer is needed", text(db, SERVER_VERSION));
        return false;
    }
    return true;
}

/* The limit must leave room for us beside `reserved` others. `remedy` lacks only the number; NULL:
 * it is the server's. */
static void check_limit(const struct database *db, enum server_cell cell, int reserved,
                        const char *limit, const char *remedy)
{
    int allowed = number(db, cell), needed = (int)db->config->load_connections + OWN_CONNECTIONS;
    if (allowed < 0 || allowed - reserved >= needed)
        return;
    char value[16];
    snprintf(value, sizeof value, "%d", needed + reserved);
    char *whole = remedy ? xasprintf("%s %s;", remedy, value)
                         : provider_remedy_of_setting(db->provider, "max_connections", value, true);
    problems_add(db->problems, PROBLEM_ERROR, db->place, whole,
                 "%s allows %d connections, but load_connections: %u needs %d, with the two that "
                 "read the keys",
                 limit, allowed - reserved, db->config->load_connections, needed);
    free(whole);
}

/* Connections that cannot be had would be missed only under load, when they are needed. */
static void check_limits(const struct database *db)
{
    char *role = xasprintf("ALTER ROLE %s CONNECTION LIMIT", text(db, SERVER_SESSION_ROLE));
    char *name = xasprintf("ALTER DATABASE %s CONNECTION LIMIT", text(db, SERVER_NAME));
    check_limit(db, SERVER_ROLE_LIMIT, 0, "the role's connection limit", role);
    check_limit(db, SERVER_DATABASE_LIMIT, 0, "the database's connection limit", name);
    check_limit(db, SERVER_LIMIT, number(db, SERVER_RESERVED),
                "max_connections, less those reserved for superusers,", NULL);
    free(name);
    free(role);
}

/* Rows can be read from a standby, and not deleted. It cannot be followed at all. */
static void check_standby(const struct database *db)
{
    if (db->config->has_control && db->config->sync != SYNC_REPLICATION &&
        text(db, SERVER_STANDBY)[0] == 't')
        problems_add(db->problems, PROBLEM_WARNING, db->place, NULL,
                     "the server is a standby: DELETE with ?row=delete on the control port will be "
                     "refused");
}

static void check_tables(struct database *db)
{
    const struct check_replication replication = {&db->questions, db->config,   db->place,
                                                  db->problems,   db->provider, db->how.stop};
    const struct inspector_options options = {.config = db->config,
                                              .questions = &db->questions,
                                              .problems = db->problems,
                                              .place = db->place};
    struct publication_plan plan;
    struct pg_error error;
    if (db->config->sync == SYNC_REPLICATION)
        check_replication_server(&replication);
    inspect(&plan, &options, &error); /* what had no answer has become a finding */
    check_replication_plan(&replication, &plan);
    publication_plan_finish(&plan);
}

static void check_inside(struct database *db, char version[64])
{
    if (!check_server(db))
        return;
    snprintf(version, 64, "%s", text(db, SERVER_VERSION));
    db->provider = provider_find(&db->questions);
    check_limits(db);
    check_standby(db);
    check_tables(db);
    check_memory(db->config, db->how.beside, &db->questions, db->problems);
}

bool check_database(const struct config *config, const struct database_check *how,
                    struct problems *problems, char version[64])
{
    struct database db = {.config = config, .problems = problems, .how = *how};
    bool reached = !config->database;
    version[0] = '\0';
    if (config->database && check_conninfo(&db) && enter(&db)) {
        check_inside(&db, version);
        const struct pg_error *loss = questions_lost(&db.questions);
        if (loss)
            problems_add(problems, how->down, db.place, NULL,
                         "the connection was lost while it was being asked: %s", loss->text);
        reached = !loss;
    }
    PQclear(db.server);
    pg_session_close(db.questions.session);
    free(db.place);
    return reached;
}
