/* Inside the HTTP server: one request, from its first line to its answer.
 *
 *   http_server.c    the loop's side and libmicrohttpd's callbacks
 *     | request read
 *   http_dispatch.c  is it well-formed and allowed, and whose is it?
 *     | handler
 *   http_call.c      the call's life, and its answer
 */
#ifndef NESTGUARD_HTTP_CALL_H
#define NESTGUARD_HTTP_CALL_H

#include "http/http.h"
#include "http/http_connection.h"
#include "http/http_linger.h"
#include "http/http_target.h"

#include <microhttpd.h>

/* Lives until its handles are closed and libmicrohttpd has been stopped. */
struct http_server {
    struct MHD_Daemon *daemon;
    struct http_options options; /* with a token of our own */
    char *token;
    bool is_loopback;        /* a TCP port that only this machine reaches */
    bool check_host;         /* no token on such a port: see http_dispatch.c */
    struct http_call *calls; /* all but the orphaned */
    struct http_connections connections;
    struct http_lingers lingers;
    bool running, closing; /* inside MHD_run(); http_server_close() was called */
    bool again;            /* MHD_run() has more to do at once */
    unsigned handles;      /* of the two below and the lingering, that are not closed yet */
    uv_poll_t poll;        /* libmicrohttpd's epoll descriptor */
    uv_timer_t timer;      /* its next timeout, or a run that must not wait */
    void (*closed)(void *arg);
    void *closed_arg;
};

/*   READING <-> HANDLING --> ANSWERED     answered before the handler returned, or by the headers
 *                   |            ^        alone; if nothing is against those, the body is read
 *                   +--> WAITING +        the connection is suspended meanwhile
 *                           |
 *                           +--> ORPHANED the server was closed; the answer goes nowhere
 */
enum http_call_state { CALL_READING, CALL_HANDLING, CALL_WAITING, CALL_ANSWERED, CALL_ORPHANED };

struct http_call {
    enum http_call_state state;
    struct http_server *server;        /* NULL when orphaned */
    struct MHD_Connection *connection; /* NULL when orphaned */
    const char *target_at;             /* where libmicrohttpd keeps the request line */
    char *url;                         /* as sent */
    char *method;                      /* NULL until the headers are in */
    struct http_target target;
    int fault;                       /* of reading the target, a negative errno */
    const char *malformed;           /* what is wrong with the request line or headers */
    struct span rest;                /* http_call_rest() */
    uint64_t body;                   /* bytes of it so far, which are not kept */
    const struct http_upload *taker; /* of the body; NULL: it is thrown away */
    void *upload;                    /* the taker's; NULL: it has none any more */
    bool is_handled;                 /* nothing was against it: the route's functions have it */
    bool paused;                     /* no more of the body is wanted now: suspended */
    bool ended;                      /* its sender was found to send no more */
    struct MHD_Response *response;
    unsigned status;
    struct http_call *previous, *next; /* among the server's */
};

/* `target` as libmicrohttpd keeps it. NULL: there is no memory for a copy. */
struct http_call *http_call_create(struct http_server *server, struct MHD_Connection *connection,
                                   const char *target);

/* The one place where the state changes. Asserts that the move is legal. */
void http_call_move(struct http_call *call, enum http_call_state state);

/* The connection is done with the call: frees it, now or when its handler answers. */
void http_call_leave(struct http_call *call);

/* Gives the answer to libmicrohttpd. Only from within its callback, in the state ANSWERED. */
enum MHD_Result http_call_send(struct http_call *call);

/* Runs libmicrohttpd soon: resuming a connection does not wake a loop of ours. */
void http_server_wake(struct http_server *server);

/* Adds a header to an answer that was just given from within the callback. */
void http_call_header(struct http_call *call, const char *name, const char *value);

/* What is wrong with how the body's length is announced, or NULL; then *announced is that length,
 * or UINT64_MAX when it is not told beforehand. */
const char *http_check_framing(const struct http_call *call, uint64_t *announced);

/* What is wrong with the Host header, or NULL. */
const char *http_check_host(const struct http_call *call, const char *version);

/* Whether the call's route takes the body, which nothing is against; then it has begun to, or the
 * call is answered. */
bool http_begin_upload(struct http_call *call);

/* Answers what must be refused, by its headers and so much of the body as is there: whether it did.
 */
bool http_refuse(struct http_call *call);

/* Answers what must be refused, else hands the call to its route. */
void http_dispatch(struct http_call *call);

/* HEAD is GET without a body. */
bool http_call_reads(const struct http_call *call);

#endif
