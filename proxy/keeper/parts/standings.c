/* Like replication.c where there is no log: a candidate takes over when its self-check has passed,
 * and a lease that never ends is all that the generation in force has. So what must not be rejected
 * any more ends with the lease, at once, and not with a view, which takes its time to every worker.
 */
#include "keeper/parts/standings.h"

#include "base/log/log.h"

#include <stdio.h>

static void on_ready(void *arg, struct standing *standing)
{
    struct standings *standings = arg;
    struct standing *replaced = standings->serving;
    struct generation *generation = standing_generation(standing);
    if (standings->ended)
        return;
    standings->serving = standing;
    standings->candidate = NULL;
    generation->references++;
    standings->options.in_force(standings->options.arg, generation);
    standing_close(replaced);
    standings->options.settled(standings->options.arg, NULL);
}

/* The lease ends before anything else: from here on nothing is rejected. */
static void lose_serving(struct standings *standings, const char *why)
{
    struct standing *lost = standings->serving;
    atomic_store_explicit(&standing_generation(lost)->lease, 0, memory_order_release);
    standings->serving = NULL;
    standing_close(lost);
    standings->options.lost(standings->options.arg, why);
}

static void on_fault(void *arg, struct standing *standing, const char *why)
{
    struct standings *standings = arg;
    char text[256];
    if (standings->ended)
        return;
    snprintf(text, sizeof text, "%s", why); /* it may be the standing's */
    if (standing == standings->serving) {
        lose_serving(standings, text);
        return;
    }
    standings->candidate = NULL;
    standing_close(standing);
    standings->options.settled(standings->options.arg, text);
}

/* As in replication.c: a candidate does not lose what guards by the one that serves. */
static bool on_gives_up(void *arg, struct standing *standing, size_t keyspace, const char *why)
{
    struct standings *standings = arg;
    struct generation *generation = standing_generation(standing);
    bool serves = standing == standings->serving;
    if (standings->ended || !generation_covers_another(generation, keyspace) ||
        (!serves && standings->serving &&
         generation_covers(standing_generation(standings->serving), keyspace)))
        return false;
    log_warning("generation %llu: %s; it goes on without that",
                (unsigned long long)generation->number, why);
    generation_give_up(generation, keyspace, why);
    if (serves)
        standings->options.gave_up(standings->options.arg, (int)keyspace, why);
    return true;
}

/* What snapshots of that server said of transactions means nothing on another. */
void standings_leave(struct standings *standings, const char *why)
{
    settled_forget(&standings->settled);
    if (standings->serving)
        on_fault(standings, standings->serving, why);
    if (standings->candidate)
        on_fault(standings, standings->candidate, why);
}

static bool retire(const struct standings *standings, const struct standing *standing)
{
    return generation_retire(standing_generation(standing), standings->options.config);
}

static void keep_candidate(struct standings *standings)
{
    if (!retire(standings, standings->candidate))
        on_fault(standings, standings->candidate,
                 "the configuration has none of its keyspaces any more");
}

void standings_use_config(struct standings *standings, const struct config *config)
{
    standings->options.config = config;
}

void standings_use_keyspaces(struct standings *standings)
{
    if (standings->serving)
        retire(standings, standings->serving);
    if (standings->candidate)
        keep_candidate(standings);
}

/* What a standby says of itself is not all: its log may be held up on the way, or a name lead to it
 * over several others. So it counts as behind by poll_interval, however little it says. */
static uint64_t behind(const struct config *config, const struct built *built)
{
    if (!built->server.standby)
        return 0;
    return built->behind > config->poll_interval_ms ? built->behind : config->poll_interval_ms;
}

void standings_take(struct standings *standings, struct built *built)
{
    struct generation *generation = built->generation;
    const struct config *config = built->config ? built->config->config : standings->options.config;
    generation->settled = settled_learn(&standings->settled,
                                        &(struct settled_build){.number = generation->number,
                                                                .snapshot = &built->snapshot,
                                                                .next = built->next_xid,
                                                                .begun = built->begun,
                                                                .asked = built->asked,
                                                                .behind = behind(config, built)});
    standings->candidate =
        standing_create(built, &(struct standing_options){.config = config,
                                                          .checker = standings->options.checker,
                                                          .fn_checks = standings->options.fn_checks,
                                                          .ready = on_ready,
                                                          .gives_up = on_gives_up,
                                                          .fault = on_fault,
                                                          .arg = standings});
    keep_candidate(standings);
}

/* The first may end the other's time. */
void standings_watch(struct standings *standings)
{
    if (standings->candidate)
        standing_tick(standings->candidate);
    if (standings->serving)
        standing_tick(standings->serving);
}

void standings_open(struct standings *standings, const struct standings_options *options)
{
    *standings = (struct standings){.options = *options};
}

void standings_end(struct standings *standings)
{
    standings->ended = true;
}

void standings_close(struct standings *standings)
{
    standing_close(standings->candidate);
    standing_close(standings->serving);
    standings->candidate = standings->serving = NULL;
}
