/* What `check` has learned of one keyspace's table so far; shared by the files that look at it.
 *
 *   check_database.c ──▶ check_table.c ──▶ check_columns.c ──▶ check_spelling.c
 *                                     ──▶ check_index.c, check_where.c
 */
#ifndef NESTGUARD_CHECK_SUBJECT_H
#define NESTGUARD_CHECK_SUBJECT_H

#include "base/problem.h"
#include "check/check_questions.h"
#include "config/config.h"

struct subject {
    struct questions *questions;
    const struct config *config;
    const struct keyspace *keyspace;
    struct problems *problems;
    const char *role;  /* quoted: ready for GRANT ... TO */
    char *place;       /* "keyspace items (nestguard.yaml:12)" */
    PGresult *table;   /* one row, columns as in enum table_cell; NULL: not found */
    PGresult *columns; /* a row for each column, as in enum column_cell; NULL: not known */
};

enum table_cell {
    TABLE_OID,
    TABLE_NAME,   /* schema.name, quoted where SQL needs it */
    TABLE_SCHEMA, /* the same of the schema alone */
    TABLE_KIND,   /* pg_class.relkind */
    TABLE_TEMPORARY,
    TABLE_HAS_CHILDREN, /* by inheritance */
    TABLE_SCHEMA_USAGE,
    TABLE_SELECT,
    TABLE_DELETE,
    TABLE_HIDES_ROWS /* row-level security applies to the role */
};

enum column_cell {
    COLUMN_NAME,
    COLUMN_QUOTED,
    COLUMN_TYPE,     /* as declared */
    COLUMN_SPELLING, /* how its values are spelled: see check_spelling.c */
    COLUMN_NOT_NULL,
    COLUMN_READABLE,
    COLUMN_HAS_EQUALITY
};

/* The table's quoted name. */
const char *subject_table(const struct subject *subject);

/* Row of `columns`, or -1. */
int subject_column(const struct subject *subject, const char *name);

/* Asks about the table: the parameters are its oid and then `more`. A refusal becomes a problem
 * that says what `topic` could not be read. NULL when there is no answer. */
PGresult *subject_ask(const struct subject *subject, const char *topic, const char *sql,
                      const char *const *more, size_t more_count);

/* Columns that the keyspace's key and value name exist, and have types that a key can be made of.
 */
void check_columns(const struct subject *subject);

/* What a key column's type, which is that of this row of `columns`, means for keys: they are texts,
 * and only the text that the server prints is a row's. */
void check_spelling(const struct subject *subject, int row);

/* Whether every key column exists. */
bool check_key_is_known(const struct subject *subject);

/* The role may use the schema, read what the guard reads and, for ?row=delete, delete. Returns
 * false when the table cannot be read at all, so that statements need not be tried. */
bool check_permissions(const struct subject *subject);

/* Some unique index makes a key mean one row at most. */
void check_unique_index(const struct subject *subject);

/* The server accepts `where`. False: it does not, which has been reported. */
bool check_where(const struct subject *subject);

/* The server accepts the statement that loads a row. */
void check_load(const struct subject *subject);

/* Whether two conditions on the table are the same to the server; false when it accepts one only.
 * One that it refuses is the same as itself alone. */
bool check_same_condition(const struct subject *subject, const char *a, const char *b);

#endif
