#include "fakes/pg_pool.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct fake_pool fake_pool;

void pg_pool_submit(struct pg_pool *pool, size_t statement, const char *const *values,
                    pg_answer_cb done, void *arg)
{
    assert_null(pool);
    assert_true(fake_pool.count < FAKE_QUERIES);
    struct fake_query *query = &fake_pool.queries[fake_pool.count++];
    *query = (struct fake_query){.statement = statement, .done = done, .arg = arg};
    for (int i = 0; i < fake_pool.params; i++)
        query->values[i] = xstrdup(values[i]);
}

/* NULL is its address. */
int pg_pool_create(struct pg_pool **out, uv_loop_t *loop, const struct pg_pool_options *options,
                   const char **error)
{
    (void)loop;
    (void)error;
    fake_pool.options = *options;
    *out = NULL;
    return 0;
}

void pg_pool_use_statements(struct pg_pool *pool, const struct pg_statement *statements,
                            size_t count)
{
    (void)pool;
    fake_pool.options.statements = statements;
    fake_pool.options.statement_count = count;
}

void pg_pool_set_timeout(struct pg_pool *pool, uint64_t timeout_ms)
{
    (void)pool;
    fake_pool.timeout_ms = timeout_ms;
}

void pg_pool_set_connections(struct pg_pool *pool, unsigned count)
{
    (void)pool;
    fake_pool.options.connections = count;
}

void pg_pool_move(struct pg_pool *pool, const char *conninfo)
{
    (void)pool;
    fake_pool.options.conninfo = conninfo;
}

const struct pg_error *pg_pool_error(const struct pg_pool *pool)
{
    (void)pool;
    return fake_pool.error.text[0] ? &fake_pool.error : NULL;
}

/* Whatever is asked has no answer, and then it is closed. */
void pg_pool_close(struct pg_pool *pool, void (*closed)(void *arg), void *arg)
{
    (void)pool;
    while (fake_pool.count)
        fake_outcome(PG_DOWN);
    closed(arg);
}

void pg_pool_keep_to(struct pg_pool *pool, const struct pg_pool_rule *rule)
{
    assert_non_null(pool);
    fake_pool.rule = *rule;
}

void pg_pool_renew(struct pg_pool *pool)
{
    assert_non_null(pool);
    fake_pool.renewed++;
}

unsigned pg_pool_live(const struct pg_pool *pool)
{
    (void)pool;
    return fake_pool.live;
}

/* libpq offers no way to make a command's status. */
char *PQcmdTuples(PGresult *result)
{
    assert_null(result);
    return fake_pool.removed;
}

void fake_answer(const struct pg_answer *answer)
{
    assert_true(fake_pool.count > 0);
    struct fake_query query = fake_pool.queries[0];
    fake_pool.count--;
    memmove(fake_pool.queries, fake_pool.queries + 1, fake_pool.count * sizeof query);
    query.done(query.arg, answer);
    for (int i = 0; i < FAKE_VALUES; i++)
        free(query.values[i]);
}

void fake_outcome(enum pg_outcome outcome)
{
    fake_answer(&(struct pg_answer){.outcome = outcome});
}

void fake_refusal(const char *sqlstate)
{
    struct pg_answer answer = {.outcome = PG_REFUSED, .error = {.text = "refused"}};
    snprintf(answer.error.sqlstate, sizeof answer.error.sqlstate, "%s", sqlstate);
    fake_answer(&answer);
}

void fake_rows(Oid type, const char *const *cells, int rows, int count)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[FAKE_VALUES + 1] = {{0}};
    char name[] = "c";
    for (int i = 0; i <= count; i++)
        attributes[i] = (PGresAttDesc){.name = name, .typid = i ? FAKE_TEXT : type};
    assert_true(PQsetResultAttrs(result, count + 1, attributes));
    for (int i = 0; i < rows; i++)
        assert_true(PQsetvalue(result, i, count, NULL, -1));
    for (int i = 0; i < rows * count; i++)
        assert_true(PQsetvalue(result, i / count, i % count, (char *)(size_t)cells[i],
                               cells[i] ? (int)strlen(cells[i]) : -1));
    fake_answer(&(struct pg_answer){.outcome = PG_DONE, .result = result, .owner = &result});
    PQclear(result);
}

void fake_large_row(const char *key, const char *bytes)
{
    const char *cells[] = {NULL, key, bytes};
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[3] = {{0}};
    char name[] = "c";
    for (int i = 0; i < 3; i++)
        attributes[i] = (PGresAttDesc){.name = name, .typid = FAKE_TEXT};
    assert_true(PQsetResultAttrs(result, 3, attributes));
    for (int i = 0; i < 3; i++)
        assert_true(PQsetvalue(result, 0, i, (char *)(size_t)cells[i],
                               cells[i] ? (int)strlen(cells[i]) : -1));
    fake_answer(&(struct pg_answer){.outcome = PG_DONE, .result = result, .owner = &result});
    PQclear(result);
}

void fake_row(Oid type, const char *const *columns, int count)
{
    fake_rows(type, columns, 1, count);
}

/* Whether the last query is one that came for an answer to this one, of the same. */
static bool is_asked_again(const struct fake_query *answered, const char *value, size_t count)
{
    const struct fake_query *last = &fake_pool.queries[count - 1];
    return fake_pool.count == count && last->statement > answered->statement && last->values[0] &&
           strcmp(last->values[0], value) == 0;
}

void fake_no_row(void)
{
    struct fake_query answered = fake_pool.queries[0];
    char *value = strdup(answered.values[0] ? answered.values[0] : "");
    size_t count = fake_pool.count;
    fake_rows(FAKE_TEXT, NULL, 0, 2);
    if (is_asked_again(&answered, value, count)) {
        struct fake_query last = fake_pool.queries[count - 1];
        memmove(fake_pool.queries + 1, fake_pool.queries, (count - 1) * sizeof last);
        fake_pool.queries[0] = last;
        fake_rows(FAKE_TEXT, NULL, 0, 2);
    }
    free(value);
}
