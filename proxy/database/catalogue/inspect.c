/* Finds the keyspaces' tables and decides how far each can be looked at: a table that is not there,
 * or is none, has nothing further to ask about. What the publication needs of tables is asked of
 * those that are there and can be read. */
#include "database/catalogue/inspector.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "config/syntax/similar.h"
#include "database/catalogue/subject.h"
#include "database/printed_types.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Columns: enum table_cell. */
static const char find_table[] =
    "SELECT c.oid, format('%I.%I', n.nspname, c.relname), quote_ident(n.nspname),"
    "       quote_ident(current_user), c.relkind, c.relpersistence = 't',"
    "       c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid),"
    "       pg_has_role(c.relowner, 'USAGE'),"
    "       has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),"
    "       has_table_privilege(c.oid, 'DELETE'),"
    "       row_security_active(c.oid)"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relname = $2"
    "   AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $1 END";

/* The same of a query, as if it were a view that everybody may read: what it reads the server
 * allows or not, and says so. */
static const char find_query[] =
    "SELECT 0, '\"query\"', '', quote_ident(current_user), 'q', false, false, false, true, true,"
    "       true, false WHERE $1::text IS NULL AND $2::text IS NULL";

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
 * collation. The labels of an enum are such texts, too.
 *
 * $2..$4: names, types and modifiers of a query's columns, whose collations are their types'; of a
 * table NULL. */
static const char list_columns[] =
    "WITH RECURSIVE a AS ("
    "    SELECT attnum::int, attname, atttypid, atttypmod, attnotnull, attgenerated, attcollation,"
    "           has_column_privilege(attrelid, attnum, 'SELECT') AS readable FROM pg_attribute"
    "     WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped"
    "    UNION ALL SELECT place::int, name, t.oid, mod, false, '', t.typcollation, true"
    "      FROM unnest($2::name[], $3::oid[], $4::int[]) WITH ORDINALITY AS n (name, type, mod, "
    "place)"
    "      JOIN pg_type t ON t.oid = n.type),"
    " base AS ("
    "    SELECT attnum, atttypid AS type, attnotnull AS not_null FROM a"
    "    UNION ALL SELECT b.attnum, t.typbasetype, b.not_null OR t.typnotnull"
    "      FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'),"
    " printed (number, type) AS (SELECT attnum, atttypid FROM a" TYPES_PRINTED_BELOW ")"
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
    "            WHEN t.typtype = 'c' THEN 'composite'"
    "            WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.typname = 'citext'"
    "            THEN t.typname ELSE 'unknown' END,"
    "       b.not_null, a.attgenerated <> '', a.readable,"
    "       t.typcategory IN ('A', 'E', 'R') OR EXISTS ("
    "           SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod"
    "            WHERE o.opcdefault AND m.amname IN ('btree', 'hash')"
    "              AND (o.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast k"
    "                   WHERE k.castsource = t.oid AND k.casttarget = o.opcintype"
    "                     AND k.castmethod = 'b' AND k.castcontext = 'i'))),"
    "       (" TYPES_LOOKED_UP " AND p.number = a.attnum)"
    "  FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'"
    "  JOIN a ON a.attnum = b.attnum"
    "  JOIN pg_proc i ON i.oid = t.typinput"
    "  LEFT JOIN pg_collation l ON l.oid = a.attcollation"
    " ORDER BY a.attnum";

/* ---- what the files of the inspector share ---- */

const char *subject_table(const struct subject *subject)
{
    return answer_text(subject->table, 0, TABLE_NAME);
}

const char *subject_role(const struct subject *subject)
{
    return answer_text(subject->table, 0, TABLE_ROLE);
}

const char *subject_setting(const struct subject *subject)
{
    return subject->dependency ? "depends" : "key";
}

bool subject_is(const struct subject *subject, enum table_cell cell)
{
    return answer_true(subject->table, 0, (int)cell);
}

bool subject_is_view(const struct subject *subject)
{
    return strchr("vmq", answer_text(subject->table, 0, TABLE_KIND)[0]) != NULL;
}

int subject_column(const struct subject *subject, const char *name)
{
    for (int row = 0; row < PQntuples(subject->columns); row++)
        if (strcmp(answer_text(subject->columns, row, COLUMN_NAME), name) == 0)
            return row;
    return -1;
}

void subject_key_values(const struct subject *subject, const char *values[SUBJECT_VALUES_MAX],
                        size_t first)
{
    const struct key_template *key = &subject->keyspace->key;
    for (size_t i = 0; i < KEY_COLUMNS_MAX; i++)
        values[first + i] = i < key->columns ? key->column[i] : NULL;
}

void subject_report(const struct subject *subject, enum problem_level level, const char *remedy,
                    const char *format, ...)
{
    va_list list;
    va_start(list, format);
    struct problems *problems = subject->inspection->options->problems;
    problems_add_list(problems, level, subject->place, remedy, format, list);
    problems->at[problems->count - 1].about = subject->about;
    va_end(list);
}

void inspection_note(struct inspection *inspection, const struct pg_error *error)
{
    if (inspection->status)
        return;
    inspection->status = inspection->options->questions->status;
    *inspection->error = *error;
}

/* A question without which the subject cannot be looked at. */
static PGresult *ask(const struct subject *subject, const char *sql, int count,
                     const char *const *values, struct pg_error *error)
{
    PGresult *result = questions_ask(subject->questions, sql, count, values, error);
    if (!result)
        inspection_note(subject->inspection, error);
    return result;
}

PGresult *subject_ask(const struct subject *subject, const char *topic, const char *sql,
                      const char *const *more, size_t more_count)
{
    const char *values[1 + KEY_COLUMNS_MAX] = {answer_text(subject->table, 0, TABLE_OID)};
    struct pg_error error;
    for (size_t i = 0; i < more_count; i++)
        values[1 + i] = more[i];
    PGresult *result = ask(subject, sql, (int)(1 + more_count), values, &error);
    if (!result && !questions_lost(subject->questions))
        subject_report(subject, questions_severity(&error), NULL,
                       "the %s of table %s could not be read: %s", topic, subject_table(subject),
                       error.text);
    return result;
}

/* ---- the table ---- */

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
    char *remedy =
        first ? xasprintf("%s: %s", subject->dependency ? "depends" : "table", first) : NULL;
    subject_report(subject, PROBLEM_ERROR, remedy, "table %s does not exist%s%s%s",
                   keyspace->table_text,
                   keyspace->table_schema ? "" : " in any schema of the search path",
                   first ? "; there is " : "", similar);
    free(remedy);
}

/* Both statements about tables take the schema, or NULL, and the name. NULL: there is no answer,
 * which has been reported unless the session was lost. */
static PGresult *find(const struct subject *subject, const char *sql)
{
    const char *values[] = {subject->keyspace->table_schema, subject->keyspace->table_name};
    struct pg_error error;
    PGresult *result = ask(subject, sql, 2, values, &error);
    if (!result && !questions_lost(subject->questions))
        subject_report(
            subject, questions_severity(&error), NULL, "table %s could not be looked up: %s",
            subject->keyspace->query ? "query" : subject->keyspace->table_text, error.text);
    return result;
}

/* True when subject->table holds it. */
static bool find_its_table(struct subject *subject)
{
    PGresult *table = find(subject, subject->keyspace->query ? find_query : find_table);
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
static const char *kind_refusal(char kind, bool follows)
{
    switch (kind) {
    case 'r':
    case 'p':
        return NULL;
    case 'v':
        return !follows ? NULL
                        : "is a view: the database's log does not say when its rows change; name "
                          "the table that holds the rows, and use `where` for a part of it, or use "
                          "sync: poll or none";
    case 'm':
        return !follows ? NULL
                        : "is a materialized view: the database's log does not say when its rows "
                          "change; name the table that holds the rows, or use sync: poll or none";
    case 'f':
        return "is a foreign table: its rows change elsewhere, unseen by this database; let "
               "`database` name the one that holds them";
    default:
        return "is not a table but an index, a sequence or a type; name an ordinary or a "
               "partitioned table";
    }
}

/* With a log to follow only what has rows of its own, which it tells of, can be guarded. */
static bool check_kind(const struct subject *subject)
{
    if (subject->keyspace->query)
        return true;
    const char *refusal = kind_refusal(answer_text(subject->table, 0, TABLE_KIND)[0],
                                       subject->config->sync == SYNC_REPLICATION);
    if (refusal && subject->dependency && subject_is_view(subject))
        refusal =
            "is a view: the database's log does not say when its rows change; name the tables "
            "that it is made of";
    if (!refusal && subject_is(subject, TABLE_TEMPORARY))
        refusal = "is a temporary table: no other session sees its rows; name a permanent one";
    if (refusal)
        subject_report(subject, PROBLEM_ERROR, NULL, "%s %s", subject_table(subject), refusal);
    return !refusal;
}

/* Following them is impossible, which the publication's survey says. */
static void check_children(const struct subject *subject)
{
    if (subject->config->sync != SYNC_REPLICATION && subject_is(subject, TABLE_HAS_CHILDREN))
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "table %s has tables that inherit from it: no index makes a key unique over "
                       "all of them, and a key of two rows is answered with either of them",
                       subject_table(subject));
}

/* What matters to whoever serves the table's rows, beside whether they can be followed. The
 * statement that loads a row is tried last, and only if nothing is wrong: it would fail for the
 * same reason once more, in words that help less. False: the condition makes no sense. */
static bool inspect_service(const struct subject *subject, bool key_is_known, size_t errors)
{
    const struct problems *problems = subject->inspection->options->problems;
    bool readable = inspect_permissions(subject);
    check_children(subject);
    inspect_columns(subject);
    if (key_is_known && !subject_is_view(subject))
        inspect_unique_index(subject);
    size_t before = problems->errors;
    if (readable && inspect_where(subject) && problems->errors == errors && inspect_load(subject)) {
        inspect_expressions(subject);
        if (subject_is_view(subject))
            inspect_unique_rows(subject);
    }
    return problems->errors == before;
}

static PGresult *ask_columns(const struct subject *subject)
{
    char *arrays[QUERY_ARRAYS] = {NULL};
    if (subject->keyspace->query && !inspect_query(subject, arrays))
        return NULL;
    PGresult *columns =
        subject_ask(subject, "columns", list_columns, (const char *const *)arrays, QUERY_ARRAYS);
    for (size_t i = 0; i < QUERY_ARRAYS; i++)
        free(arrays[i]);
    return columns;
}

/* From the general to the particular: what cannot be read is not asked about any further. */
static void inspect_table(struct subject *subject)
{
    size_t errors = subject->inspection->options->problems->errors;
    if (!find_its_table(subject) || !check_kind(subject))
        return;
    subject->columns = ask_columns(subject);
    if (!subject->columns)
        return;
    inspect_row_security(subject);
    if (subject->dependency) {
        subject->is_sound = inspect_dependency(subject);
        return;
    }
    bool key_is_known = inspect_key(subject);
    bool condition_may_be = subject->inspection->options->only_following ||
                            inspect_service(subject, key_is_known, errors);
    subject->is_sound = key_is_known && condition_may_be;
    errors = subject->inspection->options->problems->errors;
    if (subject->is_sound)
        inspect_reads(subject);
    subject->is_sound &= errors == subject->inspection->options->problems->errors;
}

/* ---- all of them ---- */

static struct subject *add_subject(struct inspection *inspection, const struct keyspace *about)
{
    const struct config *config = inspection->options->config;
    struct subject *subject = &inspection->subjects[inspection->subject_count++];
    *subject = (struct subject){
        .inspection = inspection,
        .questions = inspection->options->questions,
        .config = config,
        .about = about,
        .keyspace = about,
        .place = xasprintf("keyspace %s (%s:%d)", about->name, config->file, about->line),
    };
    return subject;
}

/* All texts are the configuration's. */
static void add_dependency(struct inspection *inspection, const struct keyspace *about,
                           const struct dependency *dependency)
{
    struct subject *subject = add_subject(inspection, about);
    struct keyspace *stand_in = xcalloc(1, sizeof *stand_in);
    *stand_in = (struct keyspace){.name = about->name,
                                  .key = dependency_key(dependency, &about->key),
                                  .table_text = dependency->name,
                                  .table_schema = dependency->schema,
                                  .table_name = dependency->name};
    subject->keyspace = stand_in;
    subject->dependency = dependency;
}

/* A subject for each keyspace that is configured; behind them those of `depends`. */
static void begin(struct inspection *inspection)
{
    const struct config *config = inspection->options->config;
    inspection->subjects = xcalloc(config_followed(config), sizeof *inspection->subjects);
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]))
            add_subject(inspection, &config->keyspaces[i]);
    for (size_t i = 0; i < config->keyspace_count; i++)
        for (size_t j = 0; j < config->keyspaces[i].depends.count; j++)
            if (keyspace_has_rows(&config->keyspaces[i]))
                add_dependency(inspection, &config->keyspaces[i],
                               &config->keyspaces[i].depends.at[j]);
}

static void finish_subject(struct subject *subject)
{
    PQclear(subject->table);
    PQclear(subject->columns);
    PQclear(subject->entry);
    if (subject->dependency)
        free((void *)subject->keyspace);
    free(subject->place);
}

/* What cannot be looked at (it is not there, it is locked just now, the file must be corrected
 * first) has been told; the rest goes on. Returns whether there are all. */
static bool leave_sound_ones(struct inspection *inspection)
{
    size_t kept = 0, count = inspection->subject_count;
    for (size_t i = 0; i < count; i++)
        if (inspection->subjects[i].is_sound)
            inspection->subjects[kept++] = inspection->subjects[i];
        else
            finish_subject(&inspection->subjects[i]);
    inspection->subject_count = kept;
    return kept == count;
}

static void put_table(struct buffer *out, const struct subject **next, bool has_rows)
{
    buffer_printf(out, "%s%s", buffer_length(out) ? "," : "",
                  has_rows ? answer_text((*next)->table, 0, TABLE_OID) : "0");
    *next += has_rows;
}

/* In the order in which begin() has added them. */
static char *list_subjects(const struct inspection *inspection)
{
    const struct config *config = inspection->options->config;
    const struct subject *next = inspection->subjects;
    struct buffer out = {0};
    for (size_t i = 0; i < config->keyspace_count; i++)
        put_table(&out, &next, keyspace_has_rows(&config->keyspaces[i]));
    for (size_t i = 0; i < config->keyspace_count; i++)
        for (size_t j = 0; j < config->keyspaces[i].depends.count; j++)
            put_table(&out, &next, keyspace_has_rows(&config->keyspaces[i]));
    return buffer_string(&out);
}

static void finish(struct inspection *inspection)
{
    for (size_t i = 0; i < inspection->subject_count; i++)
        finish_subject(&inspection->subjects[i]);
    free(inspection->subjects);
    PQclear(inspection->publication);
}

int inspect(struct publication_plan *plan, const struct inspector_options *options,
            struct pg_error *error)
{
    struct inspection inspection = {.options = options, .plan = plan, .error = error};
    *plan = (struct publication_plan){0};
    begin(&inspection);
    for (size_t i = 0; i < inspection.subject_count; i++)
        inspect_table(&inspection.subjects[i]);
    inspection.is_whole = leave_sound_ones(&inspection) && !options->config->is_draft;
    if (inspection.is_whole)
        plan->tables = list_subjects(&inspection);
    if (options->config->sync == SYNC_REPLICATION && !questions_lost(options->questions) &&
        inspection.subject_count)
        inspect_publication(&inspection);
    finish(&inspection);
    return inspection.status;
}

void publication_plan_finish(struct publication_plan *plan)
{
    free(plan->missing);
    free(plan->role);
    free(plan->tables);
    *plan = (struct publication_plan){0};
}
