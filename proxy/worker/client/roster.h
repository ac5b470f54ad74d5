/* Who is connected, as CLIENT LIST and INFO tell it in the words of Redis, and whom CLIENT KILL
 * means.
 */
#ifndef NESTGUARD_ROSTER_H
#define NESTGUARD_ROSTER_H

#include "worker/client/client.h"

enum client_type {
    TYPE_ANY,
    TYPE_NORMAL,
    TYPE_MASTER, /* nobody here is */
    TYPE_REPLICA,
    TYPE_PUBSUB
};

/* The type of this name, or TYPE_ANY for one that there is not. */
enum client_type client_type_of(struct span name);

/* Those who have all that it asks for. Zeroed: everybody. Its strings and ids are its own. */
struct client_filter {
    uint64_t *ids; /* one of these, in their order */
    size_t id_count;
    char *address, *local_address, *user; /* NULL: any */
    enum client_type type;
    uint64_t least_age; /* seconds */
    uint64_t but;       /* not the client of this id */
};

/* Frees what it has; then it is zeroed, and means everybody. */
void client_filter_finish(struct client_filter *filter);
bool client_filter_matches(const struct client_filter *filter, const struct client *client);

/* Appends the client's line, with its end. `subcommand`: of CLIENT, where that is what it is asking
 * now; NULL: it does not ask. */
void roster_describe(struct buffer *out, const struct client *client, const char *subcommand);

/* The newest is first. A client leaves with all walks where they would go on. */
void roster_enter(struct clients *clients, struct client *client);
void roster_leave(struct client *client);

/* Goes through a worker's clients, a few at a time: who comes meanwhile is not among them, and who
 * goes may. */
struct roster_walk {
    struct clients *clients;
    struct roster_walk *beside; /* in clients->walks */
    struct client *next;        /* NULL: none is left */
    uint64_t newest;            /* the id of the last one */
};

/* The walk stays where it is until it is ended. */
void roster_walk_begin(struct roster_walk *walk, struct clients *clients);
void roster_walk_end(struct roster_walk *walk);

/* The oldest that is left; NULL: none is. */
struct client *roster_walk_next(struct roster_walk *walk);

/* The client of this id; NULL: it is not among them. */
struct client *roster_find(const struct clients *clients, uint64_t id);

/* Of a client that has a connection to the cache of its own and needs it for what it has asked:
 * what the cache calls that. 0: it has none. */
uint64_t roster_cache_id(const struct client *client);

#endif
