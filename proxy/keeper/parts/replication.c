/* At most two trackers are at work: the one that serves, and a candidate that catches up beside it.
 * Leases are what makes the order here matter: a generation may reject only while its lease lasts,
 * so a lease is ended before anybody is told that a log was lost, and begun only when whatever may
 * have been confirmed in the guard's name is known to the generation that gets it.
 */
#include "keeper/parts/replication.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "config/config_reload.h"

static const struct replication_events *events_of(const struct replication *replication)
{
    return replication->options.events;
}

/* ---- which is meant ---- */

static bool is_of(const struct tracker *tracker, uint64_t generation)
{
    return tracker && tracker_generation(tracker)->number == generation;
}

static struct tracker *tracker_of(const struct replication *replication, uint64_t generation)
{
    if (is_of(replication->serving, generation))
        return replication->serving;
    return is_of(replication->candidate, generation) ? replication->candidate : NULL;
}

bool replication_serves(const struct replication *replication, const struct generation *generation)
{
    return is_of(replication->serving, generation->number);
}

bool replication_hold(struct replication *replication, uint64_t generation)
{
    struct tracker *tracker = tracker_of(replication, generation);
    if (tracker)
        tracker_hold(tracker);
    return tracker != NULL;
}

void replication_release(struct replication *replication, uint64_t generation)
{
    struct tracker *tracker = tracker_of(replication, generation);
    if (tracker)
        tracker_release(tracker);
}

/* ---- leases ---- */

/* Workers look at it before each batch: from here on they reject nothing by this generation. */
static void end_lease(const struct tracker *tracker)
{
    atomic_store_explicit(&tracker_generation(tracker)->lease, 0, memory_order_release);
}

/* All that had been committed by `known` is in it, so it may be up to max_lag behind from then on.
 * Never back: workers may count on what they have read. */
static void extend_lease(const struct replication *replication, uint64_t known)
{
    struct generation *generation = tracker_generation(replication->serving);
    uint64_t until = known + replication->config->max_lag_ms;
    if (until > atomic_load_explicit(&generation->lease, memory_order_relaxed))
        atomic_store_explicit(&generation->lease, until, memory_order_release);
}

/* ---- the course of a generation ---- */

/* Whatever commit may have returned because it was confirmed in the guard's name, who takes over
 * must know it, too. */
static bool knows_what_was_confirmed(const struct replication *replication,
                                     const struct tracker *tracker)
{
    const struct lag *lag = tracker_lag(tracker);
    if (replication->serving)
        return lag->position >= tracker_lag(replication->serving)->position;
    return confirming_is_known(&replication->confirming, lag);
}

/* So that there is a position to catch up to. Commits wait from here on until the generation is in
 * force, so its position is asked for at once. */
static void end_confirming(struct replication *replication)
{
    if (confirming_ends_everything(&replication->confirming))
        wal_probe_now(replication->wal_probe);
}

/* What the serving stream had not told yet when it was lost lies before the snapshot of the
 * generation that comes after it: no log tells of it. */
static void tell_missed(struct replication *replication)
{
    replication->missed = false;
    events_of(replication)->missed(replication->options.arg);
}

/* From here on nothing is confirmed until every worker looks into the new filters. */
static bool on_ready(void *arg, struct tracker *tracker)
{
    struct replication *replication = arg;
    struct tracker *replaced = replication->serving;
    struct generation *generation = tracker_generation(tracker);
    end_confirming(replication);
    if (replication->confirming.voice == VOICE_SHARED && !replication->serving)
        return false; /* the other confirms everything since the last one was lost */
    if (replication->ending || !knows_what_was_confirmed(replication, tracker))
        return false;
    /* What lies between was purged by neither. */
    bool gap = replaced && tracker_lag(replaced)->position < tracker_begin(tracker);
    replication->candidate = NULL;
    replication->serving = tracker;
    replication->pace = (struct pace){0};
    replication->taking_over = true;
    replication->giving_up = false;
    generation->references++;
    extend_lease(replication, tracker_lag(tracker)->known);
    events_of(replication)->in_force(replication->options.arg, generation);
    tracker_close(replaced);
    if (gap)
        tell_missed(replication);
    events_of(replication)->settled(replication->options.arg, NULL);
    return true;
}

static void end_giving_up(struct replication *replication)
{
    bool was_giving_up = replication->giving_up;
    replication->giving_up = false;
    if (was_giving_up) {
        tracker_release(replication->serving);
        wal_probe_now(replication->wal_probe);
    }
}

/* Only now may commits return because this generation has them: a worker that looked into the one
 * before would not find them.
 *
 * Without a stream the newest view lets nothing be rejected, and has since the stream was lost. Now
 * that every worker has it, none rejects by an earlier one either, whatever lease that one's
 * generation still has: so nobody needs to know of a commit before it returns. */
void replication_views_are_in(struct replication *replication)
{
    if (replication->taking_over && replication->confirming.voice == VOICE_OWN) {
        tracker_release(replication->serving);
        wal_probe_now(replication->wal_probe); /* answered, it confirms once more; see tracker.c */
    }
    replication->taking_over = false;
    end_giving_up(replication);
    if (!replication->serving && !replication->ending)
        confirming_everything(&replication->confirming);
}

/* ---- two processes of one name ---- */

void replication_keep_silent(struct replication *replication)
{
    replication->confirming.voice = VOICE_SILENT;
}

static void tell_reached(struct replication *replication, uint64_t position)
{
    if (replication->confirming.voice != VOICE_OWN)
        events_of(replication)->reached(replication->options.arg, position);
}

/* Not before every worker looks into the new filters. */
static void on_reached(void *arg, struct tracker *tracker, uint64_t position)
{
    struct replication *replication = arg;
    if (tracker == replication->serving && !replication->taking_over && !replication->giving_up)
        tell_reached(replication, position);
}

void replication_share(struct replication *replication)
{
    replication->confirming.voice = VOICE_SHARED;
    tell_reached(replication,
                 replication->serving ? tracker_lag(replication->serving)->position : UINT64_MAX);
}

/* Until now a tracker that serves has kept the hold with which it was started. */
void replication_speak(struct replication *replication)
{
    if (!confirming_speak(&replication->confirming))
        return;
    if (replication->serving && !replication->taking_over)
        tracker_release(replication->serving);
    replication_probe(replication);
}

void replication_limit(struct replication *replication, uint64_t position)
{
    replication->confirming.limit = position;
    if (position != UINT64_MAX)
        end_confirming(replication); /* it would know no limit */
    if (replication->serving)
        tracker_confirm(replication->serving);
}

/* Nothing is known of a filter that was given up: what the others know counts again when no worker
 * rejects by it any more. */
static void on_known(void *arg, struct tracker *tracker, uint64_t known)
{
    struct replication *replication = arg;
    if (tracker != replication->serving || replication->giving_up)
        return;
    extend_lease(replication, known);
    events_of(replication)->known(replication->options.arg);
}

/* The lease ends before anything else: from here on nothing is rejected. */
static void lose_serving(struct replication *replication, const char *why)
{
    char text[256];
    end_lease(replication->serving);
    snprintf(text, sizeof text, "%s", why); /* it may be the sync's */
    confirming_remember(&replication->confirming, tracker_lag(replication->serving)->position);
    tracker_close(replication->serving);
    replication->serving = NULL;
    replication->taking_over = replication->giving_up = false;
    replication->missed = true;
    tell_reached(replication, UINT64_MAX);
    if (replication->candidate)
        tell_missed(replication);
    events_of(replication)->lost(replication->options.arg, text);
}

/* One that serves is lost, one that does not was a candidate: both are closed here. */
static void on_fault(void *arg, struct tracker *tracker, const char *why)
{
    struct replication *replication = arg;
    log_warning("generation %llu: %s", (unsigned long long)tracker_generation(tracker)->number,
                why);
    if (tracker == replication->serving) {
        lose_serving(replication, why);
        return;
    }
    char text[256];
    snprintf(text, sizeof text, "%s", why);
    replication->candidate = NULL;
    replication->missed |= !replication->serving;
    tracker_close(tracker);
    events_of(replication)->settled(replication->options.arg, text);
}

/* The one that serves first: from then on nothing is rejected. */
void replication_leave(struct replication *replication, const char *why)
{
    if (replication->serving)
        on_fault(replication, replication->serving, why);
    if (replication->candidate)
        on_fault(replication, replication->candidate, why);
}

/* ---- one keyspace of a generation ---- */

static bool covers(const struct tracker *tracker, size_t keyspace)
{
    return tracker && generation_covers(tracker_generation(tracker), keyspace);
}

/* While workers may still reject by its filter the lease is not extended and nothing is confirmed:
 * what the log has told by now is not known to it. The lease that there is ends max_lag after the
 * last position that it knew all of. */
static void give_up_serving(struct replication *replication, int keyspace, const char *why)
{
    if (!replication->giving_up)
        tracker_hold(replication->serving);
    replication->giving_up = true;
    if (covers(replication->candidate, (size_t)keyspace))
        events_of(replication)->missed_of(replication->options.arg, keyspace);
    events_of(replication)->gave_up(replication->options.arg, keyspace, why);
}

/* A candidate does not lose what guards by the one that serves: it fails, and another is built. */
static bool on_gives_up(void *arg, struct tracker *tracker, int keyspace, const char *why)
{
    struct replication *replication = arg;
    struct generation *generation = tracker_generation(tracker);
    bool serves = tracker == replication->serving;
    if (!generation_covers_another(generation, (size_t)keyspace) ||
        (!serves && covers(replication->serving, (size_t)keyspace)))
        return false;
    log_warning("generation %llu, keyspace %s: %s", (unsigned long long)generation->number,
                replication->config->keyspaces[keyspace].name, why);
    generation_give_up(generation, (size_t)keyspace, why);
    if (serves)
        give_up_serving(replication, keyspace, why);
    return true;
}

static bool retire(const struct replication *replication, const struct tracker *tracker)
{
    return generation_retire(tracker_generation(tracker), replication->config);
}

/* The candidate covers what the configuration has; else it is none any more. */
static bool keep_candidate(struct replication *replication)
{
    if (retire(replication, replication->candidate))
        return true;
    on_fault(replication, replication->candidate,
             "the configuration has none of its keyspaces any more");
    return false;
}

/* No view lets anything be rejected by what is retired, once it has come. */
void replication_use_keyspaces(struct replication *replication)
{
    if (!replication->wal_probe)
        return;
    wal_probe_use_config(replication->wal_probe, replication->config);
    if (replication->serving)
        retire(replication, replication->serving);
    if (replication->candidate)
        keep_candidate(replication);
}

/* Of what only the candidate covers nobody told until now. */
static void tell_missed_of(struct replication *replication)
{
    for (size_t i = 0; i < tracker_generation(replication->candidate)->count; i++)
        if (replication->serving && covers(replication->candidate, i) &&
            !covers(replication->serving, i))
            events_of(replication)->missed_of(replication->options.arg, (int)i);
}

static const struct tracker_events events = {.ready = on_ready,
                                             .known = on_known,
                                             .reached = on_reached,
                                             .gives_up = on_gives_up,
                                             .fault = on_fault};

void replication_follow(struct replication *replication, struct built *built)
{
    struct pg_error error = {.text = ""};
    events_of(replication)->begins(replication->options.arg, built, !replication->serving);
    const struct shared_config *built_for = built->config;
    struct tracker_options options = {.config = built_for ? built_for->config
                                                          : replication->options.config,
                                      .wal_probe = replication->wal_probe,
                                      .checker = replication->options.checker,
                                      .fn_checks = replication->options.fn_checks,
                                      .limit = &replication->confirming.limit,
                                      .changes = replication->options.changes,
                                      .events = &events,
                                      .arg = replication};
    if (tracker_start(&replication->candidate, replication->options.loop, built, &options, &error) <
        0) {
        replication->candidate = NULL;
        events_of(replication)->settled(replication->options.arg, error.text);
        return;
    }
    if (!keep_candidate(replication))
        return;
    if (replication->missed)
        tell_missed(replication);
    else
        tell_missed_of(replication);
    events_of(replication)->begun(replication->options.arg);
}

/* ---- what the syncs are served by ---- */

static void on_probe(void *arg, const struct probe *probe)
{
    struct replication *replication = arg;
    events_of(replication)->probed(replication->options.arg, probe);
    if (replication->serving)
        tracker_probed(replication->serving, probe);
    if (replication->candidate)
        tracker_probed(replication->candidate, probe);
}

/* Whoever waits for a probe is told of each that failed: he counts how often he has waited. */
static void on_probe_failed(void *arg, const char *why, bool is_news)
{
    struct replication *replication = arg;
    if (is_news)
        log_warning("database: where its log ends could not be asked: %s", why);
    events_of(replication)->probed(replication->options.arg, NULL);
}

void replication_probe(struct replication *replication)
{
    if (replication->wal_probe)
        wal_probe_now(replication->wal_probe);
}

struct pg_pool *replication_pool(const struct replication *replication)
{
    return replication->wal_probe ? wal_probe_pool(replication->wal_probe) : NULL;
}

/* ---- what is told of it ---- */

struct stream_report replication_report(const struct replication *replication)
{
    if (!replication->serving)
        return (struct stream_report){0};
    const struct lag *lag = tracker_lag(replication->serving);
    return (struct stream_report){true,
                                  lag->position,
                                  lag_bytes(lag),
                                  lag->known,
                                  replication->pace.bytes_per_second,
                                  tracker_counts(replication->serving)};
}

bool replication_lets_go(const struct replication *replication)
{
    return replication->confirming.confirmer &&
           confirmer_is_at_work(replication->confirming.confirmer);
}

/* ---- life ---- */

int replication_open(struct replication *replication, const struct replication_options *options)
{
    const char *error = NULL;
    struct wal_probe_options wal_probe = {.config = options->config,
                                          .probed = on_probe,
                                          .failed = on_probe_failed,
                                          .arg = replication};
    bool follows = options->config->sync == SYNC_REPLICATION;
    *replication = (struct replication){.options = *options, .config = options->config};
    confirming_open(&replication->confirming, options->loop, options->config, follows);
    if (!follows)
        return 0;
    replication->missed = options->config->purge_at_start;
    int status = wal_probe_create(&replication->wal_probe, options->loop, &wal_probe, &error);
    if (status)
        log_error("database: %s", error);
    return status;
}

void replication_use_config(struct replication *replication, const struct config *config)
{
    bool moves = config_moves_database(replication->config, config);
    replication->config = config;
    confirming_use_config(&replication->confirming, config);
    if (moves && replication->wal_probe)
        pg_pool_move(wal_probe_pool(replication->wal_probe), config->database);
}

/* Once rows were missed all keys will be purged. */
bool replication_is_blind(const struct replication *replication)
{
    return replication->wal_probe && !replication->serving && !replication->candidate &&
           !replication->missed;
}

/* By whose log it is judged what has been told; both tell. */
static const struct tracker *tracker_that_tells(const struct replication *replication)
{
    return replication->serving ? replication->serving : replication->candidate;
}

bool replication_has_followed(const struct replication *replication, uint64_t time)
{
    const struct tracker *tracker = tracker_that_tells(replication);
    return !tracker || tracker_lag(tracker)->known >= time;
}

/* What was filled of a keyspace that no log was followed for was left to the generation that would
 * cover it, and there will be none here. */
static void tell_untold(struct replication *replication)
{
    const struct tracker *tracker = tracker_that_tells(replication);
    const struct config *config = replication->config;
    for (size_t i = 0; tracker && i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]) && !covers(tracker, i))
            events_of(replication)->missed_of(replication->options.arg, (int)i);
}

void replication_end(struct replication *replication)
{
    replication->ending = true;
}

void replication_close(struct replication *replication, uint64_t since, void (*closed)(void *arg),
                       void *arg)
{
    if (replication->missed || !replication_has_followed(replication, since))
        tell_missed(replication);
    else
        tell_untold(replication);
    tracker_close(replication->candidate);
    tracker_close(replication->serving);
    replication->candidate = replication->serving = NULL;
    confirming_close(&replication->confirming);
    wal_probe_close(replication->wal_probe, closed, arg);
    replication->wal_probe = NULL;
}
