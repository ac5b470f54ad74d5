/* How the database is followed (sync: replication): which generation serves, and which is to.
 *
 *   built ─▶ candidate ─ ready ─▶ serving ─ known ─▶ its generation's lease
 *               └─ fault ─▶ settled()     └─ fault ─▶ lost()
 *
 * While none serves the confirmer lets commits go that wait for the guard.
 *
 * Both the serving generation's sync and the candidate's tell of changed rows; whichever is ahead
 * purges first.
 */
#ifndef NESTGUARD_REPLICATION_H
#define NESTGUARD_REPLICATION_H

#include "follow/tracker.h"
#include "keeper/parts/confirming.h"
#include "keeper/parts/report.h"

/* What happens to the rest of the keeper. */
struct replication_events {
    /* A log is about to be followed, from the snapshot of what was built; `alone`: no other is. */
    void (*begins)(void *arg, struct built *built, bool alone);
    void (*begun)(void *arg);
    /* The generation takes over, with one reference for the callee; then settled() is called. */
    void (*in_force)(void *arg, struct generation *generation);
    /* The one that was serving must be replaced; nothing is rejected by it any more. */
    void (*lost)(void *arg, const char *why);
    /* The one that serves rejects nothing of this keyspace any more, and must be replaced. */
    void (*gave_up)(void *arg, int keyspace, const char *why);
    /* What became of a candidate: NULL, or why it is none. */
    void (*settled)(void *arg, const char *error);
    void (*wanted)(void *arg); /* another generation, beside the one that serves */
    void (*known)(void *arg);  /* more is known: states may be others */
    void (*missed)(void *arg); /* rows may have changed, of which no log will tell */
    void (*missed_of)(void *arg, int keyspace); /* the same of one keyspace's */
    /* Not while this process confirms itself: the log is followed up to here, UINT64_MAX: nothing
     * is rejected that another process might confirm. */
    void (*reached)(void *arg, uint64_t position);
    /* An answer; NULL: the database did not answer. Comes before the syncs learn of it. */
    void (*probed)(void *arg, const struct probe *probe);
};

struct replication_options {
    uv_loop_t *loop;
    const struct config *config; /* of the start; outlives it */
    struct checker *checker;
    struct fn_checks *fn_checks;
    struct change_sink changes;
    const struct replication_events *events;
    void *arg;
};

struct replication {
    struct replication_options options;
    const struct config *config;  /* in force */
    struct wal_probe *wal_probe;  /* NULL: no log is followed */
    struct tracker *serving;      /* of the generation in force; NULL when it was lost */
    struct tracker *candidate;    /* of the one that is to replace it */
    bool taking_over;             /* workers may still look keys up in the generation before */
    bool giving_up;               /* workers may still reject by a filter of it that was given up */
    bool ending;                  /* nothing takes over any more */
    struct confirming confirming; /* of commits that wait for the guard */
    bool missed;                  /* rows changed, for all we know, and no log told of it */
    struct pace {
        uint64_t time, position; /* clock_ms() and log position when last looked at */
        double bytes_per_second; /* of log, lately */
        bool renewing;           /* catching up was given up for a new generation */
    } pace;                      /* of the serving sync */
};

/* Does nothing without sync: replication, as all of the functions below. 0, or a negative errno
 * that the log has. */
int replication_open(struct replication *replication, const struct replication_options *options);
void replication_use_config(struct replication *replication, const struct config *config);

/* Its keyspaces were read again: those that are retired are given up, new ones asked for. After
 * replication_use_config(). */
void replication_use_keyspaces(struct replication *replication);

/* Follows what was built, as the candidate. */
void replication_follow(struct replication *replication, struct built *built);

/* The database is another server than what is followed: it is given up. */
void replication_leave(struct replication *replication, const char *why);

/* Every worker has the newest view. */
void replication_views_are_in(struct replication *replication);

/* Once in a while; `may_renew`: none is being built, or due, for what it wants. */
void replication_watch(struct replication *replication, uint64_t now, bool may_renew);

/* Whether there is room in the filters that are followed for as long as a build takes. */
bool replication_lasts(const struct replication *replication);

void replication_probe(struct replication *replication); /* asks at once */
struct pg_pool *
replication_pool(const struct replication *replication); /* of the probes; or NULL */

/* Whether what is filled now is told of by nobody when it changes, nor purged as a whole. */
bool replication_is_blind(const struct replication *replication);
bool replication_serves(const struct replication *replication, const struct generation *generation);

/* Between these two no position of this generation's log is confirmed to the server; false: it is
 * followed no more, and not held. */
bool replication_hold(struct replication *replication, uint64_t generation);
void replication_release(struct replication *replication, uint64_t generation);

/* Whether all is told that was committed by this time (clock_ms()), as far as there is a log. */
bool replication_has_followed(const struct replication *replication, uint64_t time);

/* What is told of it: of the serving generation's log; and whether commits that wait for the guard
 * return at once. */
struct stream_report replication_report(const struct replication *replication);
bool replication_lets_go(const struct replication *replication);

/* Another process confirms commits in the guard's name, from the start on; by reached() it hears
 * what is known here. From the second on it confirms only that, so that whoever is asked knows of
 * each commit that has returned; what it confirmed before must be known
 * (replication_has_followed()) before anything is rejected. From the third on this one confirms,
 * and the other does not any more. */
void replication_keep_silent(struct replication *replication);
void replication_share(struct replication *replication);
void replication_speak(struct replication *replication);

/* The other side of that: only what another process knows is confirmed from here on. */
void replication_limit(struct replication *replication, uint64_t position);

/* The guard is ending. What the logs have not told of by `since` none will: missed() is called. */
void replication_end(struct replication *replication);
void replication_close(struct replication *replication, uint64_t since, void (*closed)(void *arg),
                       void *arg);

#endif
