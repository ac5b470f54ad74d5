/* The question for a sample, which must be cheap on any table:
 *
 *   (SELECT "id" FROM "items" TABLESAMPLE SYSTEM (share) WHERE ... ORDER BY random() LIMIT 300)
 *   UNION ALL
 *   (SELECT "id" FROM "items" WHERE ctid < '(8,0)' AND ... LIMIT 100)
 *
 * The share is worked out by the server, from the table's size at that moment, so that about as
 * many pages are read of a large table as of a small one. Their rows are drawn from once more: the
 * limit alone would take those of the first few pages. The beginning is read by position, for a
 * LIMIT alone would go through the whole table where `where` wants few rows or none.
 */
#include "selfcheck.h"

#include "buffer.h"
#include "identifier.h"
#include "memory.h"

#include <stdlib.h>

enum { SAMPLE_PAGES = 64, SAMPLE_ROWS = 300, FIRST_PAGES = 8, FIRST_ROWS = 100 };

static char *quote_table(const struct keyspace *keyspace)
{
    char *name = identifier_quote(keyspace->table_name);
    if (!keyspace->table_schema)
        return name;
    char *schema = identifier_quote(keyspace->table_schema);
    char *table = xasprintf("%s.%s", schema, name);
    free(schema);
    free(name);
    return table;
}

/* Between E'', in which a backslash means the same whatever the server's settings are. */
static void put_literal(struct buffer *out, const char *text)
{
    buffer_append(out, "E'", 2);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buffer_append(out, text, 1);
        buffer_append(out, text, 1);
    }
    buffer_append(out, "'", 1);
}

/* Of the pages of the table, its partitions and whatever inherits from it, in percent. */
static void put_share(struct buffer *out, const char *table)
{
    buffer_printf(out, "(WITH RECURSIVE part(id) AS (SELECT ");
    put_literal(out, table);
    buffer_printf(out,
                  "::regclass::oid UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN part"
                  " ON inhparent = part.id) SELECT least(100, 100.0 * %d"
                  " * current_setting('block_size')::int"
                  " / greatest(1, sum(pg_relation_size(part.id))))::real FROM part)",
                  SAMPLE_PAGES);
}

/* Ends after a comparison, a newline after `where`: see keyspace_sql.c. */
static void put_condition(struct buffer *out, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        char *column = identifier_quote(keyspace->key.column[i]);
        buffer_printf(out, "%s%s IS NOT NULL", i ? " AND " : "", column);
        free(column);
    }
    if (keyspace->where)
        buffer_printf(out, " AND (%s\n)", keyspace->where);
}

static void put_select(struct buffer *out, const struct keyspace *keyspace, const char *table)
{
    buffer_printf(out, "(SELECT ");
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        char *column = identifier_quote(keyspace->key.column[i]);
        buffer_printf(out, "%s%s", i ? ", " : "", column);
        free(column);
    }
    buffer_printf(out, " FROM %s", table);
}

char *selfcheck_sql(const struct keyspace *keyspace)
{
    struct buffer out = {0};
    char *table = quote_table(keyspace);
    put_select(&out, keyspace, table);
    buffer_printf(&out, " TABLESAMPLE SYSTEM (");
    put_share(&out, table);
    buffer_printf(&out, ") WHERE ");
    put_condition(&out, keyspace);
    buffer_printf(&out, " ORDER BY random() LIMIT %d) UNION ALL ", SAMPLE_ROWS);
    put_select(&out, keyspace, table);
    buffer_printf(&out, " WHERE ctid < '(%d,0)' AND ", FIRST_PAGES);
    put_condition(&out, keyspace);
    buffer_printf(&out, " LIMIT %d)", FIRST_ROWS);
    char *sql = xstrndup(buffer_span(&out).at, buffer_length(&out));
    buffer_finish(&out);
    free(table);
    return sql;
}
