#include "fakes/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>

struct server server;

int start_server(void **state)
{
    (void)state;
    postgres_create(&server);
    return 0;
}

int stop_server(void **state)
{
    (void)state;
    server_destroy(&server);
    return 0;
}

struct pg_session *session_as(const char *role)
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

void run_sql(struct pg_session *session, const char *sql)
{
    char *copy = strdup(sql), *rest = NULL;
    struct pg_error error;
    for (char *one = strtok_r(copy, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
        if (pg_session_exec(session, one, 0, NULL, NULL, &error) < 0)
            fail_msg("%s: %s", one, error.text);
    free(copy);
}

struct config *config_of(const char *keyspaces)
{
    char text[2000];
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1:1\ndatabase: host=127.0.0.1\nkeyspaces:\n%s", keyspaces);
    return config_from_text(text);
}
