/* Commands out and replies in, over one open stream, with hiredis' reader for the replies. Private
 * to backends/.
 *
 *   wire_append(), wire_give() ─▶ out ─▶ wire_flush() ─▶ cache ─▶ hiredis' reader ─▶ reply()
 */
#ifndef NESTGUARD_REDIS_WIRE_H
#define NESTGUARD_REDIS_WIRE_H

#include "net/stream.h"

struct redisReader;
struct redisReply;

struct wire_bytes {
    struct wire_bytes *next;
    char *at;
    size_t length, size; /* in use, and allocated */
};

struct redis_wire {
    struct stream stream; /* opened by whoever owns this */
    /* The reply lives until the call returns, which may close the wire. */
    void (*reply)(void *arg, const struct redisReply *reply);
    /* Nothing comes any more; `why` lives until the call returns. Only wire_close() may follow. */
    void (*broken)(void *arg, const char *why, bool is_protocol);
    void (*closed)(void *arg);
    void *arg;
    size_t most; /* bytes of a reply, about; more of them break the wire. 0: as many as may be */
    size_t gathered; /* of the one that is under way */
    struct redisReader *reader;
    struct wire_bytes *out, *last; /* to be written, in that order */
    struct wire_bytes *sending;    /* being written; NULL: nothing is */
    struct wire_bytes *spare;      /* written, for what comes next */
    uv_write_t write;
    bool open;
};

/* The stream is open, the callbacks and `arg` are set, the rest is zero or was closed before. */
void wire_open(struct redis_wire *wire);

void wire_append(struct redis_wire *wire, const char *bytes, size_t length); /* copied */

/* Likewise, of bytes by malloc(): the wire's from now on, and what is large is not copied. */
void wire_give(struct redis_wire *wire, char *bytes, size_t length);

/* Writes what was appended, when the write before is through. Where writing fails at once, broken()
 * is called from within. */
void wire_flush(struct redis_wire *wire);

/* closed() comes later; no other call does. */
void wire_close(struct redis_wire *wire);

#endif
