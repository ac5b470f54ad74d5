/* The replica identity decides what the log says of a row that is deleted, and of one whose key
 * changes: without the key columns nobody could tell which key went. The server also refuses the
 * application's UPDATE and DELETE of a published table that has none, or one without the columns
 * that the row filter looks at. Each partition has its own.
 */
#include "database/publication_survey.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <stdlib.h>

enum member_cell {
    MEMBER_NAME,
    MEMBER_KIND,
    MEMBER_PERSISTENCE,
    MEMBER_INHERITS,   /* by INHERITS, not as a partition */
    MEMBER_FULL,       /* its identity is the whole row */
    MEMBER_IDENTITY,   /* columns of its identity, quoted */
    MEMBER_UNCOVERED,  /* key columns that are not among them, quoted */
    MEMBER_SUGGESTION, /* an identity that covers the key: what follows REPLICA IDENTITY */
};

/* The table and everything below it. Indexes that are deferrable, partial or not valid are no
 * identity to the server, either; included columns do not belong to one. $2..$9: the key. */
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
    " key (columns) AS (SELECT array_remove(ARRAY[$2, $3, $4, $5, $6, $7, $8, $9]::text[], NULL))"
    "SELECT format('%I.%I', n.nspname, c.relname), c.relkind, c.relpersistence, t.inherits,"
    "       c.relreplident = 'f',"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(x.columns) b),"
    "       (SELECT string_agg(quote_ident(b), ', ') FROM unnest(key.columns) b"
    "         WHERE c.relreplident <> 'f' AND b <> ALL (coalesce(x.columns, '{}'))),"
    "       coalesce((SELECT CASE WHEN s.indisprimary THEN 'DEFAULT'"
    "                             ELSE 'USING INDEX ' || quote_ident(s.relname) END"
    "           FROM indexes s WHERE s.indrelid = c.oid AND s.columns @> key.columns"
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

static char *string_of(struct buffer *buffer)
{
    struct span bytes = buffer_span(buffer);
    char *text = xstrndup(bytes.at, bytes.length);
    buffer_finish(buffer);
    return text;
}

static void check_log(struct surveyor *surveyor, size_t keyspace, const PGresult *members, int row)
{
    const char *table = surveyor_text(surveyor, keyspace, GUARDED_NAME);
    const char *name = cell(members, row, MEMBER_NAME);
    char *logged = xasprintf("ALTER TABLE %s SET LOGGED;", name);
    char *detach = xasprintf("ALTER TABLE %s DETACH PARTITION %s;", table, name);
    if (cell(members, row, MEMBER_INHERITS)[0] == 't')
        surveyor_report(surveyor, keyspace, NULL,
                        "table %s inherits from %s: the log tells of its rows under its own name, "
                        "so that the keyspace would miss them; partitions can be followed, or "
                        "use sync: poll",
                        name, table);
    else if (cell(members, row, MEMBER_KIND)[0] == 'f')
        surveyor_report(surveyor, keyspace, detach,
                        "partition %s is a foreign table: its rows change elsewhere, unseen by "
                        "this database's log",
                        name);
    else if (cell(members, row, MEMBER_PERSISTENCE)[0] == 'u')
        surveyor_report(surveyor, keyspace, logged,
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

/* A condition as a rule needs columns that no index has. */
static void check_key(struct surveyor *surveyor, size_t keyspace, const PGresult *members)
{
    bool filtered = surveyor->config->keyspaces[keyspace].where != NULL;
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
    char *sql = string_of(&remedy);
    if (table)
        surveyor_report(surveyor, keyspace, sql,
                        "key: the replica identity of table %s lacks %s: the log does not say "
                        "which key a deleted row had",
                        table, columns);
    free(sql);
}

/* Whether the condition can be told from what the log keeps of a member's row. Those whose keys
 * are not kept have been reported. */
static bool filter_is_covered(struct surveyor *surveyor, size_t keyspace, const PGresult *members,
                              int row)
{
    return !is_followed(members, row) || cell(members, row, MEMBER_FULL)[0] == 't' ||
           cell(members, row, MEMBER_UNCOVERED)[0] ||
           survey_filter_within(surveyor, keyspace, cell(members, row, MEMBER_IDENTITY));
}

static void check_filter(struct surveyor *surveyor, size_t keyspace, const PGresult *members)
{
    struct buffer remedy = {0};
    const char *table = NULL;
    for (int row = 0; row < PQntuples(members); row++) {
        if (filter_is_covered(surveyor, keyspace, members, row))
            continue;
        table = table ? table : cell(members, row, MEMBER_NAME);
        put_remedy(&remedy, cell(members, row, MEMBER_NAME), "FULL");
    }
    char *sql = string_of(&remedy);
    if (table && !surveyor->failed)
        surveyor_report(surveyor, keyspace, sql,
                        "where: the replica identity of table %s lacks columns of the condition: "
                        "with the condition as the publication's row filter, the application could "
                        "not UPDATE or DELETE any more",
                        table);
    free(sql);
}

void survey_identity(struct surveyor *surveyor, size_t keyspace)
{
    const char *values[SURVEY_VALUES_MAX] = {surveyor_text(surveyor, keyspace, GUARDED_OID)};
    surveyor_key_values(values, 1, &surveyor->config->keyspaces[keyspace]);
    PGresult *members = surveyor_ask(surveyor, list_members, 1 + KEY_COLUMNS_MAX, values);
    for (int row = 0; row < PQntuples(members); row++)
        check_log(surveyor, keyspace, members, row);
    check_key(surveyor, keyspace, members);
    if (surveyor->config->keyspaces[keyspace].where)
        check_filter(surveyor, keyspace, members);
    PQclear(members);
}
