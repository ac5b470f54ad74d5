/* How far publication and tables are from telling the stream of every row of every keyspace; shared
 * by publication_ensure(), which adds what is missing, and by `check`, which tells a person.
 *
 *   publication_survey.c ──▶ publication_identity.c    what the log says of a row that goes
 *                        └─▶ publication_filter.c      conditions, as the server understands them
 */
#ifndef NESTGUARD_PUBLICATION_SURVEY_H
#define NESTGUARD_PUBLICATION_SURVEY_H

#include "base/problem.h"
#include "config/config.h"
#include "postgres/pg_error.h"

/* Runs one statement with text parameters. NULL with *error when it was refused or is lost. */
struct publication_asker {
    PGresult *(*ask)(void *arg, const char *sql, int count, const char *const *values,
                     struct pg_error *error);
    void *arg;
};

struct publication_survey {
    char *missing; /* SQL that creates the publication or adds the tables that it lacks, once there
                      are no problems; NULL: nothing is missing */
    bool exists;
    bool allowed;  /* the role may run it */
    bool filtered; /* it holds a row filter */
    char *unfit;   /* a table that cannot be guarded at all (`check` looks at tables by itself), and
                      why; NULL: none. Nothing else was looked at. */
};

/* Adds everything that a person must mend to `problems`. 0, or -EPROTO with *error when a question
 * had no answer. */
int publication_survey(struct publication_survey *out, const struct publication_asker *asker,
                       const struct config *config, struct problems *problems,
                       struct pg_error *error);
void publication_survey_finish(struct publication_survey *survey);

/* From here on: for the files of the survey alone. */

struct surveyor {
    const struct publication_asker *asker;
    const struct config *config;
    struct problems *problems;
    struct pg_error *error;
    struct publication_survey *out;
    PGresult *publication; /* one row, columns as in enum publication_cell */
    PGresult **tables;     /* of each keyspace: one row, columns as in enum guarded_cell */
    bool failed;           /* a question had no answer; no more are asked */
};

enum guarded_cell {
    GUARDED_OID,
    GUARDED_NAME, /* schema.name, quoted where SQL needs it */
    GUARDED_KIND, /* pg_class.relkind */
    GUARDED_TEMPORARY,
    GUARDED_OWNED, /* the role may do what its owner may */
    GUARDED_HIDES_ROWS,
    GUARDED_MISSING_COLUMNS, /* key columns that are not there; this and the lists below: quoted */
    GUARDED_GENERATED,       /* key columns that are computed from others */
    GUARDED_ANCESTORS,       /* oids of the tables that it is a partition of: ",1,2," */
    GUARDED_TOLD_AS,         /* one of these that is published; NULL: none */
    GUARDED_PUBLISHED,       /* it has an entry of its own in the publication */
    GUARDED_FILTER,          /* the entry's row filter; NULL: none */
    GUARDED_UNLISTED         /* key columns that the entry's column list lacks */
};

const char *surveyor_text(const struct surveyor *surveyor, size_t keyspace, enum guarded_cell cell);
bool surveyor_true(const struct surveyor *surveyor, size_t keyspace, enum guarded_cell cell);

/* NULL when there is no answer, which ends the survey. */
PGresult *surveyor_ask(struct surveyor *surveyor, const char *sql, int count,
                       const char *const *values);

/* Adds an error about a keyspace; remedy may be NULL. */
void surveyor_report(struct surveyor *surveyor, size_t keyspace, const char *remedy,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The key's columns as parameters, behind `first` of them that the caller sets. */
enum { SURVEY_VALUES_MAX = 3 + KEY_COLUMNS_MAX };
void surveyor_key_values(const char *values[SURVEY_VALUES_MAX], size_t first,
                         const struct keyspace *keyspace);

/* Table, partitions and children: each must be logged under the table's name, and its log must name
 * the key and the condition's columns of a row that goes. */
void survey_identity(struct surveyor *surveyor, size_t keyspace);

/* Whether two conditions on the keyspace's table mean the same to the server; NULL: all rows. */
bool survey_same_filter(struct surveyor *surveyor, size_t keyspace, const char *a, const char *b);

/* Whether the keyspace's condition needs no more of a row than these columns (quoted, separated by
 * commas). */
bool survey_filter_within(struct surveyor *surveyor, size_t keyspace, const char *columns);

#endif
