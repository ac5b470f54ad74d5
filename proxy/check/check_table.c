/* Finds a keyspace's table and decides how far it can be looked at: a table that is not there, or
 * is none, has nothing further to ask about. */
#include "check/check_table.h"

#include "base/memory.h"
#include "check/check_subject.h"
#include "config/similar.h"
#include <stdlib.h>
#include <string.h>

/* Columns: enum table_cell. */
static const char find_table[] =
    "SELECT c.oid, format('%I.%I', n.nspname, c.relname), quote_ident(n.nspname), c.relkind,"
    "       c.relpersistence = 't',"
    "       c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid),"
    "       has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),"
    "       has_table_privilege(c.oid, 'DELETE'),"
    "       row_security_active(c.oid)  FROM pg_class c JOIN pg_namespace n ON n.oid = "
    "c.relnamespace"
    " WHERE c.relname = $2"
    "   AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $1 END";

/* Every table that could have been meant. */
static const char list_tables[] =
    "SELECT format('%I.%I', n.nspname, c.relname), c.relname,"
    "       c.relname = $2 OR lower(format('%s.%s', n.nspname, c.relname)) = lower($1 || '.' || $2)"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'"
    "   AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
    " ORDER BY 3 DESC NULLS LAST, 1 LIMIT 10000";

/* Columns: enum column_cell. A type has equality when it, or a type it is silently taken for, has
 * a default class of operators for a btree or hash index.
 *
 * A value has one spelling only where the type's input function takes every text as it is (also an
 * extension's type may use that of text), and its equality is that of the bytes: that is what the
 * support function 4 of a btree class, "equalimage", promises, and with it a deterministic
 * collation. The labels of an enum are such texts, too. */
static const char list_columns[] =
    "WITH RECURSIVE base AS ("
    "    SELECT attnum, atttypid AS type, attnotnull AS not_null FROM pg_attribute"
    "     WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped"
    "    UNION ALL SELECT b.attnum, t.typbasetype, b.not_null OR t.typnotnull"
    "      FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd')"
    "SELECT a.attname, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),"
    "       CASE WHEN NOT coalesce(l.collisdeterministic, true) THEN 'collation'"
    "            WHEN t.typtype = 'e' OR i.prosrc IN ('textin', 'varcharin') AND NOT EXISTS ("
    "               SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod"
    "                WHERE m.amname = 'btree' AND o.opcdefault AND o.opcintype = t.oid"
    "                  AND NOT EXISTS (SELECT FROM pg_amproc p WHERE p.amprocfamily = o.opcfamily"
    "                       AND p.amproclefttype = t.oid AND p.amprocrighttype = t.oid"
    "                       AND p.amprocnum = 4)) THEN 'one'"
    "            WHEN t.typcategory = 'A' THEN 'array'"
    "            WHEN t.typtype IN ('r', 'm') THEN 'range'"
    "            WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.typname = 'citext'"
    "            THEN t.typname ELSE 'unknown' END,"
    "       b.not_null, has_column_privilege(a.attrelid, a.attnum, 'SELECT'),"
    "       t.typcategory IN ('A', 'E', 'R') OR EXISTS ("
    "           SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod"
    "            WHERE o.opcdefault AND m.amname IN ('btree', 'hash')"
    "              AND (o.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast k"
    "                   WHERE k.castsource = t.oid AND k.casttarget = o.opcintype"
    "                     AND k.castmethod = 'b' AND k.castcontext = 'i')))"
    "  FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'"
    "  JOIN pg_attribute a ON a.attrelid = $1::oid AND a.attnum = b.attnum"
    "  JOIN pg_proc i ON i.oid = t.typinput"
    "  LEFT JOIN pg_collation l ON l.oid = a.attcollation"
    " ORDER BY a.attnum";

const char *subject_table(const struct subject *subject)
{
    return answer_text(subject->table, 0, TABLE_NAME);
}

PGresult *subject_ask(const struct subject *subject, const char *topic, const char *sql,
                      const char *const *more, size_t more_count)
{
    const char *values[1 + KEY_COLUMNS_MAX] = {answer_text(subject->table, 0, TABLE_OID)};
    struct pg_error error;
    for (size_t i = 0; i < more_count; i++)
        values[1 + i] = more[i];
    PGresult *result =
        questions_ask(subject->questions, sql, (int)(1 + more_count), values, &error);
    if (!result && !questions_lost(subject->questions))
        problems_add(subject->problems, questions_severity(&error), subject->place, NULL,
                     "the %s of table %s could not be read: %s", topic, subject_table(subject),
                     error.text);
    return result;
}

/* Appends ", name" to a list of at most `room` bytes; drops what finds no place. */
static void list_name(char *list, size_t room, const char *name)
{
    size_t used = strlen(list);
    if (used + strlen(name) + 3 > room)
        return;
    snprintf(list + used, room - used, "%s%s", used ? ", " : "", name);
}

/* Tables of that name in other schemas come first in `tables`; then those whose name is near. */
static void report_missing(const struct subject *subject, const PGresult *tables)
{
    const struct keyspace *keyspace = subject->keyspace;
    const char *first = NULL;
    char similar[400] = "";
    for (int row = 0; row < PQntuples(tables); row++) {
        if (!answer_true(tables, row, 2) &&
            !name_is_similar(answer_text(tables, row, 1), keyspace->table_name))
            continue;
        first = first ? first : answer_text(tables, row, 0);
        list_name(similar, sizeof similar, answer_text(tables, row, 0));
    }
    char *remedy = first ? xasprintf("table: %s", first) : NULL;
    problems_add(subject->problems, PROBLEM_ERROR, subject->place, remedy,
                 "table %s does not exist%s%s%s", keyspace->table_text,
                 keyspace->table_schema ? "" : " in any schema of the search path",
                 first ? "; there is " : "", similar);
    free(remedy);
}

/* Both statements about tables take the schema, or NULL, and the name. */
static PGresult *find(const struct subject *subject, const char *sql)
{
    const char *values[] = {subject->keyspace->table_schema, subject->keyspace->table_name};
    struct pg_error error;
    PGresult *result = questions_ask(subject->questions, sql, 2, values, &error);
    if (!result && !questions_lost(subject->questions))
        problems_add(subject->problems, questions_severity(&error), subject->place, NULL,
                     "table %s could not be looked up: %s", subject->keyspace->table_text,
                     error.text);
    return result;
}

/* True when subject->table holds it. */
static bool find_its_table(struct subject *subject)
{
    PGresult *table = find(subject, find_table);
    if (!table || PQntuples(table) > 0) {
        subject->table = table;
        return table != NULL;
    }
    PQclear(table);
    PGresult *tables = find(subject, list_tables);
    if (tables)
        report_missing(subject, tables);
    PQclear(tables);
    return false;
}

/* Why a relation of this kind cannot be guarded; NULL for one that can. */
static const char *kind_refusal(char kind)
{
    switch (kind) {
    case 'r':
    case 'p':
        return NULL;
    case 'v':
        return "is a view: it has no unique index, and the database's log does not say when its "
               "rows change; name the table that holds the rows, and use `where` for a part of it";
    case 'm':
        return "is a materialized view: the database's log does not say when its rows change; "
               "name the table that holds the rows";
    case 'f':
        return "is a foreign table: its rows change elsewhere, unseen by this database; let "
               "`database` name the one that holds them";
    default:
        return "is not a table but an index, a sequence or a type; name an ordinary or a "
               "partitioned table";
    }
}

/* Only what has rows of its own, which the log tells of, can be guarded. */
static bool check_kind(const struct subject *subject)
{
    const char *refusal = kind_refusal(answer_text(subject->table, 0, TABLE_KIND)[0]);
    if (!refusal && answer_true(subject->table, 0, TABLE_TEMPORARY))
        refusal = "is a temporary table: no other session sees its rows; name a permanent one";
    if (refusal)
        problems_add(subject->problems, PROBLEM_ERROR, subject->place, NULL, "%s %s",
                     subject_table(subject), refusal);
    return !refusal;
}

/* Following them is impossible, which the publication's survey says. */
static void check_children(const struct subject *subject)
{
    if (subject->config->sync != SYNC_REPLICATION &&
        answer_true(subject->table, 0, TABLE_HAS_CHILDREN))
        problems_add(subject->problems, PROBLEM_WARNING, subject->place, NULL,
                     "table %s has tables that inherit from it: no index makes a key unique over "
                     "all of them, and a key of two rows is answered with either of them",
                     subject_table(subject));
}

/* The statement that loads a row is tried last, and only if nothing is wrong: it would fail for
 * the same reason once more, in words that help less. */
static void check_found_table(const struct subject *subject)
{
    size_t errors = subject->problems->errors;
    check_children(subject);
    bool readable = check_permissions(subject);
    check_columns(subject);
    if (check_key_is_known(subject))
        check_unique_index(subject);
    if (readable && check_where(subject) && subject->problems->errors == errors)
        check_load(subject);
}

void check_table(struct questions *questions, const struct config *config,
                 const struct keyspace *keyspace, const char *role, struct problems *problems)
{
    struct subject subject = {questions, config, keyspace, problems, role, NULL, NULL, NULL};
    subject.place = xasprintf("keyspace %s (%s:%d)", keyspace->name, config->file, keyspace->line);
    if (find_its_table(&subject) && check_kind(&subject)) {
        subject.columns = subject_ask(&subject, "columns", list_columns, NULL, 0);
        if (subject.columns)
            check_found_table(&subject);
    }
    PQclear(subject.columns);
    PQclear(subject.table);
    free(subject.place);
}
