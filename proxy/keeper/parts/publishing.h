/* What workers and loads decide by. It is never changed but replaced:
 *
 *   configuration, generation, states ─▶ a new view ─▶ every worker ─▶ the replaced one comes back
 *
 * The message brings a worker's reference back, so that all counting happens on this thread.
 */
#ifndef NESTGUARD_PUBLISHING_H
#define NESTGUARD_PUBLISHING_H

#include "guard/messages.h"
#include "guard/view.h"
#include "keeper/changes/outlet.h"
#include "keeper/parts/report.h"

/* Why nothing may be rejected though there is a generation, the first that is given. */
enum obstacle {
    OBSTACLE_UNFOLLOWED, /* nobody vouches for the generation any more */
    OBSTACLES
};

/* State of a keyspace with its history. */
struct keyspace_status {
    enum keyspace_state state;
    const char *reason;
    uint64_t since; /* clock_ms() */
};

struct publishing_options {
    struct config *config; /* taken over */
    const struct outlet *outlet;
    /* From here on the keeper decides by this view, like a worker; the one before is still there.
     */
    void (*adopted)(void *arg, const struct view *view);
    void *arg;
};

struct publishing {
    struct publishing_options options;
    struct shared_config *first;       /* of the start */
    struct shared_config *shared;      /* in force */
    struct generation *generation;     /* in force; NULL until the first is complete */
    struct view *view;                 /* the newest published */
    struct keyspace_status *keyspaces; /* by their numbers */
    struct key_set **sets;             /* likewise, of those with a source; NULL: none yet */
    uint64_t sets_given;               /* so far */
    _Atomic size_t sets_bytes; /* of their filters, as of the newest view; builds look at it */
    char **lacks; /* likewise: why no generation could be built with it; NULL: one could */
    char obstacles[OBSTACLES][256]; /* "": it is none */
    uint64_t newest;                /* number of the newest generation that was begun */
    bool building;                  /* it is being built */
    bool gives_way;                 /* a successor is sent the keys that were pushed here */
    _Atomic uint64_t standing;      /* see view.h */
    unsigned views_out;      /* views that have not replaced the one before them everywhere */
    struct generation *told; /* that every worker decides by, as is told; NULL: none yet */
    uint64_t *sets_told;     /* by keyspaces' numbers: of the sets, likewise; 0: none */
    struct publishing_wait *waits, **last_wait; /* in the order in which they came */
};

/* Somebody who says that something is in force, once every worker decides by it. */
struct publishing_wait {
    struct publishing_wait *next;
    void (*done)(struct publishing_wait *wait);
};

/* With a first view, by which nothing is rejected. */
void publishing_init(struct publishing *publishing, const struct publishing_options *options);
void publishing_finish(struct publishing *publishing); /* zeroed memory, too */

/* What the next view says. */
void publishing_configure(struct publishing *publishing, struct shared_config *config); /* taken */
void publishing_obstruct(struct publishing *publishing, enum obstacle obstacle, const char *why);
void publishing_clear(struct publishing *publishing, enum obstacle obstacle);
/* Of a keyspace with a source: its keys from the next view on, whose reference is taken over; and
 * why it has none, or not the newest, until others are given or that is over (NULL). */
void publishing_give_set(struct publishing *publishing, size_t keyspace, struct key_set *set);
void publishing_refuse_set(struct publishing *publishing, size_t keyspace, const char *why);
/* Bytes that the filter of another set for it may take beside all that others have in force; 0:
 * there is no bound. A generation that is being built is not known yet. */
size_t publishing_room(const struct publishing *publishing, size_t keyspace);
/* Until a generation has it. */
void publishing_lacks(struct publishing *publishing, size_t keyspace, const char *why);
void publishing_builds(struct publishing *publishing, uint64_t newest, bool building);

/* Until this time (clock_ms()) anything may be rejected, by the views that there are, too. */
void publishing_stand(struct publishing *publishing, uint64_t until);
/* Whether a successor is sent what was pushed here so far. If so, nothing is rejected by that from
 * the next view on. */
void publishing_give_way(struct publishing *publishing, bool gives_way);

/* Makes a fresh generation (NULL: keeps the present one) the one in force, works out every
 * keyspace's state, and sends the workers a new view. Takes the generation's reference. */
void publishing_now(struct publishing *publishing, struct generation *fresh);

/* A keyspace's state is not what it should be: a new view is wanted. */
bool publishing_is_due(const struct publishing *publishing);

/* A worker has taken up a view. True: every worker has the newest. */
bool publishing_take_back(struct publishing *publishing, struct view_message *message);
bool publishing_is_everywhere(const struct publishing *publishing);

/* Calls done() when every worker has what has been published so far: within the call, or later. It
 * may be the end of `wait`. Workers take their views also when they are to end. */
void publishing_await(struct publishing *publishing, struct publishing_wait *wait);

bool publishing_guards(const struct publishing *publishing); /* every keyspace */
/* Whether the keyspace is guarded as well as the generation in force can, be it behind just now. */
bool publishing_covers(const struct publishing *publishing, size_t keyspace);
/* Why a keyspace that there is has no filter that counts, though the generation in force vouches
 * for others; NULL: none is left out so. */
const char *publishing_left_out(const struct publishing *publishing);
/* At least one keyspace guards, and so do all but those that have been left out for so long; those
 * whose keys nobody has pushed yet do not count. */
bool publishing_guards_what_it_can(const struct publishing *publishing, uint64_t ms);
bool publishing_guards_any(const struct publishing *publishing); /* at least one keyspace */
/* Configuration, generation in force, and the keyspaces that are configured, which are allocated.
 */
void publishing_report(const struct publishing *publishing, struct report *report);

const struct config *publishing_config(const struct publishing *publishing);       /* in force */
const struct config *publishing_first_config(const struct publishing *publishing); /* the start's */

#endif
