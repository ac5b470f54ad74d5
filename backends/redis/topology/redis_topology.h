/* Which server is the cache, where sentinels know: asked at every connecting, and followed.
 *
 *   redis_topology_find() ─▶ all sentinels are asked ─▶ most of them agree, or all have
 *                            answered, or those that do not have had time ─▶ found()
 *   +switch-master, or another answer, until most agree on another ─▶ moved()
 *
 * Some of them may be down, ignorant or wrong: what most say counts, and where none is said by
 * most, the server that was known before, unless a connection has found that it is none
 * (redis_topology_distrust()). Whether the one that was found is a primary its own ROLE must tell.
 */
#ifndef NESTGUARD_REDIS_TOPOLOGY_H
#define NESTGUARD_REDIS_TOPOLOGY_H

#include "redis/protocol/redis_login.h"
#include "redis/topology/redis_place.h"
#include <uv.h>

struct redis_topology;
struct ssl_ctx_st;

/* A server that knows others: "10.0.0.1", 26379. */
struct redis_seed {
    const char *host;
    uint16_t port;
};

/* Texts, seeds and context are copied, or held. */
struct redis_sentinels {
    const struct redis_seed *seeds;
    size_t count;
    const char *name;            /* of the primary, as they call it */
    const char *user, *password; /* of the sentinels' own; NULL: none */
    struct ssl_ctx_st *tls;      /* to the sentinels; NULL: not encrypted */
};

/* Part of whoever asks, and not to be moved until found() was called: once, on the loop, never
 * before the function has returned. With an error (which lives until the call returns) `place` is
 * NULL. */
struct redis_search {
    void (*found)(void *arg, const struct redis_place *place, const char *error);
    void *arg;
    struct redis_search *next;
    bool cancelled;
};

/* Sentinels are asked from now on, until it is closed. `moved` is called on the loop, and never
 * from inside a function of this header. */
struct redis_topology *redis_topology_create(uv_loop_t *loop, const struct redis_sentinels *options,
                                             void (*moved)(void *arg), void *arg);

void redis_topology_find(struct redis_topology *topology, struct redis_search *search);
/* found() comes soon, with an error. */
void redis_topology_cancel(struct redis_topology *topology, struct redis_search *search);

/* For a second this one is only found if there is no other: it was not reached, or is no primary.
 */
void redis_topology_distrust(struct redis_topology *topology, const struct redis_place *place);

/* Whether most sentinels name another than this. */
bool redis_topology_has_moved(const struct redis_topology *topology,
                              const struct redis_place *place);

/* For status and check, of the sentinel with this number. */
struct redis_word {
    struct redis_place sentinel;
    const struct redis_place *primary; /* NULL: it names none */
    const char *why;                   /* then: it does not answer, or does not know; else NULL */
    uint64_t since;                    /* likewise: by the loop's clock, uv_now() */
    bool is_deaf;                      /* it names another only when it is asked the next time */
};
size_t redis_topology_sentinels(const struct redis_topology *topology);
void redis_topology_word(const struct redis_topology *topology, size_t number,
                         struct redis_word *word);

/* It has answered all that it was asked last, or will not. */
bool redis_topology_has_heard(const struct redis_topology *topology, size_t number);

/* Searches end with an error; `closed` (may be NULL) is called when the memory has been freed. */
void redis_topology_close(struct redis_topology *topology, void (*closed)(void *arg), void *arg);

#endif
