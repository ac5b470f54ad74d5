/* One question about the publication, and some about each keyspace's table; what can be wrong with
 * them is independent of each other, so that all of it is told at once. What is merely missing
 * becomes one statement, which is only given out when nothing is wrong: a table published before
 * its replica identity is mended would refuse the application's changes.
 */
#include "database/publication_survey.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum publication_cell {
    PUBLICATION_NAME, /* quoted where SQL needs it */
    PUBLICATION_CAN_FILTER,
    PUBLICATION_MAY_CREATE,
    PUBLICATION_EXISTS,
    PUBLICATION_OWNED,
    PUBLICATION_IS_WIDE,          /* of all tables, or of schemas */
    PUBLICATION_LACKS_OPERATIONS, /* "update, truncate" */
    PUBLICATION_VIA_ROOT
};

/* Schemas are known by pg_depend: their catalogue is not there before PostgreSQL 15. */
static const char describe_publication[] =
    "SELECT quote_ident($1::text), current_setting('server_version_num')::int >= 150000,"
    "       has_database_privilege(current_database(), 'CREATE'), p.oid IS NOT NULL,"
    "       pg_has_role(p.pubowner, 'USAGE'),"
    "       p.puballtables OR EXISTS (SELECT FROM pg_depend d"
    "           WHERE d.refclassid = 'pg_publication'::regclass AND d.refobjid = p.oid"
    "             AND d.classid <> 'pg_publication_rel'::regclass),"
    "       concat_ws(', ', CASE WHEN NOT p.pubinsert THEN 'insert' END,"
    "                       CASE WHEN NOT p.pubupdate THEN 'update' END,"
    "                       CASE WHEN NOT p.pubdelete THEN 'delete' END,"
    "                       CASE WHEN NOT p.pubtruncate THEN 'truncate' END),"
    "       p.pubviaroot"
    "  FROM (SELECT) AS one LEFT JOIN pg_publication p ON p.pubname = $1::text";

/* $1: schema or NULL, $2: name, $3: publication, $4..$11: key columns. Columns of the view that
 * older versions do not have are reached through to_jsonb(). */
static const char describe_table[] =
    "WITH key (columns) AS"
    "    (SELECT array_remove(ARRAY[$4, $5, $6, $7, $8, $9, $10, $11]::text[], NULL)),"
    " ancestors AS (SELECT a.relid FROM pg_class c, pg_partition_ancestors(c.oid) a"
    "    WHERE c.relispartition AND a.relid <> c.oid AND c.relname = $2"
    "      AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid)"
    "               ELSE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) END),"
    " entries AS (SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p"
    "    ON p.oid = r.prpubid WHERE p.pubname = $3::text)"
    "SELECT c.oid, format('%I.%I', n.nspname, c.relname), c.relkind, c.relpersistence = 't',"
    "       pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid),"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(key.columns) b"
    "         WHERE NOT EXISTS (SELECT FROM pg_attribute a"
    "               WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attname = b)),"
    "       (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute"
    "         WHERE attrelid = c.oid AND attgenerated <> '' AND attname = ANY (key.columns)),"
    "       (SELECT ',' || string_agg(relid::oid::text, ',') || ',' FROM ancestors),"
    "       (SELECT min(relid::text) FROM ancestors WHERE relid IN (SELECT prrelid FROM entries)),"
    "       c.oid IN (SELECT prrelid FROM entries), v.entry ->> 'rowfilter',"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(key.columns) b"
    "         WHERE NOT v.entry -> 'attnames' ? b)"
    "  FROM key, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  LEFT JOIN LATERAL (SELECT to_jsonb(t) AS entry FROM pg_publication_tables t"
    "       WHERE t.pubname = $3::text AND t.schemaname = n.nspname AND t.tablename = c.relname) v"
    "       ON true"
    " WHERE c.relname = $2"
    "   AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $1 END";

const char *surveyor_text(const struct surveyor *surveyor, size_t keyspace, enum guarded_cell cell)
{
    const PGresult *table = surveyor->tables[keyspace];
    return PQgetisnull(table, 0, (int)cell) ? NULL : PQgetvalue(table, 0, (int)cell);
}

bool surveyor_true(const struct surveyor *surveyor, size_t keyspace, enum guarded_cell cell)
{
    return PQgetvalue(surveyor->tables[keyspace], 0, (int)cell)[0] == 't';
}

static const char *publication_text(const struct surveyor *surveyor, enum publication_cell cell)
{
    return PQgetvalue(surveyor->publication, 0, (int)cell);
}

static bool publication_is(const struct surveyor *surveyor, enum publication_cell cell)
{
    return publication_text(surveyor, cell)[0] == 't';
}

PGresult *surveyor_ask(struct surveyor *surveyor, const char *sql, int count,
                       const char *const *values)
{
    PGresult *result = NULL;
    if (!surveyor->failed)
        result = surveyor->asker->ask(surveyor->asker->arg, sql, count, values, surveyor->error);
    surveyor->failed = !result;
    return result;
}

void surveyor_report(struct surveyor *surveyor, size_t keyspace, const char *remedy,
                     const char *format, ...)
{
    const struct keyspace *subject = &surveyor->config->keyspaces[keyspace];
    char *place =
        xasprintf("keyspace %s (%s:%d)", subject->name, surveyor->config->file, subject->line);
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    problems_add(surveyor->problems, PROBLEM_ERROR, place, remedy, "%s", text);
    free(place);
}

void surveyor_key_values(const char *values[SURVEY_VALUES_MAX], size_t first,
                         const struct keyspace *keyspace)
{
    for (size_t i = 0; i < KEY_COLUMNS_MAX; i++)
        values[first + i] = i < keyspace->key.columns ? keyspace->key.column[i] : NULL;
}

/* Why the table cannot be looked at, as a new string. */
static char *unfitness(const struct surveyor *surveyor, size_t i)
{
    const struct keyspace *keyspace = &surveyor->config->keyspaces[i];
    if (PQntuples(surveyor->tables[i]) == 0)
        return xasprintf("table %s does not exist", keyspace->table_text);
    const char *name = surveyor_text(surveyor, i, GUARDED_NAME);
    const char *missing = surveyor_text(surveyor, i, GUARDED_MISSING_COLUMNS);
    if (!strchr("rp", surveyor_text(surveyor, i, GUARDED_KIND)[0]) ||
        surveyor_true(surveyor, i, GUARDED_TEMPORARY))
        return xasprintf("%s is no ordinary or partitioned table", name);
    if (missing)
        return xasprintf("table %s has no column %s", name, missing);
    if (surveyor_true(surveyor, i, GUARDED_HIDES_ROWS))
        return xasprintf("row-level security of table %s applies to the guard's role: it needs "
                         "BYPASSRLS",
                         name);
    return NULL;
}

/* True when everything is there that the rest asks about. */
static bool look_up(struct surveyor *surveyor)
{
    const struct config *config = surveyor->config;
    const char *name = config->publication;
    surveyor->publication = surveyor_ask(surveyor, describe_publication, 1, &name);
    for (size_t i = 0; i < config->keyspace_count && !surveyor->failed; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        const char *values[SURVEY_VALUES_MAX] = {keyspace->table_schema, keyspace->table_name,
                                                 name};
        surveyor_key_values(values, 3, keyspace);
        surveyor->tables[i] = surveyor_ask(surveyor, describe_table, SURVEY_VALUES_MAX, values);
        if (surveyor->tables[i] && !surveyor->out->unfit)
            surveyor->out->unfit = unfitness(surveyor, i);
    }
    return !surveyor->failed && !surveyor->out->unfit;
}

static void check_columns(struct surveyor *surveyor, size_t i)
{
    const char *generated = surveyor_text(surveyor, i, GUARDED_GENERATED);
    if (generated)
        surveyor_report(surveyor, i, NULL,
                        "key: the value of %s is generated from other columns, and the stream does "
                        "not tell it; the key needs ordinary columns, or use sync: poll",
                        generated);
}

/* A table has one entry in the publication, and a row is told once. */
static void check_other_keyspace(struct surveyor *surveyor, size_t i, size_t other)
{
    const struct keyspace *theirs = &surveyor->config->keyspaces[other];
    const char *oid = surveyor_text(surveyor, other, GUARDED_OID);
    const char *ancestors = surveyor_text(surveyor, i, GUARDED_ANCESTORS);
    char *listed = xasprintf(",%s,", oid);
    if (ancestors && strstr(ancestors, listed))
        surveyor_report(surveyor, i, NULL,
                        "table %s is a partition of %s, which keyspace %s is of: the stream tells "
                        "its rows under that table's name; let both be of %s, or use sync: poll",
                        surveyor_text(surveyor, i, GUARDED_NAME),
                        surveyor_text(surveyor, other, GUARDED_NAME), theirs->name,
                        surveyor_text(surveyor, other, GUARDED_NAME));
    free(listed);
    if (other < i && strcmp(oid, surveyor_text(surveyor, i, GUARDED_OID)) == 0 &&
        !survey_same_filter(surveyor, i, surveyor->config->keyspaces[i].where, theirs->where) &&
        !surveyor->failed)
        surveyor_report(surveyor, i, NULL,
                        "where: keyspace %s is of the same table %s under another condition, but a "
                        "table has one row filter in a publication; give both the same, or use "
                        "sync: poll",
                        theirs->name, surveyor_text(surveyor, i, GUARDED_NAME));
}

/* Appends the table as publications name it. */
static void put_table(struct buffer *out, const struct surveyor *surveyor, size_t i)
{
    const char *where = surveyor->config->keyspaces[i].where;
    buffer_printf(out, "%s", surveyor_text(surveyor, i, GUARDED_NAME));
    if (where) /* a comment in it must not reach the parenthesis */
        buffer_printf(out, " WHERE (%s%s)", where, strstr(where, "--") ? "\n" : "");
}

static char *string_of(struct buffer *buffer)
{
    struct span bytes = buffer_span(buffer);
    char *text = xstrndup(bytes.at, bytes.length);
    buffer_finish(buffer);
    return text;
}

/* DROP and ADD, for the entry of one table cannot be changed by itself. */
static char *replace_entry(const struct surveyor *surveyor, size_t i)
{
    struct buffer sql = {0};
    const char *name = publication_text(surveyor, PUBLICATION_NAME);
    buffer_printf(&sql, "ALTER PUBLICATION %s DROP TABLE %s; ALTER PUBLICATION %s ADD TABLE ", name,
                  surveyor_text(surveyor, i, GUARDED_NAME), name);
    put_table(&sql, surveyor, i);
    buffer_printf(&sql, ";");
    return string_of(&sql);
}

static void check_entry(struct surveyor *surveyor, size_t i)
{
    const char *where = surveyor->config->keyspaces[i].where;
    const char *filter = surveyor_text(surveyor, i, GUARDED_FILTER);
    const char *unlisted = surveyor_text(surveyor, i, GUARDED_UNLISTED);
    const char *table = surveyor_text(surveyor, i, GUARDED_NAME);
    const char *publication = publication_text(surveyor, PUBLICATION_NAME);
    char *sql = replace_entry(surveyor, i);
    if (!survey_same_filter(surveyor, i, where, filter) && !surveyor->failed)
        surveyor_report(surveyor, i, sql,
                        "publication %s tells of table %s only rows that meet %s, the keyspace "
                        "holds %s%s",
                        publication, table, filter ? filter : "no condition",
                        where ? "those with " : "all rows", where ? where : "");
    else if (unlisted)
        surveyor_report(surveyor, i, sql,
                        "publication %s tells of table %s without %s, which the key is made of",
                        publication, table, unlisted);
    free(sql);
}

static void check_partition(struct surveyor *surveyor, size_t i, const char *root)
{
    char *sql = xasprintf("ALTER PUBLICATION %s DROP TABLE %s;",
                          publication_text(surveyor, PUBLICATION_NAME), root);
    surveyor_report(
        surveyor, i, sql,
        "table %s is a partition of %s, which publication %s has, too: the stream tells "
        "its rows under that table's name",
        surveyor_text(surveyor, i, GUARDED_NAME), root,
        publication_text(surveyor, PUBLICATION_NAME));
    free(sql);
}

static void check_keyspace(struct surveyor *surveyor, size_t i)
{
    const char *root = surveyor_text(surveyor, i, GUARDED_TOLD_AS);
    check_columns(surveyor, i);
    survey_identity(surveyor, i);
    if (surveyor->config->keyspaces[i].where && !publication_is(surveyor, PUBLICATION_CAN_FILTER))
        surveyor_report(surveyor, i, NULL,
                        "where: row filters need PostgreSQL 15 or newer; without `where`, or with "
                        "sync: poll, this server will do");
    for (size_t other = 0; other < surveyor->config->keyspace_count; other++)
        if (other != i)
            check_other_keyspace(surveyor, i, other);
    if (publication_is(surveyor, PUBLICATION_IS_WIDE))
        return;
    if (root)
        check_partition(surveyor, i, root);
    else if (surveyor_true(surveyor, i, GUARDED_PUBLISHED))
        check_entry(surveyor, i);
}

static void report_publication(const struct surveyor *surveyor, const char *remedy,
                               const char *text)
{
    const char *name = publication_text(surveyor, PUBLICATION_NAME);
    char *place = xasprintf("publication %s", name);
    problems_add(surveyor->problems, PROBLEM_ERROR, place, remedy, "%s", text);
    free(place);
}

static bool has_partitioned_table(const struct surveyor *surveyor)
{
    for (size_t i = 0; i < surveyor->config->keyspace_count; i++)
        if (surveyor_text(surveyor, i, GUARDED_KIND)[0] == 'p')
            return true;
    return false;
}

/* The publication of somebody else's purpose is left to them. */
static void check_wide(const struct surveyor *surveyor)
{
    char *remedy = xasprintf("publication: %s_guard", surveyor->config->publication);
    report_publication(surveyor, remedy,
                       "is FOR ALL TABLES or FOR TABLES IN SCHEMA: the guard would have to read "
                       "every change of every table; give it one of its own");
    free(remedy);
}

static void check_flags(const struct surveyor *surveyor)
{
    const char *name = publication_text(surveyor, PUBLICATION_NAME);
    const char *lacking = publication_text(surveyor, PUBLICATION_LACKS_OPERATIONS);
    char *publish =
        xasprintf("ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate');", name);
    char *via_root =
        xasprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true);", name);
    char *text = xasprintf("does not publish: %s", lacking);
    if (lacking[0])
        report_publication(surveyor, publish, text);
    if (!publication_is(surveyor, PUBLICATION_VIA_ROOT) && has_partitioned_table(surveyor))
        report_publication(surveyor, via_root,
                           "tells the rows of a partitioned table under the partitions' names");
    free(text);
    free(via_root);
    free(publish);
}

static void check_publication(const struct surveyor *surveyor)
{
    if (publication_is(surveyor, PUBLICATION_IS_WIDE))
        check_wide(surveyor);
    else if (publication_is(surveyor, PUBLICATION_EXISTS))
        check_flags(surveyor);
}

/* A table of two keyspaces is named once. */
static bool is_repeated(const struct surveyor *surveyor, size_t i)
{
    const char *oid = surveyor_text(surveyor, i, GUARDED_OID);
    for (size_t other = 0; other < i; other++)
        if (strcmp(oid, surveyor_text(surveyor, other, GUARDED_OID)) == 0)
            return true;
    return false;
}

/* Creating takes the right to, and adding the publication; both take the tables. */
static void plan(struct surveyor *surveyor)
{
    struct publication_survey *out = surveyor->out;
    struct buffer sql = {0};
    out->exists = publication_is(surveyor, PUBLICATION_EXISTS);
    out->allowed =
        publication_is(surveyor, out->exists ? PUBLICATION_OWNED : PUBLICATION_MAY_CREATE);
    for (size_t i = 0; i < surveyor->config->keyspace_count; i++) {
        if (surveyor_true(surveyor, i, GUARDED_PUBLISHED) || is_repeated(surveyor, i))
            continue;
        buffer_printf(&sql, "%s", buffer_length(&sql) ? ", " : "");
        put_table(&sql, surveyor, i);
        out->allowed = out->allowed && surveyor_true(surveyor, i, GUARDED_OWNED);
        out->filtered = out->filtered || surveyor->config->keyspaces[i].where;
    }
    char *tables = string_of(&sql);
    const char *name = publication_text(surveyor, PUBLICATION_NAME);
    if (tables[0])
        out->missing = out->exists ? xasprintf("ALTER PUBLICATION %s ADD TABLE %s;", name, tables)
                                   : xasprintf("CREATE PUBLICATION %s FOR TABLE %s"
                                               " WITH (publish_via_partition_root = true);",
                                               name, tables);
    free(tables);
}

static void judge(struct surveyor *surveyor)
{
    size_t errors = surveyor->problems->errors;
    check_publication(surveyor);
    for (size_t i = 0; i < surveyor->config->keyspace_count; i++)
        check_keyspace(surveyor, i);
    if (surveyor->problems->errors == errors && !surveyor->failed)
        plan(surveyor);
}

int publication_survey(struct publication_survey *out, const struct publication_asker *asker,
                       const struct config *config, struct problems *problems,
                       struct pg_error *error)
{
    struct surveyor surveyor = {
        .asker = asker, .config = config, .problems = problems, .error = error, .out = out};
    *out = (struct publication_survey){0};
    surveyor.tables = xcalloc(config->keyspace_count, sizeof *surveyor.tables);
    if (look_up(&surveyor))
        judge(&surveyor);
    for (size_t i = 0; i < config->keyspace_count; i++)
        PQclear(surveyor.tables[i]);
    free(surveyor.tables);
    PQclear(surveyor.publication);
    return surveyor.failed ? -EPROTO : 0;
}

void publication_survey_finish(struct publication_survey *survey)
{
    free(survey->missing);
    free(survey->unfit);
    *survey = (struct publication_survey){0};
}
