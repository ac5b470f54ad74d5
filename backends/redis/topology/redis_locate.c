/* A topology on a loop of its own, until it has found something and every sentinel was heard, or
 * has had three seconds for it: whoever checks a configuration wants to know what each of them
 * says.
 */
#include "redis/topology/redis_locate.h"

#include <errno.h>
#include <stdio.h>

/* All are heard, also when the first few agree: the search ends, and then each has answered. */
enum { ROUND_MS = 100, ROUNDS = 30 };

struct locating {
    uv_loop_t loop;
    uv_timer_t timer;
    struct redis_topology *topology;
    struct redis_search search;
    struct redis_place *place;
    char *error; /* [256] */
    void (*word)(void *arg, const struct redis_word *word);
    void *arg;
    int status, rounds;
    bool over;
};

static void on_moved(void *arg)
{
    (void)arg;
}

static void on_found(void *arg, const struct redis_place *place, const char *error)
{
    struct locating *locating = arg;
    locating->over = true;
    locating->status = place ? 0 : -ENOENT;
    if (place)
        *locating->place = *place;
    else
        snprintf(locating->error, 256, "%s", error);
}

static bool is_heard(const struct locating *locating)
{
    for (size_t i = 0; i < redis_topology_sentinels(locating->topology); i++)
        if (!redis_topology_has_heard(locating->topology, i))
            return false;
    return true;
}

static void on_round(uv_timer_t *timer)
{
    struct locating *locating = timer->data;
    struct redis_word word;
    if (!locating->over || (!is_heard(locating) && locating->rounds++ < ROUNDS))
        return;
    for (size_t i = 0; i < redis_topology_sentinels(locating->topology); i++) {
        redis_topology_word(locating->topology, i, &word);
        locating->word(locating->arg, &word);
    }
    uv_close((uv_handle_t *)timer, NULL);
    redis_topology_close(locating->topology, NULL, NULL);
}

int redis_locate(const struct redis_sentinels *sentinels, struct redis_place *place,
                 char error[256], void (*word)(void *arg, const struct redis_word *word), void *arg)
{
    struct locating locating = {.place = place, .error = error, .word = word, .arg = arg};
    uv_loop_init(&locating.loop);
    uv_timer_init(&locating.loop, &locating.timer);
    locating.timer.data = &locating;
    uv_timer_start(&locating.timer, on_round, ROUND_MS, ROUND_MS);
    locating.topology = redis_topology_create(&locating.loop, sentinels, on_moved, &locating);
    locating.search = (struct redis_search){.found = on_found, .arg = &locating};
    redis_topology_find(locating.topology, &locating.search);
    uv_run(&locating.loop, UV_RUN_DEFAULT);
    uv_loop_close(&locating.loop);
    return locating.status;
}

/* ---- a cluster ---- */

struct asking {
    uv_loop_t loop;
    struct redis_cluster *cluster;
    unsigned *uncovered;
    char *error; /* [256] */
    void (*node)(void *arg, const struct redis_place *place);
    void *arg;
    int status;
};

/* The first answer there is, or none in a whole round. */
static void on_changed(void *arg)
{
    struct asking *asking = arg;
    const struct redis_map *map = redis_cluster_map(asking->cluster);
    asking->status = redis_map_next(map, -1) < 0 ? -ENOENT : 0;
    if (asking->status)
        snprintf(asking->error, 256, "%.255s", redis_cluster_why(asking->cluster));
    *asking->uncovered = redis_map_uncovered(map);
    for (int i = redis_map_next(map, -1); i >= 0; i = redis_map_next(map, i))
        asking->node(asking->arg, &map->nodes[i].place);
    redis_cluster_close(asking->cluster, NULL, NULL);
}

int redis_locate_nodes(const struct redis_cluster_options *options, unsigned *uncovered,
                       char error[256], void (*node)(void *arg, const struct redis_place *place),
                       void *arg)
{
    struct asking asking = {.uncovered = uncovered, .error = error, .node = node, .arg = arg};
    uv_loop_init(&asking.loop);
    asking.cluster = redis_cluster_create(&asking.loop, options, on_changed, &asking);
    uv_run(&asking.loop, UV_RUN_DEFAULT);
    uv_loop_close(&asking.loop);
    return asking.status;
}
