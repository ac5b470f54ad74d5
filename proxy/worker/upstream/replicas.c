/* Those of a primary that is none any more are left by themselves: nobody asks it, so that they are
 * soon not known to be fresh, and not named, so that their connections are closed.
 */
#include "worker/upstream/replicas.h"

#include "base/clock.h"
#include "worker/upstream/freshness.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LOOKS = 8, /* within cache_max_lag */
    LEAST_MS = 90,
    MOST_MS = 1000, /* from one to the next */
    NAMED_MS = 5000 /* a replica that was named this long ago and not since is none any more */
};

struct replica {
    struct replica_set *set;
    struct redis_place place;   /* host "": this place is free */
    struct upstream *shared[2]; /* by protocol; NULL: it was not wanted yet */
    uint64_t named;             /* clock_ms() of the last time */
    const char *why;            /* what it has said of itself does not do; NULL: it does */
};

/* Those of one primary. */
struct replica_set {
    struct replicas *replicas;
    struct redis_place primary; /* in a cluster */
    struct freshness freshness;
    uint64_t asked;
    struct replica replica[REPLICAS_MAX];
};

struct replicas {
    struct serving *serving;
    struct cache_route *route;
    struct replica_set **sets; /* by the primary's number; NULL: it was not asked yet */
    int count;
};

/* ---- whom there is ---- */

static struct upstream *connect_to(struct replica *replica, bool resp3)
{
    struct replicas *replicas = replica->set->replicas;
    struct upstream_options options = {
        .resp3 = resp3, .route = replicas->route, .node = &replica->place, .replica = true};
    if (!replica->shared[resp3])
        replica->shared[resp3] = upstream_create(replicas->serving, &options);
    return replica->shared[resp3];
}

/* NULL: it is not one of those that are known. */
static struct replica *find(struct replica_set *set, const struct redis_place *place)
{
    for (unsigned i = 0; i < REPLICAS_MAX; i++)
        if (redis_place_equal(&set->replica[i].place, place))
            return &set->replica[i];
    return NULL;
}

/* NULL: there are more than anybody needs. */
static struct replica *add(struct replica_set *set, const struct redis_place *place)
{
    static const struct redis_place nobody;
    struct replica *replica = find(set, &nobody);
    if (replica)
        *replica = (struct replica){.set = set, .place = *place, .why = "it has not answered yet"};
    return replica;
}

/* One that is not near any more, by another configuration, is as one that is not named. */
static void take_names(struct replica_set *set, const char *text)
{
    const struct config *config = serving_config(set->replicas->serving);
    struct redis_place place;
    const char *at = text;
    while (redis_standing_next(&at, &place)) {
        bool is_near = config_is_in_zone(config, place.host);
        struct replica *replica = find(set, &place);
        if (!replica && is_near)
            replica = add(set, &place);
        if (!replica)
            continue;
        replica->named = is_near ? clock_ms() : 0;
        if (is_near)
            connect_to(replica, false);
    }
}

/* ---- how far they are ---- */

/* Text NULL, what is not let be asked, tells nothing. */
static void hear_replica(void *arg, struct upstream *upstream, const char *text, uint64_t asked)
{
    struct replica *replica = arg;
    struct redis_standing standing;
    (void)asked;
    redis_standing_read(&standing, text ? text : "");
    replica->why = NULL;
    upstream_set_fresh(upstream, freshness_of(&replica->set->freshness, &standing, &replica->why));
}

static void ask_replicas(struct replica_set *set)
{
    for (unsigned i = 0; i < 2 * REPLICAS_MAX; i++) {
        struct replica *replica = &set->replica[i / 2];
        if (replica->shared[i % 2])
            upstream_ask_standing(replica->shared[i % 2], hear_replica, replica);
    }
}

/* They are asked next: what they say then is compared with this. */
static void hear_primary(void *arg, struct upstream *upstream, const char *text, uint64_t asked)
{
    struct replica_set *set = arg;
    struct redis_standing standing;
    (void)upstream;
    redis_standing_read(&standing, text ? text : "");
    freshness_note(&set->freshness, &standing, asked);
    if (standing.role == REDIS_PRIMARY)
        take_names(set, text);
    ask_replicas(set);
}

static uint64_t pause_of(const struct replicas *replicas)
{
    uint64_t pause = serving_config(replicas->serving)->cache_max_lag_ms / LOOKS;
    if (pause < LEAST_MS)
        return LEAST_MS;
    return pause > MOST_MS ? MOST_MS : pause;
}

static struct replica_set *set_of(struct replicas *replicas, int node)
{
    if (node >= replicas->count) {
        replicas->sets = xrealloc(replicas->sets, (size_t)(node + 1) * sizeof *replicas->sets);
        while (replicas->count <= node)
            replicas->sets[replicas->count++] = NULL;
    }
    if (!replicas->sets[node]) {
        replicas->sets[node] = xcalloc(1, sizeof **replicas->sets);
        replicas->sets[node]->replicas = replicas;
    }
    return replicas->sets[node];
}

/* While their primary is doubted they are no better, and what they last said of themselves is void:
 * they may be copying its older state right now. */
static void doubt_replicas(struct replica_set *set)
{
    set->freshness = (struct freshness){0};
    for (unsigned i = 0; i < 2 * REPLICAS_MAX; i++)
        if (set->replica[i / 2].shared[i % 2])
            upstream_set_fresh(set->replica[i / 2].shared[i % 2], 0);
}

void replicas_follow(struct replicas *replicas, int node, const struct redis_place *place,
                     struct upstream *upstream)
{
    struct replica_set *set = set_of(replicas, node);
    uint64_t now = clock_ms();
    if (place && !redis_place_equal(place, &set->primary)) { /* the number is another's now */
        set->primary = *place;
        set->freshness = (struct freshness){0};
    }
    if (upstream_is_doubted(upstream)) {
        doubt_replicas(set);
        return;
    }
    if (now - set->asked < pause_of(replicas))
        return;
    set->asked = now;
    upstream_ask_standing(upstream, hear_primary, set);
}

/* ---- who is read from ---- */

static bool is_fresh(const struct replicas *replicas, const struct upstream *upstream)
{
    uint64_t fresh = upstream_fresh(upstream);
    return fresh && clock_ms() - fresh < serving_config(replicas->serving)->cache_max_lag_ms;
}

static bool is_named(const struct replica *replica)
{
    return replica->place.host[0] && clock_ms() - replica->named < NAMED_MS;
}

/* One that is wanted in this protocol for the first time is connected to, and chosen later. */
static struct upstream *usable(struct replica *replica, bool resp3)
{
    if (!is_named(replica))
        return NULL;
    const struct replicas *replicas = replica->set->replicas;
    struct upstream *upstream = connect_to(replica, resp3);
    bool will_do = upstream_is_up(upstream) && is_fresh(replicas, upstream) &&
                   !upstream_is_congested(upstream);
    return will_do ? upstream : NULL;
}

struct upstream *replicas_choose(struct replicas *replicas, int node, bool resp3, uint64_t id)
{
    struct upstream *found[REPLICAS_MAX];
    unsigned count = 0;
    if (node < 0 || node >= replicas->count || !replicas->sets[node])
        return NULL;
    for (unsigned i = 0; i < REPLICAS_MAX; i++) {
        found[count] = usable(&replicas->sets[node]->replica[i], resp3);
        count += found[count] != NULL;
    }
    return count ? found[id % count] : NULL;
}

/* ---- all of them ---- */

static void each_replica(const struct replicas *replicas,
                         void (*act)(struct replica *replica, void *arg), void *arg)
{
    for (int node = 0; node < replicas->count; node++)
        for (unsigned i = 0; replicas->sets[node] && i < REPLICAS_MAX; i++)
            if (replicas->sets[node]->replica[i].place.host[0])
                act(&replicas->sets[node]->replica[i], arg);
}

struct action {
    void (*act)(struct upstream *upstream);
};

static void act_on(struct replica *replica, void *arg)
{
    const struct action *action = arg;
    for (unsigned i = 0; i < 2; i++)
        if (replica->shared[i])
            action->act(replica->shared[i]);
}

void replicas_each(struct replicas *replicas, void (*act)(struct upstream *upstream))
{
    struct action action = {act};
    each_replica(replicas, act_on, &action);
}

static void see_idle(struct replica *replica, void *arg)
{
    for (unsigned i = 0; i < 2; i++)
        if (replica->shared[i] && !upstream_is_idle(replica->shared[i]))
            *(bool *)arg = false;
}

bool replicas_all_idle(struct replicas *replicas)
{
    bool idle = true;
    each_replica(replicas, see_idle, &idle);
    return idle;
}

struct closing {
    bool all;
    void (*ends)(void *arg, const struct upstream *upstream);
    void *arg;
};

static void close_one(struct replica *replica, void *arg)
{
    const struct closing *closing = arg;
    bool is_left = closing->all || !is_named(replica);
    for (unsigned i = 0; is_left && i < 2; i++) {
        struct upstream *upstream = replica->shared[i];
        if (!upstream || !upstream_is_idle(upstream))
            continue;
        if (closing->ends)
            closing->ends(closing->arg, upstream);
        upstream_close(upstream);
        replica->shared[i] = NULL;
    }
    if (is_left && !replica->shared[0] && !replica->shared[1])
        *replica = (struct replica){0};
}

void replicas_close_idle(struct replicas *replicas, bool all,
                         void (*ends)(void *arg, const struct upstream *upstream), void *arg)
{
    struct closing closing = {all, ends, arg};
    each_replica(replicas, close_one, &closing);
}

/* ---- what is told ---- */

struct telling {
    struct replica_word *words;
    size_t count, room;
};

/* In RESP2, which every replica has a connection for. */
static void tell(struct replica *replica, void *arg)
{
    struct telling *telling = arg;
    const struct replicas *replicas = replica->set->replicas;
    const struct upstream *upstream = replica->shared[false];
    if (telling->count == telling->room || !upstream)
        return;
    struct replica_word *word = &telling->words[telling->count++];
    uint64_t fresh = upstream_fresh(upstream);
    *word = (struct replica_word){.lag_ms = fresh ? clock_ms() - fresh : UINT64_MAX};
    redis_place_print(&replica->place, word->address);
    if (replica->set->primary.host[0])
        redis_place_print(&replica->set->primary, word->primary);
    if (!upstream_is_up(upstream))
        word->why = "there is no connection to it";
    else if (!is_fresh(replicas, upstream))
        word->why = replica->why ? replica->why : "it is too far behind its primary";
    else if (!is_named(replica))
        word->why = "its primary does not name it any more";
    word->is_read = !word->why;
}

size_t replicas_report(const struct replicas *replicas, struct replica_word *words, size_t room)
{
    struct telling telling = {words, 0, room};
    each_replica(replicas, tell, &telling);
    return telling.count;
}

/* ---- life ---- */

struct replicas *replicas_create(struct serving *serving, struct cache_route *route)
{
    struct replicas *replicas = xcalloc(1, sizeof *replicas);
    replicas->serving = serving;
    replicas->route = route;
    return replicas;
}

void replicas_destroy(struct replicas *replicas)
{
    if (!replicas)
        return;
    for (int node = 0; node < replicas->count; node++)
        free(replicas->sets[node]);
    free(replicas->sets);
    free(replicas);
}
