/* A real PostgreSQL whose log can be read. The plugin's messages come through SQL, a row each.
 *
 * Each test has a table `items` of its own, and a slot and a publication `p` of all tables.
 */
#ifndef NESTGUARD_TEST_PGOUTPUT_SERVER_H
#define NESTGUARD_TEST_PGOUTPUT_SERVER_H

#include "fakes/servers.h"
#include "postgres/log/pgoutput.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct server server;
static PGconn *pq;

static PGconn *open_session(void)
{
    char text[160];
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=postgres dbname=postgres client_encoding=UTF8 "
             "options='-c client_min_messages=error'",
             server.port);
    PGconn *session = PQconnectdb(text);
    if (PQstatus(session) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(session));
    return session;
}

static PGresult *query(PGconn *session, const char *sql)
{
    PGresult *result = PQexec(session, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(session));
    return result;
}

static inline void run(const char *sql)
{
    PQclear(query(pq, sql));
}

static inline uint64_t number(const char *sql)
{
    PGresult *result = query(pq, sql);
    uint64_t value = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return value;
}

typedef void (*event_cb)(void *arg, const struct pgoutput_event *event);

/* Reads an exact copy, so that AddressSanitizer watches its end. */
static void read_message(const char *bytes, size_t length, bool *in_stream, event_cb each,
                         void *arg)
{
    struct pgoutput_event event;
    const char *error = NULL;
    char *copy = malloc(length);
    memcpy(copy, bytes, length);
    if (pgoutput_read(copy, length, *in_stream, &event, &error) != 0)
        fail_msg("%s", error);
    *in_stream =
        event.kind == PGOUTPUT_STREAM_START || (*in_stream && event.kind != PGOUTPUT_STREAM_STOP);
    each(arg, &event);
    free(copy);
}

/* Everything new in a slot. `how`: get consumes it, peek leaves it there. */
static void read_changes(const char *how, const char *slot, const char *options, event_cb each,
                         void *arg)
{
    char sql[320];
    bool in_stream = false;
    snprintf(sql, sizeof sql,
             "SELECT data FROM pg_logical_slot_%s_binary_changes('%s', NULL, NULL, "
             "'publication_names', '%s', %s)",
             how, slot, slot, options);
    PGresult *result = PQexecParams(pq, sql, 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(pq));
    for (int i = 0; i < PQntuples(result); i++)
        read_message(PQgetvalue(result, i, 0), (size_t)PQgetlength(result, i, 0), &in_stream, each,
                     arg);
    assert_false(in_stream);
    PQclear(result);
}

/* A slot and a publication of the same name. */
static inline void begin_to_publish(const char *name, const char *what)
{
    char sql[512];
    snprintf(sql, sizeof sql, "CREATE PUBLICATION %s FOR %s", name, what);
    run(sql);
    snprintf(sql, sizeof sql, "SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", name);
    run(sql);
}

static inline void stop_publishing(const char *name)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT pg_drop_replication_slot('%s')", name);
    run(sql);
    snprintf(sql, sizeof sql, "DROP PUBLICATION %s", name);
    run(sql);
}

static int publish_everything(void **state)
{
    (void)state;
    run("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    run("CREATE TABLE items (id bigint PRIMARY KEY, name text, n int)");
    run("ALTER TABLE items ALTER name SET STORAGE EXTERNAL");
    begin_to_publish("p", "ALL TABLES");
    return 0;
}

static int publish_no_more(void **state)
{
    (void)state;
    stop_publishing("p");
    return 0;
}

static int start_server(void **state)
{
    (void)state;
    postgres_create(&server);
    pq = open_session();
    run("ALTER SYSTEM SET wal_level = logical");
    PQfinish(pq);
    server_kill(&server, SIGINT);
    postgres_start(&server);
    pq = open_session();
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    PQfinish(pq);
    server_destroy(&server);
    return 0;
}

#endif
