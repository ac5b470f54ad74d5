/* What values are made of beside their row: which tables an expression reads the server is asked,
 * as it is of a query (build/queried.h says why none is missing): it plans the expression, and is
 * asked which relations that has locked. A table that nobody follows would leave values old without
 * a word, so that it is refused here; and so is what cannot be followed at all.
 *
 * The row stands there as a row of NULLs under the table's name, so that the table itself is only
 * found where the expression reads other rows of it.
 */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/identifier.h"
#include "config/syntax/expression.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* For a lock that somebody has who alters one of the tables: he is mostly done soon. */
enum { TRIES = 100, PAUSE_NS = 20 * 1000 * 1000 };

enum read_cell {
    READ_NAME,   /* schema.name, quoted where SQL needs it */
    READ_KIND,   /* pg_class.relkind; 'n': it is in `depends`, and not read */
    READ_COVERED /* `depends` has it, or a table that it is a partition of */
};

/* $1: the tables in `depends`, as SQL names them. */
static const char list_read[] =
    "WITH listed AS (SELECT DISTINCT name, to_regclass(name)::oid AS oid"
    "                  FROM unnest($1::text[]) AS name),"
    " locked AS ("
    " SELECT DISTINCT relation AS oid FROM pg_locks"
    "  WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted AND relation >= 16384"
    "    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),"
    " read AS ("
    " SELECT l.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relkind,"
    "        l.oid IN (SELECT oid FROM listed) OR EXISTS (SELECT FROM "
    "pg_partition_ancestors(l.oid) a"
    "            JOIN listed p ON p.oid = a.relid) AS covered"
    "   FROM locked l JOIN pg_class c ON c.oid = l.oid JOIN pg_namespace n ON n.oid = "
    "c.relnamespace"
    "  WHERE c.relkind IN ('r', 'p', 'm', 'f')"
    "    AND NOT EXISTS (SELECT FROM pg_inherits i JOIN locked p ON p.oid = i.inhparent"
    "                     WHERE i.inhrelid = c.oid))"
    "SELECT name, relkind, covered FROM read"
    " UNION ALL SELECT format('%I.%I', n.nspname, c.relname), 'n', true FROM listed l"
    "  JOIN pg_class c ON c.oid = l.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE true"
    "  AND l.oid NOT IN (SELECT oid FROM locked) AND NOT EXISTS (SELECT FROM locked k,"
    "      pg_partition_ancestors(k.oid) a WHERE a.relid = l.oid)"
    " ORDER BY 1";

static bool execute(const struct subject *subject, const char *sql, struct pg_error *error)
{
    PGresult *result = questions_ask(subject->questions, sql, 0, NULL, error);
    bool done = result != NULL;
    PQclear(result);
    return done;
}

static char *name_of(const struct dependency *dependency)
{
    struct buffer out = {0};
    if (dependency->schema) {
        identifier_put(&out, dependency->schema);
        buffer_printf(&out, ".");
    }
    identifier_put(&out, dependency->name);
    return buffer_string(&out);
}

/* An array, as SQL writes it. */
static char *listed_tables(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    buffer_printf(&out, "{");
    for (size_t i = 0; i < keyspace->depends.count; i++) {
        char *name = name_of(&keyspace->depends.at[i]);
        buffer_printf(&out, "%s\"", i ? "," : "");
        for (const char *at = name; *at; at++)
            buffer_printf(&out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
        buffer_printf(&out, "\"");
        free(name);
    }
    buffer_printf(&out, "}");
    return buffer_string(&out);
}

/* ---- what is read ---- */

/*   EXPLAIN SELECT CASE ... END, CASE ... END FROM (SELECT (NULL::"public"."items").*) AS "items"
 *
 * With `plain` the table itself stands behind FROM: for an expression that calls a column by the
 * schema, too, or one of the system's, which such a row has not. */
static char *question(const struct keyspace *keyspace, bool plain)
{
    struct buffer out = {0};
    const char *const expressions[] = {keyspace->value_expression, keyspace->ttl_expression};
    char *rows = keyspace_sql_rows(keyspace), *name = identifier_quote(keyspace->table_name);
    buffer_printf(&out, "EXPLAIN SELECT 1");
    for (size_t i = 0; i < 2; i++) {
        char *term = expressions[i] ? keyspace_sql_expression(expressions[i]) : NULL;
        if (term)
            buffer_printf(&out, ", %s", term);
        free(term);
    }
    if (plain)
        buffer_printf(&out, " FROM %s", rows);
    else
        buffer_printf(&out, " FROM (SELECT (NULL::%s).*) AS %s", rows, name);
    free(rows);
    free(name);
    return buffer_string(&out);
}

/* In a transaction of its own, which it leaves. A lock that is not to be had at once is not waited
 * for: others are held by then. NULL: there is no answer. */
static PGresult *ask_once(const struct subject *subject, bool plain, struct pg_error *error)
{
    struct pg_error ending;
    PGresult *result = NULL;
    char *sql = question(subject->keyspace, plain), *listed = listed_tables(subject->keyspace);
    const char *values[] = {listed};
    if (execute(subject, "BEGIN READ ONLY", error)) {
        if (execute(subject, "SET LOCAL lock_timeout = '1ms'", error) &&
            execute(subject, sql, error))
            result = questions_ask(subject->questions, list_read, 1, values, error);
        execute(subject, "ROLLBACK", result ? error : &ending);
    }
    free(sql);
    free(listed);
    return result;
}

/* Nothing is held between two questions, so that nobody waits for this one who is waited for. */
static PGresult *ask_again(const struct subject *subject, bool plain, struct pg_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    PGresult *read = ask_once(subject, plain, error);
    for (unsigned i = 1; i < TRIES && !read && !questions_lost(subject->questions) &&
                         strcmp(error->sqlstate, "55P03") == 0;
         i++) {
        nanosleep(&pause, NULL);
        read = ask_once(subject, plain, error);
    }
    return read;
}

/* The first question that is accepted; then *plain says which. */
static PGresult *ask(const struct subject *subject, bool *plain, struct pg_error *error)
{
    *plain = false;
    PGresult *read = ask_again(subject, false, error);
    if (read || questions_lost(subject->questions) || questions_severity(error) == PROBLEM_WARNING)
        return read;
    *plain = true;
    return ask_again(subject, true, error);
}

/* ---- what is told of it ---- */

/* What `depends` has, and a table more. */
static char *mended(const struct keyspace *keyspace, const char *table)
{
    struct buffer out = {0};
    buffer_printf(&out, "depends: [");
    for (size_t i = 0; i < keyspace->depends.count; i++)
        buffer_printf(&out, "%s, ", keyspace->depends.at[i].text);
    buffer_printf(&out, "%s]", table);
    return buffer_string(&out);
}

static void refuse(const struct subject *subject, const char *name, const char *remark)
{
    char *remedy = mended(subject->keyspace, name);
    subject_report(subject, PROBLEM_ERROR, remedy,
                   "value reads table %s: a change there would leave cached values as they were; "
                   "name it in `depends`, and it is followed, too%s",
                   name, remark);
    free(remedy);
}

static void refuse_unfollowed(const struct subject *subject, const char *name, const char *kind)
{
    subject_report(subject, PROBLEM_ERROR, NULL,
                   "value reads %s, a %s: the database's log does not say when its rows change; "
                   "read the tables that hold them, or use sync: poll or none, where values are "
                   "as old as their ttl allows",
                   name, kind);
}

static void tell_unread(const struct subject *subject, const char *name)
{
    if (!subject->inspection->options->only_following && subject->keyspace->on_miss == MISS_LOAD)
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "depends: value does not read table %s, whose changes are followed for "
                       "nothing (unless a function that it calls does)",
                       name);
}

/* Whether the expressions may read any table at all. */
static bool may_read(const struct keyspace *keyspace)
{
    static const char *const words[] = {"select", "table"};
    struct expression_names names = {0};
    bool may = false;
    expression_names_add(&names, keyspace->value_expression);
    expression_names_add(&names, keyspace->ttl_expression);
    for (size_t i = 0; i < names.count; i++)
        for (size_t j = 0; j < sizeof words / sizeof *words; j++)
            may |= strcmp(names.at[i], words[j]) == 0;
    expression_names_finish(&names);
    return may;
}

/* Asked with `plain`, the table itself is read in any case: whether its other rows are, too, nobody
 * can tell. */
static void judge(const struct subject *subject, const PGresult *read, int row, bool plain)
{
    const char *name = answer_text(read, row, READ_NAME);
    char kind = answer_text(read, row, READ_KIND)[0];
    bool own = plain && strcmp(name, subject_table(subject)) == 0;
    if (kind == 'n')
        tell_unread(subject, name);
    else if (kind == 'm')
        refuse_unfollowed(subject, name, "materialized view");
    else if (kind == 'f')
        refuse_unfollowed(subject, name, "foreign table");
    else if (!answer_true(read, row, READ_COVERED) && (!own || may_read(subject->keyspace)))
        refuse(subject, name,
               own ? " (where it is only called by its schema: columns are called table.column)"
                   : "");
}

/* An expression that is not accepted at all is told of as such. */
void inspect_reads(const struct subject *subject)
{
    struct pg_error error;
    bool plain;
    const struct keyspace *keyspace = subject->keyspace;
    if (subject->config->sync != SYNC_REPLICATION ||
        (!keyspace->value_expression && !keyspace->ttl_expression && !keyspace->depends.count))
        return;
    PGresult *read = ask(subject, &plain, &error);
    for (int row = 0; row < PQntuples(read); row++)
        judge(subject, read, row, plain);
    if (!read) {
        inspection_note(subject->inspection, &error);
        if (!questions_lost(subject->questions))
            subject_report(subject, questions_severity(&error), NULL,
                           "value: which tables it reads could not be found out: %s", error.text);
    }
    PQclear(read);
}

/* ---- a table that is named in `depends` ---- */

/* Types whose equal values have the same text. Of the first two lines any may stand for any other.
 * $1: the table, $2: the keyspace's, as SQL names it; $3, $4: a column of each. */
static const char compare_types[] =
    "SELECT format_type(d.atttypid, d.atttypmod), format_type(k.atttypid, k.atttypmod),"
    "       CASE WHEN d.atttypid IN (20, 21, 23) THEN k.atttypid IN (20, 21, 23)"
    "            WHEN d.atttypid IN (25, 1043) THEN k.atttypid IN (25, 1043)"
    "             AND NOT EXISTS (SELECT FROM pg_collation c WHERE NOT c.collisdeterministic"
    "                              AND c.oid IN (d.attcollation, k.attcollation))"
    "            ELSE d.atttypid = k.atttypid AND d.atttypmod = k.atttypmod"
    "             AND (d.atttypid IN (16, 26, 1082, 1114, 1184, 2950) OR EXISTS"
    "                  (SELECT FROM pg_type t WHERE t.oid = d.atttypid AND t.typtype = 'e')) END"
    "  FROM pg_attribute d, pg_attribute k"
    " WHERE d.attrelid = $1::oid AND d.attname = $3"
    "   AND k.attrelid = to_regclass($2) AND k.attname = $4";

static void compare(const struct subject *subject, size_t pair)
{
    const struct dependency *dependency = subject->dependency;
    char *rows = keyspace_sql_rows(subject->about);
    const char *values[] = {rows, dependency->column[pair], dependency->key_column[pair]};
    PGresult *types = subject_ask(subject, "columns", compare_types, values, 3);
    if (types && PQntuples(types) == 1 && !answer_true(types, 0, 2))
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "depends: column %s of table %s is of type %s and column %s of the key of "
                       "type %s: equal ones may have different texts, and the key would not be "
                       "found by it; without `on` any change of the table counts",
                       dependency->column[pair], subject_table(subject), answer_text(types, 0, 0),
                       dependency->key_column[pair], answer_text(types, 0, 1));
    PQclear(types);
    free(rows);
}

bool inspect_dependency(const struct subject *subject)
{
    size_t errors = subject->inspection->options->problems->errors;
    if (!inspect_key(subject))
        return false;
    for (size_t i = 0; i < subject->dependency->columns; i++)
        compare(subject, i);
    return subject->inspection->options->problems->errors == errors;
}
