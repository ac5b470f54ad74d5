/* A lane for each keyspace, because a server's access rules may refuse the keys of one and take
 * those of another. A key is among those that are owed (owed.h) until it is sent, in a batch until
 * that is answered, and owed again when the batch has failed.
 *
 * Whole keyspaces are swept one after the other, so that the server has time for others. What a
 * sweep finds is owed as well. A sweep never counts on a lost connection: it begins again. */
#include "cache/purger.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"
#include "base/retry.h"
#include "cache/owed.h"
#include "cache/sweep.h"

#include <stdlib.h>

enum {
    BATCH_KEYS = 64,
    WINDOW = 8192,      /* keys that may be without an answer */
    FEW = WINDOW / 2,   /* so few that a sweep may add to them */
    COMPLAIN_MS = 60000 /* from one line about refusals to the next */
};

/* A keyspace, as the cache sees it. */
struct lane {
    struct purger *purger;
    size_t keyspace;       /* its number; what is owed of it: owed_of() */
    struct retry retry;    /* set while the cache refuses its keys: nothing is sent before */
    uint64_t begun, ended; /* uv_hrtime() of its last sweep that did; 0: none has */
};

/* One DEL on its way. */
struct batch {
    struct lane *lane;
    size_t count;
    struct owed_key *keys[BATCH_KEYS];
};

struct purger {
    struct purger_options options;
    struct lane *lanes; /* by keyspaces' numbers; KEYSPACES_MAX, so that they never move */
    struct owed owed;
    size_t turn; /* the lane that may send next */
    size_t sent; /* keys, of all lanes */
    struct sweep sweep;
    struct lane *swept;         /* while a sweep is under way */
    size_t swept_keys;          /* found by it so far, for the log */
    size_t sweep_turn;          /* the lane that was swept last */
    bool is_retired;            /* its node is gone: nothing is swept */
    bool is_clean;              /* at some moment since the last sweep began nothing was owed */
    bool is_doubted;            /* it may have forgotten deletions, and is not swept yet */
    struct retry sweep_retry;   /* set while SCAN is refused, for whichever lane */
    struct log_pace complained; /* of the log's lines about refusals */
    uv_idle_t idle;   /* runs when there may be something to do, at the next turn of the loop */
    uv_timer_t timer; /* for the retry that is due first */
    int handles;      /* of the two that are not closed */
};

static size_t lane_count(const struct purger *purger)
{
    return purger->options.config->keyspace_count;
}

static bool cache_is_up(const struct purger *purger)
{
    return redis_is_up(purger->options.redis);
}

static const char *name_of(const struct lane *lane)
{
    return lane->purger->options.config->keyspaces[lane->keyspace].name;
}

static struct owed_lane *owed_of(const struct lane *lane)
{
    return &lane->purger->owed.lanes[lane->keyspace];
}

static void on_idle(uv_idle_t *idle);

/* Idle, not prepare: that keeps the loop from waiting for events before it has run. */
static void schedule(struct purger *purger)
{
    uv_idle_start(&purger->idle, on_idle);
}

/* ---- refusals ---- */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct purger *purger)
{
    uint64_t now = uv_now(purger->options.loop);
    uint64_t due = retry_earlier(0, &purger->sweep_retry);
    for (size_t i = 0; i < lane_count(purger); i++)
        due = retry_earlier(due, &purger->lanes[i].retry);
    if (due)
        uv_timer_start(&purger->timer, on_timer, due > now ? due - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct purger *purger = timer->data;
    uint64_t now = uv_now(purger->options.loop);
    retry_if_due(&purger->sweep_retry, now);
    for (size_t i = 0; i < lane_count(purger); i++)
        retry_if_due(&purger->lanes[i].retry, now);
    arm_timer(purger);
    schedule(purger);
}

/* Batches that were sent together are refused together: the wait grows once for all of them. And
 * not at all where what is the matter may be over at any moment: who reads the keys then is to find
 * no old value for long. */
static void retry_later(struct purger *purger, struct retry *retry, bool passes)
{
    if (retry->at)
        return;
    (passes ? retry_set_soon : retry_set)(retry, uv_now(purger->options.loop));
    arm_timer(purger);
}

static void complain(const struct lane *lane, const char *command, const char *error)
{
    if (!log_pace_may(&lane->purger->complained, clock_ms(), NULL))
        return;
    log_error("keyspace %s: the cache refused %s, so that it may hold stale values: %s",
              name_of(lane), command, error);
}

/* ---- whether the server can be believed ---- */

static void judge(struct purger *purger, bool is_doubted)
{
    void (*say)(struct vouched *, const void *, const char *) =
        is_doubted ? vouched_doubt : vouched_set;
    purger->is_doubted = is_doubted;
    say(purger->options.vouched, purger, redis_run_id(purger->options.redis));
}

/* What the cache confirmed it may have forgotten. */
void purger_doubt(struct purger *purger, const char *why)
{
    judge(purger, true);
    owed_all(&purger->owed, why);
    schedule(purger);
}

bool purger_is_doubted(const struct purger *purger)
{
    return purger->is_doubted;
}

/* ---- batches ---- */

/* A refusal in between counts no more: the next one is waited for as if it were the first. */
static void confirm(struct batch *batch)
{
    struct lane *lane = batch->lane;
    backoff_reset(&lane->retry.backoff);
    counter_add(&lane->purger->options.counters[lane->keyspace].purges, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        free(batch->keys[i]);
}

/* Whatever became of them: to delete a key twice does no harm. */
static void owe_again(struct batch *batch)
{
    struct purger *purger = batch->lane->purger;
    for (size_t i = 0; i < batch->count; i++)
        owed_give_back(&purger->owed, batch->keys[i], cache_is_up(purger));
    owed_keep_limit(&purger->owed, cache_is_up(purger));
}

/* What a sweep found is deleted by then; keys of changes that come without a pause do not put that
 * off for ever, as long as the cache keeps up with them. */
static void see_clean(struct purger *purger)
{
    if (purger_owed(purger) == 0)
        purger->is_clean = true;
    if (purger->is_doubted && cache_is_up(purger) && purger_is_swept(purger))
        judge(purger, false);
}

/* A replica takes over what its primary has, whatever it confirmed before: without the connection
 * being lost, and whether or not it is made a primary afterwards. */
static void on_deleted(void *arg, const struct redis_answer *answer)
{
    struct batch *batch = arg;
    struct lane *lane = batch->lane;
    struct purger *purger = lane->purger;
    purger->sent -= batch->count;
    if (answer->outcome == REDIS_DONE)
        confirm(batch);
    else
        owe_again(batch);
    if (answer->outcome == REDIS_REFUSED) {
        counter_add(&purger->options.counters[lane->keyspace].purges_refused, batch->count);
        complain(lane, "DEL", answer->error);
        retry_later(purger, &lane->retry, redis_may_pass(answer->error));
        if (redis_is_readonly(answer->error, strlen(answer->error)))
            purger_doubt(purger, "it is a replica");
    } else if (answer->outcome == REDIS_DOWN && cache_is_up(purger) && purger->options.all)
        retry_later(purger, &lane->retry, true); /* another node has it by now, and is down */
    free(batch);
    see_clean(purger);
    schedule(purger);
}

/* The oldest of the lane's keys, in one DEL. */
static void send_batch(struct lane *lane)
{
    struct purger *purger = lane->purger;
    struct batch *batch = xmalloc(sizeof *batch);
    struct redis_bytes keys[BATCH_KEYS];
    size_t count = 0;
    struct owed_key *key;
    size_t most = purger->options.all ? 1 : BATCH_KEYS; /* of a cluster each may be elsewhere */
    while (count < most && (key = owed_take(&purger->owed, lane->keyspace))) {
        keys[count] = (struct redis_bytes){key->bytes, key->node.key.length};
        batch->keys[count++] = key;
    }
    batch->lane = lane;
    batch->count = count;
    purger->sent += count;
    redis_purge_many(purger->options.all ? purger->options.all : purger->options.redis, keys, count,
                     on_deleted, batch);
}

/* The next in turn that has at least so many keys to send; NULL: none. */
static struct lane *next_lane(struct purger *purger, size_t least)
{
    for (size_t i = 0; i < lane_count(purger); i++) {
        struct lane *lane = &purger->lanes[purger->turn];
        purger->turn = (purger->turn + 1) % lane_count(purger);
        if (owed_of(lane)->keys.count >= least && !lane->retry.at)
            return lane;
    }
    return NULL;
}

/* As much as may be without an answer, in batches of at least so many keys. */
static void send_batches(struct purger *purger, size_t least)
{
    struct lane *lane;
    while (cache_is_up(purger) && purger->sent < WINDOW && (lane = next_lane(purger, least)))
        send_batch(lane);
}

/* ---- sweeps ---- */

/* It has to begin again: the keyspace is owed whole, as before. */
static void abandon_sweep(struct purger *purger)
{
    sweep_abandon(&purger->sweep);
    if (purger->swept)
        owed_of(purger->swept)->whole = true;
    purger->swept = NULL;
}

/* A step's worth may be past the limit: it is sent at once, and the next step waits for that. */
static void on_found(void *arg, struct span text)
{
    struct purger *purger = arg;
    purger->swept_keys++;
    owed_add(&purger->owed, key_make((int)purger->swept->keyspace, text), cache_is_up(purger));
}

/* A step has ended, and what it found was given to on_found() before. */
static void on_stepped(void *arg, enum redis_outcome outcome, const char *error)
{
    struct purger *purger = arg;
    if (outcome == REDIS_REFUSED && purger->swept) {
        complain(purger->swept, "SCAN", error);
        retry_later(purger, &purger->sweep_retry, redis_may_pass(error));
    }
    if (outcome != REDIS_DONE) {
        abandon_sweep(purger);
    } else if (purger->swept && sweep_is_over(&purger->sweep)) {
        log_info("keyspace %s: went through the cache for its keys and purged %zu",
                 name_of(purger->swept), purger->swept_keys);
        purger->swept->ended = uv_hrtime();
        purger->swept = NULL;
        backoff_reset(&purger->sweep_retry.backoff);
    }
    see_clean(purger);
    schedule(purger);
}

/* One sweep suffices if it begins later than the last change. So it waits until every key is on its
 * way that found room: while rows change faster than the cache deletes keys, another would be owed
 * before the first has ended, again and again. */
static bool may_be_swept(const struct lane *lane)
{
    return owed_of(lane)->whole && !owed_of(lane)->keys.count;
}

/* Of the next lane in turn, so that one whose keyspace is owed whole again and again does not keep
 * the others waiting. */
static void begin_sweep(struct purger *purger)
{
    for (size_t i = 0; i < lane_count(purger) && !purger->swept; i++) {
        purger->sweep_turn = (purger->sweep_turn + 1) % lane_count(purger);
        if (may_be_swept(&purger->lanes[purger->sweep_turn]))
            purger->swept = &purger->lanes[purger->sweep_turn];
    }
    if (!purger->swept)
        return;
    owed_of(purger->swept)->whole = false;
    purger->swept->begun = uv_hrtime();
    purger->is_clean = false;
    purger->swept_keys = 0;
    sweep_begin(&purger->sweep, &purger->options.config->keyspaces[purger->swept->keyspace].key);
}

/* The next step waits until what the last one found is on its way, and until the cache has answered
 * most of it. */
static void go_on_sweeping(struct purger *purger)
{
    if (!cache_is_up(purger) || purger->is_retired || purger->sweep.asking ||
        purger->sweep_retry.at || purger->sent > FEW)
        return;
    if (!purger->swept)
        begin_sweep(purger);
    if (purger->swept && !owed_of(purger->swept)->keys.count)
        sweep_step(&purger->sweep);
}

/* ---- the course of things ---- */

/* All that was scheduled in this turn of the loop, at once. */
static void on_idle(uv_idle_t *idle)
{
    struct purger *purger = idle->data;
    uv_idle_stop(idle);
    send_batches(purger, 1);
    go_on_sweeping(purger);
}

void purger_key(struct purger *purger, struct key key)
{
    const struct owed_lane *lane = &purger->owed.lanes[key.keyspace];
    if (!owed_add(&purger->owed, key, cache_is_up(purger)))
        return;
    owed_keep_limit(&purger->owed, cache_is_up(purger));
    if (lane->keys.count >= BATCH_KEYS)
        send_batches(purger, BATCH_KEYS);
    schedule(purger);
}

void purger_keyspace(struct purger *purger, int keyspace)
{
    purger->owed.lanes[keyspace].whole = true;
    schedule(purger);
}

/* It may be another server that is up now: what the last one refused is tried at once, and what it
 * confirmed counts for nothing. */
static void begin_anew(struct purger *purger)
{
    const char *why = redis_doubt(purger->options.redis);
    purger->sweep_retry = (struct retry){0};
    for (size_t i = 0; i < lane_count(purger); i++)
        purger->lanes[i].retry = (struct retry){0};
    if (why)
        purger_doubt(purger, why);
    else /* also of a node that came late: which server it is was not known when it was doubted */
        judge(purger, purger->is_doubted);
    send_batches(purger, 1);
}

void purger_cache_is(struct purger *purger, bool up)
{
    abandon_sweep(purger);
    if (up)
        begin_anew(purger);
    schedule(purger);
}

void purger_hand_over(struct purger *purger, void (*take)(void *arg, struct key key),
                      void (*whole)(void *arg, int keyspace), void *arg)
{
    for (size_t i = 0; i < lane_count(purger); i++) {
        struct owed_lane *lane = owed_of(&purger->lanes[i]);
        struct owed_key *key;
        size_t count = lane->keys.count; /* some may come back */
        while (count-- && (key = owed_take(&purger->owed, i))) {
            take(arg, (struct key){key->node.key, key->node.hash, (int)i});
            free(key);
        }
        if (!whole || !(lane->whole || purger->swept == &purger->lanes[i]))
            continue;
        lane->whole = false;
        whole(arg, (int)i);
    }
}

/* From here on every key finds its node when it is sent. */
void purger_retire(struct purger *purger)
{
    purger->is_retired = true;
    purger->options.redis = purger->options.all;
    vouched_set(purger->options.vouched, purger, NULL);
    abandon_sweep(purger);
}

size_t purger_owed(const struct purger *purger)
{
    bool whole = purger->swept || owed_any_whole(&purger->owed);
    return whole ? SIZE_MAX : purger->owed.count + purger->sent;
}

bool purger_is_swept(const struct purger *purger)
{
    return purger->is_clean && purger_owed(purger) != SIZE_MAX;
}

/* Keys of a slot go from node to node for as long as that takes, and then its owner changes. One
 * that went behind the beginning of the taker's sweep, and ahead of the end of the giver's, may
 * have been seen by neither. */
bool purger_may_have_given(const struct purger *giver, const struct purger *taker)
{
    if (!cache_is_up(giver) || giver->swept || owed_any_whole(&giver->owed))
        return true;
    for (size_t i = 0; i < lane_count(giver); i++)
        if (giver->lanes[i].ended && giver->lanes[i].ended >= taker->lanes[i].begun)
            return true;
    return false;
}

void purger_give_up(const struct purger *purger)
{
    owed_tell_lost(&purger->owed, purger->swept ? owed_of(purger->swept) : NULL, purger->sent);
}

/* ---- life ---- */

static void open_lanes(struct purger *purger, size_t from)
{
    for (size_t i = from; i < lane_count(purger); i++) {
        purger->lanes[i].purger = purger;
        purger->lanes[i].keyspace = i;
    }
}

void purger_use_config(struct purger *purger, const struct config *config)
{
    size_t from = lane_count(purger);
    purger->options.config = config;
    owed_use_config(&purger->owed, config);
    open_lanes(purger, from);
}

struct purger *purger_create(const struct purger_options *options)
{
    struct purger *purger = xcalloc(1, sizeof *purger);
    purger->options = *options;
    purger->is_clean = true;
    owed_init(&purger->owed, options->config, options->max_owed);
    purger->complained.period_ms = COMPLAIN_MS;
    purger->lanes = xcalloc(KEYSPACES_MAX, sizeof *purger->lanes);
    open_lanes(purger, 0);
    purger->sweep = (struct sweep){
        .redis = options->redis, .found = on_found, .stepped = on_stepped, .arg = purger};
    uv_idle_init(options->loop, &purger->idle);
    uv_timer_init(options->loop, &purger->timer);
    purger->idle.data = purger->timer.data = purger;
    purger->handles = 2;
    if (cache_is_up(purger) && !redis_doubt(options->redis))
        judge(purger, false);
    return purger;
}

static void on_closed(uv_handle_t *handle)
{
    struct purger *purger = handle->data;
    if (--purger->handles == 0)
        free(purger);
}

void purger_destroy(struct purger *purger)
{
    if (!purger)
        return;
    vouched_set(purger->options.vouched, purger, NULL);
    owed_finish(&purger->owed);
    free(purger->lanes);
    sweep_finish(&purger->sweep);
    uv_close((uv_handle_t *)&purger->idle, on_closed);
    uv_close((uv_handle_t *)&purger->timer, on_closed);
}
