/* Notices DDL that changes values: with the database's answer to publication_values_sql(), again
 * and again, it is held against the answer before.
 *
 *   answer ─▶ as before? ─┬─ yes ─▶ nothing
 *                         └─ no ──▶ altered(keyspace) ─▶ ... SETTLE_MS ... ─▶ altered(keyspace)
 *
 * Whoever is told must drop what was loaded, also by queries that are on their way. A query that is
 * sent after an answer has come sees what the answer saw. But not always prints it: a commit is
 * visible a few instructions before other sessions are told to look labels and names of types up
 * anew. (Of tables they are told before its locks go, which a query waits for.) Between the two a
 * session may lose the processor; so altered() is called once more when that must be over.
 *
 * The answers are of the database, not of a generation: they are compared across lost streams and
 * builds. The first has nothing to be compared with.
 *
 * What the tables' names lead to is watched by the same means.
 */
#ifndef NESTGUARD_VALUES_H
#define NESTGUARD_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct values;

struct values_options {
    size_t keyspaces; /* numbers that there may be */
    void (*altered)(void *arg, int keyspace);
    void *arg;
};

enum { VALUES_SETTLE_MS = 1000 };

struct values *values_create(const struct values_options *options);
void values_destroy(struct values *values); /* NULL is allowed */

/* An answer; asked for after the one before had come. It may know of fewer keyspaces, or of more.
 * `now` is clock_ms(). */
void values_learn(struct values *values, const char *answer, uint64_t now);
bool values_are_known(const struct values *values); /* there was an answer */

/* Once in a while. */
void values_check_time(struct values *values, uint64_t now);

#endif
