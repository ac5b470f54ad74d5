/* A guard from its start to its end: all that the outside of the keeper need know of it. */
#ifndef NESTGUARD_KEEPER_RUN_H
#define NESTGUARD_KEEPER_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct http_route;
struct http_finished;

/* A bound socket, taken over. Each worker has one of each address, or more. */
struct keeper_socket {
    size_t address;  /* index in the configuration's listen */
    unsigned worker; /* who listens on it */
    int fd;
};

struct keeper_options {
    struct config *config; /* taken over */
    const char *file;      /* the configuration's */
    const struct keeper_socket *sockets;
    size_t socket_count;
    int control_fd;                  /* or -1 */
    int predecessor;                 /* the channel to the guard that serves by this file; or -1 */
    char **restart;                  /* the command line of a successor: a program's path first */
    const struct http_route *routes; /* of the control port; their argument is the keeper */
    void (*on_call)(void *arg, const struct http_finished *call);
};

/* Serves until SIGTERM or SIGINT has been obeyed, or a successor has taken over: then *handed_over,
 * and the places of the sockets are not this process' (any more, or yet). Returns the exit status.
 */
int keeper_run(const struct keeper_options *options, bool *handed_over);

#endif
