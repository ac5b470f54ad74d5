/* A server, and a configuration over its tables, for the tests of the publication. */
#ifndef NESTGUARD_FAKES_DATABASE_H
#define NESTGUARD_FAKES_DATABASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fakes/config_file.h"
#include "fakes/servers.h"
#include "postgres/pg_session.h"

#include <stdint.h>
#include <stdio.h>

extern struct server server;

int start_server(void **state);

int stop_server(void **state);

struct pg_session *session_as(const char *role);

/* Several statements, separated by semicolons, without a transaction around them. */
void run_sql(struct pg_session *session, const char *sql);

/* The configuration with these keyspaces, each a line of YAML. */
struct config *config_of(const char *keyspaces);

#endif
