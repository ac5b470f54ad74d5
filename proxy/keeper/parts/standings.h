/* Which generation is in force where no log is followed (sync: poll and none), in the place of
 * replication.h:
 *
 *   built ─▶ candidate ─ its self-check passes ─▶ in_force() ─ a later one fails ─▶ lost()
 *                └─ it fails ─▶ settled()
 */
#ifndef NESTGUARD_STANDINGS_H
#define NESTGUARD_STANDINGS_H

#include "database/settled.h"
#include "follow/checks/standing.h"

struct standings_options {
    const struct config *config; /* in force */
    struct checker *checker;
    struct fn_checks *fn_checks;
    /* As in replication.h. */
    void (*in_force)(void *arg, struct generation *generation);
    void (*lost)(void *arg, const char *why);
    void (*gave_up)(void *arg, int keyspace, const char *why);
    void (*settled)(void *arg, const char *error);
    void *arg;
};

struct standings {
    struct standings_options options;
    struct settled settled; /* the snapshots of those that were built */
    struct standing *serving, *candidate;
    bool ended;
};

/* The options are copied; what they point to outlives it, but for the configuration. */
void standings_open(struct standings *standings, const struct standings_options *options);

/* What was built is the candidate; generation and snapshot are taken out of it. */
void standings_take(struct standings *standings, struct built *built);

/* In force from now on. The one before lives until this has returned. */
void standings_use_config(struct standings *standings, const struct config *config);

/* Its keyspaces were read again: those that are retired are given up. */
void standings_use_keyspaces(struct standings *standings);

/* Once in a while. */
void standings_watch(struct standings *standings);

/* The database is another server than what they were built from: they are given up. */
void standings_leave(struct standings *standings, const char *why);

void standings_end(struct standings *standings);   /* the guard is ending: nothing is called */
void standings_close(struct standings *standings); /* before the checker is closed */

#endif
