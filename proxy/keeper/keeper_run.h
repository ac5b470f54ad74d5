/* A guard from its start to its end: all that the outside of the keeper need know of it. */
#ifndef NESTGUARD_KEEPER_RUN_H
#define NESTGUARD_KEEPER_RUN_H

struct config;
struct http_route;

struct keeper_options {
    struct config *config;           /* taken over */
    int **fds;                       /* [listen address][worker]: bound sockets, taken over */
    int control_fd;                  /* or -1 */
    const struct http_route *routes; /* of the control port; their argument is the keeper */
    void (*on_call)(void *arg, const char *who, const char *method, const char *url,
                    unsigned status);
};

/* Serves until SIGTERM or SIGINT has been obeyed. Returns the process' exit status. */
int keeper_run(const struct keeper_options *options);

#endif
