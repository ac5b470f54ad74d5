/* What a worker decides by: configuration, generation, and which keyspaces may reject. A view is
 * never changed; when anything in it changes, the keeper sends every worker a new one. Its memory,
 * and what only it refers to, goes when the last holder has given it back. All references are
 * counted on the keeper's thread.
 */
#ifndef NESTGUARD_VIEW_H
#define NESTGUARD_VIEW_H

#include "base/mailbox.h"
#include "config/config.h"
#include "filters/bitmap/bitmap.h"
#include "filters/filter.h"
#include "guard/departing.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum keyspace_state { KEYSPACE_LOADING, KEYSPACE_GUARDING, KEYSPACE_PASSING };

/* "loading", "guarding", "passing": static. */
const char *keyspace_state_name(enum keyspace_state state);

/* Filters of keyspaces, by their numbers, all built from one snapshot. A keyspace that came later
 * has none here. */
struct generation {
    uint64_t number; /* from 1 */
    /* The newest generation, at most this one, such that what was being written when it was begun
     * is known here; see settled.h. Where a log is followed that tells the rest. */
    uint64_t settled;
    struct filter_seed seed;
    size_t count;            /* of numbers when it was built: who has a greater one came later */
    struct filter **filters; /* KEYSPACES_MAX; NULL: the keyspace has none here */
    /* KEYSPACES_MAX, for the keeper's thread alone: why nothing is rejected by the keyspace's
     * filter any more, though by the others'; NULL: it counts. */
    char **faults;
    /* KEYSPACES_MAX: what each keyspace publishes, of the rows that the build read and that its log
     * told of since; NULL: nothing, or there is no place for it, or whoever publishes it has taken
     * it. */
    struct bitmap **bitmaps;
    struct departing departing; /* of the filters that a log is followed for, all keyspaces' keys */
    struct shared_config *built_for; /* one reference; NULL: not said */
    uint64_t *shared;      /* of each keyspace: rows whose key another row has, in one entry */
    uint64_t rows;         /* of all keyspaces together */
    double build_seconds;  /* from connecting to the last row */
    double rested_seconds; /* of them; a hurried build takes none */
    time_t built_at;
    unsigned references;
    /* Until when (clock_ms()) the filters are known to be close enough behind the database to
     * reject; UINT64_MAX where no log is followed. Written by the keeper, looked at by workers
     * before each reject: so nothing is rejected on old knowledge though the keeper, or the whole
     * process, was held up. */
    _Atomic uint64_t lease;
};

/* With a fresh seed, no filters yet, and one reference. */
struct generation *generation_create(uint64_t number, size_t keyspaces);
void generation_release(struct generation *generation);       /* NULL is allowed */
size_t generation_bytes(const struct generation *generation); /* of the filters */

/* From the keeper's thread, which counts references: it was built for this configuration. */
void generation_built_for(struct generation *generation, struct shared_config *shared);

/* Whether the keyspace has a filter here that counts. On the keeper's thread. */
bool generation_covers(const struct generation *generation, size_t keyspace);

/* Whether any keyspace other than this one, or any at all, has one that counts. */
bool generation_covers_another(const struct generation *generation, size_t keyspace);
bool generation_covers_any(const struct generation *generation);

/* From here on it does not; the first reason stays. */
void generation_give_up(struct generation *generation, size_t keyspace, const char *why);

/* Gives up the keyspaces that the configuration has retired. Returns whether the generation is of
 * any use after that: false if it lost one and has no other. */
bool generation_retire(struct generation *generation, const struct config *config);

/* How many rows of the database the keyspace's filter stands for; 0 without one. */
uint64_t generation_rows(const struct generation *generation, size_t keyspace);

/* The keys of a keyspace that has no rows, from its source. Only the keeper's thread inserts. */
struct key_set {
    struct filter *filter;
    struct filter_seed seed;
    uint64_t listed;   /* keys of the list that it was made of; more may have been told since */
    const char *lacks; /* keys that were told, for this reason (static text): nothing is rejected by
                          it any more; NULL: none */
    uint64_t number;   /* in the order in which they came into force; 0: not yet */
    unsigned references;
};

extern const char key_set_full[]; /* a reason to lack some: there was no place */
struct key_set *key_set_create(struct filter *filter, struct filter_seed seed); /* one reference */
void key_set_release(struct key_set *set); /* NULL is allowed */

/* A configuration with its count of views. */
struct shared_config {
    struct config *config;
    unsigned references;
};

/* Takes the config; one reference. */
struct shared_config *shared_config_create(struct config *config);
void shared_config_release(struct shared_config *shared);

/* What a lookup asks. `filter` is NULL where there is none. */
struct asked_filter {
    const struct filter *filter;
    const struct filter_seed *seed;
};

/* Two words say until when (clock_ms()) may be rejected, both looked at before each reject: the
 * generation's, of what is known of rows, and one of the whole process, of whether there may be
 * another by now that was told what this one was not (keeper/succession.h). */
struct view {
    struct shared_config *shared;
    const struct config *config;   /* shared->config */
    struct generation *generation; /* NULL: none yet; then no keyspace is guarding */
    uint64_t newest;               /* number of the newest generation that was begun */
    bool building;                 /* it is being built: its snapshot may be older than a write */
    unsigned holders;              /* the workers that have it, and the keeper */
    const _Atomic uint64_t *lease; /* the generation's; without one it has ended */
    const _Atomic uint64_t *standing; /* the process's; UINT64_MAX: there is no other */
    struct key_set **sets;            /* of each keyspace with a source; NULL: none yet */
    struct asked_filter *asked;       /* of each keyspace: its set's, or the generation's */
    enum keyspace_state states[];     /* of each keyspace */
};

/* Whether the keyspace may reject at this moment. */
bool view_may_reject(const struct view *view, int keyspace);

/* The same for many decisions that are taken one after the other, with one look at the lease and,
 * if any of them asks, one at the clock. See view.c for why what they decide is right. */
struct permission {
    const struct view *view;
    uint64_t until; /* the lease and the standing at the beginning, which of them ends first */
    uint64_t now;   /* clock_ms(), once it was looked at; before that 0 */
};

/* At the beginning: before any filter is asked, and after what asks for them all has come. */
static inline struct permission permission_begin(const struct view *view)
{
    uint64_t lease = atomic_load_explicit(view->lease, memory_order_acquire);
    uint64_t standing = atomic_load_explicit(view->standing, memory_order_acquire);
    return (struct permission){.view = view, .until = lease < standing ? lease : standing};
}

uint64_t permission_look_at_clock(struct permission *permission);

/* clock_ms(), or somewhat earlier */
static inline uint64_t permission_time(struct permission *permission)
{
    return permission->now ? permission->now : permission_look_at_clock(permission);
}

/* A source's keys are as they are: no lease ends them, but the process's standing does. */
bool permission_holds_of_set(struct permission *permission, int keyspace);

static inline bool permission_holds(struct permission *permission, int keyspace)
{
    if (permission->view->states[keyspace] != KEYSPACE_GUARDING)
        return false;
    return permission->until == UINT64_MAX || permission_time(permission) < permission->until ||
           permission_holds_of_set(permission, keyspace);
}

/* Takes a reference of each; `states` has one for each keyspace. Its standing does not end, unless
 * another word is put in its place, which outlives the view, before anybody else has it. */
struct view *view_create(struct shared_config *shared, struct generation *generation,
                         const enum keyspace_state *states, unsigned holders);
/* Before anybody else has the view: the keyspace's keys are those of the set, a reference of which
 * is taken. */
void view_give_set(struct view *view, size_t keyspace, struct key_set *set);
void view_release(struct view *view); /* one holder less */

struct view_message {
    struct message message;
    struct view *view; /* goes with the new view, comes back with the replaced one */
};

#endif
