/* From a cache key to one row, and back to the keeper:
 *
 *   key ─split─▶ way 0 ─▶ query ─┬─ a row whose printed columns are the key's ─▶ done
 *                 ▲              ├─ none: the next way; absent when there is no other, with the
 *                 │              │  key of a row that came all the same, equal to this one
 *                 │              └─ an error about a value ─▶ do the columns accept the texts?
 *                 │                      no: the next way ◀───┴───▶ yes: once more, parsed anew
 *                 └──────────────────────┘
 *
 * An error about a value (SQLSTATE class 22) does not say whose value. That of the key's texts
 * means that no row has the key; that of a row that is there, or of what `where` makes of it, means
 * that nobody knows. So the server is asked about the texts alone. What an expression makes of a
 * row is like `where`: its error is a failure. Of a query the server cannot be asked about the
 * texts alone, only together with its constants, which may be what fails: there each such error is
 * a failure.
 *
 * That there is none is asked once more where a view, a query or a condition may call a function
 * (without a log: of what is followed the server allows none). What a statement names it locks
 * before it takes its snapshot, so that a table which somebody rewrites, and commits meanwhile, is
 * seen as it is then. What a function reads it locks behind that: then the table looks empty, and
 * the rows that it had before and has since are in no answer. Such a thing is seen by the locks,
 * behind the reading, in one statement with it (keyspace_sql_confirm()), which is asked again.
 *
 * A statement's number in the pool is keyspace * STATEMENTS + what it does.
 */
#include "database/rows.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>

enum { BYTEA_OID = 17, CONFIRM_MAX = 8 /* times that a way is asked for again */ };

enum {
    STATEMENT_LOAD,
    STATEMENT_LOAD_ANEW,
    STATEMENT_LOAD_LARGE,
    STATEMENT_FIND,
    STATEMENT_CONFIRM,
    STATEMENT_REMOVE,
    STATEMENT_ACCEPTS,
    STATEMENTS
};

struct query {
    const struct rows *rows;
    struct key key;
    unsigned first;              /* statement of each way */
    unsigned statement;          /* under way */
    struct row_lane_place place; /* with STATEMENT_LOAD_LARGE */
    struct pg_error refusal;     /* with STATEMENT_ACCEPTS: what it is asked for */
    unsigned confirmed;          /* so often the way was asked for again */
    size_t way, ways;            /* the one being tried, and the one before which to stop */
    struct span splits[ROW_WAYS_MAX][KEY_COLUMNS_MAX]; /* of the key's text */
    struct buffer other;                               /* the key of a row that equals it */
    row_cb done;
    void *arg;
    char text[]; /* the key's */
};

void rows_statements_init(struct rows_statements *statements, const struct config *config)
{
    statements->count = config->keyspace_count * STATEMENTS;
    statements->at = xcalloc(statements->count, sizeof *statements->at);
    for (size_t i = 0; i < config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        if (!keyspace_is_of_rows(keyspace)) /* nothing is ever asked of it */
            continue;
        int params = (int)keyspace->key.columns;
        struct pg_statement *own = &statements->at[i * STATEMENTS];
        size_t most = config->max_value;
        char *load = keyspace_sql_load(keyspace, most < ROW_SMALL ? most : ROW_SMALL);
        own[STATEMENT_LOAD] = (struct pg_statement){load, params, false};
        own[STATEMENT_LOAD_ANEW] = (struct pg_statement){load, params, true};
        own[STATEMENT_LOAD_LARGE] =
            (struct pg_statement){keyspace_sql_load(keyspace, most), params, true};
        own[STATEMENT_FIND] = (struct pg_statement){keyspace_sql_find(keyspace), params, true};
        own[STATEMENT_CONFIRM] =
            (struct pg_statement){keyspace_sql_confirm(keyspace), params, true};
        if (keyspace->query) /* the two below are never asked */
            continue;
        own[STATEMENT_REMOVE] = (struct pg_statement){keyspace_sql_remove(keyspace), params, true};
        own[STATEMENT_ACCEPTS] =
            (struct pg_statement){keyspace_sql_accepts(keyspace), params, true};
    }
}

void rows_statements_finish(struct rows_statements *statements)
{
    for (size_t i = 0; i < statements->count; i++)
        if (i % STATEMENTS != STATEMENT_LOAD_ANEW) /* which is that of STATEMENT_LOAD */
            free((char *)statements->at[i].sql);
    free(statements->at);
    *statements = (struct rows_statements){0};
}

static const struct keyspace *keyspace_of(const struct query *query)
{
    return &query->rows->config->keyspaces[query->key.keyspace];
}

static bool removes(const struct query *query)
{
    return query->first == STATEMENT_REMOVE;
}

static bool loads(const struct query *query)
{
    return query->first == STATEMENT_LOAD;
}

/* ---- answers ---- */

/* The key's columns as the server prints them; false when one is NULL. */
static bool read_columns(const struct query *query, const PGresult *result, int row,
                         struct span *columns)
{
    for (size_t c = 0; c < keyspace_of(query)->key.columns; c++) {
        int column = (int)c + 1; /* behind the value */
        if (PQgetisnull(result, row, column))
            return false;
        columns[c] = (struct span){PQgetvalue(result, row, column),
                                   (size_t)PQgetlength(result, row, column)};
    }
    return true;
}

/* The server compares values, the guard texts. */
static bool is_key_of_row(const struct query *query, const PGresult *result, int row)
{
    const struct span *asked = query->splits[query->way];
    struct span columns[KEY_COLUMNS_MAX];
    if (!read_columns(query, result, row, columns))
        return false;
    for (size_t c = 0; c < keyspace_of(query)->key.columns; c++)
        if (columns[c].length != asked[c].length ||
            memcmp(columns[c].at, asked[c].at, asked[c].length) != 0)
            return false;
    return true;
}

/* By their values' bytes; what was not sent, for its size, comes last. */
static bool comes_before(const struct query *query, const PGresult *result, int row, int other)
{
    int excess = (int)keyspace_of(query)->key.columns + 1;
    int length = PQgetlength(result, row, 0), others = PQgetlength(result, other, 0);
    bool is_sent = PQgetisnull(result, row, excess), other_is = PQgetisnull(result, other, excess);
    if (!is_sent || !other_is)
        return is_sent;
    int order = memcmp(PQgetvalue(result, row, 0), PQgetvalue(result, other, 0),
                       (size_t)(length < others ? length : others));
    return order < 0 || (order == 0 && length < others);
}

/* Or -1. Several rows may equal what was asked, where the unique index tells apart what the column
 * does not (it has another collation): any of them may be the key's. And in a view several may be:
 * then always the same one of them is. */
static int row_of_key(const struct query *query, const PGresult *result)
{
    int found = -1;
    for (int row = 0; row < PQntuples(result); row++)
        if (is_key_of_row(query, result, row) &&
            (found < 0 || comes_before(query, result, row, found)))
            found = row;
    return found;
}

/* Of a result without the key's row. */
static void note_other_spelling(struct query *query, const PGresult *result)
{
    struct span columns[KEY_COLUMNS_MAX];
    if (query->other.bytes || !PQntuples(result) || !read_columns(query, result, 0, columns))
        return;
    buffer_reserve(&query->other, 1); /* the empty text may be a key, too */
    key_template_render(&keyspace_of(query)->key, columns, &query->other);
}

static struct blob *blob_of(const void *value, size_t length)
{
    char *bytes;
    struct blob *blob = blob_create(length, &bytes);
    if (blob)
        memcpy(bytes, value, length);
    return blob;
}

/* NULL: there is no memory for it. */
static struct blob *value_of(const PGresult *result, int row)
{
    const char *text = PQgetvalue(result, row, 0);
    size_t length = (size_t)PQgetlength(result, row, 0);
    if (PQftype(result, 0) != BYTEA_OID)
        return blob_of(text, length);
    unsigned char *raw = PQunescapeBytea((const unsigned char *)text, &length);
    if (!raw) /* for nothing else: the text comes from the server's own output function */
        return NULL;
    struct blob *blob = blob_of(raw, length);
    PQfreemem(raw);
    return blob;
}

/* SQLSTATE class 22, "data exception". */
static bool is_about_a_value(const struct pg_answer *answer)
{
    return answer->outcome == PG_REFUSED && !strncmp(answer->error.sqlstate, "22", 2);
}

static enum load_outcome outcome_of(const struct query *query, const struct pg_answer *answer)
{
    switch (answer->outcome) {
    case PG_DONE:
        if (removes(query))
            return LOAD_ROW;
        return row_of_key(query, answer->result) >= 0 ? LOAD_ROW : LOAD_ABSENT;
    case PG_REFUSED:
        return LOAD_REFUSED;
    case PG_TIMEOUT:
        return LOAD_TIMEOUT;
    case PG_DOWN:
        break;
    }
    return LOAD_DOWN;
}

static void finish(struct query *query, const struct row_result *result)
{
    query->done(query->arg, result);
    buffer_finish(&query->other);
    free(query);
}

static void ask(struct query *query, unsigned statement);

static void next_way(struct query *query)
{
    struct row_result result = {.outcome = LOAD_ABSENT, .error = ""};
    query->confirmed = 0;
    if (++query->way < query->ways) {
        ask(query, query->first);
        return;
    }
    if (query->other.bytes)
        result.other_spelling = buffer_span(&query->other);
    finish(query, &result);
}

/* Whether the columns accept the texts. If they do, the error was a row's, or the statement's types
 * were those that the columns had when it was prepared: then it goes well when it is new. */
static void on_accepts(struct query *query, const struct pg_answer *answer)
{
    struct row_result result = {.outcome = LOAD_REFUSED, .error = query->refusal.text};
    if (is_about_a_value(answer)) {
        next_way(query);
    } else if (answer->outcome == PG_DONE && loads(query)) {
        ask(query, STATEMENT_LOAD_ANEW);
    } else {
        if (answer->outcome != PG_DONE)
            result = (struct row_result){.outcome = outcome_of(query, answer),
                                         .error = answer->error.text};
        finish(query, &result);
    }
}

/* Of a value that was not sent; 0: it was. */
static size_t excess_of(const struct query *query, const PGresult *result, int row)
{
    int column = (int)keyspace_of(query)->key.columns + 1;
    return PQgetisnull(result, row, column) ? 0
                                            : strtoull(PQgetvalue(result, row, column), NULL, 10);
}

static void enter_lane(struct row_lane_place *place)
{
    ask(container_of(place, struct query, place), STATEMENT_LOAD_LARGE);
}

/* A row without its value. */
static void on_large(struct query *query, const struct row_result *result, size_t bytes)
{
    bool again =
        bytes <= query->rows->config->max_value && query->statement != STATEMENT_LOAD_LARGE;
    struct row_result large = *result;
    if (again && query->rows->lane) {
        query->place = (struct row_lane_place){.bytes = bytes, .enter = enter_lane};
        row_lane_wait(query->rows->lane, &query->place);
    } else if (again) {
        ask(query, STATEMENT_LOAD_LARGE);
    } else {
        large.outcome = LOAD_TOO_LARGE;
        finish(query, &large);
    }
}

/* Without a ttl_expression there is no such column; the settings may be others by now. */
static int64_t ttl_of(const struct query *query, const PGresult *result, int row)
{
    int column = (int)keyspace_of(query)->key.columns + 2;
    bool is_said = column < PQnfields(result) && !PQgetisnull(result, row, column);
    return row_ttl_ms(is_said ? PQgetvalue(result, row, column) : NULL);
}

/* Of a row that was loaded: with its value, or asks for that otherwise. */
static void on_loaded(struct query *query, const PGresult *found, struct row_result *result)
{
    int row = row_of_key(query, found);
    size_t excess = excess_of(query, found, row);
    if (excess) {
        on_large(query, result, excess);
        return;
    }
    result->ttl_ms = ttl_of(query, found, row);
    result->value = value_of(found, row);
    if (!result->value) {
        result->outcome = LOAD_REFUSED;
        result->error = "no memory for the row's value";
    }
    finish(query, result);
}

static void on_found(struct query *query, const struct pg_answer *answer)
{
    struct row_result result = {
        .outcome = outcome_of(query, answer), .way = query->way, .error = answer->error.text};
    bool is_row = result.outcome == LOAD_ROW;
    if (is_row && removes(query))
        result.removed = atoll(PQcmdTuples((PGresult *)answer->result));
    else if (is_row)
        result.equals = PQntuples(answer->result);
    if (is_row && loads(query))
        on_loaded(query, answer->result, &result);
    else
        finish(query, &result);
}

/* Whether an error about a value leaves something to ask, which is done then. */
static bool is_doubted(struct query *query, const struct pg_answer *answer)
{
    bool of_query = keyspace_of(query)->query;
    if (!is_about_a_value(answer) || query->statement == STATEMENT_LOAD_ANEW ||
        query->statement == STATEMENT_LOAD_LARGE || (of_query && !loads(query)))
        return false;
    query->refusal = answer->error;
    ask(query, of_query ? STATEMENT_LOAD_ANEW : STATEMENT_ACCEPTS);
    return true;
}

/* No row is the answer to the way's question. */
static void doubt_absence(struct query *query, const PGresult *result)
{
    note_other_spelling(query, result);
    if (query->rows->config->sync == SYNC_REPLICATION)
        next_way(query);
    else
        ask(query, STATEMENT_CONFIRM);
}

/* A row that has come since is asked for as if it had been there. */
static void on_confirm(struct query *query, const struct pg_answer *answer)
{
    struct row_result result = {.outcome = outcome_of(query, answer), .error = answer->error.text};
    bool is_known = answer->outcome == PG_DONE && !strcmp(PQgetvalue(answer->result, 0, 0), "0");
    if (is_known && result.outcome == LOAD_ABSENT) {
        next_way(query);
    } else if (answer->outcome == PG_DONE && query->confirmed++ < CONFIRM_MAX) {
        ask(query, is_known ? query->first : STATEMENT_CONFIRM);
    } else {
        if (answer->outcome == PG_DONE)
            result = (struct row_result){.outcome = LOAD_REFUSED,
                                         .error = "what it reads is rewritten all the time"};
        finish(query, &result);
    }
}

static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct query *query = arg;
    if (query->statement == STATEMENT_LOAD_LARGE && query->rows->lane)
        row_lane_leave(query->rows->lane, &query->place);
    if (query->statement == STATEMENT_ACCEPTS) {
        on_accepts(query, answer);
    } else if (query->statement == STATEMENT_CONFIRM) {
        on_confirm(query, answer);
    } else if (is_doubted(query, answer)) {
        return;
    } else if (outcome_of(query, answer) == LOAD_ABSENT) {
        doubt_absence(query, answer->result);
    } else {
        on_found(query, answer);
    }
}

/* ---- asking ---- */

/* About the way that is being tried. Parameters go as C strings, which the pool copies. */
static void ask(struct query *query, unsigned statement)
{
    const struct key_template *key = &keyspace_of(query)->key;
    char *texts[KEY_COLUMNS_MAX];
    for (size_t c = 0; c < key->columns; c++)
        texts[c] = xspandup(query->splits[query->way][c]);
    query->statement = statement;
    pg_pool_submit(query->rows->pool, (size_t)query->key.keyspace * STATEMENTS + statement,
                   (const char *const *)texts, on_answer, query);
    for (size_t c = 0; c < key->columns; c++)
        free(texts[c]);
}

static struct query *query_create(const struct rows *rows, struct key key, unsigned first,
                                  row_cb done, void *arg)
{
    struct query *query = xmalloc(sizeof *query + key.text.length);
    query->rows = rows;
    query->first = first;
    query->way = query->confirmed = 0;
    query->other = (struct buffer){0};
    query->done = done;
    query->arg = arg;
    query->key = key_copy(key, query->text);
    query->ways =
        key_template_split(&keyspace_of(query)->key, query->key.text, query->splits, ROW_WAYS_MAX);
    return query;
}

/* Text parameters end with a zero byte, so a key that holds one is no column's text. */
enum load_outcome rows_foretell(const struct rows *rows, struct key key)
{
    struct span splits[ROW_WAYS_MAX][KEY_COLUMNS_MAX];
    const struct key_template *template = &rows->config->keyspaces[key.keyspace].key;
    if (memchr(key.text.at, '\0', key.text.length))
        return LOAD_ABSENT;
    size_t ways = key_template_split(template, key.text, splits, ROW_WAYS_MAX);
    return ways > ROW_WAYS_MAX ? LOAD_AMBIGUOUS : LOAD_ROW;
}

void rows_load(const struct rows *rows, struct key key, row_cb done, void *arg)
{
    ask(query_create(rows, key, STATEMENT_LOAD, done, arg), STATEMENT_LOAD);
}

void rows_find(const struct rows *rows, struct key key, row_cb done, void *arg)
{
    ask(query_create(rows, key, STATEMENT_FIND, done, arg), STATEMENT_FIND);
}

void rows_remove(const struct rows *rows, struct key key, size_t way, row_cb done, void *arg)
{
    struct query *query = query_create(rows, key, STATEMENT_REMOVE, done, arg);
    query->way = way;
    query->ways = way + 1;
    ask(query, STATEMENT_REMOVE);
}
