/* Real servers for the tests, each in a directory of its own and on a free port of 127.0.0.1. What
 * cannot be started ends the program with the reason. A server goes with the program, however that
 * ends.
 */
#ifndef NESTGUARD_TEST_SERVERS_H
#define NESTGUARD_TEST_SERVERS_H

#include <sys/types.h>

struct server {
    char dir[64];
    char log[80];
    int port;
    pid_t pid; /* 0 while it is not running */
};

/* PostgreSQL: everybody is trusted, but the role `locked` needs its password, which is "secret".
 * Superuser: postgres. Ready for logical replication. */
void postgres_create(struct server *server);
void postgres_start(struct server *server); /* again, after server_kill() */

/* Redis without persistence, also on the unix socket DIR/redis.sock. */
void redis_server_create(struct server *server);
void redis_server_start(struct server *server);

/* Sends the signal and waits for the end. */
void server_kill(struct server *server, int signal);
/* Ends it, if need be, and removes its directory. */
void server_destroy(struct server *server);

/* A port that was free a moment ago. */
int free_port(void);
/* A socket that listens on *port and never answers. Closed by the caller. */
int silent_listener(int *port);

#endif
