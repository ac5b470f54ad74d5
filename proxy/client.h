/* One client connection of a worker.
 *
 *   socket ─▶ parse a batch ─▶ hash and prefetch all ─▶ dispatch each ─▶ slots ─▶ out ─▶ one write
 * a loop turn
 *
 * Input is parsed where the kernel put it (the worker's scratch buffer); only what is left of an
 * incomplete command is kept in `in`. A client whose replies pile up is not read from, and at last
 * dropped.
 */
#ifndef NESTGUARD_CLIENT_H
#define NESTGUARD_CLIENT_H

#include "buffer.h"
#include "slot.h"
#include "stream.h"
#include <stdbool.h>

struct upstream;
struct worker;

struct client {
    union stream stream;
    struct worker *worker;
    struct client *previous, *following; /* in the worker's list */
    struct client *next_dirty;
    struct upstream
        *upstream; /* the shared cache connection that keeps this client's commands in order */
    struct slot *slots, *last_slot;
    size_t commands;       /* under way: in all slots */
    size_t held;           /* bytes of finished replies behind an unfinished one */
    struct buffer in, out; /* out: replies since the last write */
    struct buffer sending; /* replies that the kernel has not taken yet */
    size_t need;           /* fewer bytes of input than this cannot complete the next command */
    uv_write_t write;
    size_t queued;     /* bytes that the kernel had not taken when that was last looked at */
    uint64_t progress; /* when they were last seen to become fewer, or none */
    uint64_t id;
    char *name; /* CLIENT SETNAME */
    bool authenticated, reading, writing, dirty;
    bool leaving; /* no more input; closed when its replies are out */
    bool closing; /* uv_close was called */
};

/* Takes over a freshly accepted stream, initialised on the worker's loop inside a client from
 * client_create(). */
struct client *client_create(struct worker *worker, bool is_unix);
void client_start(struct client *client);

/* For an accept that failed: frees through the close callback. Also the one way to end a client:
 * its slots are left to those who still owe them an answer. */
void client_close(struct client *client);

/* Reads no more; closes once every reply is out. */
void client_leave(struct client *client);

void client_enqueue(struct client *client, struct slot *slot);

/* The slot has its whole reply. */
void client_finished(struct client *client, struct slot *slot);

/* Where a reply that is ready now goes: the output, or behind the slots that are still waiting. */
struct buffer *client_reply(struct client *client);

/* Bytes of replies that wait for this client. */
size_t client_waiting(const struct client *client);

/* To be written at the end of this loop turn. */
void client_mark_dirty(struct client *client);
void client_flush(struct client *client);

/* Closes a client that does not read its replies. */
void client_drop(struct client *client);

/* Once in a while: drops a client that has taken none of its replies for output_timeout. */
void client_check_progress(struct client *client, uint64_t now);

#endif
