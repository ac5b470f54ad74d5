/* A key must mean one row at most: some unique index over the key columns, or over fewer of them,
 * has to say so. An index that says so only of some rows (partial) counts when `where` names
 * exactly these; one that does not hold at every moment (deferrable, not valid) does not count. */
#include "base/buffer.h"
#include "base/memory.h"
#include "database/catalogue/subject.h"
#include <stdlib.h>

enum index_cell { INDEX_NAME, INDEX_PREDICATE, INDEX_VALID, INDEX_IMMEDIATE };

/* Unique indexes whose columns are all among $2..$9. An expression has no column, so that an index
 * with one never is. */
static const char list_indexes[] =
    "SELECT i.indexrelid::regclass, pg_get_expr(i.indpred, i.indrelid),"
    "       i.indisvalid AND i.indisready, i.indimmediate"
    "  FROM pg_index i"
    " WHERE i.indrelid = $1::oid AND i.indisunique AND ("
    "       SELECT count(*) FROM unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)"
    "         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
    "        WHERE k.place <= i.indnkeyatts AND k.attnum > 0 AND a.attname = ANY"
    "              (ARRAY[$2, $3, $4, $5, $6, $7, $8, $9]::text[])) = i.indnkeyatts"
    " ORDER BY i.indisprimary DESC, 1";

/* Whether `where` is the index's own condition. */
static bool covers(const struct subject *subject, const char *predicate, bool *unsure)
{
    struct pg_error error;
    const char *where = subject->keyspace->where;
    if (!predicate[0] || !where)
        return !predicate[0];
    enum condition_answer answer = condition_is_same(subject, where, predicate, &error);
    if (answer == CONDITION_UNKNOWN && !*unsure) {
        *unsure = true;
        inspection_note(subject->inspection, &error);
        if (!questions_lost(subject->questions))
            subject_report(subject, questions_severity(&error), NULL,
                           "where could not be compared with the condition of an index: %s (is "
                           "table %s locked?)",
                           error.text, subject_table(subject));
    }
    return answer == CONDITION_YES;
}

/* Why the index does not make the key unique; NULL when it does. */
static char *weakness(const struct subject *subject, const PGresult *indexes, int row, bool *unsure)
{
    const char *name = answer_text(indexes, row, INDEX_NAME);
    const char *predicate = answer_text(indexes, row, INDEX_PREDICATE);
    if (!answer_true(indexes, row, INDEX_VALID))
        return xasprintf("index %s is not valid: drop it before it is made anew", name);
    if (!answer_true(indexes, row, INDEX_IMMEDIATE))
        return xasprintf("index %s is deferrable: a key may have two rows until a commit", name);
    if (covers(subject, predicate, unsure))
        return NULL;
    return xasprintf("index %s covers only rows with %s, which counts only for a keyspace with "
                     "that condition as its `where`",
                     name, predicate);
}

/* CREATE UNIQUE INDEX for all key columns, the keyspace's condition included: other rows may well
 * repeat a key. */
static char *remedy(const struct subject *subject)
{
    const struct keyspace *keyspace = subject->keyspace;
    struct buffer sql = {0};
    bool partitioned = answer_text(subject->table, 0, TABLE_KIND)[0] == 'p';
    buffer_printf(&sql, "CREATE UNIQUE INDEX %sON %s (", partitioned ? "" : "CONCURRENTLY ",
                  subject_table(subject));
    for (size_t i = 0; i < keyspace->key.columns; i++) {
        int row = subject_column(subject, keyspace->key.column[i]);
        buffer_printf(&sql, "%s%s", i ? ", " : "",
                      answer_text(subject->columns, row, COLUMN_QUOTED));
    }
    buffer_printf(&sql, ")");
    if (keyspace->where)
        buffer_printf(&sql, " WHERE %s", keyspace->where);
    buffer_printf(&sql, ";%s",
                  partitioned ? " -- the columns of the partition key must be among them" : "");
    return buffer_string(&sql);
}

/* `near_miss`: why the first of the indexes that are there will not do; NULL: there is none. */
static void report(const struct subject *subject, const char *near_miss)
{
    char *sql = remedy(subject);
    subject_report(subject, PROBLEM_ERROR, sql,
                   "key: table %s has no unique index on the key columns, or on some of them, so "
                   "that a key could mean several rows%s%s",
                   subject_table(subject), near_miss ? "; " : "", near_miss ? near_miss : "");
    free(sql);
}

void inspect_unique_index(const struct subject *subject)
{
    const struct key_template *key = &subject->keyspace->key;
    const char *columns[KEY_COLUMNS_MAX] = {NULL};
    char *near_miss = NULL;
    bool unique = false, unsure = false;
    for (size_t i = 0; i < key->columns; i++)
        columns[i] = key->column[i];
    PGresult *indexes = subject_ask(subject, "indexes", list_indexes, columns, KEY_COLUMNS_MAX);
    for (int row = 0; row < PQntuples(indexes) && !unique; row++) {
        char *why = weakness(subject, indexes, row, &unsure);
        unique = !why;
        if (near_miss)
            free(why);
        else
            near_miss = why;
    }
    if (indexes && !unique && !unsure)
        report(subject, near_miss);
    free(near_miss);
    PQclear(indexes);
}
