/* A shared connection of a worker to the cache: requests of many clients, pipelined; replies in the
 * same order.
 *
 *   send ─▶ out ─▶ one write a loop turn ─▶ cache ─▶ in ─▶ frame ─▶ slot at the head of `pending`
 *
 *   CLOSED ─▶ DIALING ─▶ GREETING (AUTH, SELECT) ─▶ UP ─lost─▶ CLOSING ─▶ CLOSED
 * (backoff) ─▶ ...
 */
#ifndef NESTGUARD_UPSTREAM_H
#define NESTGUARD_UPSTREAM_H

#include "slot.h"

struct upstream;

/* Connects at once, and again with backoff whenever the connection is lost. It speaks RESP2 or
 * RESP3; with a cache too old for that, requests fail with -NOPROTO. */
struct upstream *upstream_create(struct serving *serving, bool resp3);

/* Sends one command's bytes, which are copied, as request number `index` of the slot, which waits
 * for one answer more. While the first attempt to connect is under way the request waits for it;
 * later, without a connection, it fails: the slot hears of that at the end of the loop turn. */
void upstream_send(struct upstream *upstream, struct slot *slot, unsigned index, struct span bytes);

/* Once in a while: gives up a connection whose oldest request has had no reply for cache_timeout.
 */
void upstream_check_progress(struct upstream *upstream);

/* So much is on its way to the cache that nobody should add to it; serving->on_relief() is called
 * when that has passed. */
bool upstream_is_congested(const struct upstream *upstream);

/* Fails what is pending and closes for good; the memory goes with the last close callback. Nobody
 * sends any more. */
void upstream_close(struct upstream *upstream);

#endif
