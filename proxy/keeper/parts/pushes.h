/* Keyspaces whose keys are sent to the guard: each list of them, taken as a whole or not at all.
 *
 *   begin ─▶ take, take, … ─▶ end ─▶ lines to a filter ─┬─ enough of them ─▶ taken()
 *              │                                        └─ else ─▶ refused(); those before stay
 *              └─▶ break: the sender is gone ─▶ refused()
 *
 * What is sent goes to a temporary file, so that a list takes no memory but its filter's. The file
 * is written and read on a thread of libuv's pool.
 */
#ifndef NESTGUARD_PUSHES_H
#define NESTGUARD_PUSHES_H

#include "guard/key.h"
#include "keeper/parts/publishing.h"

#include <stdatomic.h>
#include <uv.h>

struct pushes_options {
    uv_loop_t *loop;
    struct publishing *publishing; /* configuration and keys in force */
    /* New keys for the keyspace: the reference is the callee's. */
    void (*taken)(void *arg, size_t keyspace, struct key_set *set);
    /* A list of its came to nothing. `why` lives until the call returns. */
    void (*refused)(void *arg, size_t keyspace, const char *why);
    void *arg;
};

struct push; /* one list */

struct pushes {
    struct pushes_options options;
    struct push *first; /* those that may still be taken: one a keyspace at most */
    atomic_bool stop;   /* seen by the threads */
};

void pushes_open(struct pushes *pushes, const struct pushes_options *options);

/* A list for this keyspace, whose source must be pushes. 0, or -EALREADY: another one is being
 * sent; -ESHUTDOWN; or another negative errno: there is no file for it. */
int pushes_begin(struct pushes *pushes, size_t keyspace, struct push **out);

/* A key was written or admitted: it is known by the list that is being sent, too. Of one that is
 * held nobody tells when there are many hints (guard_write_needs()). */
void pushes_know(struct pushes *pushes, struct key key);

/* More of the list, cut anywhere. False: no more may come until ready() was called, which is not
 * before this has returned. */
bool push_take(struct push *push, struct span bytes, void (*ready)(void *arg), void *arg);

/* PUSH_WRONG: it is no list of this keyspace's keys; PUSH_TOO_FEW: it may be a part of one, or the
 * keyspace is gone; PUSH_TOO_LARGE: max_filter_memory; PUSH_FAILED: no place for its file, and the
 * like. */
enum push_outcome { PUSH_TAKEN, PUSH_WRONG, PUSH_TOO_FEW, PUSH_TOO_LARGE, PUSH_FAILED };

struct push_result {
    enum push_outcome outcome;
    const char *why;      /* but when it was taken */
    uint64_t lines, keys; /* keys: those that differ */
    uint64_t generation;  /* counts the lists and files that were taken, of all keyspaces */
};

/* That was all of it. `done` is called later, once, when every worker has the keys that were taken,
 * also when the guard is ending; then the push is gone. push_break() in its place: it was not all,
 * and nothing is called any more. */
void push_end(struct push *push, void (*done)(void *arg, const struct push_result *result),
              void *arg);
void push_break(struct push *push);

void pushes_end(struct pushes *pushes); /* nothing is taken or refused any more */

#endif
