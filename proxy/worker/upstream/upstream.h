/* A connection of a worker to the cache: requests, pipelined; replies in the same order. Many
 * clients share one; or one client owns it, which then hears of what answers no request, too.
 *
 *   send ─▶ out ─▶ one write a loop turn ─▶ cache ─▶ in ─▶ frame ─▶ slot at the head of `in_flight`
 *
 *   CLOSED ─▶ DIALING ─▶ GREETING (AUTH, SELECT, ROLE) ─▶ UP
 *      ▲         └───────────┴── given up, refused, lost ──┤
 *      └────────────────────── CLOSING ◀───────────────────┘
 *
 * A shared one goes on from CLOSED by itself, after a backoff; one that is owned stays there.
 */
#ifndef NESTGUARD_UPSTREAM_H
#define NESTGUARD_UPSTREAM_H

#include "worker/reply/reply_slot.h"

struct client;
struct redis_place;
struct upstream;

/* What a client gets, without its dash, for a key whose slot is on its way from node to node. */
#define UPSTREAM_ON_ITS_WAY "TRYAGAIN the key's slot goes to another node of the cluster, try again"

/* For a connection that one client has of its own. */
struct upstream_owner {
    /* A whole reply or push; with upstream_relay() any bytes. True: the owner has taken it. False:
     * it is the reply to the oldest request. */
    bool (*takes)(struct client *client, struct upstream *upstream, struct span frame);
    /* The connection is lost, and every request has been failed. It does not come back. */
    void (*lost)(struct client *client, struct upstream *upstream);
    /* It can be used from now on. May be NULL. */
    void (*up)(struct client *client, struct upstream *upstream);
    /* In a cluster: which connection gets a request that another node is to answer, by this one's
     * word; if it `asks`, after ASKING, unless the owner has said that itself, and sets it false.
     * The first connection may have been closed. NULL, or what gives NULL: none does, and the
     * client gets an error. */
    struct upstream *(*elsewhere)(struct client *client, struct upstream *upstream, int node,
                                  bool *asks);
    /* Something may come over it though nothing is asked for as long as it is up: the server shows
     * that it is there all the same, or the connection is lost. Whether a PING goes through in the
     * state that it has. NULL: never. */
    bool (*may_ping)(const struct client *client, const struct upstream *upstream);
};

struct upstream_options {
    bool resp3;       /* else RESP2; with a cache too old for RESP3, requests fail with -NOPROTO */
    const char *name; /* for CLIENT SETNAME; NULL: none */
    const struct upstream_owner *owner; /* NULL: shared */
    struct client *client;              /* the owner's */
    struct span opening; /* of an own one: commands that its greeting ends with, and that must not
                            fail; copied */
    unsigned opening_commands;
    struct cache_route *route; /* NULL: serving->route */
    /* In a cluster: the node that it leads to; copied. NULL: wherever the configuration says. */
    const struct redis_place *node;
    unsigned lane; /* of a shared one: which of the node's it is */
    bool large;    /* it is for large replies: few commands are sent ahead (reply_window.h) */
    /* It leads nowhere: of a slot that no node is known to have. Whatever is sent fails. */
    bool nowhere;
    /* `node` is a replica: it need be no primary, and what it says of others is not followed. */
    bool replica;
};

/* Connects at once; a shared one again with backoff whenever the connection is lost. */
struct upstream *upstream_create(struct serving *serving, const struct upstream_options *options);

/* Sends one command's bytes, which are copied, as request number `index` of the slot, which waits
 * for one answer more. While the first attempt to connect is under way the request waits for it;
 * later, without a connection, it fails: the slot hears of that at the end of the loop turn. */
void upstream_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                   struct span bytes);
/* The same for bytes that a peer has sized. False: there is no memory for them, and nothing is sent
 * or waited for. */
bool upstream_try_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct span bytes);
/* The same for one that the caller gives away: much is not copied (buffer_try_pour()). */
bool upstream_try_pour(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct buffer *bytes);
/* The same for a command that the caller writes to the end of the buffer, at once. */
struct buffer *upstream_command(struct upstream *upstream, struct reply_slot *slot, unsigned index);

/* Another command goes before the next. Its reply is nobody's: a status or an error. */
void upstream_precede(struct upstream *upstream, const struct span *words, size_t count);

/* A command of the owner's, whose reply is for nobody but its `takes`. It is not sent over a
 * connection that is lost. */
void upstream_tell(struct upstream *upstream, const struct span *words, size_t count);

/* Whether there is memory for a command of so many bytes. */
bool upstream_has_room(struct upstream *upstream, size_t bytes);

/* Whether commands wait to be written, which the next would stand behind. */
bool upstream_has_gathered(const struct upstream *upstream);

/* Asks the server what it is. It changes nothing. */
void upstream_ask_role(struct upstream *upstream);

/* More bytes of the last request. */
void upstream_append(struct upstream *upstream, struct span bytes);

/* The last request may take as long as it likes to be answered: it waits for something. Or its time
 * begins now. */
void upstream_be_patient(struct upstream *upstream, bool patient);
/* The oldest request is such a one. */
bool upstream_is_waiting(const struct upstream *upstream);

/* The slot of the last request, if that is such a one; NULL: it is not. */
struct reply_slot *upstream_waiting_slot(const struct upstream *upstream);

/* Bytes of memory that its buffers have. */
size_t upstream_memory(const struct upstream *upstream);

/* Bytes of commands that are there for as long as they are not written, or not answered. */
size_t upstream_unanswered(const struct upstream *upstream);

/* Whether any request has been written to it, and not been answered. */
bool upstream_awaits_reply(const struct upstream *upstream);

/* The slot of the oldest request; NULL: there is none, or it is the connection's own. */
struct reply_slot *upstream_next_slot(const struct upstream *upstream);

/* The first slot that is still to get its reply, behind whatever the connection asks for itself;
 * NULL: there is none. */
struct reply_slot *upstream_first_slot(const struct upstream *upstream);

/* An own connection that was just begun: its only request is one that a busy cache answers, too. It
 * comes up without all of its greeting, and so must be ended with that request's reply. */
void upstream_set_urgent(struct upstream *upstream);

/* Keeps back what is sent, or lets it go. */
void upstream_hold(struct upstream *upstream, bool hold);

/* Starts or stops reading: whoever gets what comes takes no more for now. */
void upstream_read(struct upstream *upstream, bool wanted);

/* What the cache calls an own connection (CLIENT ID); 0: that is not known. */
uint64_t upstream_cache_id(const struct upstream *upstream);

/* Which server it is connected to: the run_id that this told when it was greeted. "": it did not,
 * or the connection is not up. */
const char *upstream_run_id(const struct upstream *upstream);

/* The node that it leads to; NULL: there is no cluster, or it leads nowhere. */
const struct redis_place *upstream_node(const struct upstream *upstream);

/* Where to send what is for a cluster's node: a connection to another that is up, while that node's
 * is lost (upstream_redirect.c); else the same. */
struct upstream *upstream_beside(struct upstream *upstream);

bool upstream_is_nowhere(const struct upstream *upstream);

/* Sends on what a node has answered with a redirection: the same request, for the hops-th time.
 * `asking`: ASKING goes before it. */
void upstream_send_on(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                      struct span bytes, unsigned hops, bool asking);

/* Nobody knows yet where anything is: what is sent nowhere waits for that to be over. */
void upstream_set_waiting(struct upstream *upstream, bool waiting);

/* Bytes that are no request, after which none is sent any more. Once the replies to earlier ones
 * are there, the owner gets all that comes, as it comes. */
void upstream_relay(struct upstream *upstream, struct span bytes);

/* Once in a while: gives up a connection whose oldest request has had no reply for cache_timeout,
 * or whose server is found to be no primary any more, which shared ones ask once a second. */
void upstream_check_progress(struct upstream *upstream);

/* INFO replication, unless it is asked for already or the connection is not up. `hear` gets its
 * text, or NULL, with the clock_ms() of the question; not when the connection is lost before. */
typedef void (*upstream_standing_cb)(void *arg, struct upstream *upstream, const char *text,
                                     uint64_t asked);
void upstream_ask_standing(struct upstream *upstream, upstream_standing_cb hear, void *arg);

/* As of which clock_ms(), or later, it answers (freshness.h); 0: nobody knows, as of every new
 * connection. */
void upstream_set_fresh(struct upstream *upstream, uint64_t fresh);
uint64_t upstream_fresh(const struct upstream *upstream);

/* Sentinels name another primary than before: what leads elsewhere is given up, and what waits for
 * its next attempt to connect makes it now. */
void upstream_moved(struct upstream *upstream);

/* It is up, and its server may have forgotten what was deleted from it (cache/vouched.h): lookups
 * of rows fail as if the cache were down, but where it knows of another node that has the key now;
 * all else goes there. */
bool upstream_is_doubted(const struct upstream *upstream);

/* Where it leads. */
struct cache_route *upstream_route(const struct upstream *upstream);

/* Commands can be sent at once. */
bool upstream_is_up(const struct upstream *upstream);

/* No request is without its reply, but what it asks for itself, to greet or to look. */
bool upstream_is_idle(const struct upstream *upstream);

/* It is not up, though it was tried: what is sent fails. */
bool upstream_is_lost(const struct upstream *upstream);

/* Gives the connection up: what is under way fails, and an owner hears that it is lost. */
void upstream_give_up(struct upstream *upstream, const char *why);

/* So much is on its way to the cache that nobody should add to it; serving->relief is run when that
 * has passed. */
bool upstream_is_congested(const struct upstream *upstream);

/* How many commands more, one at least, may be sent before it is congested; SIZE_MAX: their number
 * does not matter. */
size_t upstream_window(const struct upstream *upstream);

/* Fails what is in flight and closes for good; the memory goes with the last close callback. Nobody
 * sends any more. */
void upstream_close(struct upstream *upstream);

#endif
