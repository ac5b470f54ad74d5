/* Whether the filter tells the truth: keys that it calls absent and that may have a row are looked
 * into, and a connection of its own reads samples.
 *
 *   shadow mode's samples ─┐
 *                          ├▶ fn_checks ─▶ rows ─▶ cleared, or a false reject
 *   self-checks ─▶ checker ┘
 *
 * The self-checks belong to those who vouch for a generation (replication.h, standings.h); here is
 * what all of them share, and the account of it.
 */
#ifndef NESTGUARD_CHECKING_H
#define NESTGUARD_CHECKING_H

#include "base/log/log_pace.h"
#include "cache/spellings.h"
#include "follow/checks/checker.h"
#include "follow/checks/fn_checks.h"
#include "keeper/changes/changes.h"
#include "keeper/parts/report.h"

struct checking_options {
    uv_loop_t *loop;
    const struct config *config; /* of the start */
    const struct rows *rows;     /* with this and the next, fn_checks.h */
    const struct commit_visibility *visibility;
    struct spellings *spellings;    /* is told of keys in another spelling */
    struct load_counters *counters; /* by keyspaces' numbers */
};

struct checking {
    struct checking_options options;
    struct fn_checks *fn_checks;
    struct checker *checker;
    struct log_pace false_rejects; /* the log's lines about them */
};

/* 0, or a negative errno that the log has; then the process must end. */
int checking_open(struct checking *checking, const struct checking_options *options);

/* In force from now on. Its keyspaces were read again, too: there may be more of them. */
void checking_use_config(struct checking *checking, const struct config *config);
void checking_use_keyspaces(struct checking *checking, const struct config *config);

/* This generation lacks the key, which would have been rejected by it but for shadow mode. As many
 * as may be under way are looked into, and counted. */
void checking_sample(struct checking *checking, struct generation *generation, struct key key);

/* As a subscriber of changes.h, whose `arg` is the checking. */
void checking_hear(void *arg, const struct key_change *change);

/* Adds the last self-check, and what it found of each keyspace that the report has by now. */
void checking_report(const struct checking *checking, struct report *report);

/* When nobody checks any more. Then, called once, `closed`: nothing is in flight. */
void checking_close(struct checking *checking, void (*closed)(void *arg), void *arg);
void checking_finish(struct checking *checking); /* behind that; zeroed memory, too */

#endif
