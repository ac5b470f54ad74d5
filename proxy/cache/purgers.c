#include "cache/purgers.h"

#include "base/memory.h"

#include <stdlib.h>

/* ---- whose it is ---- */

static struct purger *first_of(const struct purgers *purgers)
{
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            return purgers->at[i];
    return NULL;
}

/* Where nobody is known to have the key any will do: it finds its node when it is sent. NULL: there
 * is no node yet. */
static struct purger *owner_of(const struct purgers *purgers, struct key key)
{
    struct redis_bytes text = {key.text.at, key.text.length};
    int number = redis_number_of(purgers->options.redis, text);
    bool is_known = number >= 0 && (size_t)number < purgers->count;
    struct purger *purger = is_known ? purgers->at[number] : NULL;
    return purger ? purger : first_of(purgers);
}

void purgers_key(struct purgers *purgers, struct key key)
{
    struct purger *owner = owner_of(purgers, key);
    if (owner)
        purger_key(owner, key);
    else
        purgers->owes_whole = true;
}

void purgers_keyspace(struct purgers *purgers, int keyspace)
{
    purgers->owes_whole |= !first_of(purgers);
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            purger_keyspace(purgers->at[i], keyspace);
}

size_t purgers_owed(const struct purgers *purgers)
{
    size_t sum = purgers->owes_whole ? SIZE_MAX : 0;
    for (size_t i = 0; i < purgers->count && sum != SIZE_MAX; i++) {
        size_t more = purgers->at[i] ? purger_owed(purgers->at[i]) : 0;
        sum = more == SIZE_MAX ? SIZE_MAX : sum + more;
    }
    for (size_t i = 0; i < purgers->retired_count && sum != SIZE_MAX; i++) {
        size_t more = purger_owed(purgers->retired[i]);
        sum = more == SIZE_MAX ? SIZE_MAX : sum + more;
    }
    return sum;
}

bool purgers_are_swept(const struct purgers *purgers)
{
    bool are_swept = !purgers->owes_whole;
    for (size_t i = 0; i < purgers->count; i++)
        are_swept &= !purgers->at[i] || purger_is_swept(purgers->at[i]);
    for (size_t i = 0; i < purgers->retired_count; i++)
        are_swept &= purger_owed(purgers->retired[i]) == 0;
    return are_swept;
}

void purgers_give_up(const struct purgers *purgers)
{
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            purger_give_up(purgers->at[i]);
    for (size_t i = 0; i < purgers->retired_count; i++)
        purger_give_up(purgers->retired[i]);
}

/* ---- nodes ---- */

static void take_key(void *arg, struct key key)
{
    purgers_key(arg, key);
}

static void take_keyspace(void *arg, int keyspace)
{
    purgers_keyspace(arg, keyspace);
}

static void add(struct purgers *purgers, int number, struct redis *node)
{
    struct purger_options options = purgers->options;
    options.redis = node;
    for (; purgers->count <= (size_t)number; purgers->count++) {
        purgers->at = xrealloc(purgers->at, (purgers->count + 1) * sizeof *purgers->at);
        purgers->at[purgers->count] = NULL;
    }
    purgers->at[number] = purger_create(&options);
}

/* One that is new, and none that was a replica, has nothing to be found. */
void purgers_joined(struct purgers *purgers, int number, struct redis *node, bool late)
{
    add(purgers, number, node);
    if (late)
        purger_doubt(purgers->at[number], "another node of the cluster has its keys now");
    else if (purgers->owes_whole)
        purger_doubt(purgers->at[number], "no node of the cluster was known before");
}

void purgers_check_time(struct purgers *purgers)
{
    size_t kept = 0;
    for (size_t i = 0; i < purgers->retired_count; i++) {
        struct purger *purger = purgers->retired[i];
        purger_hand_over(purger, take_key, take_keyspace, purgers);
        if (purger_owed(purger))
            purgers->retired[kept++] = purger;
        else
            purger_destroy(purger);
    }
    purgers->retired_count = kept;
}

static const struct purger *at(const struct purgers *purgers, int number)
{
    return (size_t)number < purgers->count ? purgers->at[number] : NULL;
}

/* One that was leaving already when these were opened has none. */
void purgers_ended(struct purgers *purgers, int number)
{
    if (!at(purgers, number))
        return;
    struct purger *purger = purgers->at[number];
    purgers->at[number] = NULL;
    purger_retire(purger);
    purgers->retired =
        xrealloc(purgers->retired, (purgers->retired_count + 1) * sizeof(struct purger *));
    purgers->retired[purgers->retired_count++] = purger;
    purgers_check_time(purgers);
}

/* Of one that is gone, or cannot be asked, nobody knows who had the slots in between. */
void purgers_gave(struct purgers *purgers, int from, int to)
{
    const struct purger *giver = at(purgers, from), *taker = at(purgers, to);
    if (taker && (!giver || purger_may_have_given(giver, taker)))
        purger_doubt(purgers->at[to], "keys have come to it from a node that may have kept some");
}

void purgers_doubt(struct purgers *purgers, const char *why)
{
    purgers->owes_whole |= !first_of(purgers);
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            purger_doubt(purgers->at[i], why);
}

bool purgers_are_doubted(const struct purgers *purgers)
{
    bool are_doubted = purgers->owes_whole;
    for (size_t i = 0; i < purgers->count; i++)
        are_doubted |= purgers->at[i] && purger_is_doubted(purgers->at[i]);
    return are_doubted;
}

static void doubt_too(struct purgers *purgers, int number, const struct redis *node)
{
    if (at(purgers, number) && vouched_is_doubted(purgers->options.vouched, redis_run_id(node)))
        purger_doubt(purgers->at[number], "it was doubted over the connection before");
}

void purgers_doubt_too(struct purgers *purgers)
{
    struct redis *all = purgers->options.redis, *node;
    if (!redis_is_cluster(all))
        doubt_too(purgers, 0, all);
    for (int number = 0; (node = redis_next_node(all, &number)); number++)
        doubt_too(purgers, number, node);
}

/* A key that another node has now must not wait for this one. */
void purgers_moved(struct purgers *purgers)
{
    purgers->owes_whole &= !first_of(purgers);
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            purger_hand_over(purgers->at[i], take_key, NULL, purgers);
    purgers_check_time(purgers);
}

void purgers_cache_is(struct purgers *purgers, int number, bool up)
{
    purgers_check_time(purgers);
    if ((size_t)number >= purgers->count || !purgers->at[number])
        return;
    purger_cache_is(purgers->at[number], up);
    if (!up && purgers->options.all)
        purger_hand_over(purgers->at[number], take_key, NULL, purgers);
}

/* ---- life ---- */

void purgers_open(struct purgers *purgers, const struct purger_options *options)
{
    bool is_cluster = redis_is_cluster(options->redis);
    *purgers = (struct purgers){.options = *options};
    purgers->options.all = is_cluster ? options->redis : NULL;
    if (!is_cluster)
        add(purgers, 0, options->redis);
    struct redis *node;
    for (int number = 0; (node = redis_next_node(options->redis, &number)); number++)
        add(purgers, number, node);
}

void purgers_use_config(struct purgers *purgers, const struct config *config)
{
    purgers->options.config = config;
    for (size_t i = 0; i < purgers->count; i++)
        if (purgers->at[i])
            purger_use_config(purgers->at[i], config);
    for (size_t i = 0; i < purgers->retired_count; i++)
        purger_use_config(purgers->retired[i], config);
}

void purgers_close(struct purgers *purgers)
{
    for (size_t i = 0; i < purgers->count; i++)
        purger_destroy(purgers->at[i]);
    for (size_t i = 0; i < purgers->retired_count; i++)
        purger_destroy(purgers->retired[i]);
    free(purgers->retired);
    free(purgers->at);
    *purgers = (struct purgers){0};
}
