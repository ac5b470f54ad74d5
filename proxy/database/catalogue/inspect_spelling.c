/* The guard compares texts, the database values. Where a value has several spellings, an
 * application that writes another one than the server prints finds its rows by SQL, and is denied
 * all of them by a guard that enforces. The catalogue says of which types that cannot be true
 * (inspect.c); of all others it is said, in more words where they are known.
 */
#include "base/memory.h"
#include "database/catalogue/subject.h"
#include "database/keyspace_sql.h"
#include <stdlib.h>
#include <string.h>

/* How the values of types are printed. */
struct rule {
    const char *types[6]; /* pg_type.typname, or a word of inspect.c */
    const char *printed;
    /* Another spelling, which nearly every declared type of the kind takes: the server is asked how
     * it prints that. NULL: what it prints would be no different. */
    const char *other;
};

static const struct rule integers = {
    {"int2", "int4", "int8", "oid", "xid", "xid8"}, "without leading zeros, + and blanks", NULL};

static const struct rule rules[] = {
    {{"uuid"}, "in lower case, with hyphens", "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"},
    {{"numeric"},
     "with as many decimals as the type's scale says or, without one, as the row was written with",
     "01.50"},
    {{"float4", "float8"},
     "a floating-point number with as few digits as it takes (extra_float_digits)",
     "1.50"},
    {{"bool"}, "as t or f", "true"},
    {{"timestamp", "timestamptz"},
     "in ISO format, with a blank, in the guard's time zone",
     "2026-01-02T03:04"},
    {{"date"}, "in ISO format", "20260102"},
    {{"time", "timetz"}, "in ISO format", "3:04"},
    {{"interval"},
     "with the units that the row was written with, though 24 hours equal 1 day",
     "1 day 0 hours"},
    {{"bpchar"}, "with blanks up to its length; varchar or text has none", "a"},
    {{"char"}, "as one byte: what follows is cut off", "ab"},
    {{"name"}, "with 63 bytes at most: what follows is cut off", NULL},
    {{"bytea"}, "as \\x and lower-case digits", "\\xAB"},
    {{"bit", "varbit"}, "as binary digits", "x5"},
    {{"inet"}, "in lower case, shortened, without the mask of a single host", "10.0.0.1/32"},
    {{"cidr"}, "in lower case, shortened, with its mask", "10.0.0.0"},
    {{"macaddr", "macaddr8"}, "in lower case, with colons", "08-00-2B-01-02-03"},
    {{"money"}, "as lc_monetary has it", "1"},
    {{"pg_lsn"}, "in upper case, without leading zeros", "0/0ab"},
    {{"jsonb"}, "with blanks and an order of names of its own", "{\"a\":1}"},
    {{"array"}, "without blanks, with quotes only where they must be", "{ }"},
    {{"range"}, "in its type's canonical form, without blanks", NULL},
    {{"citext"}, "as it is stored, though it compares without regard to case", NULL},
    {{"collation"},
     "as it is stored, though its collation is not deterministic and takes different texts for "
     "equal",
     NULL},
};

static bool is_of(const struct rule *rule, const char *type)
{
    for (size_t i = 0; i < sizeof rule->types / sizeof *rule->types && rule->types[i]; i++)
        if (strcmp(rule->types[i], type) == 0)
            return true;
    return false;
}

static const struct rule *rule_of(const char *type)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_of(&rules[i], type))
            return &rules[i];
    return NULL;
}

/* ": 1.50, not 01.50", as the server prints it for the column's own type; "" where it refuses or
 * prints just that. */
static char *example(const struct subject *subject, int row, const char *other)
{
    char *text = NULL;
    struct pg_error error;
    char *sql = xasprintf("SELECT CAST($1 AS %s)", answer_text(subject->columns, row, COLUMN_TYPE));
    PGresult *result = other ? questions_ask(subject->questions, sql, 1, &other, &error) : NULL;
    if (result && strcmp(answer_text(result, 0, 0), other) != 0)
        text = xasprintf(": '%s', not '%s'", answer_text(result, 0, 0), other);
    PQclear(result);
    free(sql);
    return text ? text : xstrdup("");
}

/* No more than a note: hardly anybody writes 042, and who is warned of every id reads no warning.
 */
static void note_integer(const struct subject *subject, int row)
{
    subject_report(subject, PROBLEM_NOTE, NULL,
                   "key: column %s is a number: its key is written %s (42, not 042)",
                   answer_text(subject->columns, row, COLUMN_NAME), integers.printed);
}

static void warn(const struct subject *subject, int row, const struct rule *rule)
{
    char *instead = example(subject, row, rule ? rule->other : NULL);
    subject_report(
        subject, PROBLEM_WARNING, NULL,
        "key: column %s is of type %s, whose values %s several spellings. A row's key is "
        "the one that PostgreSQL prints%s%s%s. Applications that write another find the "
        "row by SQL and nothing here: see that they write this one, or take a text column",
        answer_text(subject->columns, row, COLUMN_NAME),
        answer_text(subject->columns, row, COLUMN_TYPE), rule ? "have" : "may have",
        rule ? ", " : "", rule ? rule->printed : "", instead);
    free(instead);
}

/* A query may give a column another collation than its type's, of which no catalogue tells: the
 * server says it of a row that is not there. */
static bool is_collated_loosely(const struct subject *subject, int row)
{
    struct pg_error error;
    char *rows = keyspace_sql_rows(subject->keyspace);
    const char *column = answer_text(subject->columns, row, COLUMN_QUOTED);
    char *sql = xasprintf("SELECT FROM pg_collation WHERE NOT collisdeterministic AND oid ="
                          " (SELECT to_regcollation(pg_collation_for(query.%s))"
                          "    FROM pg_type t LEFT JOIN %s ON false"
                          "   WHERE t.oid = pg_typeof(query.%s) AND t.typcollation <> 0)",
                          column, rows, column);
    PGresult *result = questions_ask(subject->questions, sql, 0, NULL, &error);
    bool loosely = result && PQntuples(result) > 0;
    PQclear(result);
    free(sql);
    free(rows);
    return loosely;
}

void inspect_spelling(const struct subject *subject, int row)
{
    const char *type = answer_text(subject->columns, row, COLUMN_SPELLING);
    if (subject->keyspace->query && strcmp(type, "one") == 0 && is_collated_loosely(subject, row))
        type = "collation";
    if (strcmp(type, "one") == 0)
        return;
    if (is_of(&integers, type))
        note_integer(subject, row);
    else
        warn(subject, row, rule_of(type));
}
