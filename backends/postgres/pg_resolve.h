/* The hosts of a conninfo, each name with the addresses that it has just now: libpq itself looks
 * names up while everybody on its loop waits.
 *
 *   "host=db,/run/pg" ─▶ uv_getaddrinfo() ─▶ host "db,db,/run/pg" hostaddr "10.0.0.1,10.0.0.2,"
 *
 * `host` goes with each address, since certificates and passwords are the name's. What nothing need
 * be looked up for is left to libpq: sockets, addresses, `hostaddr`; and all of a service file.
 * Private to backends/.
 */
#ifndef NESTGUARD_PG_RESOLVE_H
#define NESTGUARD_PG_RESOLVE_H

#include "postgres/pg_hosts.h"
#include <uv.h>

struct pg_resolve;

/* The settings are the callee's to finish. Or, with NULL, why there are none: no name has an
 * address; `error` lives until the call returns. */
typedef void (*pg_resolve_cb)(void *arg, struct pg_hosts *hosts, const char *error);

/* NULL: no name need be looked up. Else `done` is called once, on the loop, never from here. Of all
 * addresses number `first` (from 0, modulo their number) is the first, and those before it are the
 * last. */
struct pg_resolve *pg_resolve_start(uv_loop_t *loop, const char *conninfo, unsigned first,
                                    pg_resolve_cb done, void *arg);

/* `done` is not called any more. The memory goes when the resolver has let go of it, for which the
 * loop still has to run. NULL is none. */
void pg_resolve_cancel(struct pg_resolve *resolve);

#endif
