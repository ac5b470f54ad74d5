/* What the following of the database means to the rest of the keeper; see replication.h. */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "database/publication.h"
#include "postgres/pg_pool.h"

#include <stdlib.h>

/* ---- entries that the log ends ---- */

/* A commit that waits for the guard may return only when no worker holds the key's tombstone any
 * more. */
struct ended_entry {
    struct keeper *keeper;
    uint64_t generation; /* whose log was held; it may be followed no more by then */
};

static void entry_is_gone(void *arg, bool known)
{
    struct ended_entry *ended = arg;
    (void)known; /* a successor hears of the row by a log of its own */
    replication_release(&ended->keeper->replication, ended->generation);
    free(ended);
}

/* Only an insertion that the serving generation has ends a hint: before that its filter does not
 * know the key. */
void keeper_end_entry(struct keeper *keeper, const struct key_change *insertion)
{
    bool serving = replication_serves(&keeper->replication, insertion->generation);
    if (!entries_wait_for(&keeper->entries, insertion->key, serving))
        return;
    struct ended_entry *ended = xmalloc(sizeof *ended);
    *ended = (struct ended_entry){keeper, insertion->generation->number};
    if (entries_know(&keeper->entries, insertion->key, serving, entry_is_gone, ended))
        replication_hold(&keeper->replication, ended->generation);
    else
        free(ended);
}

/* ---- events ---- */

/* What was over by the snapshot no log will tell, and queries may not see all of it yet: visibility
 * has to know. */
static void on_begins(void *arg, struct built *built, bool alone)
{
    struct keeper *keeper = arg;
    if (!purging_knows_values(&keeper->purging)) /* else a later answer may be known by now */
        purging_learn_values(&keeper->purging, built->values);
    visibility_follow(keeper->loading.visibility, &built->snapshot, alone);
}

/* With a generation in force a log was followed all the time, and vouched for what was filled. */
static void on_begun(void *arg)
{
    struct keeper *keeper = arg;
    if (!keeper->replication.serving)
        purging_give_unvouched(&keeper->purging);
}

/* A statement that was prepared keeps to the table that its name led to, though a schema that comes
 * first in the search path has one of that name now: nothing tells the server to look again. A
 * build looks anew. So that loads and self-checks read what the generation was built from, their
 * connections are opened anew with it, and prepare anew; and before, when the stream is known not
 * to be of what is there, since a build may take long, or fail. */
void keeper_renew_names(struct keeper *keeper)
{
    const struct config *config = keeper_config(keeper);
    bool may_move = false;
    for (size_t i = 0; i < config->keyspace_count; i++)
        may_move |= !config->keyspaces[i].table_schema || config->keyspaces[i].where;
    if (!may_move)
        return;
    pg_pool_renew(keeper->loading.pool);
    checker_renew(keeper->checking.checker);
}

static void on_in_force(void *arg, struct generation *generation)
{
    struct keeper *keeper = arg;
    publishing_clear(&keeper->publishing, OBSTACLE_UNFOLLOWED);
    keeper_publish(keeper, generation);
}

/* The obstacle first: the view that is then made has it. */
static void on_lost(void *arg, const char *why)
{
    struct keeper *keeper = arg;
    publishing_obstruct(&keeper->publishing, OBSTACLE_UNFOLLOWED, why);
    keeper_publish(keeper, NULL);
    keeper_renew_names(keeper);
    renewal_replace(&keeper->renewal, why);
}

/* The view that says so is on its way before another build can begin. */
static void on_gave_up(void *arg, int keyspace, const char *why)
{
    struct keeper *keeper = arg;
    (void)keyspace;
    keeper_publish(keeper, NULL);
    keeper_renew_names(keeper);
    renewal_replace(&keeper->renewal, why);
}

/* What the generation went without is tried again. */
static void on_settled(void *arg, const char *error)
{
    struct keeper *keeper = arg;
    renewal_settle(&keeper->renewal, error);
    const char *why = error ? NULL : publishing_left_out(&keeper->publishing);
    if (why)
        renewal_replace(&keeper->renewal, why);
}

/* Beside the one in force, which goes on rejecting. */
static void on_wanted(void *arg)
{
    renewal_wish(&((struct keeper *)arg)->renewal);
}

/* A lease that was extended may have a keyspace guard again, and lets the published one be renewed.
 */
static void on_known(void *arg)
{
    struct keeper *keeper = arg;
    keeper_review(keeper);
    publisher_known(keeper->publisher);
}

static void on_missed_of(void *arg, int keyspace)
{
    purging_missed_of(&((struct keeper *)arg)->purging, keyspace);
}

static void on_reached(void *arg, uint64_t position)
{
    succession_reached(&((struct keeper *)arg)->succession, position);
}

static void on_missed(void *arg)
{
    purging_missed(&((struct keeper *)arg)->purging);
}

static void on_probed(void *arg, const struct probe *probe)
{
    struct keeper *keeper = arg;
    if (probe) {
        server_watch_heard(&keeper->server, publication_server(probe->fingerprint));
        visibility_learn(keeper->loading.visibility, probe->snapshot);
        purging_learn_values(&keeper->purging, probe->values);
        keeper_learn_names(keeper, probe->names);
    }
    touches_probed(&keeper->touches);
}

/* ---- the rest ---- */

void keeper_pace_builds(struct keeper *keeper)
{
    bool guards = publishing_guards(&keeper->publishing);
    renewal_hurry(&keeper->renewal, !guards || !replication_lasts(&keeper->replication));
}

/* Not one build after the other: what is published may wear out as fast as rows come and go. */
static void renew_what_is_worn(struct keeper *keeper, uint64_t now)
{
    const struct keyspace *worn = publisher_worn(keeper->publisher);
    if (!worn || !keeper->publishing.generation || keeper->draining ||
        !renewal_takes_wishes(&keeper->renewal) || !renewal_has_rested(&keeper->renewal, now))
        return;
    log_info("keyspace %s: what it publishes is full, of too many rows that are gone, or spoiled",
             worn->name);
    renewal_wish(&keeper->renewal);
}

void keeper_watch_sync(struct keeper *keeper, uint64_t now)
{
    replication_watch(&keeper->replication, now, renewal_takes_wishes(&keeper->renewal));
    renew_what_is_worn(keeper, now);
    keeper_pace_builds(keeper);
}

/* One of the two is at work; the other has nothing to leave. */
static void on_left(void *arg, const char *why)
{
    struct keeper *keeper = arg;
    replication_leave(&keeper->replication, why);
    standings_leave(&keeper->standings, why);
}

/* Each attempt to connect says so again. */
static void on_moves(void *arg)
{
    struct keeper *keeper = arg;
    if (!keeper->moves)
        log_info(
            "database: the new one is another server: a generation is built from it before the "
            "one before is left");
    keeper->moves = true;
    if (!keeper->draining)
        renewal_wish(&keeper->renewal);
}

/* What was cached is of another database's rows. */
static void purge_all(struct keeper *keeper)
{
    const struct config *config = keeper_config(keeper);
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            purging_outdated(&keeper->purging, (int)i);
}

/* A build may be done before any connection has said that the name leads elsewhere: so it is asked
 * here, of whatever was built by another name than what was served. */
static const char *keep_to_server(struct keeper *keeper, const struct pg_server *server)
{
    const struct pg_server before = keeper->server.rule.server;
    if (!server_watch_keep_to(&keeper->server, server))
        return before.standby
                   ? "the standby has begun its recovery anew, and has not come again to "
                     "where it was when the filter was built"
                   : "the server is a standby, and the one before was a primary";
    if (keeper->renamed && !pg_server_is_same(&before, server, false))
        purge_all(keeper);
    keeper->renamed = keeper->moves = false;
    return NULL;
}

/* `database` may have been named anew while it was built, and named back: then the one that it was
 * built from is none that anybody wants any more. */
const char *keeper_take_server(struct keeper *keeper, const struct built *built)
{
    if (built->config && config_moves_database(built->config->config, keeper_config(keeper)))
        return "`database` was changed while it was being built";
    return keep_to_server(keeper, &built->server);
}

void keeper_open_server(struct keeper *keeper)
{
    server_watch_open(
        &keeper->server,
        &(struct server_watch_options){
            .follows = publishing_first_config(&keeper->publishing)->sync == SYNC_REPLICATION,
            .pools = {keeper->loading.pool, checker_pool(keeper->checking.checker),
                      replication_pool(&keeper->replication)},
            .left = on_left,
            .moves = on_moves,
            .arg = keeper});
}

int keeper_open_sync(struct keeper *keeper)
{
    static const struct replication_events events = {.begins = on_begins,
                                                     .begun = on_begun,
                                                     .in_force = on_in_force,
                                                     .lost = on_lost,
                                                     .gave_up = on_gave_up,
                                                     .settled = on_settled,
                                                     .wanted = on_wanted,
                                                     .known = on_known,
                                                     .missed = on_missed,
                                                     .missed_of = on_missed_of,
                                                     .reached = on_reached,
                                                     .probed = on_probed};
    const struct config *config = publishing_first_config(&keeper->publishing);
    int status = checking_open(&keeper->checking,
                               &(struct checking_options){.loop = &keeper->loop,
                                                          .config = config,
                                                          .rows = &keeper->loading.rows,
                                                          .visibility = keeper->loading.visibility,
                                                          .spellings = keeper->loading.spellings,
                                                          .counters = keeper->counters});
    if (status)
        return status;
    standings_open(&keeper->standings,
                   &(struct standings_options){.config = config,
                                               .checker = keeper->checking.checker,
                                               .fn_checks = keeper->checking.fn_checks,
                                               .in_force = on_in_force,
                                               .lost = on_lost,
                                               .gave_up = on_gave_up,
                                               .settled = on_settled,
                                               .arg = keeper});
    return replication_open(&keeper->replication,
                            &(struct replication_options){.loop = &keeper->loop,
                                                          .config = config,
                                                          .checker = keeper->checking.checker,
                                                          .fn_checks = keeper->checking.fn_checks,
                                                          .changes = changes_sink(&keeper->changes),
                                                          .events = &events,
                                                          .arg = keeper});
}
