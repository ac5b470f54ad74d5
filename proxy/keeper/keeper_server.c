/* How the keeper sees to it that all its connections speak with one server:
 *
 *   a generation is built ─▶ its server ─▶ loads, checks, probes: no other will do
 *   a connection leads to another ─▶ the generation is given up, any server will do ─▶ a new one
 *
 * A row that the log has told of is on the server of that log; another server, asked for it, may
 * say that there is none. So what another server would answer is not even asked for.
 *
 * New connections lead to where the application's lead: when that is another primary, the database
 * has moved, though the old one may live on, with a stream that never ends. A standby is another
 * matter: it may lag behind what is known already, and behind a balancer a later attempt finds the
 * primary again. Only where no log is followed it may be the database itself, if there was no
 * primary before it; then another standby takes its place when no load's connection finds it any
 * more.
 *
 * While no server is known, at the start and after the one before was left, any that is good enough
 * will do: nothing is rejected then, and what is filled is purged when a log is followed.
 */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"

static bool follows(const struct keeper *keeper)
{
    return publishing_first_config(&keeper->publishing)->sync == SYNC_REPLICATION;
}

static void on_stranger(void *arg, const struct pg_server *server);

static void apply(struct keeper *keeper)
{
    struct pg_pool_rule rule = {keeper->rule, on_stranger, keeper};
    pg_pool_keep_to(keeper->pool, &rule);
    pg_pool_keep_to(checker_pool(keeper->checker), &rule);
    struct pg_pool *probes = replication_pool(&keeper->replication);
    if (probes)
        pg_pool_keep_to(probes, &rule);
}

void keeper_renew_pools(struct keeper *keeper)
{
    pg_pool_renew(keeper->pool);
    pg_pool_renew(checker_pool(keeper->checker));
    struct pg_pool *probes = replication_pool(&keeper->replication);
    if (probes)
        pg_pool_renew(probes);
}

/* What is of the server before is given up. */
static void leave(struct keeper *keeper)
{
    static const char why[] = "the database is another server now, or was restarted";
    log_info("database: another server than before, or restarted; connections are opened anew");
    keeper->rule.server = (struct pg_server){0};
    settled_forget(&keeper->settled);
    replication_leave(&keeper->replication, why);
    keeper_leave_standing(keeper, why);
}

static void on_stranger(void *arg, const struct pg_server *server)
{
    struct keeper *keeper = arg;
    if (keeper->draining || !pg_server_is_known(&keeper->rule.server))
        return;
    if (server->standby && (follows(keeper) || pg_pool_live(keeper->pool) > 0))
        return;
    leave(keeper);
    apply(keeper);
    keeper_renew_pools(keeper);
}

void keeper_open_server(struct keeper *keeper)
{
    keeper->rule =
        (struct pg_server_rule){.primary = follows(keeper), .unrestarted = follows(keeper)};
    apply(keeper);
}

bool keeper_keep_to(struct keeper *keeper, const struct pg_server *server)
{
    struct pg_server_rule *rule = &keeper->rule;
    if (rule->primary && server->standby)
        return false;
    if (pg_server_is_known(&rule->server) &&
        !pg_server_is_same(server, &rule->server, rule->unrestarted))
        leave(keeper);
    rule->primary = !server->standby;
    rule->server = *server;
    apply(keeper);
    return true;
}
