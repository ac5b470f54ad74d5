/* The replica identity decides what the log says of a row that is deleted, and of one whose key
 * changes: without the key columns nobody could tell which key went. The server also refuses the
 * application's UPDATE and DELETE of a published table that has none, or one without the columns
 * that the row filter looks at. Each partition has its own.
 */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum member_cell {
    MEMBER_NAME,
    MEMBER_KIND,
    MEMBER_PERSISTENCE,
    MEMBER_INHERITS,   /* by INHERITS, not as a partition */
    MEMBER_FULL,       /* its identity is the whole row */
    MEMBER_IDENTITY,   /* columns of its identity, quoted */
    MEMBER_UNCOVERED,  /* key columns that are not among them, quoted */
    MEMBER_SUGGESTION, /* an identity that covers the keys of all keyspaces of the table: what
                          follows REPLICA IDENTITY */
};

/* The table and everything below it. Indexes that are deferrable, partial or not valid are no
 * identity to the server, either; included columns do not belong to one. $2..$9: the key; $10:
 * those of all keyspaces of the table, which has one identity for them all. */
static const char list_members[] =
    "WITH RECURSIVE tree (relid, inherits) AS ("
    "    SELECT $1::oid, false"
    "    UNION SELECT i.inhrelid, p.relkind <> 'p' FROM tree t"
    "      JOIN pg_inherits i ON i.inhparent = t.relid JOIN pg_class p ON p.oid = t.relid),"
    " indexes AS ("
    "    SELECT x.indrelid, i.relname, x.indisprimary, x.indisreplident, x.indexprs,"
    "           array_agg(a.attname::text) AS columns, bool_and(a.attnotnull) AS not_null"
    "      FROM tree t JOIN pg_index x ON x.indrelid = t.relid"
    "      JOIN pg_class i ON i.oid = x.indexrelid,"
    "           unnest(x.indkey) WITH ORDINALITY AS k (attnum, place), pg_attribute a"
    "     WHERE x.indisunique AND x.indimmediate AND x.indisvalid AND x.indpred IS NULL"
    "       AND k.place <= x.indnkeyatts AND a.attrelid = x.indrelid AND a.attnum = k.attnum"
    "     GROUP BY 1, 2, 3, 4, 5),"
    " key (columns, shared) AS"
    "    (SELECT array_remove(ARRAY[$2, $3, $4, $5, $6, $7, $8, $9]::text[], NULL), $10::text[])"
    "SELECT format('%I.%I', n.nspname, c.relname), c.relkind, c.relpersistence, t.inherits,"
    "       c.relreplident = 'f',"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(x.columns) b),"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(key.columns) b"
    "         WHERE c.relreplident <> 'f' AND b <> ALL (coalesce(x.columns, '{}'))),"
    "       coalesce((SELECT CASE WHEN s.indisprimary THEN 'DEFAULT'"
    "                             ELSE 'USING INDEX ' || quote_ident(s.relname) END"
    "           FROM indexes s WHERE s.indrelid = c.oid AND s.columns @> key.shared"
    "            AND s.not_null AND s.indexprs IS NULL"
    "          ORDER BY s.indisprimary DESC, cardinality(s.columns), s.relname LIMIT 1), 'FULL')"
    "  FROM tree t JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  CROSS JOIN key"
    "  LEFT JOIN indexes x ON x.indrelid = c.oid AND CASE c.relreplident"
    "       WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END"
    " ORDER BY c.oid <> $1::oid, 1";

static const char *cell(const PGresult *members, int row, enum member_cell column)
{
    return PQgetvalue(members, row, (int)column);
}

static void check_log(const struct subject *subject, const PGresult *members, int row)
{
    const char *table = subject_table(subject);
    const char *name = cell(members, row, MEMBER_NAME);
    char *logged = xasprintf("ALTER TABLE %s SET LOGGED;", name);
    char *detach = xasprintf("ALTER TABLE %s DETACH PARTITION %s;", table, name);
    if (cell(members, row, MEMBER_INHERITS)[0] == 't')
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "table %s inherits from %s: the log tells of its rows under its own name, "
                       "so that the keyspace would miss them; partitions can be followed, or "
                       "use sync: poll",
                       name, table);
    else if (cell(members, row, MEMBER_KIND)[0] == 'f')
        subject_report(subject, PROBLEM_ERROR, detach,
                       "partition %s is a foreign table: its rows change elsewhere, unseen by "
                       "this database's log",
                       name);
    else if (cell(members, row, MEMBER_PERSISTENCE)[0] == 'u')
        subject_report(subject, PROBLEM_ERROR, logged,
                       "table %s is unlogged: the database's log does not tell of its rows", name);
    free(detach);
    free(logged);
}

/* Appends the statement that mends a table's identity, each to a line. */
static void put_remedy(struct buffer *remedy, const char *table, const char *identity)
{
    buffer_printf(remedy, "%sALTER TABLE %s REPLICA IDENTITY %s;",
                  buffer_length(remedy) ? "\n" : "", table, identity);
}

/* Whether the log tells of rows of its own: not of those of a partitioned table, nor of those that
 * have been refused. */
static bool is_followed(const PGresult *members, int row)
{
    return cell(members, row, MEMBER_KIND)[0] == 'r' &&
           cell(members, row, MEMBER_INHERITS)[0] != 't';
}

/* What FULL costs is said with it. */
static const char *cost_of(const char *remedy)
{
    return strstr(remedy, "IDENTITY FULL")
               ? "; FULL keeps the whole old row in the log with every UPDATE and DELETE (about "
                 "twice the log: with rows of 1 kB an UPDATE takes 2,252 bytes instead of 1,223)"
               : "";
}

/* A condition as a rule needs columns that no index has. */
static void check_key(const struct subject *subject, const PGresult *members)
{
    bool filtered = subject->keyspace->where != NULL;
    struct buffer remedy = {0};
    const char *columns = NULL, *table = NULL;
    for (int row = 0; row < PQntuples(members); row++) {
        if (!is_followed(members, row) || !cell(members, row, MEMBER_UNCOVERED)[0])
            continue;
        columns = columns ? columns : cell(members, row, MEMBER_UNCOVERED);
        table = table ? table : cell(members, row, MEMBER_NAME);
        put_remedy(&remedy, cell(members, row, MEMBER_NAME),
                   filtered ? "FULL" : cell(members, row, MEMBER_SUGGESTION));
    }
    char *sql = buffer_string(&remedy);
    if (table)
        subject_report(subject, PROBLEM_ERROR, sql,
                       "%s: the replica identity of table %s lacks %s: the log does not say "
                       "which key a deleted row had%s",
                       subject_setting(subject), table, columns, cost_of(sql));
    free(sql);
}

/* Whoever needs no column of it needs an identity all the same: once a table without one is
 * published, the server refuses the application's UPDATE and DELETE. */
static void check_presence(const struct subject *subject, const PGresult *members)
{
    struct buffer remedy = {0};
    const char *table = NULL;
    for (int row = 0; row < PQntuples(members); row++) {
        if (!is_followed(members, row) || cell(members, row, MEMBER_FULL)[0] == 't' ||
            cell(members, row, MEMBER_IDENTITY)[0])
            continue;
        table = table ? table : cell(members, row, MEMBER_NAME);
        put_remedy(&remedy, cell(members, row, MEMBER_NAME), cell(members, row, MEMBER_SUGGESTION));
    }
    char *sql = buffer_string(&remedy);
    if (table)
        subject_report(subject, PROBLEM_ERROR, sql,
                       "depends: table %s has no replica identity: in a publication, the "
                       "application could not UPDATE or DELETE its rows any more%s",
                       table, cost_of(sql));
    free(sql);
}

/* Whether the condition can be told from what the log keeps of a member's row. Those whose keys
 * are not kept have been reported. */
static bool filter_is_covered(const struct subject *subject, const PGresult *members, int row)
{
    struct pg_error error;
    if (!is_followed(members, row) || cell(members, row, MEMBER_FULL)[0] == 't' ||
        cell(members, row, MEMBER_UNCOVERED)[0] || subject->inspection->failed)
        return true;
    enum condition_answer answer =
        condition_is_within(subject, cell(members, row, MEMBER_IDENTITY), &error);
    if (answer == CONDITION_UNKNOWN)
        inspection_fails(subject->inspection, &error);
    return answer != CONDITION_NO;
}

static void check_filter(const struct subject *subject, const PGresult *members)
{
    struct buffer remedy = {0};
    const char *table = NULL;
    for (int row = 0; row < PQntuples(members); row++) {
        if (filter_is_covered(subject, members, row))
            continue;
        table = table ? table : cell(members, row, MEMBER_NAME);
        put_remedy(&remedy, cell(members, row, MEMBER_NAME), "FULL");
    }
    char *sql = buffer_string(&remedy);
    if (table && !subject->inspection->failed)
        subject_report(subject, PROBLEM_ERROR, sql,
                       "where: the replica identity of table %s lacks columns of the condition: "
                       "with the condition as the publication's row filter, the application could "
                       "not UPDATE or DELETE any more%s",
                       table, cost_of(sql));
    free(sql);
}

/* Appends an element of an array's text. */
static void put_element(struct buffer *out, const char *text)
{
    buffer_printf(out, "%s\"", buffer_length(out) > 1 ? "," : "");
    for (; *text; text++)
        buffer_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    buffer_printf(out, "\"");
}

/* The key columns of all keyspaces of the same table, as an array's text; some twice. */
static char *shared_columns(const struct subject *subject)
{
    const struct inspection *inspection = subject->inspection;
    struct buffer out = {0};
    buffer_printf(&out, "{");
    for (size_t i = 0; i < inspection->subject_count; i++) {
        const struct subject *other = &inspection->subjects[i];
        if (strcmp(answer_text(other->table, 0, TABLE_OID),
                   answer_text(subject->table, 0, TABLE_OID)) != 0)
            continue;
        for (size_t column = 0; column < other->keyspace->key.columns; column++)
            put_element(&out, other->keyspace->key.column[column]);
    }
    buffer_printf(&out, "}");
    return buffer_string(&out);
}

void inspect_identity(const struct subject *subject)
{
    char *shared = shared_columns(subject);
    const char *values[SUBJECT_VALUES_MAX] = {answer_text(subject->table, 0, TABLE_OID)};
    subject_key_values(subject, values, 1);
    values[1 + KEY_COLUMNS_MAX] = shared;
    PGresult *members =
        inspection_insist(subject->inspection, list_members, 2 + KEY_COLUMNS_MAX, values);
    for (int row = 0; row < PQntuples(members); row++)
        check_log(subject, members, row);
    check_key(subject, members);
    if (!subject->keyspace->key.columns)
        check_presence(subject, members);
    if (subject->keyspace->where)
        check_filter(subject, members);
    PQclear(members);
    free(shared);
}
