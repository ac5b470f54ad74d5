/* When a generation is checked, and what an outcome means for it; how it is done is selfcheck.c's.
 * Somebody else's clock drives this (checks_when_due()): a check that is due is begun at the next
 * call, and of each generation at most one is under way.
 */
#include "follow/checks/checks.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <stdlib.h>

enum {
    EVERY_MS = 60000,
    REST = 100 /* times as long as the check itself took: so it costs a hundredth of one server */
};

struct checks {
    struct checks_options options;
    struct selfcheck *check; /* under way, or NULL */
    uint64_t began, due;     /* clock_ms() */
    bool serves;             /* the first has passed */
    enum selfcheck_outcome logged;
};

const char *checks_outcome_text(enum selfcheck_outcome outcome)
{
    static const char *const texts[] = {
        [SELFCHECK_NONE] = "not done yet",  [SELFCHECK_EMPTY] = "the database has no row",
        [SELFCHECK_PASSED] = "passed",      [SELFCHECK_UNPROVEN] = "only newer rows",
        [SELFCHECK_NO_ROW] = "no row seen", [SELFCHECK_UNDECIDED] = "undecided",
        [SELFCHECK_FAILED] = "failed"};
    return texts[outcome];
}

static unsigned long long number_of(const struct checks *checks)
{
    return checks->options.generation->number;
}

/* "items 100, orders 0 (the database has no row)" */
static void put_accounts(struct buffer *out, const struct checks *checks,
                         const struct selfcheck_result *result)
{
    const struct config *config = checks->options.config;
    for (size_t i = 0; i < config->keyspace_count; i++) {
        if (!generation_covers(checks->options.generation, i))
            continue;
        buffer_printf(out, "%s%s %llu", buffer_length(out) ? ", " : "", config->keyspaces[i].name,
                      (unsigned long long)result->keyspaces[i].rows);
        if (result->keyspaces[i].outcome != SELFCHECK_PASSED)
            buffer_printf(out, " (%s)", checks_outcome_text(result->keyspaces[i].outcome));
    }
}

static uint64_t rows_of(const struct checks *checks, const struct selfcheck_result *result)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < checks->options.config->keyspace_count; i++)
        rows += result->keyspaces[i].rows;
    return rows;
}

/* What is as it was the last time is not said again. */
static void tell(struct checks *checks, const struct selfcheck_result *result)
{
    bool news = result->outcome != checks->logged;
    struct buffer accounts = {0};
    checks->logged = result->outcome;
    put_accounts(&accounts, checks, result);
    struct span text = buffer_span(&accounts);
    if (result->outcome == SELFCHECK_FAILED)
        log_error("generation %llu: the self-check failed: %s", number_of(checks), result->why);
    else if (!selfcheck_is_good(result->outcome) && news)
        log_warning("generation %llu: the self-check did not decide: %s; rows seen: %.*s",
                    number_of(checks), result->why, (int)text.length, text.at);
    else if (selfcheck_is_good(result->outcome) && (news || !checks->serves))
        log_info("generation %llu: the self-check of %llu rows passed: %.*s", number_of(checks),
                 (unsigned long long)rows_of(checks, result), (int)text.length, text.at);
    buffer_finish(&accounts);
}

/* Without a log a candidate that cannot be proven is given up: rows are newer by the minute, and
 * the next generation is built of them. */
static bool is_failure(const struct checks *checks, const struct selfcheck_result *result)
{
    if (result->outcome == SELFCHECK_FAILED)
        return true;
    return checks->options.snapshot && !checks->serves && !selfcheck_is_good(result->outcome) &&
           !result->timed_out;
}

/* One that serves goes on if nothing was decided: what it knows was checked before. */
static void on_done(void *arg, const struct selfcheck_result *result)
{
    struct checks *checks = arg;
    uint64_t now = clock_ms(), rest = (now - checks->began) * REST;
    bool good = selfcheck_is_good(result->outcome);
    checks->check = NULL;
    checker_note(checks->options.checker, checks->options.generation->number, result);
    tell(checks, result);
    if (is_failure(checks, result)) {
        if (checks->options.failed(checks->options.arg, result->keyspace, result->why))
            checks->due = now;
        return;
    }
    bool first = good && !checks->serves;
    checks->serves |= good;
    if (checks->serves)
        checks->due = now + (rest > EVERY_MS ? rest : EVERY_MS);
    if (first)
        checks->options.passed(checks->options.arg);
}

struct checks *checks_create(const struct checks_options *options)
{
    struct checks *checks = xcalloc(1, sizeof *checks);
    checks->options = *options;
    return checks;
}

/* A generation whose keyspaces have all been given up has nothing to be checked, and is replaced.
 *
 * A database may have moved while no connection to where it was has ended, and the application's
 * lead to where it is. Once a minute one is opened anew; to where it leads is looked at by whoever
 * keeps all of them to one server. */
void checks_when_due(struct checks *checks)
{
    uint64_t now = clock_ms();
    if (checks->check || now < checks->due || !generation_covers_any(checks->options.generation))
        return;
    checks->began = now;
    if (checks->serves)
        checker_renew(checks->options.checker);
    struct selfcheck_options options = {.pool = checker_pool(checks->options.checker),
                                        .config = checks->options.config,
                                        .fn_checks = checks->options.fn_checks,
                                        .generation = checks->options.generation,
                                        .snapshot = checks->options.snapshot,
                                        .done = on_done,
                                        .arg = checks};
    checks->check = selfcheck_begin(&options);
}

void checks_close(struct checks *checks)
{
    if (!checks)
        return;
    selfcheck_cancel(checks->check);
    free(checks);
}
