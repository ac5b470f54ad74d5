/* The first commands of the guard's own connection to the cache, before any other may go. Private
 * to backends/.
 *
 *   login (redis_login.h) ─▶ CLIENT NO-EVICT, CLIENT ID, INFO twice, CLUSTER MYID, ROLE ─▶ PING
 *                                                   ─▶ CLIENT KILL of the one before ─▶ done
 *
 * NO-EVICT has it stay when clients take more memory than the server has for them
 * (maxmemory-clients); a server before 7.0 does not know it, and does not evict.
 *
 * A connection that is given up may have left commands behind that the server has not read yet: it
 * was paused, or the network was. Were such a SET to run after a purge that came over the next
 * connection, a stale value would stay. So the server is told to forget the old connection, with
 * whatever is still to be read from it, before the new one carries anything.
 *
 * Only the server that the old connection led to is told so, for another one, or the same started
 * anew, may have given its number to somebody else. While it only cannot do so just now (a script
 * keeps it busy), the connection is not up: the number is kept for the next attempt. A server that
 * is too old for these commands, or does not allow them to this user, is greeted without; then what
 * was left behind is a reason for doubt.
 */
#ifndef NESTGUARD_REDIS_GREETING_H
#define NESTGUARD_REDIS_GREETING_H

#include "redis/protocol/redis_command.h"
#include "redis/protocol/redis_login.h"
#include "redis/protocol/redis_role.h"
#include "redis/redis.h"
#include "redis/topology/redis_map.h"

/* A connection as its server knows it. */
struct redis_identity {
    long long client; /* 0: unknown */
    char run_id[41];  /* of the server, drawn when it starts; "": unknown */
    /* Of its data, master_replid: a replica has its primary's, and draws another when it is made a
     * primary. (So does a primary when its first replica comes: then there is doubt without need,
     * which costs a sweep.) "": unknown */
    char history[41];
};

/* Zeroed, then the first four set, and of a cluster's node the next two. Is used for one connection
 * after the other. */
struct redis_greeting {
    struct redis_login login;
    void (*send)(void *arg, struct redis_command *command); /* its done and arg are set */
    void (*done)(void *arg, const char *error);             /* NULL: other commands may go */
    void *arg;
    const struct redis_map *map; /* of the cluster that the server at that place is a node of; NULL:
                                    of none */
    struct redis_place place;
    struct redis_identity last; /* the last connection whose greeting went well */
    struct redis_identity own;
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    size_t answered;      /* of the steps */
    bool is_stranger;     /* the server is none of that cluster any more */
    bool left;            /* set by the owner: that one was lost with commands that had no answer */
    bool busy;            /* the server cannot answer all of this just now */
    enum redis_role role; /* of the server, by ROLE or else by INFO; no other than a primary's
                             connection goes well, or one of which nobody knows */
    bool is_second;       /* or a later one: `last` says of which server */
    const char *doubt;    /* see redis_doubt() */
};

/* Why the second connection may not lead to the same server with the same data as the first (static
 * text); NULL: it does. */
const char *redis_identity_doubt(const struct redis_identity *last,
                                 const struct redis_identity *own);

/* What these options ask of a connection's beginning; its texts are theirs. */
struct redis_login redis_login_of(const struct redis_options *options);

/* Over a connection that has just come up. done() is called at most once, from the callback of a
 * command: not at all when the connection is lost before. */
void redis_greet(struct redis_greeting *greeting);

#endif
