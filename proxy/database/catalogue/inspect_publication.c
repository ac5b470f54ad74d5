/* One question about the publication, and some about each keyspace's table; what can be wrong with
 * them is independent of each other, so that all of it is told at once. What is merely missing
 * becomes one statement, which comes last: a table published before its replica identity is mended
 * would refuse the application's changes. It is not given out where something is wrong that no
 * statement mends.
 */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum publication_cell {
    PUBLICATION_NAME, /* quoted where SQL needs it */
    PUBLICATION_ROLE, /* who asks, likewise */
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
    "SELECT quote_ident($1::text), quote_ident(current_user), "
    "current_setting('server_version_num')::int >= 150000,"
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

/* $1: the table, $2: the publication, $3..$10: key columns. Columns of the view that older versions
 * do not have are reached through to_jsonb(). */
static const char describe_entry[] =
    "WITH ancestors AS (SELECT a.relid FROM pg_class c, pg_partition_ancestors(c.oid) a"
    "    WHERE c.oid = $1::oid AND c.relispartition AND a.relid <> c.oid),"
    " entries AS (SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p"
    "    ON p.oid = r.prpubid WHERE p.pubname = $2::text)"
    "SELECT (SELECT ',' || string_agg(relid::oid::text, ',') || ',' FROM ancestors),"
    "       (SELECT min(relid::text) FROM ancestors WHERE relid IN (SELECT prrelid FROM entries)),"
    "       c.oid IN (SELECT prrelid FROM entries), v.entry ->> 'rowfilter',"
    "       (SELECT string_agg(quote_ident(b), ', ')"
    "          FROM unnest(ARRAY[$3, $4, $5, $6, $7, $8, $9, $10]::text[]) b"
    "         WHERE NOT v.entry -> 'attnames' ? b)"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  LEFT JOIN LATERAL (SELECT to_jsonb(t) AS entry FROM pg_publication_tables t"
    "       WHERE t.pubname = $2::text AND t.schemaname = n.nspname AND t.tablename = c.relname) v"
    "       ON true"
    " WHERE c.oid = $1::oid";

static const char *publication_text(const struct inspection *inspection, enum publication_cell cell)
{
    return answer_text(inspection->publication, 0, (int)cell);
}

static bool publication_is(const struct inspection *inspection, enum publication_cell cell)
{
    return answer_true(inspection->publication, 0, (int)cell);
}

/* NULL for NULL. */
static const char *entry_text(const struct subject *subject, enum entry_cell cell)
{
    return PQgetisnull(subject->entry, 0, (int)cell) ? NULL
                                                     : answer_text(subject->entry, 0, (int)cell);
}

/* As text, which is how it is used. */
static const char *oid(const struct subject *subject)
{
    return answer_text(subject->table, 0, TABLE_OID);
}

static size_t count(const struct inspection *inspection)
{
    return inspection->subject_count;
}

/* Told once: what cannot be asked once is not asked again. */
void inspection_fails(struct inspection *inspection, const struct pg_error *error)
{
    const struct inspector_options *options = inspection->options;
    inspection_note(inspection, error);
    if (!inspection->failed && !questions_lost(options->questions))
        problems_add(options->problems, questions_severity(error), options->place, NULL,
                     "the publication could not be looked at: %s", error->text);
    inspection->failed = true;
}

/* NULL also after an earlier failure, so that several questions need one check. */
PGresult *inspection_insist(struct inspection *inspection, const char *sql, int values_count,
                            const char *const *values)
{
    struct pg_error error;
    if (inspection->failed)
        return NULL;
    PGresult *result =
        questions_ask(inspection->options->questions, sql, values_count, values, &error);
    if (!result)
        inspection_fails(inspection, &error);
    return result;
}

/* True when everything is there that the rest asks about. A table that has gone meanwhile is as
 * one that could not be looked at. */
static bool look_up(struct inspection *inspection)
{
    const char *name = inspection->options->config->publication;
    inspection->publication = inspection_insist(inspection, describe_publication, 1, &name);
    for (size_t i = 0; i < count(inspection); i++) {
        struct subject *subject = &inspection->subjects[i];
        const char *values[SUBJECT_VALUES_MAX] = {oid(subject), name};
        subject_key_values(subject, values, 2);
        subject->entry = inspection_insist(inspection, describe_entry, 2 + KEY_COLUMNS_MAX, values);
        if (!inspection->failed && PQntuples(subject->entry) == 0) {
            struct pg_error error;
            pg_error_say(&error, "table %s was dropped meanwhile", subject_table(subject));
            inspection->options->questions->status = -EPROTO;
            inspection_fails(inspection, &error);
        }
    }
    return !inspection->failed;
}

/* Whether they are known to mean something else. */
static bool differ(const struct subject *subject, const char *a, const char *b)
{
    struct pg_error error;
    if (subject->inspection->failed)
        return false;
    enum condition_answer answer = condition_is_same(subject, a, b, &error);
    if (answer == CONDITION_UNKNOWN)
        inspection_fails(subject->inspection, &error);
    return answer == CONDITION_NO;
}

/* Where all of a table's rows count and of the same table some. */
static void report_condition(const struct subject *subject, const struct subject *other)
{
    const struct subject *whole = subject->keyspace->where ? other : subject;
    const struct subject *part = subject->keyspace->where ? subject : other;
    if (!whole->dependency) {
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "where: keyspace %s is of the same table %s under another condition, but a "
                       "table has one row filter in a publication; give both the same, or use "
                       "sync: poll",
                       other->keyspace->name, subject_table(subject));
        return;
    }
    subject_report(whole, PROBLEM_ERROR, NULL,
                   "depends: keyspace %s is of the same table %s with a `where`, which is the "
                   "table's row filter in the publication: changes of other rows would not be told",
                   part->keyspace->name, subject_table(subject));
}

/* A table has one entry in the publication, and a row is told once. */
static void check_other_keyspace(const struct subject *subject, const struct subject *other)
{
    const char *ancestors = entry_text(subject, ENTRY_ANCESTORS);
    char *listed = xasprintf(",%s,", oid(other));
    if (ancestors && strstr(ancestors, listed))
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "table %s is a partition of %s, which keyspace %s is of: the stream tells "
                       "its rows under that table's name; let both be of %s, or use sync: poll",
                       subject_table(subject), subject_table(other), other->keyspace->name,
                       subject_table(other));
    free(listed);
    if (other < subject && strcmp(oid(other), oid(subject)) == 0 &&
        differ(subject, subject->keyspace->where, other->keyspace->where))
        report_condition(subject, other);
}

/* Appends the table as publications name it. */
static void put_table(struct buffer *out, const struct subject *subject)
{
    const char *where = subject->keyspace->where;
    buffer_printf(out, "%s", subject_table(subject));
    if (where) /* a comment in it must not reach the parenthesis */
        buffer_printf(out, " WHERE (%s%s)", where, strstr(where, "--") ? "\n" : "");
}

/* DROP and ADD, for the entry of one table cannot be changed by itself; both or neither, for the
 * server may refuse the condition as a row filter. */
static char *replace_entry(const struct subject *subject)
{
    struct buffer sql = {0};
    const char *name = publication_text(subject->inspection, PUBLICATION_NAME);
    buffer_printf(&sql,
                  "BEGIN; ALTER PUBLICATION %s DROP TABLE %s; ALTER PUBLICATION %s ADD TABLE ",
                  name, subject_table(subject), name);
    put_table(&sql, subject);
    buffer_printf(&sql, "; COMMIT;");
    return buffer_string(&sql);
}

/* What the publication has of the table must be what the keyspace needs: its rows, and its key. */
static void check_entry(const struct subject *subject)
{
    const char *where = subject->keyspace->where;
    const char *filter = entry_text(subject, ENTRY_FILTER);
    const char *unlisted = entry_text(subject, ENTRY_UNLISTED);
    const char *table = subject_table(subject);
    const char *publication = publication_text(subject->inspection, PUBLICATION_NAME);
    char *sql = replace_entry(subject);
    if (differ(subject, where, filter))
        subject_report(subject, PROBLEM_ERROR, sql,
                       "publication %s tells of table %s only rows that meet %s, the keyspace "
                       "holds %s%s",
                       publication, table, filter ? filter : "no condition",
                       where ? "those with " : "all rows", where ? where : "");
    else if (unlisted)
        subject_report(subject, PROBLEM_ERROR, sql,
                       "publication %s tells of table %s without %s, which the key is made of",
                       publication, table, unlisted);
    free(sql);
}

/* Also where the table has an entry of its own. */
static void check_partition(const struct subject *subject, const char *root)
{
    const char *name = publication_text(subject->inspection, PUBLICATION_NAME);
    char *sql = xasprintf("ALTER PUBLICATION %s DROP TABLE %s;", name, root);
    subject_report(subject, PROBLEM_ERROR, sql,
                   "table %s is a partition of %s, which publication %s has, too: the stream tells "
                   "its rows under that table's name",
                   subject_table(subject), root, name);
    free(sql);
}

/* All that can be wrong with one table, told at once. */
static void check_subject(const struct subject *subject)
{
    const struct inspection *inspection = subject->inspection;
    const char *root = entry_text(subject, ENTRY_TOLD_AS);
    inspect_generated(subject);
    inspect_identity(subject);
    if (subject->keyspace->where && !publication_is(inspection, PUBLICATION_CAN_FILTER))
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "where: row filters need PostgreSQL 15 or newer; without `where`, or with "
                       "sync: poll, this server will do");
    for (size_t i = 0; i < count(inspection); i++)
        if (&inspection->subjects[i] != subject)
            check_other_keyspace(subject, &inspection->subjects[i]);
    if (publication_is(inspection, PUBLICATION_IS_WIDE))
        return;
    if (root)
        check_partition(subject, root);
    else if (answer_true(subject->entry, 0, ENTRY_PUBLISHED))
        check_entry(subject);
}

static void report_publication(const struct inspection *inspection, const char *remedy,
                               const char *text)
{
    char *place = xasprintf("publication %s", publication_text(inspection, PUBLICATION_NAME));
    problems_add(inspection->options->problems, PROBLEM_ERROR, place, remedy, "%s", text);
    free(place);
}

static bool has_partitioned_table(const struct inspection *inspection)
{
    for (size_t i = 0; i < count(inspection); i++)
        if (answer_text(inspection->subjects[i].table, 0, TABLE_KIND)[0] == 'p')
            return true;
    return false;
}

/* The publication of somebody else's purpose is left to them. */
static void check_wide(const struct inspection *inspection)
{
    char *remedy = xasprintf("publication: %s_guard", inspection->options->config->publication);
    report_publication(inspection, remedy,
                       "is FOR ALL TABLES or FOR TABLES IN SCHEMA: the guard would have to read "
                       "every change of every table; give it one of its own");
    free(remedy);
}

/* Of a publication that is there: an operation that it leaves out would never be heard of. */
static void check_flags(const struct inspection *inspection)
{
    const char *name = publication_text(inspection, PUBLICATION_NAME);
    const char *lacking = publication_text(inspection, PUBLICATION_LACKS_OPERATIONS);
    char *publish =
        xasprintf("ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate');", name);
    char *via_root =
        xasprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true);", name);
    char *text = xasprintf("does not publish: %s", lacking);
    if (lacking[0])
        report_publication(inspection, publish, text);
    if (!publication_is(inspection, PUBLICATION_VIA_ROOT) && has_partitioned_table(inspection))
        report_publication(inspection, via_root,
                           "tells the rows of a partitioned table under the partitions' names");
    free(text);
    free(via_root);
    free(publish);
}

/* One that is not there is made by the plan. */
static void check_publication(const struct inspection *inspection)
{
    if (publication_is(inspection, PUBLICATION_IS_WIDE))
        check_wide(inspection);
    else if (publication_is(inspection, PUBLICATION_EXISTS))
        check_flags(inspection);
}

/* A table of two keyspaces is named once. */
static bool is_repeated(const struct subject *subject)
{
    for (const struct subject *other = subject->inspection->subjects; other < subject; other++)
        if (strcmp(oid(subject), oid(other)) == 0)
            return true;
    return false;
}

/* Who is to blame if the plan is refused: the first whose table the role does not own; or else,
 * where the publication is there already, the first that is to be added, for the others may be in
 * it. One that is to be created is refused for all of them alike. */
static void plan_tables(struct inspection *inspection, struct buffer *tables)
{
    struct publication_plan *plan = inspection->plan;
    for (size_t i = 0; i < count(inspection); i++) {
        const struct subject *subject = &inspection->subjects[i];
        if (answer_true(subject->entry, 0, ENTRY_PUBLISHED) || is_repeated(subject))
            continue;
        buffer_printf(tables, "%s", buffer_length(tables) ? ", " : "");
        put_table(tables, subject);
        if (!plan->hindered && (plan->exists || !subject_is(subject, TABLE_OWNED)))
            plan->hindered = subject->about;
        if (!subject_is(subject, TABLE_OWNED) && plan->allowed)
            plan->hindered = subject->about; /* its table alone is in the way */
        plan->allowed = plan->allowed && subject_is(subject, TABLE_OWNED);
        plan->filtered = plan->filtered || subject->keyspace->where;
    }
}

/* Creating takes the right to, and adding the publication; both take the tables. */
static void make_plan(struct inspection *inspection)
{
    struct publication_plan *plan = inspection->plan;
    struct buffer tables = {0};
    const char *name = publication_text(inspection, PUBLICATION_NAME);
    plan->role = xstrdup(publication_text(inspection, PUBLICATION_ROLE));
    plan->exists = publication_is(inspection, PUBLICATION_EXISTS);
    plan->allowed =
        publication_is(inspection, plan->exists ? PUBLICATION_OWNED : PUBLICATION_MAY_CREATE);
    plan_tables(inspection, &tables);
    char *list = buffer_string(&tables);
    if (list[0])
        plan->missing = plan->exists ? xasprintf("ALTER PUBLICATION %s ADD TABLE %s;", name, list)
                                     : xasprintf("CREATE PUBLICATION %s FOR TABLE %s"
                                                 " WITH (publish_via_partition_root = true);",
                                                 name, list);
    free(list);
}

/* From the first of these on. */
static bool all_can_be_mended(const struct problems *problems, size_t first)
{
    for (size_t i = first; i < problems->count; i++)
        if (problems->at[i].level == PROBLEM_ERROR && !problems->at[i].remedy)
            return false;
    return true;
}

void inspect_publication(struct inspection *inspection)
{
    const struct problems *problems = inspection->options->problems;
    size_t first = problems->count;
    if (!look_up(inspection))
        return;
    check_publication(inspection);
    for (size_t i = 0; i < count(inspection); i++)
        check_subject(&inspection->subjects[i]);
    if (inspection->is_whole && all_can_be_mended(problems, first) && !inspection->failed &&
        !publication_is(inspection, PUBLICATION_IS_WIDE))
        make_plan(inspection);
}
