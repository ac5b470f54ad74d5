/* The fingerprint of everything that makes the stream tell exactly of the keyspaces' rows.
 *
 * Asked some times a second on a database that has other work, it looks everything up by index,
 * correlated subqueries keeping the planner from reading whole catalogues, and calls no function
 * that would lock a table (as pg_partition_tree() and pg_get_publication_tables() do). One text
 * serves all versions: columns that the older do not have are reached through to_jsonb(), and the
 * publication's schemas, which have a catalogue of their own from PostgreSQL 15 on, through
 * pg_depend.
 */
#include "database/publication.h"

#include "base/buffer.h"
#include "config/syntax/expression.h"
#include "database/publication_values.h"

#include <string.h>

/* Appends a constant; E'' reads alike whatever standard_conforming_strings says. */
static void put_literal(struct buffer *out, const char *text)
{
    buffer_printf(out, "E'");
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buffer_append(out, text, 1);
        buffer_append(out, text, 1);
    }
    buffer_printf(out, "'");
}

static void put_name(struct buffer *out, const char *name)
{
    if (name)
        put_literal(out, name);
    else
        buffer_printf(out, "NULL");
    buffer_printf(out, "::name");
}

static void put_names(struct buffer *out, char *const *names, size_t count)
{
    buffer_printf(out, "ARRAY[");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(out, "%s", i ? ", " : "");
        put_literal(out, names[i]);
    }
    buffer_printf(out, "]::name[]");
}

/* What the catalogue may have under a name that is in an expression, or in a query, which has no
 * table of its own. */
static void put_expression_names(struct buffer *out, const struct keyspace *keyspace)
{
    struct expression_names names = {0};
    expression_names_add(&names, keyspace->value_expression);
    expression_names_add(&names, keyspace->ttl_expression);
    expression_names_add(&names, keyspace->query);
    put_names(out, names.at, names.count);
    expression_names_finish(&names);
}

/* What an application loads by itself may be made of any column, and so may an expression. */
static bool depends_on_all(const struct keyspace *keyspace)
{
    return keyspace->value_is_json || !keyspace->value || keyspace->ttl_expression ||
           keyspace->on_miss == MISS_PASS;
}

/* Of one without rows nothing is found: it only keeps its place. */
static void put_retired(struct buffer *out, size_t place, size_t number)
{
    buffer_printf(out,
                  "%s(%zu, %zu, NULL::name, NULL::name, '{}'::name[], NULL::name, '{}'::name[])",
                  place ? ", " : "", place, number);
}

static void put_keyspace(struct buffer *out, const struct keyspace *keyspace, size_t place)
{
    if (!keyspace_has_rows(keyspace)) {
        put_retired(out, place, place);
        return;
    }
    buffer_printf(out, "%s(%zu, %zu, ", place ? ", " : "", place, place);
    put_name(out, keyspace->table_schema);
    buffer_printf(out, ", ");
    put_name(out, keyspace->table_name);
    buffer_printf(out, ", ");
    put_names(out, keyspace->key.column, keyspace->key.columns);
    buffer_printf(out, ", ");
    put_name(out, depends_on_all(keyspace) ? NULL : keyspace->value);
    buffer_printf(out, ", ");
    put_expression_names(out, keyspace);
    buffer_printf(out, ")");
}

static void put_dependency(struct buffer *out, const struct keyspace *keyspace, size_t number,
                           const struct dependency *dependency, size_t place)
{
    if (!keyspace_has_rows(keyspace)) {
        put_retired(out, place, number);
        return;
    }
    buffer_printf(out, ", (%zu, %zu, ", place, number);
    put_name(out, dependency->schema);
    buffer_printf(out, ", ");
    put_name(out, dependency->name);
    buffer_printf(out, ", ");
    put_names(out, dependency->column, dependency->columns);
    buffer_printf(out, ", NULL::name, '{}'::name[])");
}

/* Places as config_followed() counts them. */
static void put_dependencies(struct buffer *out, const struct config *config)
{
    size_t place = config->keyspace_count;
    for (size_t i = 0; i < config->keyspace_count; i++)
        for (size_t j = 0; j < config->keyspaces[i].depends.count; j++)
            put_dependency(out, &config->keyspaces[i], i, &config->keyspaces[i].depends.at[j],
                           place++);
}

/* With `followed`, what values are made of, too: what these are beside their rows is found by the
 * names in the expression. */
static void put_keyspaces(struct buffer *out, const struct config *config, bool followed)
{
    buffer_printf(out,
                  "WITH RECURSIVE guarded (place, keyspace, schema, name, columns, value, used)"
                  " AS (VALUES ");
    for (size_t i = 0; i < config->keyspace_count; i++)
        put_keyspace(out, &config->keyspaces[i], i);
    if (followed)
        put_dependencies(out, config);
    buffer_printf(out, "), ");
}

/* What depends on it are its members, the entries of tables and of schemas; a table's matters to
 * who has the table in its tree. The owner does not matter; every other column of it does, also
 * those that newer versions add. So does the xmin: what was altered and altered back, in one
 * transaction even, has kept rows from the stream. */
static const char published[] =
    "published AS ("
    " SELECT p.oid, (to_jsonb(p) - 'pubowner')::text || p.xmin AS flags,"
    "        (SELECT string_agg(d.classid || '/' || d.objid, ',' ORDER BY d.classid, d.objid)"
    "           FROM pg_depend d"
    "          WHERE d.refclassid = 'pg_publication'::regclass AND d.refobjid = p.oid"
    "            AND d.classid <> 'pg_publication_rel'::regclass) AS members"
    "   FROM pg_publication p WHERE p.pubname = ";

/* Whether a table is visible the server may remember for a moment longer than the snapshot has it:
 * the schema that the table is in is taken down, too.
 *
 * What a table or its schema was called for a while between two answers only the xmin of its row
 * tells, which is another behind a GRANT, too. A name without a schema may have led into any schema
 * of the path. */
static const char located[] =
    "located AS ("
    " SELECT g.place, g.keyspace, g.columns, g.value, g.used, c.*, concat_ws('.', c.oid, c.version,"
    "        (SELECT string_agg(n.xmin::text, '.' ORDER BY n.oid) FROM pg_namespace n"
    "          WHERE n.nspname = ANY (CASE WHEN g.schema IS NULL THEN current_schemas(false)"
    "                                 ELSE ARRAY[g.schema] END) OFFSET 0)) AS names"
    "   FROM guarded g"
    "   LEFT JOIN LATERAL (SELECT c.oid, c.xmin AS version, c.relnamespace, c.relhassubclass,"
    "               c.relispartition,"
    "               c.relrowsecurity, c.relforcerowsecurity,"
    "               c.relreplident FROM pg_class c WHERE c.relname = g.name"
    "           AND CASE WHEN g.schema IS NULL THEN pg_table_is_visible(c.oid) ELSE"
    "               c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = g.schema)"
    "               END OFFSET 0) c ON true), ";

/* An entry names the columns of its row filter by their numbers, and a keyspace's `where` by their
 * names: these must go on to mean the same. The server lets none of them have another type, but
 * another name, and a generated one other values. */
static const char found[] =
    "found AS ("
    " SELECT l.*, r.entry"
    "   FROM located l"
    "   LEFT JOIN LATERAL (SELECT to_jsonb(r)::text || coalesce(("
    "            SELECT string_agg(ROW(a.attnum, a.attname, a.xmin)::text, ';' ORDER BY a.attnum)"
    "              FROM pg_depend d, pg_attribute a"
    "             WHERE d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid"
    "               AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0"
    "               AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid), '') AS entry"
    "          FROM published p, pg_publication_rel r"
    "         WHERE r.prrelid = l.oid AND r.prpubid = p.oid OFFSET 0) r ON true), ";

/* The table, its partitions, and what inherits from it; a partition is none any more from the
 * moment when its detaching is begun. The planner must not believe this to be much, or it would
 * have the server compile the question (jit) for longer than its answer takes: it takes an array
 * for ten rows, and a text that equals another for a rare one. */
static const char tree[] =
    "tree (place, relid, has_children) AS ("
    " SELECT place, oid, relhassubclass FROM found WHERE oid IS NOT NULL"
    " UNION ALL SELECT t.place, i.relid,"
    "          (SELECT c.relhassubclass FROM pg_class c WHERE c.oid = i.relid)"
    "   FROM tree t, unnest(ARRAY(SELECT i.inhrelid FROM pg_inherits i"
    "         WHERE i.inhparent = t.relid AND NOT i.inhdetachpending)) AS i (relid)"
    "  WHERE t.has_children::text = 'true'), ";

/* What the log says of a row that goes; a primary key that is dropped and made again has another
 * constraint, one whose index is built anew has not. Each partition has an identity of its own, and
 * its TRUNCATE, which gives it another file, is not told of a root's rows. Nor is what it was
 * filled with between being detached and attached again: its xmin tells of that; nor that its
 * identity was another index for a while: the index's own xmin does. */
static const char tables[] =
    "(SELECT string_agg(ROW(t.relid, (SELECT r.oid FROM published p, pg_publication_rel r"
    "            WHERE r.prrelid = t.relid AND r.prpubid = p.oid OFFSET 0),"
    "        (SELECT ROW(c.relkind, c.relpersistence,"
    "            CASE WHEN c.relispartition THEN ROW(c.relfilenode, c.xmin) END,"
    "            c.relreplident, (SELECT k.oid FROM pg_constraint k"
    "              WHERE k.conrelid = c.oid AND k.contype = 'p'),"
    "            (SELECT string_agg(ROW(x.indkey, x.indnkeyatts, x.indimmediate, x.indisvalid,"
    "                CASE WHEN c.relispartition THEN ROW(x.indexrelid, x.xmin) END)::text, ';')"
    "               FROM pg_index x WHERE x.indrelid = c.oid AND"
    "                CASE c.relreplident WHEN 'd' THEN x.indisprimary"
    "                                    WHEN 'i' THEN x.indisreplident ELSE false END))::text"
    "          FROM pg_class c WHERE c.oid = t.relid))::text, ';' ORDER BY t.relid)"
    "   FROM tree t WHERE t.place = f.place)";

/* A column's row has another xmin after an ALTER that kept its type and changed its values (TYPE
 * ... USING), and the same after a table was merely rewritten. Labels of enums are keys' texts,
 * also where the enum is but a part of the column's type, and so is each attribute of a composite.
 */
static const char key_columns[] =
    "(SELECT string_agg(ROW(k.number, (SELECT ROW(a.attnum, a.atttypid, a.atttypmod,"
    "            a.attcollation, a.attgenerated, a.xmin)::text"
    "          FROM pg_attribute a WHERE a.attrelid = f.oid AND a.attname = k.name))::text,"
    "        ';' ORDER BY k.number)"
    "   FROM unnest(f.columns) WITH ORDINALITY AS k (name, number)),"
    "(SELECT string_agg(ROW(p.type, (SELECT string_agg(ROW(e.enumlabel, e.xmin)::text, ','"
    "            ORDER BY e.oid) FROM pg_enum e WHERE e.enumtypid = p.type),"
    "        (SELECT string_agg(ROW(a.attnum, a.atttypid, a.xmin)::text, ',' ORDER BY a.attnum)"
    "           FROM pg_type y, pg_attribute a WHERE y.oid = p.type AND a.attrelid = y.typrelid"
    "            AND a.attnum > 0 AND NOT a.attisdropped))::text, ';' ORDER BY p.type)"
    "   FROM printed p WHERE p.place = f.place AND p.is_key)";

/* Rows that the role may not see are not in the COPY, but in the stream. */
static const char policies[] =
    "CASE WHEN f.relrowsecurity THEN (SELECT ROW(f.relforcerowsecurity, row_security_active(f.oid),"
    "        string_agg(to_jsonb(y)::text, ',' ORDER BY y.oid))::text"
    "    FROM pg_policy y WHERE y.polrelid = f.oid) END";

/* A partition's rows are told as those of an ancestor that is published, too. */
static const char ancestors[] =
    "CASE WHEN f.relispartition THEN (SELECT string_agg(ROW(a.relid::oid, (SELECT r.oid"
    "        FROM published p, pg_publication_rel r"
    "        WHERE r.prrelid = a.relid AND r.prpubid = p.oid OFFSET 0))::text, ',')"
    "    FROM pg_partition_ancestors(f.oid) a) END";

static void put_description(struct buffer *out)
{
    buffer_printf(
        out,
        "described AS (SELECT f.place, f.keyspace, CASE WHEN f.entry IS NULL THEN 0 ELSE f.oid END"
        " AS oid, ROW(f.oid, f.relnamespace, f.entry, %s, %s, %s, %s)::text AS text FROM found f) ",
        tables, key_columns, policies, ancestors);
}

/* For each keyspace two hashes of 64 bits, of all the tables that are followed for it, unlike md5()
 * there in every build of the server; then which server it is: a promoted standby has the same
 * catalogue, and a log of its own. */
static const char conclusion[] =
    "SELECT s.prints || '@' || extract(epoch FROM pg_postmaster_start_time()), s.oids,"
    "       pg_current_wal_insert_lsn() - '0/0'::pg_lsn, pg_current_wal_flush_lsn() - "
    "'0/0'::pg_lsn,"
    "       pg_current_snapshot()::text, (SELECT list FROM valued),"
    "       (SELECT string_agg(coalesce(l.relreplident::text, '-'), '' ORDER BY l.place)"
    "          FROM located l),"
    "       (SELECT string_agg('@' || l.names, ',' ORDER BY l.place) FROM located l"
    "         WHERE l.place = l.keyspace)"
    "  FROM (SELECT string_agg(d.oids, ',' ORDER BY d.keyspace)"
    "                || coalesce(',' || string_agg(d.more, ',' ORDER BY d.keyspace), '') AS oids,"
    "               string_agg(to_hex(hashtextextended(d.text, 0))"
    "                || to_hex(hashtextextended(d.text, 1)), ',' ORDER BY d.keyspace) AS prints"
    "          FROM (SELECT d.keyspace,"
    "                   max(d.oid::text) FILTER (WHERE d.place = d.keyspace) AS oids,"
    "                   string_agg(d.oid::text, ',' ORDER BY d.place)"
    "                     FILTER (WHERE d.place <> d.keyspace) AS more,"
    "                   (ROW((SELECT ROW(p.oid, p.flags, p.members)::text FROM published p),"
    "                    string_agg(d.text, '|' ORDER BY d.place))::text) COLLATE \"C\" AS text"
    "                  FROM described d GROUP BY d.keyspace OFFSET 0) d OFFSET 0) s";

/* Empty: there are fewer. */
static struct span print_of(const char *fingerprint, size_t keyspace)
{
    for (; keyspace; keyspace--) {
        fingerprint += strcspn(fingerprint, ",@");
        if (*fingerprint != ',')
            return (struct span){"", 0};
        fingerprint++;
    }
    return (struct span){fingerprint, strcspn(fingerprint, ",@")};
}

bool publication_agrees(const char *one, const char *other, size_t keyspace)
{
    struct span print = print_of(one, keyspace), other_print = print_of(other, keyspace);
    return print.length && print.length == other_print.length &&
           memcmp(print.at, other_print.at, print.length) == 0 &&
           strcmp(publication_server(one), publication_server(other)) == 0;
}

const char *publication_server(const char *fingerprint)
{
    const char *at = strchr(fingerprint, '@');
    return at ? at + 1 : "";
}

char *publication_probe_sql(const struct config *config)
{
    struct buffer out = {0};
    put_keyspaces(&out, config, true);
    buffer_printf(&out, "%s", published);
    put_literal(&out, config->publication);
    buffer_printf(&out, "), %s%s, %s%s", located, publication_values, found, tree);
    put_description(&out);
    buffer_printf(&out, "%s", conclusion);
    return buffer_string(&out);
}

char *publication_values_sql(const struct config *config)
{
    struct buffer out = {0};
    put_keyspaces(&out, config, false);
    buffer_printf(&out, "%s%s SELECT list FROM valued", located, publication_values);
    return buffer_string(&out);
}
