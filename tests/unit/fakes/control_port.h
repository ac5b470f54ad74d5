/* A control port on a loop of its own thread, for the tests of the server and of its client.
 *
 * Routes: /now answers at once, /later from a timer, /hold when the test says stub_release();
 * /v1/keys/KEY tells what arrived; /unspeakable has no JSON; /large is a long text; /take/WORD
 * takes a body, and says how long it was and the sum of its bytes: "slowly" with pauses, "not" at
 * all.
 */
#ifndef NESTGUARD_FAKES_CONTROL_PORT_H
#define NESTGUARD_FAKES_CONTROL_PORT_H

#include "http/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { STUB_ROUTES = 16, STUB_HELD_MAX = 256, STUB_LOG_MAX = 32, STUB_BODY_MAX = 1000 };

struct stub {
    uv_thread_t thread;
    uv_loop_t loop;
    uv_async_t wake;
    uv_mutex_t lock;
    uv_cond_t changed;
    struct http_server *server;
    bool closed, stop, release, close; /* the last three are the test's wishes */
    struct http_call *held[STUB_HELD_MAX];
    unsigned holding;
    char log[STUB_LOG_MAX][512];
    unsigned logged;
    unsigned taking, broken; /* bodies that were begun; that did not come to their end */
    char path[64];           /* of a unix socket, or "" */
    uint16_t port;
};

extern const struct http_route stub_routes[STUB_ROUTES];

/* Also in a release build, and on any thread. */
void must(bool holds);

struct stub *stub_start(int family, const char *token);

/* Ends the server; nothing of it may be left in the loop. */
void stub_finish(struct stub *stub);

#endif
