/* The question for a sample, which must be cheap on any table:
 *
 *   (SELECT "id", xmin FROM "items" TABLESAMPLE SYSTEM (share) WHERE ...
 *     ORDER BY random() LIMIT 300) UNION ALL
 *   (SELECT "id", xmin FROM "items" WHERE ctid < '(8,0)' AND ... LIMIT 100)
 *
 * The share is worked out by the server, from the table's size at that moment, so that about as
 * many pages are read of a large table as of a small one. Their rows are drawn from once more: the
 * limit alone would take those of the first few pages. The beginning is read by position, for a
 * LIMIT alone would go through the whole table where `where` wants few rows or none.
 *
 * That one is for the second question, which an index on the condition makes cheap: from a random
 * page on, so that not always the same rows are looked at, and from the beginning to there, if that
 * was not enough.
 *
 *   (SELECT "id", xmin FROM "items" WHERE ctid >= (start) AND ... LIMIT 100) UNION ALL
 *   (SELECT "id", xmin FROM "items" WHERE ctid < (start) AND ... LIMIT 100) LIMIT 100
 *
 * A condition may be about the moment, or about other tables: then a row's xmin does not tell since
 * when the keyspace has it, and NULL stands in its place.
 */
#include "follow/checks/selfcheck.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/identifier.h"
#include "database/condition_changes.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>

enum {
    SAMPLE_PAGES = 64,
    SAMPLE_ROWS = 300,
    FIRST_PAGES = 8,
    FIRST_ROWS = 100,
    SOUGHT_ROWS = 100,
    DRAWN_FROM = 10000 /* rows of a view */
};

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

/* The table, its partitions and whatever inherits from it. */
static void put_parts(struct buffer *out, const char *table)
{
    buffer_printf(out, "WITH RECURSIVE part(id) AS (SELECT ");
    put_literal(out, table);
    buffer_printf(out, "::regclass::oid UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN part"
                       " ON inhparent = part.id) ");
}

/* Of the pages of all parts, in percent. */
static void put_share(struct buffer *out, const char *table)
{
    buffer_printf(out, "(");
    put_parts(out, table);
    buffer_printf(out,
                  "SELECT least(100, 100.0 * %d * current_setting('block_size')::int"
                  " / greatest(1, sum(pg_relation_size(part.id))))::real FROM part)",
                  SAMPLE_PAGES);
}

/* The beginning of any page of the largest part. */
static void put_start(struct buffer *out, const char *table)
{
    put_parts(out, table);
    buffer_printf(out, "SELECT format('(%%s,0)', floor(random() * max(pg_relation_size(part.id))"
                       " / current_setting('block_size')::int))::tid AS at FROM part");
}

/* Ends after a comparison, a newline after `where`: see keyspace_sql.c. */
static void put_condition(struct buffer *out, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        char *column = identifier_quote(keyspace->key.column[i]);
        buffer_printf(out, "%s%s IS DISTINCT FROM NULL", i ? " AND " : "", column);
        free(column);
    }
    if (keyspace->where)
        buffer_printf(out, " AND (%s\n)", keyspace->where);
}

static void put_xmin(struct buffer *out, const struct keyspace *keyspace)
{
    if (!keyspace->where) {
        buffer_printf(out, ", xmin::text");
        return;
    }
    buffer_printf(out, ", CASE WHEN (" CONDITION_CHANGES_OF);
    put_literal(out, keyspace->where);
    buffer_printf(out, CONDITION_CHANGES_IS ") IS NULL THEN xmin::text END");
}

static void put_select(struct buffer *out, const struct keyspace *keyspace, const char *table,
                       bool plain)
{
    buffer_printf(out, "(SELECT ");
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        char *column = identifier_quote(keyspace->key.column[i]);
        buffer_printf(out, "%s%s", i ? ", " : "", column);
        free(column);
    }
    if (plain)
        buffer_printf(out, ", NULL::text");
    else
        put_xmin(out, keyspace);
    buffer_printf(out, " FROM %s", table);
}

static void put_sample(struct buffer *out, const struct keyspace *keyspace, const char *table,
                       bool plain)
{
    put_select(out, keyspace, table, plain);
    buffer_printf(out, " TABLESAMPLE SYSTEM (");
    put_share(out, table);
    buffer_printf(out, ") WHERE ");
    put_condition(out, keyspace);
    buffer_printf(out, " ORDER BY random() LIMIT %d) UNION ALL ", SAMPLE_ROWS);
    put_select(out, keyspace, table, plain);
    buffer_printf(out, " WHERE ");
    if (!plain)
        buffer_printf(out, "ctid < '(%d,0)' AND ", FIRST_PAGES);
    put_condition(out, keyspace);
    buffer_printf(out, " LIMIT %d)", FIRST_ROWS);
}

/* The name of the start is none that a condition would use for a table. */
static void put_seek(struct buffer *out, const struct keyspace *keyspace, const char *table)
{
    buffer_printf(out, "WITH \"nestguard's start\" AS MATERIALIZED (");
    put_start(out, table);
    buffer_printf(out, ") ");
    for (int part = 0; part < 2; part++) {
        put_select(out, keyspace, table, false);
        buffer_printf(out, " WHERE ctid %s (SELECT at FROM \"nestguard's start\") AND ",
                      part ? "<" : ">=");
        put_condition(out, keyspace);
        buffer_printf(out, " LIMIT %d)%s", SOUGHT_ROWS, part ? "" : " UNION ALL ");
    }
    buffer_printf(out, " LIMIT %d", SOUGHT_ROWS);
}

/*   SELECT * FROM (SELECT "id", NULL::text FROM "items" WHERE ... LIMIT 10000) AS first
 *    ORDER BY random() LIMIT 300
 *
 * How long that takes is for the view, and a time limit, to say. */
static void put_rows(struct buffer *out, const struct keyspace *keyspace, const char *table)
{
    buffer_printf(out, "SELECT * FROM ");
    put_select(out, keyspace, table, true);
    buffer_printf(out, " WHERE ");
    put_condition(out, keyspace);
    buffer_printf(out, " LIMIT %d) AS first ORDER BY random() LIMIT %d", DRAWN_FROM, SAMPLE_ROWS);
}

char *selfcheck_sql(const struct keyspace *keyspace, enum selfcheck_question question)
{
    struct buffer out = {0};
    char *table = keyspace_sql_rows(keyspace);
    if (question == SELFCHECK_SEEK)
        put_seek(&out, keyspace, table);
    else if (question == SELFCHECK_ROWS)
        put_rows(&out, keyspace, table);
    else
        put_sample(&out, keyspace, table, question == SELFCHECK_PLAIN);
    free(table);
    return buffer_string(&out);
}
