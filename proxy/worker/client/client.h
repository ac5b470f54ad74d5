/* One client of a worker: what it has sent, what waits for it, and how its life goes. Its socket is
 * connection.h's.
 *
 *   SECURING ─▶ OPEN ─▶ LEAVING ─▶ CLOSING ─▶ CLOSED       any of the first three ─▶ CLOSING
 *
 * Input is parsed where the kernel put it (the worker's scratch buffer) when all clients that have
 * some are read from; only what is left of an incomplete command is kept in `in`. A client whose
 * replies pile up is not read from, and dropped when it does not read them.
 */
#ifndef NESTGUARD_CLIENT_H
#define NESTGUARD_CLIENT_H

#include "base/peak.h"
#include "net/stream.h"
#include "worker/client/pinned_state.h"
#include "worker/client/reads_state.h"
#include "worker/reply/hosts.h"
#include "worker/reply/reply_slot.h"
#include "worker/upstream/pool.h"
#include <stdbool.h>

struct batch;
struct client;
struct command;
struct inquiry;
struct roster_walk;
struct client_memory;
struct upstream;

enum client_state {
    CLIENT_SECURING, /* accepted; until the handshake of TLS is done, where there is one */
    CLIENT_OPEN,
    CLIENT_LEAVING, /* no more input; closed when its replies are out */
    CLIENT_CLOSING, /* nothing is done for it any more; its socket is closed in turn with others' */
    CLIENT_CLOSED   /* here until libuv has let go of the socket */
};

/* Whether a client has shown who it is (strangers.h). */
struct acquaintance {
    bool strange;
    uint64_t since; /* clock_ms() when it became a stranger */
    struct client *older, *newer;
    unsigned failures;          /* to authenticate */
    struct reply_slot *refused; /* whose error is held back; NULL: none */
    uint64_t refused_until;     /* clock_ms() */
    struct turn_task release;   /* in line when that is over */
};

struct strangers {
    struct client *oldest, *newest;
    unsigned count;
};

/* What a client has told of itself. Strings of its own, of so many bytes at most; NULL: nothing. */
enum { INTRODUCED_BYTES = 1024 }; /* no address is longer, either */
struct introduction {
    char *name;                      /* CLIENT SETNAME */
    char *user;                      /* of the cache's own; NULL: the guard's one user, "default" */
    char *library, *library_version; /* CLIENT SETINFO */
    char *asked;                     /* for a name or user, until the cache has agreed */
    char *asked_name;                /* by HELLO beside its user, likewise; "": for none */
};

/* What a client has asked for so far. */
struct account {
    uint64_t commands;
    uint64_t others;        /* of these: all but lookups of one key that were rejected */
    uint64_t rejected_keys; /* of commands with many */
    uint64_t bytes;         /* in and out */
    uint64_t loads;         /* those of its replies, as of the last settling */
};

/* What a worker's clients take, as far as they have been looked at. */
struct client_weight {
    uint64_t number; /* clients->weighings, of this one */
    size_t came;     /* what had come before it began */
    size_t total;
    size_t heap;     /* malloc()'s part, with that of those who are closing: it is not freed yet */
    uint64_t origin; /* of the host whose clients take most; it may have gone since */
    size_t bytes, largest; /* what they take, and one of them; 0: nobody takes anything */
};

/* The clients of a worker. */
struct clients {
    struct serving *serving;
    struct client *first, *last; /* the newest, and who is here for longest */
    struct keymap ids;           /* likewise all of them, by theirs */
    _Atomic unsigned *total;     /* of all workers */
    struct strangers strangers;
    struct hosts hosts;
    uint64_t last_id;
    struct batch *batch;          /* dispatch.c's */
    struct roster_walk *walks;    /* roster.h's: those that are under way */
    struct client_memory *memory; /* of all workers; NULL: it has no bound */
    size_t memory_told;           /* this worker's part of it, as last seen; client_memory.c's */
    size_t memory_came;           /* bytes from clients, and for them, since then */
    size_t memory_heap;           /* of malloc()'s, as last seen; likewise */
    uint64_t weighings;           /* looks at what they take; likewise */
    struct client_weight weight;  /* of the one in pieces */
    struct peak memory_peak;      /* of what malloc() has of it */
    bool none_idle[OWN_KINDS];    /* pinned_room.c found nobody idle, and nobody has been since */
    unsigned logins; /* own connections of who has yet to be taken for a user (pinned_room.h) */
    struct inquiry *inquiries, *last_inquiry; /* its askers', that meet all clients: the first goes
                                                 round */
};

struct client {
    struct stream stream;
    struct clients *clients;
    struct serving *serving;
    struct client *previous, *following;
    struct keymap_node by_id;
    struct turn_task input_task, output_task;
    struct replies replies;
    struct upstream *upstream; /* its own, or one of the shared: keeps its commands in order */
    struct pinned pinned;
    struct hint_share hints;
    struct host *host; /* while it is connected, and counted there */
    struct reads reads;
    struct acquaintance acquaintance;
    uint64_t heard;        /* the loop's time when something came from it */
    struct span fresh;     /* input of this turn, in the worker's scratch buffer */
    struct buffer in;      /* input that could not be served yet */
    struct buffer sending; /* replies that the kernel has not taken yet */
    size_t need;           /* fewer bytes of input than this cannot complete the next command */
    struct resp_measure measure;   /* of that, where it begins in `in` */
    struct incomplete *incomplete; /* incomplete.c's: of that, as far as it was read */
    struct buffer *heir;           /* of `in`: client_give_input() */
    size_t queued;     /* bytes that the kernel had not taken when that was last looked at */
    uint64_t progress; /* when they were last seen to become fewer, or none */
    uv_write_t write;
    uint64_t id;
    struct introduction self;
    struct account account, settled; /* settled: as far as the ledger knows it */
    char address[48];                /* without the port, or "unix" */
    uint64_t since;                  /* clock_ms() when it came */
    const struct command *command;   /* its last; NULL: it has sent none */
    struct inquiry *inquiry; /* command/inquiry.h: while the cache is asked for it; else NULL */
    enum client_state state;
    bool authenticated;
    bool takes_much;  /* so does its host, or in a cluster it is a slow reader: it shares a
                         connection to each node with those of whom that holds */
    bool no_evict;    /* CLIENT NO-EVICT ON */
    bool reply_off;   /* CLIENT REPLY OFF */
    bool reading;     /* from the socket */
    bool input_ended; /* it will send no more; what it has sent is still served */
    bool settling; /* no more input before its replies are out: what it asks next depends on them */
};

/* Nothing is done for it any more, and its socket is closed when its turn comes. The one way to end
 * a client; its slots are left to those who still owe them an answer. */
void client_close(struct client *client);

/* Closes a client that does not read its replies. */
void client_drop(struct client *client);

/* Reads no more; closes once every reply is out. */
void client_leave(struct client *client);

/* The only place where a life goes on; asserts that the move is legal. */
void client_set_state(struct client *client, enum client_state state);

/* It is to have nothing more served. */
static inline bool client_is_ending(const struct client *client)
{
    return client->state >= CLIENT_LEAVING || replies_have_ended(&client->replies);
}

/* The cache takes commands again: looks whether there is something to do. */
void client_resume(struct client *client);

/* Serves no more input before the replies to what was dispatched are out. */
void client_settle(struct client *client);

/* Where a reply that is ready now is to be appended. */
struct buffer *client_reply(struct client *client);

/* Appends there the error of that text, or OK when that is NULL. */
void client_answer(struct client *client, const char *error);

/* The client whose replies these are. */
struct client *client_of(struct replies *replies);

/* The shared connection that a client keeps to while it speaks this protocol; in a cluster, of the
 * node that gets what has no key. */
struct upstream *client_shared(struct client *client, bool resp3);

/* The shared connections to the cache that the client is served by: the worker's, or while it has
 * state on the cache before, that one's. */
struct pool *client_pool(const struct client *client);

/* A connection of its own has ended, which may have been the last thing that it had at the cache
 * before, `before` being its client_pool() until then: it is led to the worker's. */
void client_leave_pool(struct client *client, const struct pool *before);

/* It has a connection of its own on which it left state, or on which something is under way. In a
 * cluster any other is not used again: what it asked meanwhile may be under way on a shared one to
 * the same node, and would be overtaken. */
bool client_needs_own(const struct client *client);

/* In a cluster: the connection by which the client is told of what it reads at this node
 * (tracking.h). NULL: it has none. */
struct upstream *client_track_to(const struct client *client, int node);

/* In a cluster: what the client asks next goes to this node, over its own connection if that leads
 * there. */
void client_go_to(struct client *client, int node);

/* The same to the node that has this key, or beside. */
void client_go_to_key(struct client *client, struct span key);

/* Of a command that any node answers, or leads on: while the connection to its own is lost it goes
 * to another. */
void client_go_beside(struct client *client);

/* Another connection may be the client's now, or keys of a cluster elsewhere: what is under way is
 * answered before anything else is served, and then what it asks goes there. */
void client_reroute(struct client *client);

/* The id by which it is led to a shared connection (pool_shared()). */
static inline uint64_t client_lane(const struct client *client)
{
    return client->takes_much ? POOL_TAKES_MUCH : client->id;
}

/* Once in a while, and when it has come: leads it where it belongs, by what its host takes. */
void client_follow_host(struct client *client);

/* Switches the protocol. No command of the client is under way: what its earlier commands did on
 * one connection is done before the next goes over another. */
void client_speak(struct client *client, bool resp3);

/* Whether more input may be served: there is room for its replies, and for what it would send. */
bool client_wants_input(const struct client *client);

/* The input that is to be served next; empty when there is none, or not enough of a command. It
 * must not move before client_took(). */
struct span client_input(const struct client *client);

/* So many bytes of that are done with. 0: not one whole command is there, and client->need says how
 * many bytes it takes, or the client is to have no more. */
void client_took(struct client *client, size_t bytes);

/* The kept input that is done with next, from its start, goes to `heir` as it is, and nothing of it
 * moves; what stands behind it is kept elsewhere. Before client_took(), which `heir` outlives. */
void client_give_input(struct client *client, struct buffer *heir);

/* Whether it is no longer than what is kept of a client. */
static inline bool introduction_has_room(struct span text)
{
    return text.length <= INTRODUCED_BYTES;
}

/* Forgets name and user; `all`: and the library. */
void introduction_end(struct introduction *self, bool all);

/* Takes a string (NULL: nothing) in the place of what was told before. */
void introduction_set(char **what, char *text);

/* Input of this turn moves to where it may stay. */
void client_keep_input(struct client *client);

/* More input waits than is served at once: it takes turns with that of others who have much. All of
 * it is kept: the line may last for more than this turn. */
enum { LITTLE_INPUT = 1024 }; /* some thirty lookups: a few microseconds */
bool client_has_much(const struct client *client);

/* There is input to be served: at once if it is little, else in line. */
void client_queue_input(struct client *client);

#endif
