/* Keyspaces whose keys are those of files, looked at again and again and taken anew
 * when they change.
 *
 *   look, every second ─┬─ as it was taken, or refused ─▶ nothing
 *                       ├─ another, but not for long ───▶ wait until it settles
 *                       └─ another, and settled ─▶ read ─┬─ believed ─▶ taken()
 *                                                        └─ not ─▶ refused(); the one before stays
 *
 * Files are looked at and read on a thread of libuv's pool, one at a time.
 */
#ifndef NESTGUARD_SOURCES_H
#define NESTGUARD_SOURCES_H

#include "guard/view.h"
#include "sources/key_file.h"

#include <uv.h>

struct sources_options {
    uv_loop_t *loop;
    /* Bytes that the filter of the keyspace's keys may take; 0: no bound. */
    size_t (*room)(void *arg, size_t keyspace);
    /* New keys for the keyspace: the reference is the callee's. */
    void (*taken)(void *arg, size_t keyspace, struct key_set *set);
    /* What its file holds now is not believed. `why` lives until the call returns; NULL: it is what
     * was taken, as it was before it could not be looked at. */
    void (*refused)(void *arg, size_t keyspace, const char *why);
    void *arg;
};

struct source; /* one keyspace's */

struct sources {
    struct sources_options options;
    struct shared_config *config; /* in force; one reference */
    struct source **of;           /* by number; NULL: it has none, or was not looked at */
    size_t next;                  /* the keyspace that is looked at next */
    uint64_t wanted;              /* counts the wishes that they be read, the first being 1 */
    uint64_t all_wanted;          /* the last of them that was for all */
    uint64_t round;               /* clock_ms() when the first was */
    struct source_look *look;     /* under way, or NULL */
    atomic_bool stop;             /* seen by that */
    bool ended;
};

void sources_open(struct sources *sources, const struct sources_options *options);

/* Once in a while. `shared` is the one in force, and `sets` has each keyspace's keys, which decide
 * how many are too few. */
void sources_watch(struct sources *sources, struct shared_config *shared,
                   struct key_set *const *sets, uint64_t now);

/* Those that were refused are read again, as if they had changed; one that is being read just now,
 * too. Or all of them. */
void sources_retry(struct sources *sources);
void sources_renew(struct sources *sources);

/* Whether its file is another than was taken or refused, as far as is known, or is being read. */
bool sources_is_behind(const struct sources *sources, size_t keyspace);

/* Whether so many keys may take the place of those of `before` (NULL: there are none), by the
 * keyspace's settings: a part of a list is a list, too. Else `why` says which setting. */
bool source_has_enough(const struct keyspace *keyspace, uint64_t keys, const struct key_set *before,
                       char *why, size_t size);

void sources_end(struct sources *sources);    /* nothing is called any more */
void sources_finish(struct sources *sources); /* when the loop has ended */

#endif
