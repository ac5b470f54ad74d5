/* A socket of libpq's on a loop. libpq may go from one socket to the next while it tries addresses,
 * and a uv_poll_t is bound to one: so that lives apart and is replaced. Private to backends/.
 */
#ifndef NESTGUARD_PG_WATCH_H
#define NESTGUARD_PG_WATCH_H

#include <uv.h>

struct pg_watcher;

/* Part of its owner, who sets the first four, and lives until `open` is 0. */
struct pg_watch {
    uv_loop_t *loop;
    void (*ready)(void *arg);  /* for what was asked, or something is wrong with the socket */
    void (*closed)(void *arg); /* `open` is less */
    void *arg;
    struct pg_watcher *watcher; /* NULL: nothing is watched */
    unsigned open;              /* handles of libuv's, of this socket and of those before */
};

/* Waits for UV_READABLE, UV_WRITABLE or both. 0 or a negative errno. */
int pg_watch(struct pg_watch *watch, int fd, int events);

/* Waits for nothing. Before libpq may close its socket: the next one can have the same number, and
 * would not be in the kernel's poll set. */
void pg_watch_stop(struct pg_watch *watch);

/* The socket is about to be closed. */
void pg_watch_drop(struct pg_watch *watch);

#endif
