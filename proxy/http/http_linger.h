/* Connections that were answered before all of the request had come. Closed at once, the kernel
 * would answer what is sent still with a reset, and that takes the answer away from a client that
 * has not read it yet. So what comes is read for a while, and thrown away.
 */
#ifndef NESTGUARD_HTTP_LINGER_H
#define NESTGUARD_HTTP_LINGER_H

#include <uv.h>

struct http_linger;

/* A few at once: of the others the answer may be lost. */
struct http_lingers {
    uv_loop_t *loop;
    struct http_linger *first;
    unsigned count;           /* whose handles are not closed yet */
    void (*ended)(void *arg); /* one of these has been closed */
    void *arg;
};

/* The descriptor is about to be closed by whoever owns it, and nothing is sent there any more. */
void http_linger_begin(struct http_lingers *all, int fd);

void http_lingers_end(struct http_lingers *all);

#endif
