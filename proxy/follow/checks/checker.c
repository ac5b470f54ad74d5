/* A pool of one connection, with a statement for each keyspace and question, numbered as
 * selfcheck.h has it. Checks come and go with their generations; the limit of time, and what the
 * last one found, outlive them: a table that is slow to be sampled is so for the next generation,
 * too.
 */
#include "follow/checks/checker.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_LIMIT_MS = 5000, LAST_LIMIT_MS = 3600000 };

struct checker {
    struct pg_pool *pool;
    struct pg_statement *statements;
    size_t statement_count;
    uint64_t limit_ms; /* for one question: FIRST_LIMIT_MS, doubled as often as time ran out */
    struct checker_account account;
    struct selfcheck_account *keyspaces;
    uint64_t *failures;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void free_statements(struct pg_statement *statements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)statements[i].sql);
    free(statements);
}

static void checker_free(struct checker *checker)
{
    free_statements(checker->statements, checker->statement_count);
    free(checker->keyspaces);
    free(checker->failures);
    free(checker);
}

static void make_statements(struct checker *checker, const struct config *config)
{
    checker->statement_count = config->keyspace_count * SELFCHECK_QUESTIONS;
    checker->statements = xcalloc(checker->statement_count, sizeof *checker->statements);
    for (size_t i = 0; i < checker->statement_count; i++)
        if (keyspace_is_of_rows(&config->keyspaces[i / SELFCHECK_QUESTIONS]))
            checker->statements[i].sql =
                selfcheck_sql(&config->keyspaces[i / SELFCHECK_QUESTIONS],
                              (enum selfcheck_question)(i % SELFCHECK_QUESTIONS));
}

int checker_create(struct checker **out, uv_loop_t *loop, const struct config *config,
                   const char **error)
{
    struct checker *checker = xcalloc(1, sizeof *checker);
    checker->keyspaces = xcalloc(KEYSPACES_MAX, sizeof *checker->keyspaces);
    checker->failures = xcalloc(KEYSPACES_MAX, sizeof *checker->failures);
    checker->account.keyspaces = checker->keyspaces;
    checker->account.failures = checker->failures;
    checker->limit_ms = FIRST_LIMIT_MS;
    make_statements(checker, config);
    struct pg_pool_options pool = {.conninfo = config->database,
                                   .application = "nestguard",
                                   .connections = 1,
                                   .timeout_ms = checker->limit_ms,
                                   .statements = checker->statements,
                                   .statement_count = checker->statement_count};
    int status = pg_pool_create(&checker->pool, loop, &pool, error);
    if (status)
        checker_free(checker);
    else
        *out = checker;
    return status;
}

/* The pool takes the new ones first: from then on nothing reads the texts of the old. */
void checker_use_config(struct checker *checker, const struct config *config)
{
    struct pg_statement *replaced = checker->statements;
    size_t count = checker->statement_count;
    make_statements(checker, config);
    pg_pool_use_statements(checker->pool, checker->statements, checker->statement_count);
    free_statements(replaced, count);
}

struct pg_pool *checker_pool(struct checker *checker)
{
    return checker->pool;
}

void checker_renew(struct checker *checker)
{
    pg_pool_renew(checker->pool);
}

void checker_note(struct checker *checker, uint64_t generation,
                  const struct selfcheck_result *result)
{
    checker->account.generation = generation;
    checker->account.time = clock_ms();
    checker->account.outcome = result->outcome;
    memcpy(checker->keyspaces, result->keyspaces, result->count * sizeof *result->keyspaces);
    checker->failures[result->keyspace] += result->outcome == SELFCHECK_FAILED;
    if (!result->timed_out || checker->limit_ms >= LAST_LIMIT_MS)
        return;
    checker->limit_ms *= 2;
    pg_pool_set_timeout(checker->pool, checker->limit_ms);
}

const struct checker_account *checker_account(const struct checker *checker)
{
    return &checker->account;
}

static void on_pool_closed(void *arg)
{
    struct checker *checker = arg;
    void (*closed)(void *arg) = checker->closed;
    void *closed_arg = checker->closed_arg;
    checker_free(checker);
    closed(closed_arg);
}

void checker_close(struct checker *checker, void (*closed)(void *arg), void *arg)
{
    if (!checker) {
        closed(arg);
        return;
    }
    checker->closed = closed;
    checker->closed_arg = arg;
    pg_pool_close(checker->pool, on_pool_closed, checker);
}
