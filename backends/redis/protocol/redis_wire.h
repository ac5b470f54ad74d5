/* Commands out and replies in, over one open stream, with hiredis' reader for the replies. Private
 * to backends/.
 *
 *   wire_append() ─▶ out ─▶ wire_flush() ─▶ cache ─▶ hiredis' reader ─▶ reply()
 */
#ifndef NESTGUARD_REDIS_WIRE_H
#define NESTGUARD_REDIS_WIRE_H

#include "net/stream.h"

struct redisReader;
struct redisReply;

struct wire_bytes {
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
    struct wire_bytes out, sending; /* to be written, and being written */
    uv_write_t write;
    bool writing, open;
};

/* The stream is open, the callbacks and `arg` are set, the rest is zero or was closed before. */
void wire_open(struct redis_wire *wire);

void wire_append(struct redis_wire *wire, const char *bytes, size_t length); /* copied */

/* Writes what was appended, when the write before is through. Where writing fails at once, broken()
 * is called from within. */
void wire_flush(struct redis_wire *wire);

/* closed() comes later; no other call does. */
void wire_close(struct redis_wire *wire);

#endif
