/* The connections of the HTTP server, so that those which wait for a request cannot keep others
 * out.
 */
#ifndef NESTGUARD_HTTP_CONNECTION_H
#define NESTGUARD_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

struct http_connection;

/* From the one that has been without a whole request for longest. Past `most` of them, the first
 * that has none under way is shut down (but for the newest, whose request may just be coming), and
 * if there is no such, one that has not taken all of its answer for some seconds: whoever owns its
 * descriptor finds it ended. */
struct http_connections {
    struct http_connection *first, *last;
    unsigned count, ending, most; /* ending: shut down, and not closed yet */
};

/* A connection that was just accepted; `fd` is not ours. */
struct http_connection *http_connection_open(struct http_connections *all, int fd);
/* The descriptor is closed, or about to be: forgets and frees it. */
void http_connection_close(struct http_connections *all, struct http_connection *connection);

/* The answer to its last request goes out before that has come as a whole. */
void http_connection_answered_early(struct http_connection *connection);
bool http_connection_is_answered_early(const struct http_connection *connection);

/* A whole request is there; its answer is given, and leaves from here on; and it has been sent,
 * which makes the connection the newest. */
void http_connection_busy(struct http_connection *connection);
void http_connection_answered(struct http_connection *connection);
void http_connection_idle(struct http_connections *all, struct http_connection *connection);

/* Whether there are no more than `most`, or will be: false when it is worth to be looked again. */
bool http_connections_make_room(struct http_connections *all);

#endif
