/* What has been learned of one keyspace's table so far; shared by the files of the inspector. */
#ifndef NESTGUARD_SUBJECT_H
#define NESTGUARD_SUBJECT_H

#include "database/catalogue/inspector.h"

struct inspection {
    const struct inspector_options *options;
    struct publication_plan *plan;
    struct pg_error *error;   /* of the first question without an answer */
    int status;               /* of that */
    bool failed;              /* one about the publication had none: no more are asked about it */
    PGresult *publication;    /* one row; NULL: not known */
    struct subject *subjects; /* of each keyspace that is not retired, and of each table that its
                                 values depend on */
    bool is_whole;            /* all of them are sound; after that only those that are are left */
    size_t subject_count;
};

struct subject {
    struct inspection *inspection;
    struct questions *questions;
    const struct config *config;
    const struct keyspace *about;    /* that findings are about */
    const struct keyspace *keyspace; /* the same; of a table that its values depend on one that has
                                        nothing but that table and its columns for a key */
    const struct dependency *dependency; /* NULL: it is the keyspace's own table */
    char *place;                         /* "keyspace items (nestguard.yaml:12)" */
    PGresult *table;   /* one row, columns as in enum table_cell; NULL: not found */
    PGresult *columns; /* a row for each column, as in enum column_cell; NULL: not known */
    bool is_sound;   /* table, key and condition make sense: the publication's part can be asked */
    PGresult *entry; /* one row, columns as in enum entry_cell; NULL: not known */
};

enum table_cell {
    TABLE_OID,
    TABLE_NAME,   /* schema.name, quoted where SQL needs it */
    TABLE_SCHEMA, /* the same of the schema alone */
    TABLE_ROLE,   /* who asks, quoted: ready for GRANT ... TO */
    TABLE_KIND,   /* pg_class.relkind; 'q': a query, which is none */
    TABLE_TEMPORARY,
    TABLE_HAS_CHILDREN, /* by inheritance */
    TABLE_OWNED,        /* the role may do what its owner may */
    TABLE_SCHEMA_USAGE,
    TABLE_SELECT,
    TABLE_DELETE,
    TABLE_HIDES_ROWS /* row-level security applies to the role */
};

enum column_cell {
    COLUMN_NAME,
    COLUMN_QUOTED,
    COLUMN_TYPE,     /* as declared */
    COLUMN_SPELLING, /* how its values are spelled: see inspect_spelling.c */
    COLUMN_NOT_NULL,
    COLUMN_GENERATED, /* computed from others */
    COLUMN_READABLE,
    COLUMN_HAS_EQUALITY,
    COLUMN_LOOKED_UP /* see printed_types.h; NULL: its text is the value's alone */
};

enum entry_cell {
    ENTRY_ANCESTORS, /* oids of the tables that it is a partition of: ",1,2," */
    ENTRY_TOLD_AS,   /* one of these that is published; NULL: none */
    ENTRY_PUBLISHED, /* it has an entry of its own in the publication */
    ENTRY_FILTER,    /* the entry's row filter; NULL: none */
    ENTRY_UNLISTED   /* key columns that the entry's column list lacks, quoted; NULL: none */
};

/* The table's quoted name. */
const char *subject_table(const struct subject *subject);
const char *subject_role(const struct subject *subject);

/* Of the table. */
bool subject_is(const struct subject *subject, enum table_cell cell);

/* A view, a materialized one or a query: what a key means in it no constraint says. */
bool subject_is_view(const struct subject *subject);

/* Row of `columns`, or -1. */
int subject_column(const struct subject *subject, const char *name);

/* Adds a finding about the keyspace; remedy may be NULL. */
void subject_report(const struct subject *subject, enum problem_level level, const char *remedy,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The key's columns as parameters, behind `first` of them that the caller sets. */
enum { SUBJECT_VALUES_MAX = 3 + KEY_COLUMNS_MAX };
void subject_key_values(const struct subject *subject, const char *values[SUBJECT_VALUES_MAX],
                        size_t first);

/* Notes that a question had no answer; *error of the first one is kept. */
void inspection_note(struct inspection *inspection, const struct pg_error *error);

/* Asks about the table: the parameters are its oid and then `more`. A refusal becomes a finding
 * that says what `topic` could not be read. NULL when there is no answer. */
PGresult *subject_ask(const struct subject *subject, const char *topic, const char *sql,
                      const char *const *more, size_t more_count);

/* The columns that a keyspace's query gives: arrays of their names, types (oids) and modifiers, as
 * SQL writes them, for the caller to free. False: it is not accepted, which has been reported. */
enum { QUERY_ARRAYS = 3 };
bool inspect_query(const struct subject *subject, char *arrays[QUERY_ARRAYS]);

/* Every column that the key names exists. False: one does not, which has been reported. */
bool inspect_key(const struct subject *subject);

/* Those that exist have types that a key can be made of, and the value's exists. */
void inspect_columns(const struct subject *subject);

/* The stream tells the key's values. */
void inspect_generated(const struct subject *subject);

/* What a key column's type, which is that of this row of `columns`, means for keys: they are texts,
 * and only the text that the server prints is a row's. */
void inspect_spelling(const struct subject *subject, int row);

/* The role sees all rows. */
void inspect_row_security(const struct subject *subject);

/* The role may use the schema, read what the guard reads and, for ?row=delete, delete. Returns
 * false when the table cannot be read at all, so that statements need not be tried. */
bool inspect_permissions(const struct subject *subject);

/* Some unique index makes a key mean one row at most. */
void inspect_unique_index(const struct subject *subject);

/* Of what has no index that says so: each key that its rows have now has one row. */
void inspect_unique_rows(const struct subject *subject);

/* Of a keyspace's own table: every other one that its values read is in `depends`. */
void inspect_reads(const struct subject *subject);

/* Of one in `depends`: its columns of `on`, if any, tell keys. False: they do not, which has been
 * reported. */
bool inspect_dependency(const struct subject *subject);

/* How findings about the columns call what needs them: "key" or "depends". */
const char *subject_setting(const struct subject *subject);

/* The server accepts `where`. False: it does not, which has been reported. */
bool inspect_where(const struct subject *subject);

/* The server accepts the statement that loads a row, and the expressions in it. False: it does not,
 * which has been reported. */
bool inspect_load(const struct subject *subject);

/* What the expressions make of a row, and what that costs: they are tried on one. */
void inspect_expressions(const struct subject *subject);

/* Publication and tables together, all of which are in order by themselves. */
void inspect_publication(struct inspection *inspection);

/* Table, partitions and children: each must be logged under the table's name, and its log must name
 * the key and the condition's columns of a row that goes. */
void inspect_identity(const struct subject *subject);

/* A question about the publication, without whose answer all of it is given up: NULL, from then on
 * at once. So is it by inspection_fails(), after a question of another kind. */
PGresult *inspection_insist(struct inspection *inspection, const char *sql, int count,
                            const char *const *values);
void inspection_fails(struct inspection *inspection, const struct pg_error *error);

/* UNKNOWN: it could not be tried, and *error says why. */
enum condition_answer { CONDITION_NO, CONDITION_YES, CONDITION_UNKNOWN };

/* Whether two conditions on the keyspace's table mean the same to the server; NULL: all rows. One
 * that it does not plan, or may not, is the same as its own text alone. A COLLATE counts as it is
 * written: a column's own, said or not, makes two. */
enum condition_answer condition_is_same(const struct subject *subject, const char *a, const char *b,
                                        struct pg_error *error);

/* Whether the keyspace's condition needs no more of a row than these columns (quoted, separated by
 * commas). */
enum condition_answer condition_is_within(const struct subject *subject, const char *columns,
                                          struct pg_error *error);

#endif
