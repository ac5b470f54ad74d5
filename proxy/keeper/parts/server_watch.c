/*   nothing known ─ a generation is built ─▶ kept to its server ─ another is found ─▶ left
 *        ▲                                                                             │
 *        └────── everything is opened anew, and whatever is good enough will do ───────┘
 *
 * The rule is in the pools: each asks every new connection's server by it, and tells of strangers.
 */
#include "keeper/parts/server_watch.h"

#include "base/log/log.h"

#include <stdio.h>
#include <string.h>

static void on_stranger(void *arg, const struct pg_server *server);

static void on_other(void *arg)
{
    struct server_watch *watch = arg;
    if (!watch->ended)
        watch->options.moves(watch->options.arg);
}

/* What is open and leads to another server than the rule has is closed, too (pg_pool_keep_to()). */
static void apply(struct server_watch *watch)
{
    struct pg_pool_rule rule = {watch->rule, on_stranger, on_other, watch};
    for (unsigned i = 0; i < SERVER_POOLS; i++)
        if (watch->options.pools[i])
            pg_pool_keep_to(watch->options.pools[i], &rule);
}

static void renew(struct server_watch *watch)
{
    for (unsigned i = 0; i < SERVER_POOLS; i++)
        if (watch->options.pools[i])
            pg_pool_renew(watch->options.pools[i]);
}

static void note(struct server_watch *watch, const char *started)
{
    snprintf(watch->heard, sizeof watch->heard, "%s", started);
}

static void say_another(void)
{
    log_info("database: another server than before, or restarted; connections are opened anew");
}

/* What is of the server before is given up, for this one. */
static void leave(struct server_watch *watch, const struct pg_server *server)
{
    bool is_set_otherwise = pg_server_is_set_otherwise(server, &watch->rule.server);
    if (is_set_otherwise)
        log_warning("database: a server did not take the settings any more that the connections "
                    "had; they are opened anew, with those that it has");
    else
        say_another();
    note(watch, server->started);
    watch->rule.server = (struct pg_server){0};
    watch->options.left(
        watch->options.arg,
        is_set_otherwise ? "the database does not take the settings any more that it was built by"
                         : "the database is another server now, or was restarted");
}

static void on_stranger(void *arg, const struct pg_server *server)
{
    struct server_watch *watch = arg;
    if (watch->ended || !pg_server_is_known(&watch->rule.server))
        return;
    const struct pg_server_rule *rule = &watch->rule;
    if (server->standby && (watch->options.follows || pg_pool_live(watch->options.pools[0]) > 0))
        return;
    if (pg_server_is_same(server, &rule->server, rule->unrestarted))
        return; /* it has gone back, and comes again to where it was */
    leave(watch, server);
    apply(watch);
    renew(watch);
}

void server_watch_heard(struct server_watch *watch, const char *started)
{
    bool another = watch->heard[0] && strcmp(watch->heard, started) != 0;
    note(watch, started);
    if (!another)
        return;
    say_another();
    renew(watch);
}

bool server_watch_keep_to(struct server_watch *watch, const struct pg_server *server)
{
    struct pg_server_rule *rule = &watch->rule;
    if (rule->primary && server->standby)
        return false;
    if (pg_server_is_known(&rule->server) &&
        !pg_server_is_same(server, &rule->server, rule->unrestarted))
        leave(watch, server);
    else if (pg_server_has_gone_back(server, &rule->server))
        return false;
    else if (watch->options.follows)
        server_watch_heard(watch, server->started);
    rule->primary = !server->standby;
    rule->server = *server;
    apply(watch);
    return true;
}

void server_watch_open(struct server_watch *watch, const struct server_watch_options *options)
{
    *watch = (struct server_watch){
        .options = *options,
        .rule = {.primary = options->follows, .unrestarted = options->follows}};
    apply(watch);
}

void server_watch_end(struct server_watch *watch)
{
    watch->ended = true;
}
