/* SQL of a keyspace. Names are quoted everywhere, so that any name that the catalogue can hold
 * works. The operator's `where` stands in parentheses of its own, and a newline ends it, so that
 * neither an OR nor a comment in it reaches what follows. So do his expressions, and his query.
 *
 * The table has no alias: all of these may then call columns table.column, in every statement
 * alike. A query's rows are those of a view that is called "query".
 */
#include "database/keyspace_sql.h"

#include "base/buffer.h"
#include "base/text/identifier.h"
#include "database/schema_altered.h"

#define QUERY_NAME "\"query\""

/* How many of the tables that the statement has locked have another file than its snapshot says,
 * another name, a schema that was altered since, or are not in it. */
#define SQL_REWRITTEN                                                                              \
    "SELECT count(*) FROM (SELECT DISTINCT relation AS oid FROM pg_catalog.pg_locks"               \
    " WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND granted"               \
    " AND relation >= 16384 AND database = (SELECT oid FROM pg_catalog.pg_database"                \
    " WHERE datname = pg_catalog.current_database())) AS held"                                     \
    " LEFT JOIN pg_catalog.pg_class AS c ON c.oid = held.oid"                                      \
    " LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"                            \
    " WHERE read.rows >= 0 AND (c.oid IS NULL OR " SCHEMA_ALTERED " OR (c.relkind IN ('r', 'm')"   \
    " AND c.relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(c.oid))"                  \
    " OR (c.relkind IN ('r', 'p', 'm', 'v', 'f') AND pg_catalog.format('%I.%I', n.nspname,"        \
    " c.relname) IS DISTINCT FROM (pg_catalog.pg_identify_object("                                 \
    "'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, 0)).identity))"

static void put(struct buffer *out, const char *text)
{
    buffer_append(out, text, strlen(text));
}

/* A semicolon at a query's end is no part of it: no constant and no quoted name ends with one, and
 * a comment may well lose it. */
static size_t query_length(const char *query)
{
    size_t length = strlen(query);
    while (length && strchr("; \t\r\n", query[length - 1]))
        length--;
    return length;
}

/* What a FROM names: "public"."items", or a query under a name of its own, which ends with a
 * newline as a condition does. */
static void put_rows(struct buffer *out, const struct keyspace *keyspace)
{
    if (keyspace->query) {
        buffer_printf(out, "(%.*s\n) AS " QUERY_NAME, (int)query_length(keyspace->query),
                      keyspace->query);
        return;
    }
    if (keyspace->table_schema) {
        identifier_put(out, keyspace->table_schema);
        put(out, ".");
    }
    identifier_put(out, keyspace->table_name);
}

char *keyspace_sql_rows(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    put_rows(&out, keyspace);
    return buffer_string(&out);
}

static void put_columns(struct buffer *out, const struct key_template *key)
{
    for (size_t i = 0; i < key->columns; i++) {
        put(out, i ? ", " : "");
        identifier_put(out, key->column[i]);
    }
}

/* In a CASE, where the server takes no function that returns a set: the row would be there as often
 * as the set has members, and one with none would look as if it were not there. */
static void put_expression(struct buffer *out, const char *expression)
{
    buffer_printf(out, "CASE WHEN true THEN (%s\n) END", expression);
}

char *keyspace_sql_expression(const char *expression)
{
    struct buffer out = {0};
    put_expression(&out, expression);
    return buffer_string(&out);
}

/*   (SELECT row_to_json(r.*) FROM (SELECT "name", "price") AS r)
 *
 * The inner query has no table, so the names are those of the row's columns. */
static void put_columns_as_json(struct buffer *out, const struct column_list *columns)
{
    put(out, "(SELECT row_to_json(r.*) FROM (SELECT ");
    for (size_t i = 0; i < columns->count; i++) {
        put(out, i ? ", " : "");
        identifier_put(out, columns->at[i]);
    }
    put(out, ") AS r)");
}

static void put_value(struct buffer *out, const struct keyspace *keyspace)
{
    if (keyspace->columns.count) {
        put_columns_as_json(out, &keyspace->columns);
    } else if (keyspace->value_is_json) {
        put(out, "row_to_json(");
        if (keyspace->query)
            put(out, QUERY_NAME);
        else
            identifier_put(out, keyspace->table_name);
        put(out, ".*)"); /* with .* it is the row, also where a column has the table's name */
    } else if (keyspace->value_expression) {
        put_expression(out, keyspace->value_expression);
    } else if (keyspace->value) {
        identifier_put(out, keyspace->value);
    } else {
        put(out, "NULL");
    }
}

/* The newline ends a comment that the condition may close with. */
static void put_where(struct buffer *out, const struct keyspace *keyspace)
{
    if (keyspace->where)
        buffer_printf(out, " AND (%s\n)", keyspace->where);
}

/* The rows that so many ways to split a key name. */
static void put_ways_condition(struct buffer *out, const struct keyspace *keyspace, size_t ways)
{
    size_t columns = keyspace->key.columns;
    put(out, ways > 1 ? " WHERE (" : " WHERE ");
    for (size_t i = 0; i < ways * columns; i++) {
        put(out, i == 0 ? "" : i % columns ? " AND " : " OR ");
        identifier_put(out, keyspace->key.column[i % columns]);
        buffer_printf(out, " = $%zu", i + 1);
    }
    put(out, ways > 1 ? ")" : "");
    put_where(out, keyspace);
}

/* The one row that a key names. */
static void put_row_condition(struct buffer *out, const struct keyspace *keyspace)
{
    put_ways_condition(out, keyspace, 1);
}

/* All rows that have a key: a row without a whole one cannot be asked for. A composite one has a
 * text also where one of its fields is NULL, and then it is, for SQL, not NOT NULL. */
static void put_rows_condition(struct buffer *out, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        put(out, i ? " AND " : " WHERE ");
        identifier_put(out, keyspace->key.column[i]);
        put(out, " IS DISTINCT FROM NULL");
    }
    put_where(out, keyspace);
}

/* The columns of a row under names that no other has. */
static void put_named_columns(struct buffer *out, const struct keyspace *keyspace)
{
    put_value(out, keyspace);
    put(out, " AS v");
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        put(out, ", ");
        identifier_put(out, keyspace->key.column[i]);
        buffer_printf(out, " AS k%zu", i + 1);
    }
    if (keyspace->ttl_expression) {
        put(out, ", ");
        put_expression(out, keyspace->ttl_expression);
        put(out, " AS ttl");
    }
}

/* Whatever its type is, both branches can be planned. */
static const char ttl_seconds[] =
    ", CASE WHEN pg_catalog.pg_typeof(ttl) = 'interval'::pg_catalog.regtype "
    "THEN extract(epoch FROM ttl::pg_catalog.text::interval)::pg_catalog.text "
    "ELSE ttl::pg_catalog.text END";

/* How many bytes are too many. A compressed value is at most 256 times as long as it is stored, and
 * of a text the length is known without reading it: mostly the first comparison is all there is. */
static void put_excess(struct buffer *out, size_t most)
{
    buffer_printf(out,
                  "CASE WHEN pg_catalog.pg_column_size(v) > %zu AND "
                  "pg_catalog.octet_length(v::pg_catalog.text) > %zu THEN "
                  "pg_catalog.octet_length(v::pg_catalog.text) END AS excess",
                  most / 256, most);
}

/*   SELECT CASE WHEN excess IS NULL THEN v END, k1, excess FROM
 *     (SELECT v, k1, CASE WHEN ... THEN octet_length(v::text) END AS excess FROM
 *       (SELECT "payload" AS v, "id" AS k1 FROM "public"."items" WHERE "id" = $1 AND (where)
 *        OFFSET 0) AS r OFFSET 0) AS r
 *
 * The key columns come back so that their printed form can be compared with the key (rows.c).
 * OFFSET keeps the queries apart, so that the value is computed once. With a ttl_expression that
 * is a column `ttl` inside, and behind `excess` in the result.
 */
char *keyspace_sql_load(const struct keyspace *keyspace, size_t most)
{
    struct buffer out = {0};
    put(&out, "SELECT CASE WHEN excess IS NULL THEN v END");
    for (size_t i = 0; i < keyspace->key.columns; i++)
        buffer_printf(&out, ", k%zu", i + 1);
    put(&out, ", excess");
    put(&out, keyspace->ttl_expression ? ttl_seconds : "");
    put(&out, " FROM (SELECT *, ");
    put_excess(&out, most);
    put(&out, " FROM (SELECT ");
    put_named_columns(&out, keyspace);
    put(&out, " FROM ");
    put_rows(&out, keyspace);
    put_row_condition(&out, keyspace);
    put(&out, " OFFSET 0) AS r OFFSET 0) AS r");
    return buffer_string(&out);
}

/*   SELECT NULL, "id" FROM "public"."items" WHERE "id" = $1 AND (where) */
char *keyspace_sql_find(const struct keyspace *keyspace, size_t ways)
{
    struct buffer out = {0};
    put(&out, "SELECT NULL, ");
    put_columns(&out, &keyspace->key);
    put(&out, " FROM ");
    put_rows(&out, keyspace);
    put_ways_condition(&out, keyspace, ways);
    return buffer_string(&out);
}

/*   WITH asked AS MATERIALIZED (SELECT "id" AS k1 FROM "public"."shown" WHERE "id" = $1 AND
 * (where)), read AS MATERIALIZED (SELECT count(*) AS rows FROM asked) SELECT (SELECT count(*) FROM
 * (tables that this statement has locked) WHERE ... read.rows >= 0), k1 FROM read LEFT JOIN asked
 * ON true
 *
 * Locks are held until the statement ends, and what the subquery compares is worked out behind the
 * reading: the catalogue's rows are those of the statement's snapshot, what the functions say of
 * them is true now. */
char *keyspace_sql_confirm(const struct keyspace *keyspace, size_t ways)
{
    struct buffer out = {0};
    put(&out, "WITH asked AS MATERIALIZED (SELECT ");
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        put(&out, i ? ", " : "");
        identifier_put(&out, keyspace->key.column[i]);
        buffer_printf(&out, " AS k%zu", i + 1);
    }
    put(&out, " FROM ");
    put_rows(&out, keyspace);
    put_ways_condition(&out, keyspace, ways);
    put(&out,
        "), read AS MATERIALIZED (SELECT count(*) AS rows FROM asked) SELECT (" SQL_REWRITTEN ")");
    for (size_t i = 0; i < keyspace->key.columns; i++)
        buffer_printf(&out, ", k%zu", i + 1);
    put(&out, " FROM read LEFT JOIN asked ON true");
    return buffer_string(&out);
}

/* SELECT "id" FROM "public"."items" WHERE "id" IS DISTINCT FROM NULL AND (where) */
static void put_keys_of_rows(struct buffer *out, const struct keyspace *keyspace)
{
    put(out, "SELECT ");
    put_columns(out, &keyspace->key);
    put(out, " FROM ");
    put_rows(out, keyspace);
    put_rows_condition(out, keyspace);
}

/*   SELECT "id" FROM "public"."items" WHERE "id" IS DISTINCT FROM NULL AND (where) LIMIT 1 */
char *keyspace_sql_sample(const struct keyspace *keyspace, unsigned most)
{
    struct buffer out = {0};
    put_keys_of_rows(&out, keyspace);
    buffer_printf(&out, " LIMIT %u", most);
    return buffer_string(&out);
}

/*   DELETE FROM "public"."items" WHERE "id" = $1 AND (where)
 *
 * With the condition: a row that the keyspace does not count is not its to delete.
 */
char *keyspace_sql_remove(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    put(&out, "DELETE FROM ");
    put_rows(&out, keyspace);
    put_row_condition(&out, keyspace);
    return buffer_string(&out);
}

/*   SELECT coalesce((NULL::"public"."items")."id", $1)
 *
 * The parameters get the columns' own types. In the comparison of keyspace_sql_load() they may get
 * others, which do not take the text of every row: to a regclass, whose text is a name, an oid is
 * compared. The table is named as the type that its rows have: there is no FROM, and so nothing of
 * the table, of a view or of `where` that could fail, only the texts' way to their types.
 */
char *keyspace_sql_accepts(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        put(&out, i ? ", coalesce((NULL::" : "SELECT coalesce((NULL::");
        put_rows(&out, keyspace);
        put(&out, ").");
        identifier_put(&out, keyspace->key.column[i]);
        buffer_printf(&out, ", $%zu)", i + 1);
    }
    return buffer_string(&out);
}

/*   SELECT count(*) FROM "public"."items" WHERE "id" IS DISTINCT FROM NULL AND (where)
 *
 * The same rows as keyspace_sql_copy(), so that a filter made for that count has room for all of
 * them.
 */
char *keyspace_sql_count(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    put(&out, "SELECT count(*) FROM ");
    put_rows(&out, keyspace);
    put_rows_condition(&out, keyspace);
    return buffer_string(&out);
}

/*   SELECT count(*) FROM (SELECT FROM "public"."items" WHERE ... LIMIT 50) AS counted */
char *keyspace_sql_count_to(const struct keyspace *keyspace, uint64_t most)
{
    struct buffer out = {0};
    put(&out, "SELECT count(*) FROM (SELECT FROM ");
    put_rows(&out, keyspace);
    put_rows_condition(&out, keyspace);
    buffer_printf(&out, " LIMIT %llu) AS counted", (unsigned long long)most);
    return buffer_string(&out);
}

/*   SELECT "id" FROM "public"."items" WHERE ... GROUP BY "id" HAVING count(*) > 1 LIMIT 1 */
char *keyspace_sql_twice(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    put_keys_of_rows(&out, keyspace);
    put(&out, " GROUP BY ");
    put_columns(&out, &keyspace->key);
    put(&out, " HAVING count(*) > 1 LIMIT 1");
    return buffer_string(&out);
}

/*   COPY (SELECT "id" FROM "public"."items" WHERE "id" IS DISTINCT FROM NULL AND (where)) TO STDOUT
 */
char *keyspace_sql_copy(const struct keyspace *keyspace)
{
    return keyspace_sql_copy_pages(keyspace, 0, PAGES_END);
}

/*   SELECT "id" FROM "public"."items" LIMIT 0 */
char *keyspace_sql_columns(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    put(&out, "SELECT ");
    put_columns(&out, &keyspace->key);
    put(&out, " FROM ");
    put_rows(&out, keyspace);
    put(&out, " LIMIT 0");
    return buffer_string(&out);
}

/*   ... AND ctid >= '(0,0)' AND ctid < '(64,0)'
 *
 * Not for all pages: views and foreign tables have none. */
char *keyspace_sql_copy_pages(const struct keyspace *keyspace, uint64_t first, uint64_t end)
{
    struct buffer out = {0};
    put(&out, "COPY (");
    put_keys_of_rows(&out, keyspace);
    if (first > 0)
        buffer_printf(&out, " AND ctid >= '(%llu,0)'", (unsigned long long)first);
    if (end < PAGES_END)
        buffer_printf(&out, " AND ctid < '(%llu,0)'", (unsigned long long)end);
    put(&out, ") TO STDOUT");
    return buffer_string(&out);
}

/*   string_agg(pg_catalog.int8send("id"), '')
 *
 * A row in which one of the columns is NULL gives NULL, which string_agg() leaves out. */
static void put_packed_columns(struct buffer *out, const struct key_template *key,
                               const enum column_packing *packing)
{
    for (size_t i = 0; i < key->columns; i++) {
        put(out, i ? " || " : "string_agg(");
        put(out, packing[i] == PACKS_UUID ? "pg_catalog.uuid_send(" : "pg_catalog.int8send(");
        identifier_put(out, key->column[i]);
        put(out, ")");
    }
    put(out, ", '')");
}

/*   COPY (SELECT (SELECT string_agg(pg_catalog.int8send("id"), '') FROM "public"."items"
 *                  WHERE ctid >= format('(%s,0)', a.page)::tid
 *                    AND ctid < format('(%s,0)',
 *                          CASE WHEN a.page + 16 < 1024 THEN a.page + 16 ELSE 1024 END)::tid)
 *           FROM generate_series(0, 1023, 16) AS a (page)) TO STDOUT (FORMAT binary)
 *
 * A name of the inner query hides the outer one's, so the outer one is called as the table is not.
 */
char *keyspace_sql_pack_pages(const struct keyspace *keyspace, const enum column_packing *packing,
                              uint64_t first, uint64_t pages, bool last)
{
    struct buffer out = {0};
    const char *outer = strcmp(keyspace->table_name, "a") != 0 ? "a" : "b";
    unsigned long long end = first + pages, limit = last ? PAGES_END : end;
    put(&out, "COPY (SELECT (SELECT ");
    put_packed_columns(&out, &keyspace->key, packing);
    put(&out, " FROM ");
    put_rows(&out, keyspace);
    buffer_printf(&out,
                  " WHERE ctid >= format('(%%s,0)', %s.page)::tid AND ctid < format('(%%s,0)',"
                  " CASE WHEN %s.page + %d < %llu THEN %s.page + %d ELSE %llu END)::tid)"
                  " FROM generate_series(%llu, %llu, %d) AS %s (page)) TO STDOUT (FORMAT binary)",
                  outer, outer, PACKED_PAGES, end, outer, PACKED_PAGES, limit,
                  (unsigned long long)first, end - 1, PACKED_PAGES, outer);
    return buffer_string(&out);
}
