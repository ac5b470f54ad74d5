/* One client connection of a worker.
 *
 *   socket ─▶ input ─▶ serve() ─▶ replies ─▶ one write a loop turn ─▶ socket
 *
 * Input is parsed where the kernel put it (the worker's scratch buffer) when all clients that have
 * some are read from; only what is left of an incomplete command is kept in `in`. A client whose
 * replies pile up is not read from, and at last dropped.
 */
#ifndef NESTGUARD_CLIENT_H
#define NESTGUARD_CLIENT_H

#include "session.h"
#include "slot.h"
#include "stream.h"
#include <stdbool.h>

struct client;
struct upstream;

/* The clients of a worker. */
struct clients {
    struct serving *serving;
    struct client *first;
    _Atomic unsigned *total;     /* of all workers */
    struct upstream **shared[2]; /* connections to the cache, by protocol; NULL: not needed yet */
    size_t shared_count;         /* of each */
    uint64_t last_id;
    /* Serves what it can of the input before the turn goes on to TURN_WRITE, and calls
     * client_took(). Until then the input must not move. */
    void (*serve)(struct client *client, char *input, size_t length);
    struct batch *batch; /* serve()'s own */
};

struct client {
    struct stream stream;
    struct clients *clients;
    struct serving *serving;
    struct client *previous, *following;
    struct turn_task input_task, output_task;
    struct replies replies;
    struct upstream *upstream; /* its own, or one of the shared: keeps its commands in order */
    struct session session;
    struct span fresh;     /* input of this turn, in the worker's scratch buffer */
    struct buffer in;      /* input that could not be served yet */
    struct buffer sending; /* replies that the kernel has not taken yet */
    size_t need;           /* fewer bytes of input than this cannot complete the next command */
    size_t queued;         /* bytes that the kernel had not taken when that was last looked at */
    uint64_t progress;     /* when they were last seen to become fewer, or none */
    uv_write_t write;
    uint64_t id;
    char *name; /* CLIENT SETNAME */
    bool authenticated, reading, writing;
    bool input_ended; /* it will send no more; what it has sent is still served */
    bool settling; /* no more input before its replies are out: what it asks next depends on them */
    bool leaving;  /* no more input; closed when its replies are out */
    bool securing; /* until the handshake of TLS is done */
    bool closing;  /* uv_close was called */
};

/* A client with an initialised stream, to be accepted or opened; client_start() begins to read from
 * it, with `tls` when both sides have shaken hands. */
struct client *client_create(struct clients *clients, bool is_unix);
void client_start(struct client *client, bool tls);

/* The one way to end a client. Its slots are left to those who still owe them an answer. */
void client_close(struct client *client);

/* The cache takes commands again: looks whether there is something to do. */
void client_resume(struct client *client);

/* Reads no more; closes once every reply is out. */
void client_leave(struct client *client);

/* Where a reply that is ready now is to be appended. */
struct buffer *client_reply(struct client *client);

/* The client whose replies these are. */
struct client *client_of(struct replies *replies);

/* The shared connection that a client keeps to while it speaks this protocol. */
struct upstream *client_shared(struct client *client, bool resp3);

/* Switches the protocol. No command of the client is under way: what its earlier commands did on
 * one connection is done before the next goes over another. */
void client_speak(struct client *client, bool resp3);

/* So many bytes of the input that serve() got are done with. 0: not one whole command is there, and
 * client->need says how many bytes it takes, or the client is to have no more. */
void client_took(struct client *client, size_t bytes);

/* Serves no more input before the replies to what was dispatched are out. */
void client_settle(struct client *client);

/* Closes a client that does not read its replies. */
void client_drop(struct client *client);

/* Once in a while: drops a client that has taken none of its replies for output_timeout. */
void client_check_progress(struct client *client, uint64_t now);

#endif
