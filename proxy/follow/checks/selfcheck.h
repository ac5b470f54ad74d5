/* The self-check: a sample of each keyspace's rows, read through an ordinary connection, must all
 * be possible to the filter. One that is not, and that fn_checks.h confirms, means that the
 * generation is wrong.
 *
 *   pages of the table ─┬─ enough rows of the keyspace ─▶ every key possible? ─┬─ yes ─▶ passed
 *                       └─ few or none ─▶ rows by its condition ─▶┘            └─ no ─▶ a check
 *                                                                 cleared ─▶ passed ◀─┤
 *                                                                  failed ◀─ confirmed┘
 *
 * What was not seen is not passed: each keyspace's account says how many rows there were.
 *
 * Where no log is followed a row may be missing because it is newer than the generation. The
 * row's xmin, the transaction that wrote this version of it, decides:
 *
 *   xmin before the snapshot's xmin ─▶ it was over when the snapshot was taken, and so was every
 *                                      transaction that it was a part of; the version, which is
 *                                      there now, was seen by the snapshot: the key must be known
 *   any other                       ─▶ proves nothing: it was inserted or updated since, or a
 *                                      transaction from before the snapshot was still running
 *
 * Nor is such a row seen when the filter knows its key, be it by chance: a table that was reloaded
 * behind the generation has many others. Only where no row proves anything, and the filter knows
 * most of them, were they updated, and it was built of what they had been.
 *
 * Not the snapshot's list of running ones: it names no parts of transactions (savepoints), whose
 * ids stand in rows. Ids 1 and 2 are older than all; 0 is no id, but what rows of another server
 * bear. Ids are compared modulo 2^32 (snapshot.h). A frozen row may bear one that was given out
 * more than 2^31 ago, and then looks new: it proves nothing. A generation that is itself so old may
 * take a new row for an old one: it is then built anew without need, once in 2^31 transactions. Nor
 * does xmin prove anything where the condition may change its mind about a row that stays as it
 * was: there no row gives it.
 */
#ifndef NESTGUARD_SELFCHECK_H
#define NESTGUARD_SELFCHECK_H

#include "database/snapshot.h"
#include "follow/checks/fn_checks.h"
#include "postgres/pg_pool.h"

struct selfcheck;

/* Of a keyspace; and of all, whose outcome is the last in this order. */
enum selfcheck_outcome {
    SELFCHECK_NONE,      /* not done yet */
    SELFCHECK_EMPTY,     /* asked by the condition itself, the database has no row */
    SELFCHECK_PASSED,    /* rows were seen, and all of them are possible or were checked in vain */
    SELFCHECK_UNPROVEN,  /* rows were seen that prove nothing, and most of them are missing */
    SELFCHECK_NO_ROW,    /* no row was seen, though there may be some: the database did not say */
    SELFCHECK_UNDECIDED, /* the database or `fn_checks` could not take all questions */
    SELFCHECK_FAILED     /* the database has a row that the filter has not */
};

/* Nothing speaks against the generation, and nothing is left to ask. */
static inline bool selfcheck_is_good(enum selfcheck_outcome outcome)
{
    return outcome != SELFCHECK_NONE && outcome <= SELFCHECK_PASSED;
}

struct selfcheck_account {
    enum selfcheck_outcome outcome;
    uint64_t rows; /* different keys that were looked up in the filter, but for those whose rows
                      prove nothing */
};

struct selfcheck_result {
    enum selfcheck_outcome outcome;
    const char *why;                           /* names the keyspace; "" when it is good */
    size_t keyspace;                           /* whose that outcome is */
    size_t count;                              /* of numbers */
    const struct selfcheck_account *keyspaces; /* by their numbers */
    bool timed_out; /* with more time the database may have answered more of it */
};

struct selfcheck_options {
    struct pg_pool *pool; /* its statement keyspace * SELFCHECK_QUESTIONS + question is that of
                             selfcheck_sql() */
    const struct config *config; /* the generation's; outlives the check */
    struct fn_checks *fn_checks;
    struct generation *generation;   /* holds a reference */
    const struct snapshot *snapshot; /* that it was read under; NULL: it follows the log. Outlives
                                        the check */
    /* Called once, never before selfcheck_begin() has returned. The result lives until the call
     * returns. */
    void (*done)(void *arg, const struct selfcheck_result *result);
    void *arg;
};

/* What is asked of the database for a keyspace; no parameters.
 *
 * SAMPLE and SEEK give some hundred key rows: the columns of the template in its order, then the
 * row's xmin, or NULL where that proves nothing. Only rows that the keyspace has (`where`, no NULL
 * in the key). SAMPLE draws from all over the table and from its beginning; it reads a bounded
 * number of pages, however large the table is and however few of its rows are wanted. SEEK finds
 * rows if there are any, however few, from a random page on; how long that takes is for indexes and
 * a time limit to say. PLAIN is for a role that may read some columns only: it does without those
 * that the system has, among them xmin, and its rows prove nothing; first as SAMPLE, then as SEEK,
 * from the beginning. ROWS is for views, which have neither pages nor such columns: some of the
 * first rows that there are, which prove nothing either. */
enum selfcheck_question {
    SELFCHECK_SAMPLE,
    SELFCHECK_SEEK,
    SELFCHECK_PLAIN,
    SELFCHECK_ROWS,
    SELFCHECK_QUESTIONS
};

/* A new string. */
char *selfcheck_sql(const struct keyspace *keyspace, enum selfcheck_question question);

/* Begins; the memory goes by itself after done(). The generation covers a keyspace at least. */
struct selfcheck *selfcheck_begin(const struct selfcheck_options *options);

/* Nobody wants to hear of it any more: done() is not called. Before `fn_checks` is destroyed, and
 * not from within done(). NULL is allowed. */
void selfcheck_cancel(struct selfcheck *check);

#endif
