/* What the files of redis_cluster.h share. */
#ifndef NESTGUARD_REDIS_CLUSTER_INTERNAL_H
#define NESTGUARD_REDIS_CLUSTER_INTERNAL_H

#include "net/backoff.h"
#include "net/dial.h"
#include "redis/protocol/redis_wire.h"
#include "redis/topology/redis_cluster.h"

enum state { WAITING, DIALING, UP, CLOSING, CLOSED };

struct redis_cluster {
    uv_loop_t *loop;
    struct redis_cluster_options options; /* with copies */
    struct redis_seed *seeds;
    struct redis_map map;
    enum state state;
    bool settled, has_map;
    bool wanted;             /* again, as soon as may be */
    size_t turn;             /* of the candidates: who is next */
    size_t failed;           /* one after the other */
    unsigned rounds;         /* in which all have: of a name each begins with another address */
    unsigned known_round;    /* that was under way when the last map was taken */
    bool is_seed;            /* who is asked is one that the administrator has named */
    struct redis_place next; /* to be asked before whoever's turn it is; host "": nobody */
    struct redis_place place;
    struct dial dial;
    struct redis_wire wire;
    struct redis_login login;
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    size_t login_left; /* answers to it that are to come */
    bool asking; /* an answer to CLUSTER SLOTS is to come; stating: before it one to the other */
    bool stating;
    bool states;             /* this node may be asked for its state, for all we know */
    bool is_down;            /* the cluster, as who was asked last has said */
    uint64_t stated;         /* the loop's time when somebody was asked that; 0: never */
    uint64_t asked, taken;   /* the loop's time; taken: the last map */
    uint64_t round_over;     /* likewise: when all had failed; 0: never */
    uint64_t troubled_until; /* likewise */
    struct backoff backoff;
    uv_timer_t timer;
    int handles;
    char why[300];
    void (*changed)(void *arg);
    void *changed_arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Whom there is to ask: the nodes of the map, and the seeds. */
size_t redis_cluster_candidates(const struct redis_cluster *cluster);

/* Whoever is next: one that was named, or whose turn it is. There is always a seed. */
struct redis_place redis_cluster_next_place(struct redis_cluster *cluster);

#endif
