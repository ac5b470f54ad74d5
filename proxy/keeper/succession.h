/* One guard after another of the same file, without a gap (see handover/handover.h for how they
 * meet).
 *
 *   successor                                     predecessor
 *   WAITING  ◀────────────── entries ──────────── SERVING
 *      │ builds, until it guards
 *      └──────────────── ready ─────────────────▶ lets nobody in any more, confirms only what the
 *      ┌──────────────── yours ◀───────────────── successor knows, too, and says so
 *   knows what was confirmed by now
 *      ▼
 *   BESIDE   ◀─── entries, positions, both ways ─▶ YIELDED: its clients finish, or leave
 *      ▼                                             ▼
 *   SERVING  ◀─────── the channel's end ─────────── ends
 *
 * Both guard while they stand beside each other, and no row is denied by either: each rejects by a
 * generation of its own, which follows the log; a commit that waits for the guard returns when both
 * know of it, for the predecessor confirms only what the successor has reached; and a hint that is
 * given to one is answered when the other has it.
 *
 * One that stands still hears of nothing, and rejects before it hears again that it was given up:
 * in the first moment its workers run, and its keeper may not. So the predecessor may reject only
 * for a while, which is counted from the last word of its own that the successor answered, and is
 * read by workers (guard/view.h); and the successor goes on without it only when that is over:
 *
 *   predecessor        alive, at t ──▶ ◀── as I heard, at r     rejects until t + LEASE, r >= t
 *   successor          waits for it until r + LEASE, whatever it owes
 *
 * What is pushed is sent to the successor alone: the predecessor rejects nothing by what was pushed
 * to it before it gives way. One of an older program answers nothing: then the predecessor rejects
 * for no longer than that.
 *
 * A predecessor that ends without a word, or is told to end before the successor guards, leaves the
 * sockets to it as they are. A successor that ends before is no matter. One that does not answer
 * for a second, or has given way and is not heard of for three, is not waited for any more, once
 * a predecessor cannot reject: then
 * the one that lets clients in is the guard. One that has given way and loses its successor
 * confirms no write and no admission any more that the successor did not acknowledge: they are
 * errors.
 */
#ifndef NESTGUARD_SUCCESSION_H
#define NESTGUARD_SUCCESSION_H

#include "handover/channel.h"
#include "keeper/changes/entries.h"
#include "keeper/naming.h"
#include "keeper/taking.h"
#include <sys/types.h>

struct succession_options {
    uv_loop_t *loop;
    const char *file;   /* of the configuration; outlives it */
    int predecessor;    /* the channel to it, taken over; -1: there is none */
    bool is_last;       /* nobody may follow */
    const int *sockets; /* that a successor gets; stay open until it is told yours; copied */
    unsigned socket_count;
    struct entries *entries;
    /* The successor: whether it guards; tells of what it knows from here on; whether it knows all
     * that was committed by this time (clock_ms()), or rejects nothing. */
    bool (*is_ready)(void *arg);
    void (*share)(void *arg);
    bool (*knows)(void *arg, uint64_t time);
    /* The list of this keyspace lacks keys that the predecessor was told. */
    void (*lacks)(void *arg, struct span keyspace);
    void (*let_in)(void *arg); /* clients, from here on */
    /* Whether this is the cache here; and the predecessor has another, or none that it knows to
     * lack no deletion: told before anybody is let in, and once. */
    bool (*has_cache)(void *arg, struct span cache);
    void (*doubt_cache)(void *arg);
    /* There is no predecessor any more; and it has deleted from this cache all that it had to. */
    void (*stand_alone)(void *arg, bool has_purged);
    void (*meet)(void *arg); /* the predecessor: there is a successor, who is told of the cache */
    /* The predecessor: nothing is confirmed behind this position; nobody is let in any more; and
     * there is no successor any more, or it does not answer. */
    void (*limit)(void *arg, uint64_t position);
    void (*yield)(void *arg);
    void (*leave)(void *arg); /* so does a successor that is given up before it took over */
    /* Whether nothing is rejected here by what only a successor will be told of from here on. Asked
     * again until it is so; `stay` when it need not be. */
    bool (*give_way)(void *arg);
    void (*stay)(void *arg);
    void (*stand)(void *arg, uint64_t until); /* nothing is rejected after this (clock_ms()) */
    void *arg;
};

struct succession {
    struct succession_options options;
    enum succession_phase {
        SUCCESSION_NONE, /* zeroed: no part in any */
        SUCCESSION_WAITING,
        SUCCESSION_BESIDE,
        SUCCESSION_SERVING,
        SUCCESSION_YIELDED
    } phase;
    struct channel *channel; /* to the other one, or NULL */
    pid_t other;             /* its process */
    bool told_ready;         /* the successor has */
    bool is_warned;          /* the successor, of the cache */
    bool has_purged;         /* the predecessor, it says, from the cache here */
    bool is_ready;           /* the successor, it says */
    bool dismissed;          /* the successor is told nothing any more, and does not take over */
    size_t unread_max;       /* bytes; it is when it leaves more of them */
    bool stands;             /* the predecessor that has given way may reject meanwhile */
    uint64_t yours;          /* the successor was told so, or by the other's end: clock_ms(); 0:
                                not yet */
    uint64_t answered;       /* the predecessor's last word that it is alive: clock_ms() */
    uint64_t told;           /* the successor that this one is alive: clock_ms() */
    uint64_t heard;          /* the last of a predecessor that says it is; 0: nothing is expected */
    uint64_t looked;         /* whether something was */
    uint64_t position;       /* of the log, up to which the successor knows it */
    struct taking taking;    /* the other's entries */
    int *sockets;
    struct naming naming; /* by which it is asked for them */
};

/* Takes part from here on: with a predecessor as its successor, and else as one that may be
 * followed. The options are copied. */
void succession_open(struct succession *succession, const struct succession_options *options);

/* Once in a while, and when more is known: goes on if what was waited for is there. */
void succession_go_on(struct succession *succession);

/* Nobody is let in here yet. */
bool succession_waits(const struct succession *succession);

/* The predecessor's clients have left: it ends, and looks after nothing else any more. */
void succession_fall_silent(struct succession *succession);

/* Which cache clients are led to. From within meet() and yield(), "": none that is known to lack no
 * deletion. At the end `is_purged`, what was to be deleted from it is: else whoever follows deletes
 * all again, as does who has another cache. */
void succession_tell_cache(struct succession *succession, const char *cache, bool is_purged);

/* From within yield(): what a keyspace's file lists is not all that was told. */
void succession_tell_lacking(struct succession *succession, const char *keyspace);

/* What the successor knows: see replication.h's reached(). */
void succession_reached(struct succession *succession, uint64_t position);

/* The process is ending: whoever waits to follow it need not wait. */
void succession_end(struct succession *succession);

/* Ends it; the sockets' numbers are forgotten. */
void succession_close(struct succession *succession);

#endif
