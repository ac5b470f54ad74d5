/* How the keeper follows the database (sync: replication):
 *
 *   renewal ─ built ─▶ candidate ─ ready ─▶ serving ─ known ─▶ its generation's lease
 *                                              └─ fault ─▶ passing, and a new generation
 *
 * While no generation serves the confirmer lets commits go that wait for the guard.
 *
 * Both the serving generation's sync and the candidate's tell of changed rows; whichever is ahead
 * purges first. Only an insert that the serving one has applied ends a hint: before that its filter
 * does not know the key.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "database/publication.h"

#include <stdlib.h>

enum {
    PACE_MS = 1000,
    RENEWAL_OVERHEAD_SECONDS = 1,
    UNSEEN_MAX = 100000,
    /* Shares of a filter's places: with so few of them free another is built; and in a hurry. */
    NEARLY_FULL = 128,
    ALMOST_FULL = 256
};

void keeper_end_lease(struct keeper *keeper)
{
    if (keeper->generation)
        atomic_store_explicit(&keeper->generation->lease, 0, memory_order_release);
}

/* ---- entries that the log ends ---- */

/* A commit that waits for the guard may return only when no worker holds the key's tombstone any
 * more. */
struct ended_entry {
    struct keeper *keeper;
    uint64_t generation; /* whose sync was held; it may be closed by then */
};

static bool is_of(const struct sync *sync, uint64_t generation)
{
    return sync && sync_generation(sync)->number == generation;
}

static void entry_is_gone(void *arg)
{
    struct ended_entry *ended = arg;
    struct keeper *keeper = ended->keeper;
    if (is_of(keeper->sync, ended->generation))
        sync_release(keeper->sync);
    else if (is_of(keeper->candidate, ended->generation))
        sync_release(keeper->candidate);
    free(ended);
}

static struct sync *sync_of(const struct keeper *keeper, const struct generation *generation)
{
    if (keeper->sync && sync_generation(keeper->sync) == generation)
        return keeper->sync;
    if (keeper->candidate && sync_generation(keeper->candidate) == generation)
        return keeper->candidate;
    return NULL;
}

void keeper_end_entry(struct keeper *keeper, const struct key_change *insertion)
{
    struct key key = insertion->key;
    struct sync *sync = sync_of(keeper, insertion->generation);
    if (!overrides_count(&keeper->overrides))
        return;
    struct override entry = overrides_find(&keeper->overrides, key, clock_ms());
    bool ends =
        entry.kind == OVERRIDE_TOMBSTONE || (entry.kind == OVERRIDE_HINT && sync == keeper->sync);
    if (!ends || !sync)
        return;
    struct ended_entry *ended = xmalloc(sizeof *ended);
    *ended = (struct ended_entry){keeper, sync_generation(sync)->number};
    entry.kind = OVERRIDE_NONE;
    if (keeper_override(keeper, key, entry, entry_is_gone, ended) == 0)
        sync_hold(sync);
    else
        free(ended);
}

/* ---- the course of a generation ---- */

static void remember_confirmed(struct keeper *keeper, uint64_t position)
{
    if (position > keeper->confirmed)
        keeper->confirmed = position;
    keeper->confirmed_until = clock_ms();
}

/* Whatever commit may have returned because it was confirmed in the guard's name, who takes over
 * must know it, too: by the position up to which was confirmed or, of what is no more, by a
 * question for the log's end that was asked afterwards. That is for a server which does not have
 * that position any more: a standby that was promoted without it. */
static bool knows_what_was_confirmed(const struct keeper *keeper, const struct sync *sync)
{
    const struct lag *lag = sync_lag(sync);
    if (keeper->sync)
        return lag->position >= sync_lag(keeper->sync)->position;
    return lag->position >= keeper->confirmed || lag->known > keeper->confirmed_until;
}

/* So that there is a position to catch up to. Commits wait from here on until the generation is in
 * force, so its position is asked for at once. */
static void end_confirming(struct keeper *keeper)
{
    uint64_t confirmed = confirmer_end(keeper->confirmer);
    if (!confirmed)
        return;
    remember_confirmed(keeper, confirmed);
    prober_now(keeper->prober);
}

/* From here on nothing is confirmed until every worker looks into the new filters. */
static bool on_ready(void *arg, struct sync *sync)
{
    struct keeper *keeper = arg;
    struct sync *replaced = keeper->sync;
    struct generation *generation = sync_generation(sync);
    end_confirming(keeper);
    if (keeper->draining || !knows_what_was_confirmed(keeper, sync))
        return false;
    /* What lies between was purged by neither. */
    bool gap = replaced && sync_lag(replaced)->position < sync_begin(sync);
    keeper->candidate = NULL;
    keeper->sync = sync;
    keeper->lost[0] = '\0';
    keeper->pace = (struct pace){0};
    keeper->taking_over = true;
    generation->references++;
    keeper_extend_lease(keeper, sync_lag(sync)->known);
    keeper_publish(keeper, generation);
    sync_close(replaced);
    if (gap)
        keeper_purge_missed(keeper);
    log_info("generation %llu: in force", (unsigned long long)generation->number);
    renewal_settle(&keeper->renewal, NULL);
    return true;
}

/* Only now may commits return because this generation has them: a worker that looked into the one
 * before would not find them.
 *
 * Without a stream the newest view lets nothing be rejected, and has since the stream was lost. Now
 * that every worker has it, none rejects by an earlier one either, whatever lease that one's
 * generation still has: so nobody needs to know of a commit before it returns. */
void keeper_views_are_in(struct keeper *keeper)
{
    if (keeper->taking_over) {
        sync_release(keeper->sync);
        prober_now(keeper->prober); /* it confirms once more when that is answered; see sync.c */
    }
    keeper->taking_over = false;
    if (keeper->confirmer && !keeper->sync && !keeper->draining)
        confirmer_begin(keeper->confirmer);
}

void keeper_extend_lease(struct keeper *keeper, uint64_t known)
{
    struct generation *generation = sync_generation(keeper->sync);
    uint64_t until = known + keeper_config(keeper)->max_lag_ms;
    if (until > atomic_load_explicit(&generation->lease, memory_order_relaxed))
        atomic_store_explicit(&generation->lease, until, memory_order_release);
}

static void on_known(void *arg, struct sync *sync, uint64_t known)
{
    struct keeper *keeper = arg;
    if (sync != keeper->sync)
        return;
    keeper_extend_lease(keeper, known);
    keeper_review(keeper);
}

/* The lease ends before anything else: from here on nothing is rejected. */
static void lose_serving(struct keeper *keeper, const char *why)
{
    keeper_end_lease(keeper);
    snprintf(keeper->lost, sizeof keeper->lost, "%s", why);
    remember_confirmed(keeper, sync_lag(keeper->sync)->position);
    sync_close(keeper->sync);
    keeper->sync = NULL;
    keeper->taking_over = false;
    keeper->missed = true;
    if (keeper->candidate)
        keeper_purge_missed(keeper);
    keeper_publish(keeper, NULL);
    renewal_replace(&keeper->renewal, keeper->lost);
}

static void on_fault(void *arg, struct sync *sync, const char *why)
{
    struct keeper *keeper = arg;
    log_warning("generation %llu: %s", (unsigned long long)sync_generation(sync)->number, why);
    if (sync == keeper->sync) {
        lose_serving(keeper, why);
        return;
    }
    char text[256];
    snprintf(text, sizeof text, "%s", why);
    keeper->candidate = NULL;
    keeper->missed |= !keeper->sync;
    sync_close(sync);
    renewal_settle(&keeper->renewal, text);
}

/* The one that serves first: from then on nothing is rejected. */
void keeper_leave_sync(struct keeper *keeper, const char *why)
{
    if (keeper->sync)
        on_fault(keeper, keeper->sync, why);
    if (keeper->candidate)
        on_fault(keeper, keeper->candidate, why);
}

static const struct sync_events events = {.ready = on_ready, .known = on_known, .fault = on_fault};

/* Connections that were opened before lead to what was the database then: its rows, or its lack of
 * them, are nothing to answer with. */
static void note_server(struct keeper *keeper, const char *fingerprint)
{
    const char *server = publication_server(fingerprint);
    bool is_another = keeper->server[0] && strcmp(server, keeper->server) != 0;
    snprintf(keeper->server, sizeof keeper->server, "%s", server);
    if (!is_another)
        return;
    log_info("database: another server than before, or restarted; connections are opened anew");
    pg_pool_renew(keeper->pool);
    pg_pool_renew(checker_pool(keeper->checker));
    pg_pool_renew(prober_pool(keeper->prober));
}

void keeper_follow(struct keeper *keeper, struct built *built)
{
    note_server(keeper, built->fingerprint);
    if (!values_are_known(keeper->values)) /* else a later answer may be known by now */
        keeper_learn_values(keeper, built->values);
    struct pg_error error = {.text = ""};
    unseen_follow(keeper->unseen, &built->snapshot, !keeper->sync);
    struct sync_options options = {.config = keeper->first->config,
                                   .prober = keeper->prober,
                                   .checker = keeper->checker,
                                   .doubts = keeper->doubts,
                                   .changes = changes_sink(&keeper->changes),
                                   .events = &events,
                                   .arg = keeper};
    if (sync_start(&keeper->candidate, &keeper->loop, built, &options, &error) < 0) {
        keeper->candidate = NULL;
        renewal_settle(&keeper->renewal, error.text);
    } else {
        keeper_vouch(keeper);
    }
}

/* ---- catching up, or a new generation ---- */

static double seconds_to_catch_up(const struct keeper *keeper)
{
    double rate = keeper->pace.bytes_per_second;
    double bytes = (double)lag_bytes(sync_lag(keeper->sync));
    return rate > 1 ? bytes / rate : bytes;
}

/* Reading the log costs much more for each change than COPY for each row. Judged by this guard's
 * own pace and by what the last building took; while nothing may be rejected, none rests. */
static void renew_when_quicker(struct keeper *keeper)
{
    double catch_up = seconds_to_catch_up(keeper);
    const struct generation *last = keeper->generation;
    double renew = last->build_seconds - last->rested_seconds + RENEWAL_OVERHEAD_SECONDS;
    if (keeper->pace.renewing || keeper->renewal.phase != RENEWAL_IDLE || catch_up < 2 * renew)
        return;
    keeper->pace.renewing = true;
    log_info("%llu bytes of log behind, %.0f s to catch up at %.0f bytes/s; a new generation takes "
             "about %.0f s and is begun",
             (unsigned long long)lag_bytes(sync_lag(keeper->sync)), catch_up,
             keeper->pace.bytes_per_second, renew);
    renewal_begin(&keeper->renewal);
}

static void watch_pace(struct keeper *keeper, uint64_t now)
{
    struct pace *pace = &keeper->pace;
    if (!keeper->sync || now - pace->time < PACE_MS)
        return;
    const struct lag *lag = sync_lag(keeper->sync);
    if (pace->time && lag->position >= pace->position)
        pace->bytes_per_second =
            (double)(lag->position - pace->position) * 1000 / (double)(now - pace->time);
    pace->time = now;
    pace->position = lag->position;
    if (lag->known && now - lag->known > keeper_config(keeper)->max_lag_ms + PACE_MS)
        renew_when_quicker(keeper);
}

/* The first keyspace, if any, whose followed filter has less than one of so many places free; else
 * their number. */
static size_t full_keyspace(const struct keeper *keeper, size_t places)
{
    size_t i = 0;
    for (; i < keeper->generation->count; i++) {
        struct filter_stats stats = filter_stats(keeper->generation->filters[i]);
        if (stats.keys > stats.capacity - stats.capacity / places)
            break;
    }
    return i;
}

/* A followed filter grows; another is built before it is full. */
static void renew_when_nearly_full(struct keeper *keeper)
{
    if (!keeper->sync || keeper->renewal.phase != RENEWAL_IDLE)
        return;
    size_t full = full_keyspace(keeper, NEARLY_FULL);
    if (full == keeper->generation->count)
        return;
    struct filter_stats stats = filter_stats(keeper->generation->filters[full]);
    log_info("keyspace %s: its filter is nearly full: %zu keys of %zu",
             keeper_config(keeper)->keyspaces[full].name, stats.keys, stats.capacity);
    renewal_begin(&keeper->renewal);
}

void keeper_pace_builds(struct keeper *keeper)
{
    bool guards = keeper->keyspaces[0].state == KEYSPACE_GUARDING;
    bool lasts = !keeper->sync || full_keyspace(keeper, ALMOST_FULL) == keeper->generation->count;
    renewal_hurry(&keeper->renewal, !guards || !lasts);
}

void keeper_watch_sync(struct keeper *keeper, uint64_t now)
{
    renew_when_nearly_full(keeper);
    watch_pace(keeper, now);
    keeper_pace_builds(keeper);
}

/* ---- what the syncs are served by ---- */

static void wake_calls(struct keeper *keeper)
{
    struct key_touch *next;
    for (struct key_touch *touch = keeper->touches; touch; touch = next) {
        void (*on_probe)(struct key_touch *) = touch->on_probe;
        next = touch->next;
        touch->on_probe = NULL;
        if (on_probe)
            on_probe(touch);
    }
}

static void on_probe(void *arg, const struct probe *probe)
{
    struct keeper *keeper = arg;
    note_server(keeper, probe->fingerprint);
    unseen_learn(keeper->unseen, probe->snapshot);
    keeper_learn_values(keeper, probe->values);
    wake_calls(keeper);
    if (keeper->sync)
        sync_probed(keeper->sync, probe);
    if (keeper->candidate)
        sync_probed(keeper->candidate, probe);
}

/* Whoever waits for a probe is told of each that failed: he counts how often he has waited. */
static void on_probe_failed(void *arg, const char *why, bool is_news)
{
    if (is_news)
        log_warning("database: where its log ends could not be asked: %s", why);
    wake_calls(arg);
}

static void on_snapshot_wanted(void *arg)
{
    struct keeper *keeper = arg;
    if (keeper->prober)
        prober_now(keeper->prober);
}

struct unseen *keeper_create_unseen(struct keeper *keeper)
{
    return unseen_create(&(struct unseen_options){
        .max_remembered = UNSEEN_MAX, .wanted = on_snapshot_wanted, .arg = keeper});
}

int keeper_open_sync(struct keeper *keeper)
{
    const struct config *config = keeper->first->config;
    const char *error = NULL;
    struct purger_options purger = {.redis = keeper->redis,
                                    .loop = &keeper->loop,
                                    .config = config,
                                    .counters = keeper->counters,
                                    .max_owed = config->max_hints};
    struct prober_options prober = {
        .config = config, .probed = on_probe, .failed = on_probe_failed, .arg = keeper};
    keeper->purger = purger_create(&purger);
    int status = keeper_open_checker(keeper);
    if (status || config->sync != SYNC_REPLICATION)
        return status;
    keeper->missed = config->purge_at_start;
    keeper->confirmer = confirmer_create(&keeper->loop, config);
    status = prober_create(&keeper->prober, &keeper->loop, &prober, &error);
    if (status)
        log_error("database: %s", error);
    return status;
}

static const struct sync *sync_that_tells(const struct keeper *keeper)
{
    return keeper->sync ? keeper->sync : keeper->candidate;
}

bool keeper_has_followed(const struct keeper *keeper, uint64_t time)
{
    const struct sync *sync = sync_that_tells(keeper);
    return !sync || sync_lag(sync)->known >= time;
}

void keeper_close_sync(struct keeper *keeper, void (*closed)(void *arg), void *arg)
{
    if (keeper->missed || !keeper_has_followed(keeper, keeper->drain_since))
        keeper_purge_missed(keeper);
    sync_close(keeper->candidate);
    sync_close(keeper->sync);
    keeper->candidate = keeper->sync = NULL;
    confirmer_destroy(keeper->confirmer);
    keeper->confirmer = NULL;
    prober_close(keeper->prober, closed, arg);
}
