/* What a check could not decide, or was not to see yet, proves nothing and is not counted: the
 * counters stand for rows that were looked for, and found or not.
 */
#include "keeper/parts/checking.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/text/shown.h"
#include "config/config_reload.h"
#include "postgres/pg_pool.h"

#include <stdlib.h>

enum { FN_CHECKS_MAX = 1000 }; /* under way at a time; what comes on top is left out */

/* A key may be any bytes, and there may be many. */
static void log_false_reject(struct checking *checking, struct key key)
{
    if (!log_pace_may(&checking->false_rejects, clock_ms(), NULL))
        return;
    char *text = text_shown(key.text);
    log_error("keyspace %s: %.200s has a row and would have been rejected",
              checking->options.config->keyspaces[key.keyspace].name, text);
    free(text);
}

static void on_sample(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    struct checking *checking = arg;
    struct load_counters *counters = &checking->options.counters[key.keyspace];
    if (outcome == FN_CHECK_UNDECIDED || outcome == FN_CHECK_UNSEEN)
        return;
    counter_add(&counters->shadow_checked, 1);
    if (outcome == FN_CHECK_OTHER_SPELLING)
        spellings_add(checking->options.spellings, key, other);
    if (outcome != FN_CHECK_CONFIRMED)
        return;
    counter_add(&counters->false_rejects, 1);
    log_false_reject(checking, key);
}

void checking_sample(struct checking *checking, struct generation *generation, struct key key)
{
    (void)fn_checks_add(checking->fn_checks, generation, key, on_sample, checking);
}

void checking_use_config(struct checking *checking, const struct config *config)
{
    if (config_moves_database(checking->options.config, config))
        pg_pool_move(checker_pool(checking->checker), config->database);
    checking->options.config = config;
}

void checking_use_keyspaces(struct checking *checking, const struct config *config)
{
    checker_use_config(checking->checker, config);
}

void checking_hear(void *arg, const struct key_change *change)
{
    struct checking *checking = arg;
    fn_checks_changed(checking->fn_checks, change->generation, change->key);
}

void checking_report(const struct checking *checking, struct report *report)
{
    const struct checker_account *account = checker_account(checking->checker);
    report->check = (struct check_report){account->generation, account->time};
    for (size_t i = 0; i < report->count && account->generation; i++) {
        report->keyspaces[i].check = account->keyspaces[report->keyspaces[i].number];
        report->keyspaces[i].check_failures = account->failures[report->keyspaces[i].number];
    }
}

/* ---- life ---- */

int checking_open(struct checking *checking, const struct checking_options *options)
{
    const char *error = NULL;
    *checking = (struct checking){.options = *options};
    int status = checker_create(&checking->checker, options->loop, options->config, &error);
    if (status) {
        log_error("database: %s", error);
        return status;
    }
    checking->fn_checks = fn_checks_create(&(struct fn_checks_options){
        .rows = options->rows, .max_at_once = FN_CHECKS_MAX, .visibility = options->visibility});
    return 0;
}

void checking_close(struct checking *checking, void (*closed)(void *arg), void *arg)
{
    checker_close(checking->checker, closed, arg);
    checking->checker = NULL;
}

void checking_finish(struct checking *checking)
{
    fn_checks_destroy(checking->fn_checks);
    *checking = (struct checking){0};
}
