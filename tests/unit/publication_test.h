/* A server, and a configuration over its tables, for the tests of the publication. */
#ifndef NESTGUARD_PUBLICATION_TEST_H
#define NESTGUARD_PUBLICATION_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config_text.h"
#include "postgres/pg_session.h"
#include "servers.h"

#include <stdio.h>

static struct server server;

static inline int start_server(void **state)
{
    (void)state;
    postgres_create(&server);
    return 0;
}

static inline int stop_server(void **state)
{
    (void)state;
    server_destroy(&server);
    return 0;
}

static inline struct pg_session *session_as(const char *role)
{
    char conninfo[128];
    struct pg_session *session = NULL;
    struct pg_error error;
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=%s dbname=postgres",
             server.port, role);
    struct pg_session_options options = {.conninfo = conninfo, .connect_timeout = 10};
    if (pg_session_open(&session, &options, &error) < 0)
        fail_msg("%s: %s", role, error.text);
    return session;
}

/* Several statements, separated by semicolons, without a transaction around them. */
static inline void run_sql(struct pg_session *session, const char *sql)
{
    char *copy = strdup(sql), *rest = NULL;
    struct pg_error error;
    for (char *one = strtok_r(copy, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
        if (pg_session_exec(session, one, 0, NULL, NULL, &error) < 0)
            fail_msg("%s: %s", one, error.text);
    free(copy);
}

/* The configuration with these keyspaces, each a line of YAML. */
static inline struct config *config_of(const char *keyspaces)
{
    char text[2000];
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1:1\ndatabase: host=127.0.0.1\nkeyspaces:\n%s", keyspaces);
    return config_from_text(text);
}

#endif
