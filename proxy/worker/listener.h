/* The sockets that a worker listens on, and the clients that come by them.
 *
 *   readable ─▶ accept, some at a time ─┬─ max_clients are here ─▶ a word of refusal
 *      ▲                                └─▶ a client
 *      └─ a pause ◀─ no open files are left, though a reserve is kept (file_limits.h)
 *
 * The accepting is our own: libuv goes on as long as somebody waits, and without an open file left
 * it never comes back.
 */
#ifndef NESTGUARD_LISTENER_H
#define NESTGUARD_LISTENER_H

#include "base/text/address.h"
#include "worker/client/client.h"

struct listener;

/* Zeroed memory listens nowhere. */
struct listeners {
    struct clients *clients;
    struct listener *at;
    size_t count;
    uv_timer_t pause;
};

/* Takes over `count` bound sockets, of the addresses that stand beside them; nobody is let in yet.
 * 0 or a negative errno; ended by listeners_close() in either case. */
int listeners_open(struct listeners *listeners, struct clients *clients, const int *fds,
                   const struct address *addresses, size_t count);

/* Listens, and lets clients in. 0 or a negative errno. */
int listeners_accept(struct listeners *listeners);

/* No new clients. A second call does nothing. */
void listeners_close(struct listeners *listeners);

/* When the loop has ended. */
void listeners_finish(struct listeners *listeners);

#endif
