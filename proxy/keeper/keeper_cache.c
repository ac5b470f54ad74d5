/* The cache, and how another takes its place while clients are served:
 *
 *   STAYS ─ the file names another ─▶ it is asked: connected to; not reached: all stays as it was
 *             it is up ▼
 *                    SWEPT: each change is purged in both; all keys of the keyspaces are deleted
 *                      │    from the one to come, for nobody has purged them there
 *                      │  ─ the file names yet another, which is up, or the one before ─▶ DROPPED:
 *                      │    it ends, unread by anybody; STAYS, or the other is swept
 *                      │ none is left, each is deleted, and it is up
 *                      ▼
 *                    MOVES: what is loaded fills the new one; workers go over to it (worker/move.h)
 *                      │ none of them has a connection to the old one
 *                      ▼
 *                    LEFT: what was to be deleted from the old one still is, and fills under way to
 *                      │   it are awaited, for drain_timeout
 *                      ▼
 *   STAYS ◀────────── the old one's connection ends, what is published begins anew, and what filled
 *                     the new one is deleted where nobody vouches for it
 *
 * So no client ever reads what nobody purges: not from the new one, which is swept before anybody
 * asks it, nor from the old one, which is purged for as long as anybody does. A fill goes to one of
 * them only; that it runs before the DEL of a later change the order on that one's connection sees
 * to, as ever.
 *
 * Another user, password or certificate is another connection to the same server with the same
 * data, which need not be swept: what is deleted over the old connection is deleted. That is so
 * only if it is up, and has nothing to delete just now. A fill that is under way on the old
 * connection may be run behind the DEL of a later change on the new one: as long as there are two,
 * each change is deleted over both, behind it; so the old one ends when each fill has its answer.
 *
 * One server, the primary that sentinels name, a cluster: each is a struct redis with purgers of
 * its own, and so any may follow any.
 *
 * Without a log a client's DEL or SET is the only word of a change. From MOVES on until the last
 * client has left the old cache it may reach that one only, when the new one holds the old value
 * already, loaded for another client: so what filled the new one meanwhile is deleted once more,
 * when nobody can write to the old one any more. It is what was read since MOVES, and no more. To
 * hear of each such write instead would cost every write of a guarded key a message.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "cache/cache_target.h"
#include "config/config_reload.h"
#include "redis/redis.h"

#include <errno.h>
#include <stdlib.h>

enum { SETTLE_MS = 5000 };

static void set_change(struct keeper *keeper, enum cache_change change)
{
    keeper->cache.change = change;
    keeper->cache.since = clock_ms();
}

/* ---- a connection ---- */

/* One that is not used yet is not told of. */
static void note_log(struct cache_side *side)
{
    cache_log_note(&side->log, side->redis);
    if (side == side->keeper->cache.here)
        cache_log_tell(&side->log, side->redis, clock_ms());
}

static bool publishes(const struct cache_side *side)
{
    const struct keeper_cache *cache = &side->keeper->cache;
    return side == (cache->is_publishing ? cache->other : cache->here);
}

/* NULL: it is asked only, or nobody wants it any more. */
static struct purgers *purgers_of(struct cache_side *side)
{
    return purging_purgers_of(&side->keeper->purging, side->redis);
}

static void set_answered(struct cache_side *side, const char *why)
{
    side->answered = true;
    snprintf(side->why, sizeof side->why, "%s", why);
}

/* After the purgers, each of which has vouched for its server by now if it ever did. */
static void see_whole(const struct cache_side *side)
{
    if (side == side->keeper->cache.here && redis_is_up(side->redis))
        vouched_settle(side->keeper->vouched);
}

/* Each worker has others. */
static void on_redis_state(void *arg, bool up, const char *error)
{
    struct cache_side *side = arg;
    struct keeper *keeper = side->keeper;
    set_answered(side, up ? "" : error);
    if (purgers_of(side))
        purgers_cache_is(purgers_of(side), 0, up);
    see_whole(side);
    if (publishes(side))
        publisher_cache_is(keeper->publisher, up);
    note_log(side);
}

/* ---- a cluster's nodes ---- */

/* Up is a cluster when all of its nodes are. */
static void on_node_state(void *arg, int number, bool up, const char *error)
{
    struct cache_side *side = arg;
    bool all = redis_is_up(side->redis);
    if (purgers_of(side))
        purgers_cache_is(purgers_of(side), number, up);
    see_whole(side);
    if (publishes(side))
        publisher_node_is(side->keeper->publisher, number, up);
    note_log(side);
    if (up && !all)
        return; /* of another it is known that it is not */
    set_answered(side, all ? "" : error);
}

static void on_node_joined(void *arg, int number, struct redis *node, bool late)
{
    if (purgers_of(arg))
        purgers_joined(purgers_of(arg), number, node, late);
}

static void on_node_ended(void *arg, int number)
{
    struct cache_side *side = arg;
    if (purgers_of(side))
        purgers_ended(purgers_of(side), number);
    if (publishes(side))
        publisher_node_is(side->keeper->publisher, number, false);
}

static void on_node_gave(void *arg, int from, int to)
{
    if (purgers_of(arg))
        purgers_gave(purgers_of(arg), from, to);
}

/* Or nobody tells where they are. A worker that has nothing to do at a node does not notice by
 * itself that it was lost, and would send it the next command. */
static void on_keys_moved(void *arg)
{
    struct cache_side *side = arg;
    struct redis_node first;
    redis_describe(side->redis, 0, &first);
    if (!first.address[0] && first.why)
        set_answered(side, first.why);
    note_log(side);
    if (purgers_of(side))
        purgers_moved(purgers_of(side));
    see_whole(side); /* a node that was down may be none any more */
    if (side == side->keeper->cache.here && !side->keeper->draining)
        keeper_tell_workers(side->keeper, MESSAGE_KEYS_MOVED);
}

static int connect_to(struct cache_side *side, const struct config *config)
{
    struct cache_sentinels sentinels;
    struct cache_cluster_seeds cluster;
    struct redis_nodes nodes = {.cluster = cache_cluster_seeds(&cluster, config),
                                .joined = on_node_joined,
                                .state = on_node_state,
                                .ended = on_node_ended,
                                .gave = on_node_gave,
                                .moved = on_keys_moved};
    struct redis_options redis = {.host = config->cache.address.host,
                                  .port = config->cache.address.port,
                                  .path = config->cache.address.path,
                                  .user = config->cache.user,
                                  .password = config->cache.password,
                                  .db = config->cache.db,
                                  .tls = config->cache_tls,
                                  .sentinels = cache_sentinels(&sentinels, config),
                                  .nodes = nodes.cluster ? &nodes : NULL,
                                  .timeout_ms = config->cache_timeout_ms};
    return redis_create(&side->redis, &side->keeper->loop, &redis, on_redis_state, side);
}

/* NULL: its address cannot be used. */
static struct cache_side *create_side(struct keeper *keeper, const struct config *config)
{
    struct cache_side *side = xcalloc(1, sizeof *side);
    side->keeper = keeper;
    if (connect_to(side, config) == 0)
        return side;
    free(side);
    return NULL;
}

static void destroy_side(void *arg)
{
    struct cache_side *side = arg;
    if (side)
        shared_config_release(side->config);
    free(side);
}

static void use_config(struct cache_side *side, struct shared_config *config)
{
    side->config = config;
    config->references++;
}

/* ---- asked ---- */

static bool is_asked(const struct keeper_cache *cache)
{
    return cache->asked && !cache->asked->config;
}

bool keeper_may_move_cache(const struct keeper *keeper)
{
    const struct keeper_cache *cache = &keeper->cache;
    return cache->change == CACHE_STAYS || cache->change == CACHE_SWEPT;
}

bool keeper_has_cache(const struct keeper *keeper, const struct config *fresh)
{
    return !config_moves_cache(keeper->cache.here->config->config, fresh);
}

void keeper_ask_cache(struct keeper *keeper, struct config *fresh)
{
    keeper->cache.asked = create_side(keeper, fresh);
    if (!keeper->cache.asked)
        keeper_go_on_reloading(keeper, "its address cannot be used");
}

static void see_answer(struct keeper *keeper)
{
    struct cache_side *side = keeper->cache.asked;
    if (!side->answered)
        return;
    if (redis_is_up(side->redis)) {
        keeper_go_on_reloading(keeper, NULL);
    } else {
        char *why = xasprintf("it cannot be used: %s", side->why);
        keeper_go_on_reloading(keeper, why);
        free(why);
    }
}

void keeper_forget_cache(struct keeper *keeper)
{
    struct keeper_cache *cache = &keeper->cache;
    if (!is_asked(cache))
        return;
    redis_close(cache->asked->redis, destroy_side, cache->asked);
    cache->asked = NULL;
}

/* ---- SWEPT ---- */

static int db_of(const struct cache_side *side)
{
    return side->config->config->cache.db;
}

static void sweep(struct keeper *keeper, const char *why)
{
    log_info("cache: the new one is connected to; before it is used all keys of the keyspaces are "
             "deleted from it: %s",
             why);
    keeper->cache.is_same = false;
    if (db_of(keeper->cache.here) == db_of(keeper->cache.other))
        purging_doubt_other(&keeper->purging);
    purging_sweep_other(&keeper->purging);
}

static void begin_moving(struct keeper *keeper)
{
    struct keeper_cache *cache = &keeper->cache;
    const char *differ = redis_differ(cache->here->redis, cache->asked->redis);
    cache->other = cache->asked;
    cache->asked = NULL;
    cache->is_same = !differ;
    purging_open_other(&keeper->purging, cache->other->redis);
    if (differ)
        sweep(keeper, differ);
    set_change(keeper, CACHE_SWEPT);
}

static void on_ended(void *arg);

/* Its connection is closed, and the keeper does not end. */
static void forget_other(struct cache_side *side)
{
    struct keeper *keeper = side->keeper;
    purging_close_other(&keeper->purging);
    keeper->cache.other = NULL;
    destroy_side(side);
    set_change(keeper, CACHE_STAYS);
}

static void on_dropped(void *arg)
{
    struct cache_side *side = arg;
    struct keeper *keeper = side->keeper;
    if (keeper->cache.ending) {
        on_ended(keeper);
        return;
    }
    forget_other(side);
    if (keeper->cache.asked)
        begin_moving(keeper);
}

/* Nobody was led there. What is owed there is owed nowhere else. */
static void drop(struct keeper *keeper)
{
    struct cache_side *side = keeper->cache.other;
    log_info("cache: the new one is given up before it was used");
    set_change(keeper, CACHE_DROPPED);
    redis_close(side->redis, on_dropped, side);
}

void keeper_move_cache(struct keeper *keeper, struct shared_config *config)
{
    struct keeper_cache *cache = &keeper->cache;
    if (cache->asked)
        use_config(cache->asked, config);
    if (cache->change == CACHE_SWEPT)
        drop(keeper);
    else if (cache->asked)
        begin_moving(keeper);
}

/* Of the same server it is enough that the old connection has nothing to delete at one moment: what
 * was told before is deleted then, and what is told later both are to delete. */
static bool is_swept(struct keeper *keeper, uint64_t now)
{
    const struct keeper_cache *cache = &keeper->cache;
    bool owes = cache->is_same && purging_owes(&keeper->purging);
    if (owes && now - cache->since > SETTLE_MS)
        sweep(keeper, "keys are still to be deleted over the connection before");
    return !owes && purging_other_is_swept(&keeper->purging);
}

/* ---- MOVES ---- */

/* What is told by nobody is a client's write to a cache that others do not read any more. */
static bool needs_word(const struct keeper *keeper)
{
    return !keeper->cache.is_same && (keeper_config(keeper)->sync != SYNC_REPLICATION ||
                                      replication_is_blind(&keeper->replication));
}

static void order_workers(struct keeper *keeper)
{
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        struct move_order *order = xcalloc(1, sizeof *order);
        order->message = (struct message){.kind = MESSAGE_MOVE, .sender = &keeper->mailbox};
        order->config = keeper->cache.here->config->config;
        keeper->cache.moving++;
        mailbox_post(&keeper->workers[i]->serving.mailbox, &order->message);
    }
}

static void move(struct keeper *keeper, uint64_t now)
{
    struct keeper_cache *cache = &keeper->cache;
    struct cache_side *left = cache->here;
    if (!redis_is_up(cache->other->redis) || !is_swept(keeper, now))
        return;
    cache->here = cache->other;
    cache->other = left;
    cache->is_publishing = true;
    cache->is_doubtful = needs_word(keeper);
    purging_swap(&keeper->purging);
    loading_use_cache(&keeper->loading, cache->here->redis);
    order_workers(keeper);
    set_change(keeper, CACHE_MOVES);
    see_whole(cache->here); /* the one before may never have been */
    log_info("cache: clients are led to the new one");
}

/* ---- LEFT ---- */

/* Of both, while there are two. */
static void settle(struct keeper *keeper)
{
    if (!keeper->cache.is_doubtful)
        return;
    keeper->cache.is_doubtful = false;
    log_info("cache: what filled the new one while the one before was left may be old and is "
             "deleted");
    purging_outdated_all(&keeper->purging);
}

static void on_left(void *arg)
{
    struct cache_side *side = arg;
    struct keeper *keeper = side->keeper;
    if (keeper->cache.ending) {
        on_ended(keeper);
        return;
    }
    keeper->cache.is_publishing = false;
    publisher_use_cache(keeper->publisher, keeper->cache.here->redis);
    forget_other(side);
    settle(keeper);
    log_info("cache: the one before is not used any more");
}

static void leave(struct keeper *keeper, uint64_t now)
{
    struct keeper_cache *cache = &keeper->cache;
    bool owes = purging_owes_other(&keeper->purging);
    bool fills = !redis_is_settled(cache->other->redis);
    if ((owes || fills) && now - cache->since < keeper_config(keeper)->drain_timeout_ms)
        return;
    if (owes)
        purging_give_up_other(&keeper->purging);
    cache->is_doubtful |= fills || needs_word(keeper);
    set_change(keeper, CACHE_ENDS);
    publisher_cache_is(keeper->publisher, false);
    redis_close(cache->other->redis, on_left, cache->other);
}

/* ---- the course of it ---- */

/* Whoever drains is not led elsewhere. */
void keeper_watch_cache(struct keeper *keeper, uint64_t now)
{
    struct keeper_cache *cache = &keeper->cache;
    cache_log_tell(&cache->here->log, cache->here->redis, now);
    if (keeper->draining)
        return;
    bool is_free = !keeper->reloading.fresh && keeper_may_move_cache(keeper);
    if (is_asked(cache))
        see_answer(keeper);
    else if (is_free && keeper->reloading.again) /* the file names yet another, or the old one */
        keeper_reload(keeper, NULL, NULL);
    else if (cache->change == CACHE_SWEPT && !keeper->reloading.fresh) /* it may lead elsewhere */
        move(keeper, now);
    else if (cache->change == CACHE_MOVES && !cache->moving)
        set_change(keeper, CACHE_LEFT);
    else if (cache->change == CACHE_LEFT)
        leave(keeper, now);
}

/* ---- life ---- */

/* Nobody is led elsewhere any more: what would have been done when the old one is left, is now. */
void keeper_settle_cache(struct keeper *keeper)
{
    if (keeper->cache.change == CACHE_SWEPT && !purging_other_is_swept(&keeper->purging))
        log_warning("cache: the new one was not swept yet and may hold stale values; with "
                    "purge_at_start: true the next start deletes them");
    settle(keeper);
}

int keeper_open_cache(struct keeper *keeper)
{
    keeper->cache.here = create_side(keeper, keeper_config(keeper));
    if (!keeper->cache.here)
        return -EINVAL;
    use_config(keeper->cache.here, keeper->publishing.shared);
    return 0;
}

static void on_ended(void *arg)
{
    struct keeper *keeper = arg;
    if (--keeper->cache.ending == 0)
        keeper->cache.ended(keeper);
}

/* One that is left, or given up, may be about to end by itself. */
void keeper_end_cache(struct keeper *keeper, void (*ended)(struct keeper *keeper))
{
    struct keeper_cache *cache = &keeper->cache;
    cache->ended = ended;
    bool ends_by_itself = cache->change == CACHE_ENDS || cache->change == CACHE_DROPPED;
    cache->ending = cache->other ? 2 : 1;
    redis_close(cache->here->redis, on_ended, keeper);
    if (cache->other && !ends_by_itself)
        redis_close(cache->other->redis, on_ended, keeper);
    if (cache->asked)
        redis_close(cache->asked->redis, destroy_side, cache->asked);
    cache->asked = NULL;
}

void keeper_finish_cache(struct keeper *keeper)
{
    destroy_side(keeper->cache.here);
    destroy_side(keeper->cache.other);
}
