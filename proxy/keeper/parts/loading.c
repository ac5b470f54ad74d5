/* The order in which things are made is that in which they use each other: a load asks the rows by
 * the pool, asks visibility whether its answer may be kept, and tells of spellings. They end in the
 * other direction: the pool first, which ends every query, and the rest when none is left.
 */
#include "keeper/parts/loading.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "config/config_reload.h"
#include "postgres/pg_hosts.h"

#include <stdlib.h>

enum { UNSEEN_MAX = 100000 };

/* ---- changes ---- */

void loading_unsee(void *arg, const struct key_change *change)
{
    struct loading *loading = arg;
    if (cause_is_of_keyspace(change->cause))
        visibility_all_changed(loading->visibility, change->key.keyspace, change->xid);
    else
        visibility_changed(loading->visibility, change->key, change->xid);
}

/* Any row may have changed, of any keyspace: that costs no more than some loads which are not
 * shared. But which rows there are another table's changes do not say, and these may be many. */
void loading_age(void *arg, const struct key_change *change)
{
    struct loading *loading = arg;
    if (change->cause == CAUSE_DEPENDED)
        loads_revalued(loading->loads, change->key.keyspace);
    else if (cause_is_of_keyspace(change->cause))
        loads_all_changed(loading->loads);
    else
        loads_changed(loading->loads, change->key);
}

/* ---- what is told of it ---- */

void loading_report(const struct loading *loading, struct report *report)
{
    const struct pg_error *error = pg_pool_error(loading->pool);
    report->database_connections = pg_pool_live(loading->pool);
    report->database_error = error ? error->text : NULL;
    report->loads = loads_count(loading->loads);
    report->waits = loads_waits(loading->loads);
    loads_durations(loading->loads, report->database);
    for (size_t i = 0; i < report->count; i++) {
        struct keyspace_report *keyspace = &report->keyspaces[i];
        keyspace->spelling = spellings_latest(loading->spellings, keyspace->number);
        keyspace->refusal = loads_refusal(loading->loads, keyspace->number);
    }
}

void loading_tell_log(struct loading *loading, uint64_t now)
{
    const struct log_state *state = &loading->pool_state;
    if (!log_state_may_tell(&loading->pool_state, now))
        return;
    if (state->is_bad)
        log_warning("database: %s", state->text);
    else
        log_info("database: %s", state->text);
}

/* ---- life ---- */

static void on_pool_state(void *arg, unsigned live, const struct pg_error *error)
{
    struct loading *loading = arg;
    log_state_set(&loading->pool_state, error != NULL, "%s%s%u connection%s for loads %s up",
                  error ? error->text : "", error ? "; " : "", live, live == 1 ? "" : "s",
                  live == 1 ? "is" : "are");
    loading_tell_log(loading, clock_ms());
}

/* Of several hosts one may be a standby: a load there would not see what the primary's log tells.
 * What the conninfo or the environment says itself stands. Before the first connection, and before
 * there are other threads. */
static void keep_to_the_primary(const struct config *config)
{
    if (config->sync == SYNC_REPLICATION && pg_hosts_count(config->database) > 1)
        setenv("PGTARGETSESSIONATTRS", "primary", 0);
}

static int open_pool(struct loading *loading, uv_loop_t *loop, const struct config *config)
{
    const char *error = NULL;
    keep_to_the_primary(config);
    rows_statements_init(&loading->statements, config);
    struct pg_pool_options options = {.conninfo = config->database,
                                      .application = "nestguard",
                                      .connections = config->load_connections,
                                      .timeout_ms = config->load_timeout_ms,
                                      .statements = loading->statements.at,
                                      .statement_count = loading->statements.count,
                                      .on_state = on_pool_state,
                                      .arg = loading};
    int status = pg_pool_create(&loading->pool, loop, &options, &error);
    if (status)
        log_error("database: %s", error);
    return status;
}

int loading_open(struct loading *loading, const struct loading_options *options,
                 const struct view *view)
{
    *loading = (struct loading){.rows.config = view->config,
                                .rows.lane = &loading->lane,
                                .lane = {.most = options->config->max_value,
                                         .asker_of = loads_asker_of,
                                         .wants = loads_wants,
                                         .pay = loads_pay,
                                         .on_come = loads_have_place}};
    int status = open_pool(loading, options->loop, options->config);
    if (status)
        return status;
    loading->rows.pool = loading->pool;
    loading->visibility = visibility_create(&(struct visibility_options){
        .max_remembered = UNSEEN_MAX, .wanted = options->snapshot_wanted, .arg = options->arg});
    loading->spellings = spellings_create(options->config, options->counters);
    loading->loads = loads_create(&(struct loads_options){.rows = &loading->rows,
                                                          .redis = options->redis,
                                                          .counters = options->counters,
                                                          .watch = options->watch,
                                                          .visibility = loading->visibility,
                                                          .filling = options->filling,
                                                          .is_expected = options->is_expected,
                                                          .arg = options->arg,
                                                          .spellings = loading->spellings},
                                  view);
    loading->lane.arg = loading->loads;
    return 0;
}

void loading_use_view(struct loading *loading, const struct view *view)
{
    if (!loading->loads)
        return;
    if (view->config->load_timeout_ms != loading->rows.config->load_timeout_ms)
        pg_pool_set_timeout(loading->pool, view->config->load_timeout_ms);
    if (config_moves_database(loading->rows.config, view->config))
        pg_pool_move(loading->pool, view->config->database);
    if (view->config->load_connections != loading->rows.config->load_connections)
        pg_pool_set_connections(loading->pool, view->config->load_connections);
    loading->rows.config = view->config;
    spellings_use_config(loading->spellings, view->config);
    loads_use_view(loading->loads, view);
}

void loading_use_cache(struct loading *loading, struct redis *redis)
{
    loads_use_cache(loading->loads, redis);
}

/* The replaced ones go when the pool has the new ones: until then it has their texts. */
void loading_use_keyspaces(struct loading *loading, const struct config *config)
{
    struct rows_statements replaced = loading->statements;
    rows_statements_init(&loading->statements, config);
    pg_pool_use_statements(loading->pool, loading->statements.at, loading->statements.count);
    rows_statements_finish(&replaced);
}

void loading_close(struct loading *loading, void (*closed)(void *arg), void *arg)
{
    pg_pool_close(loading->pool, closed, arg);
}

void loading_finish(struct loading *loading)
{
    loads_destroy(loading->loads);
    spellings_destroy(loading->spellings);
    visibility_destroy(loading->visibility);
    rows_statements_finish(&loading->statements);
    *loading = (struct loading){0};
}
