/* From a cache key to one row, and back to the keeper:
 *
 *   key ─split─▶ way 0 ─▶ query ─┬─ a row whose printed columns are the key's ─▶ done
 *                 ▲              ├─ none: the next way; when there is no other, all once more:
 *                 │              │  absent, with the key of a row that equals this one
 *                 │              └─ an error about a value ─▶ do the columns accept the texts?
 *                 │                      no: the next way ◀───┴───▶ yes: once more, parsed anew
 *                 └──────────────────────┘
 *
 * The ways are tried one after the other, since mostly the first has the row. But each answer is of
 * a moment of its own, and between two an UPDATE may take the row from a way that is still to be
 * tried to one that was. So that there is none is said by one statement about all of them, but for
 * those whose texts the columns cannot hold; where it finds a row, its way is tried again.
 *
 * An error about a value (SQLSTATE class 22) does not say whose value. That of the key's texts
 * means that no row has the key; that of a row that is there, or of what `where` makes of it, means
 * that nobody knows. So the server is asked about the texts alone. What an expression makes of a
 * row is like `where`: its error is a failure. Of a query the server cannot be asked about the
 * texts alone, only together with its constants, which may be what fails: there each such error is
 * a failure.
 *
 * It is asked once more also where there is one way. What a statement names it locks before it
 * takes its snapshot, so that a table which somebody rewrites, and commits meanwhile, is seen as it
 * is then. But between the two, while it waits for an index, say, the schema may be renamed (no
 * lock on a table keeps it), and rows may go from the table that had the name to the one that has
 * it now. Whoever looks the name up anew finds them, unless they move on in that very moment of
 * his.
 *
 * And where a view, a query or a condition may call a function (without a log: of what is followed
 * the server allows none), what that reads is locked behind the snapshot: then a table that was
 * rewritten looks empty, and the rows that it had before and has since are in no answer. Such a
 * thing is seen by the locks, behind the reading, in one statement with it
 * (keyspace_sql_confirm()), which is asked again.
 */
#include "database/rows.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "database/row_value.h"
#include "database/rows_statements.h"

#include <stdlib.h>

enum { CONFIRM_MAX = 8 /* times that absence is asked for again */ };

struct query {
    const struct rows *rows;
    struct key key;
    unsigned first;              /* statement of each way */
    unsigned statement;          /* under way */
    struct row_lane_place place; /* with STATEMENT_LOAD_LARGE */
    struct pg_error refusal;     /* with STATEMENT_ACCEPTS: what it is asked for */
    unsigned confirmed;          /* so often absence was asked for */
    size_t way, ways;            /* the one being tried, and the one before which to stop */
    unsigned left_out;           /* a bit for each way that no row can have */
    struct span splits[ROW_WAYS_MAX][KEY_COLUMNS_MAX]; /* of the key's text */
    struct buffer other;                               /* the key of a row that equals it */
    row_cb done;
    void *arg;
    char text[]; /* the key's */
};

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

static struct row_result result_of(const struct query *query, const struct pg_answer *answer)
{
    return (struct row_result){.outcome = outcome_of(query, answer),
                               .way = query->way,
                               .error = answer->error.text,
                               .early = answer->early};
}

static void finish(struct query *query, const struct row_result *result)
{
    query->done(query->arg, result);
    buffer_finish(&query->other);
    free(query);
}

static void ask(struct query *query, unsigned statement);
static void ask_all(struct query *query);

static bool is_left_out(const struct query *query, size_t way)
{
    return query->left_out & 1u << way;
}

/* That a row can have: how many. */
static size_t list_ways(const struct query *query, size_t ways[ROW_WAYS_MAX])
{
    size_t count = 0;
    for (size_t way = 0; way < query->ways; way++)
        if (!is_left_out(query, way))
            ways[count++] = way;
    return count;
}

static void finish_absent(struct query *query)
{
    struct row_result result = {.outcome = LOAD_ABSENT, .error = ""};
    if (query->other.bytes)
        result.other_spelling = buffer_span(&query->other);
    finish(query, &result);
}

static void next_way(struct query *query)
{
    size_t ways[ROW_WAYS_MAX];
    do {
        query->way++;
    } while (query->way < query->ways && is_left_out(query, query->way));
    if (query->way < query->ways)
        ask(query, query->first);
    else if (!list_ways(query, ways))
        finish_absent(query);
    else
        ask_all(query);
}

/* Whether the columns accept the texts. If they do, the error was a row's, or the statement's types
 * were those that the columns had when it was prepared: then it goes well when it is new. */
static void on_accepts(struct query *query, const struct pg_answer *answer)
{
    struct row_result result = {.outcome = LOAD_REFUSED, .error = query->refusal.text};
    if (is_about_a_value(answer)) {
        query->left_out |= 1u << query->way;
        next_way(query);
    } else if (answer->outcome == PG_DONE && loads(query)) {
        ask(query, STATEMENT_LOAD_ANEW);
    } else {
        if (answer->outcome != PG_DONE)
            result = result_of(query, answer);
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

static void forget_in_lane(struct row_lane_place *place)
{
    struct query *query = container_of(place, struct query, place);
    finish(query, &(struct row_result){.outcome = LOAD_TIMEOUT, .error = ""});
}

/* A row without its value. */
static void on_large(struct query *query, const struct row_result *result, size_t bytes)
{
    bool again =
        bytes <= query->rows->config->max_value && query->statement != STATEMENT_LOAD_LARGE;
    struct row_result large = *result;
    if (again && query->rows->lane) {
        query->place = (struct row_lane_place){
            .bytes = bytes, .load = query->arg, .enter = enter_lane, .forget = forget_in_lane};
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
static void on_loaded(struct query *query, const struct pg_answer *answer,
                      struct row_result *result)
{
    const PGresult *found = answer->result;
    int row = row_of_key(query, found);
    size_t excess = excess_of(query, found, row);
    if (excess) {
        on_large(query, result, excess);
        return;
    }
    result->ttl_ms = ttl_of(query, found, row);
    result->value = row_value_take(answer, row);
    if (!result->value) {
        result->outcome = LOAD_REFUSED;
        result->error = "no memory for the row's value";
    }
    finish(query, result);
}

static void on_found(struct query *query, const struct pg_answer *answer)
{
    struct row_result result = result_of(query, answer);
    bool is_row = result.outcome == LOAD_ROW;
    if (is_row && removes(query))
        result.removed = atoll(PQcmdTuples((PGresult *)answer->result));
    else if (is_row)
        result.equals = PQntuples(answer->result);
    if (is_row && loads(query))
        on_loaded(query, answer, &result);
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

/* Whether one of the rows, of whichever way, has the key; then its way is the one to try. */
static bool find_way(struct query *query, const PGresult *result)
{
    for (query->way = 0; query->way < query->ways; query->way++)
        for (int row = 0; row < PQntuples(result); row++)
            if (!is_left_out(query, query->way) && is_key_of_row(query, result, row))
                return true;
    return false;
}

/* Nothing that was read looked empty because it was rewritten; where there is no count of such,
 * nothing can have. */
static bool is_whole(const PGresult *result)
{
    return !PQntuples(result) || PQgetisnull(result, 0, 0) ||
           strcmp(PQgetvalue(result, 0, 0), "0") == 0;
}

/* Of all ways. A row that has come since is asked for as if it had been there. */
static void on_confirm(struct query *query, const struct pg_answer *answer)
{
    bool is_known = answer->outcome == PG_DONE && is_whole(answer->result);
    bool is_found = is_known && find_way(query, answer->result);
    if (is_known && !is_found) {
        finish_absent(query);
    } else if (answer->outcome == PG_DONE && query->confirmed++ < CONFIRM_MAX) {
        if (is_found)
            ask(query, query->first);
        else
            ask_all(query);
    } else {
        struct row_result result = {.outcome = LOAD_REFUSED,
                                    .error = "what it reads is rewritten or moved all the time"};
        if (answer->outcome != PG_DONE)
            result = result_of(query, answer);
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
    } else if (query->statement == STATEMENT_CONFIRM ||
               query->statement == STATEMENT_CONFIRM_WAYS) {
        on_confirm(query, answer);
    } else if (is_doubted(query, answer)) {
        return;
    } else if (outcome_of(query, answer) == LOAD_ABSENT) {
        note_other_spelling(query, answer->result);
        next_way(query);
    } else {
        on_found(query, answer);
    }
}

/* ---- asking ---- */

/* About so many ways. Parameters go as C strings, which the pool copies. */
static void ask_about(struct query *query, unsigned statement, const size_t *ways, size_t count)
{
    size_t columns = keyspace_of(query)->key.columns;
    char *texts[ROW_WAYS_MAX * KEY_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < count * columns; i++)
        texts[i] = xspandup(query->splits[ways[i / columns]][i % columns]);
    query->statement = statement;
    pg_pool_submit(query->rows->pool, (size_t)query->key.keyspace * STATEMENTS + statement,
                   (const char *const *)texts, on_answer, query);
    for (size_t i = 0; i < count * columns; i++)
        free(texts[i]);
}

/* About the way that is being tried. */
static void ask(struct query *query, unsigned statement)
{
    ask_about(query, statement, &query->way, 1);
}

/* About all ways that a row can have, one at least. Where they are fewer than the statement has
 * places for, the last one fills the others. */
static void ask_all(struct query *query)
{
    size_t ways[ROW_WAYS_MAX], count = list_ways(query, ways);
    if (count == 1) {
        ask_about(query, STATEMENT_CONFIRM, ways, 1);
        return;
    }
    for (size_t i = count; i < ROW_WAYS_MAX; i++)
        ways[i] = ways[count - 1];
    ask_about(query, STATEMENT_CONFIRM_WAYS, ways, ROW_WAYS_MAX);
}

static struct query *query_create(const struct rows *rows, struct key key, unsigned first,
                                  row_cb done, void *arg)
{
    struct query *query = xmalloc(sizeof *query + key.text.length);
    query->rows = rows;
    query->first = first;
    query->way = query->confirmed = query->left_out = 0;
    query->other = (struct buffer){0};
    query->place = (struct row_lane_place){.waits = false};
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

struct row_lane_place *rows_load(const struct rows *rows, struct key key, row_cb done, void *arg)
{
    struct query *query = query_create(rows, key, STATEMENT_LOAD, done, arg);
    ask(query, STATEMENT_LOAD);
    return &query->place;
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
    query->left_out = (1u << way) - 1;
    ask(query, STATEMENT_REMOVE);
}
