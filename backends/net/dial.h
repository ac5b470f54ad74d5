/* From a server's address to an open stream: looks the name up anew, without holding up the loop,
 * tries its addresses one after the other, and shakes hands for TLS.
 *
 *   dial_start() ─▶ resolving ─▶ connecting ─┬─▶ securing ─▶ done(NULL): the stream is open
 *                                 ▲     next │ address
 *                                 └──────────┘              done(why): it is not
 */
#ifndef NESTGUARD_DIAL_H
#define NESTGUARD_DIAL_H

#include "net/stream.h"

struct dial_options {
    const char *host; /* NULL with a path; outlives the dialing */
    uint16_t port;
    const char *path;       /* unix socket, or NULL */
    struct ssl_ctx_st *tls; /* NULL: not encrypted */
    /* Of the name's addresses, how many are left to the end: the turn of an owner that was not
     * served by those that came first. Counted around. */
    unsigned turn;
};

/* Connecting: also while hands are shaken for TLS. Closing: the handle of an address that failed;
 * the next one, or the end, comes when it is closed. */
enum dial_state { DIAL_OVER, DIAL_RESOLVING, DIAL_CONNECTING, DIAL_CLOSING };

/* Called once. With an error (which lives until the call returns) there is no stream to close. */
typedef void (*dial_done_cb)(void *arg, const char *error);

/* Part of its owner, and of the owner's alone until done() was called. */
struct dial {
    struct dial_options options;
    struct stream *stream;
    uv_loop_t *loop;
    dial_done_cb done;
    void *arg;
    uv_getaddrinfo_t resolve;
    struct addrinfo *found, *next;
    unsigned left; /* of the addresses, to be tried */
    uv_connect_t connect;
    enum dial_state state;
    bool stopped;
    uint64_t since;  /* uv_now() when this state began */
    char error[256]; /* of the last address tried */
};

/* `stream` is the owner's memory; handle.data is the owner's again from done() on. 0, or a negative
 * errno; then done() is not called. It is never called from here. */
int dial_start(struct dial *dial, uv_loop_t *loop, struct stream *stream,
               const struct dial_options *options, dial_done_cb done, void *arg);

/* Goes on with the next address, or ends with `why` if there is none: this one takes too long. */
void dial_skip(struct dial *dial, const char *why);

/* done() was called, or is being called. */
bool dial_is_over(const struct dial *dial);

/* Ends soon. A look-up of a name that the resolver is at cannot be broken off; then done() waits
 * for it. */
void dial_stop(struct dial *dial);

#endif
