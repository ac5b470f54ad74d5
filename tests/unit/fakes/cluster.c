#include "fakes/cluster.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void fake_cluster_init(struct redis_cluster *cluster)
{
    struct redis_place place;
    redis_map_init(&cluster->map);
    for (int node = 0; node < 2; node++) {
        assert_true(redis_place_set(&place, "127.0.0.1", node ? "7001" : "7000"));
        assert_int_equal(redis_map_number(&cluster->map, &place), node);
    }
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        redis_map_move(&cluster->map, slot, slot >= REDIS_SLOTS / 2);
}

void fake_cluster_finish(struct redis_cluster *cluster)
{
    redis_map_finish(&cluster->map);
}

/* ---- in place of one that is asked ---- */

struct redis_cluster *redis_cluster_create(uv_loop_t *loop,
                                           const struct redis_cluster_options *options,
                                           void (*changed)(void *arg), void *arg)
{
    (void)loop;
    (void)options;
    (void)changed;
    (void)arg;
    fail_msg("no other cluster was expected");
    return NULL;
}

const struct redis_map *redis_cluster_map(const struct redis_cluster *cluster)
{
    return &cluster->map;
}

bool redis_cluster_is_settled(const struct redis_cluster *cluster)
{
    (void)cluster;
    return true;
}

const char *redis_cluster_why(const struct redis_cluster *cluster)
{
    (void)cluster;
    return "";
}

void redis_cluster_refresh(struct redis_cluster *cluster)
{
    (void)cluster;
}

void redis_cluster_ask(struct redis_cluster *cluster)
{
    (void)cluster;
}

int redis_cluster_number(struct redis_cluster *cluster, const struct redis_place *place)
{
    return redis_map_number(&cluster->map, place);
}

int redis_cluster_owner_at(struct redis_cluster *cluster, const struct redis_place *place)
{
    return redis_map_owns(&cluster->map, place) ? redis_map_number(&cluster->map, place) : -ENOENT;
}

int redis_cluster_follow(struct redis_cluster *cluster, const struct redis_redirect *redirect,
                         bool *changed)
{
    (void)cluster;
    (void)redirect;
    *changed = false;
    return -ENOSPC;
}

void redis_cluster_drop(struct redis_cluster *cluster, int number)
{
    redis_map_drop(&cluster->map, number);
}

void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg)
{
    (void)cluster;
    if (closed)
        closed(arg);
}
