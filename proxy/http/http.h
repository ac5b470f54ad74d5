/* The HTTP server of the control port: libmicrohttpd on our event loop, answered at once or later.
 * Knows routes, tokens, limits and status codes; nothing of what the calls do. All of it belongs to
 * the loop's thread.
 */
#ifndef NESTGUARD_HTTP_H
#define NESTGUARD_HTTP_H

#include "base/span.h"
#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct http_server;
struct http_call; /* one request; lives until it is answered */

/* Handles a call: must answer it, now or later, exactly once, on the loop's thread. */
typedef void (*http_handler)(struct http_call *call, void *arg);

/* How a call takes a body of any length. `begin` is called when the headers are in and nothing is
 * against the call. It answers it, with an error and at once, and returns NULL: then nobody waits
 * for the body. Or it does not answer: that is for the route's handler, which is called at the
 * body's end and gets by http_call_take_upload() what `begin` has returned. */
struct http_upload {
    void *(*begin)(struct http_call *call, void *arg);
    /* A piece. False: no more until http_call_go_on(), which is not called from within. */
    bool (*take)(void *upload, struct span bytes);
    /* The body does not come to its end: nothing else is called, and the call is gone. */
    void (*broken)(void *upload);
};

struct http_route {
    const char *method; /* "GET"; HEAD is answered as GET without a body */
    const char *path;   /* "/v1/status", or with a star, as in "/v1/keys/" "*": what stands in its
                           place is http_call_rest() */
    http_handler handle;
    bool open;        /* answered without the token, too (/healthz and its kin) */
    const char *help; /* one line, listed by GET /v1 */
    /* The parameters that it takes, "row&block", or NULL; others, or one given twice, are 400. */
    const char *query;
    const struct http_upload *upload; /* NULL: the body is thrown away */
};

/* An answered call, for whoever keeps a log. */
struct http_finished {
    const char *who;          /* peer address or uid, and the From header */
    const char *method, *url; /* path and query, as they were sent; of any length */
    unsigned status;
    bool was_refused; /* none of the route's functions has heard of it */
};

struct http_options {
    int fd;                          /* a bound socket, which the server listens on and closes */
    const char *token;               /* Authorization: Bearer TOKEN; NULL: open to all. Copied. */
    const struct http_route *routes; /* ends with a row of NULLs; must outlive the server */
    void *arg;                       /* for the handlers */
    size_t max_body;                 /* past it: 413 */
    /* Every finished call but those of GET, unless their token was refused. */
    void (*on_call)(void *arg, const struct http_finished *call);
};

/* Listens from here on. 0 and *out, ended by http_server_close(); or a negative errno and *error, a
 * static text. The socket is the server's in either case: after a failure it is closed. */
int http_server_create(struct http_server **out, uv_loop_t *loop,
                       const struct http_options *options, const char **error);

/* Calls that come from here on must show this one. NULL: none; not empty. Copied. */
void http_server_set_token(struct http_server *server, const char *token);

/* No new connections; those that are there go on. */
void http_server_quiesce(struct http_server *server);

/* Ends the connections and frees all; `closed` is called when the last handle is gone. Calls not
 * answered yet may still be answered: nothing is sent. */
void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg);

struct span http_call_rest(const struct http_call *call); /* percent-decoded; may hold any byte */
/* The decoded value of a query parameter, or NULL; lives as long as the call. */
const char *http_call_query(const struct http_call *call, const char *name);

/* What its route's upload has made of the body, which is the caller's from here on; NULL: the body
 * was not given to it. */
void *http_call_take_upload(struct http_call *call);
/* More of the body may come. */
void http_call_go_on(struct http_call *call);

/* Answers, of which a call gets exactly one. The call may be gone when they return.
 *
 * JSON: steals `body`. A status of 204 has none: NULL. Of any other NULL is what could not be made,
 * which is a 500, as is what jansson cannot write. */
void http_answer_json(struct http_call *call, unsigned status, json_t *body);
/* {"error": "..."} */
void http_answer_error(struct http_call *call, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A page for a browser, which lets it do nothing that `policy` (its Content-Security-Policy) does
 * not name, and shows it in no other's frame; copied. */
void http_answer_page(struct http_call *call, struct span html, const char *policy);
/* Any other text; copied. */
void http_answer_text(struct http_call *call, unsigned status, const char *type, struct span text);

#endif
