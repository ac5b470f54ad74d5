/* What one sentinel says of who the primary is: asked, and followed from then on. Private to
 * backends/.
 *
 *   WAITING ──▶ DIALING ──▶ UP: login ─▶ GET-MASTER-ADDR-BY-NAME ─▶ SUBSCRIBE +switch-master
 *      ▲ backoff   │         │                                        │ asked again:
 *      └─ CLOSING ◀┴─────────┘                              UNSUBSCRIBE ─▶ GET-… ─▶ SUBSCRIBE
 *
 * One connection does for both, since the server takes what is written together in one go: between
 * its answer and the subscription nothing can happen. Once a second it is asked anew, which tells a
 * sentinel that has fallen silent: what it said last then counts no more.
 */
#ifndef NESTGUARD_REDIS_SENTINEL_H
#define NESTGUARD_REDIS_SENTINEL_H

#include "net/backoff.h"
#include "net/dial.h"
#include "redis/protocol/redis_login.h"
#include "redis/protocol/redis_wire.h"
#include "redis/topology/redis_place.h"

/* The texts and the context outlive the sentinel. */
struct redis_sentinel_options {
    const char *host;
    uint16_t port;
    const char *name; /* of the primary, as sentinels call it */
    struct redis_login login;
    struct ssl_ctx_st *tls; /* NULL: not encrypted */
    uint64_t timeout_ms;    /* for connecting, and for an answer */
};

enum redis_sentinel_state {
    SENTINEL_WAITING,
    SENTINEL_DIALING,
    SENTINEL_UP,
    SENTINEL_CLOSING,
    SENTINEL_CLOSED
};

/* Replies that are still to come, at most: a login's and those of one question. */
enum { SENTINEL_REPLIES = REDIS_LOGIN_STEPS + 4 };

/* Zeroed, then the first three set. */
struct redis_sentinel {
    struct redis_sentinel_options options;
    /* It has answered, or it has named another, or it will not answer. From redis_sentinel_ask() it
     * is only called where the question cannot even be written. */
    void (*told)(void *arg, struct redis_sentinel *sentinel);
    void *arg;
    void (*closed)(void *arg);
    uv_loop_t *loop;
    enum redis_sentinel_state state;
    bool asked;                 /* since told() was last called for an answer */
    bool subscribed;            /* or about to be */
    bool is_deaf;               /* it lets nobody subscribe: what it is asked must do */
    bool is_endless;            /* nor unsubscribe who has: a subscription would be the end */
    bool knows;                 /* `primary` is what it says */
    struct redis_place primary; /* the last that it named */
    uint64_t silent;            /* since when it does not, by the loop's clock */
    char why[200];              /* it does not say: it cannot be reached, or does not know; "" */
    struct dial dial;
    unsigned turn; /* attempts that failed: of a name each begins with another address */
    struct redis_wire wire;
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    uint8_t replies[SENTINEL_REPLIES]; /* that are to come, oldest first: enum in the source */
    size_t reply_count;
    struct backoff backoff;
    uv_timer_t timer; /* the next attempt, the limit of this one, or the next question */
    int handles;
};

void redis_sentinel_open(struct redis_sentinel *sentinel, uv_loop_t *loop);

/* told() will be called with an answer that is newer than this call, or without one. */
void redis_sentinel_ask(struct redis_sentinel *sentinel);

/* told() is not called any more; closed() is, when the loop has nothing of it. */
void redis_sentinel_close(struct redis_sentinel *sentinel);

#endif
