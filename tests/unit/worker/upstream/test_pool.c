/* How many connections a pool has, and which one a client is led to, while their number changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/clock.h"
#include "fakes/cluster.h"
#include "fakes/serving.h"
#include "fakes/upstream.h"
#include "worker/upstream/pool.h"

struct bench {
    struct fake_serving serving;
    struct pool *pool;
    struct pool_events events;
    unsigned changes;
    const struct upstream *ended; /* the last one that was told of */
    unsigned ends;
};

static void on_changed(void *arg)
{
    ((struct bench *)arg)->changes++;
}

static void on_end(void *arg, const struct upstream *upstream)
{
    struct bench *bench = arg;
    assert_false(upstream->closed || upstream->count);
    bench->ended = upstream;
    bench->ends++;
}

static void set_count(struct bench *bench, unsigned count)
{
    bench->serving.shared->config->cache_connections = count;
    pool_resize(bench->pool);
}

static void begin(struct bench *bench, unsigned count)
{
    *bench = (struct bench){.changes = 0};
    fake_serving_init(&bench->serving, 1, "", NULL, NULL);
    bench->serving.shared->config->cache_connections = count;
    bench->events = (struct pool_events){on_changed, on_end, bench};
    bench->pool = pool_create(bench->serving.serving, &bench->serving.route, &bench->events);
    pool_open(bench->pool);
}

static void end(struct bench *bench)
{
    upstreams_begin_down = false;
    pool_destroy(bench->pool);
    upstreams_finish();
    fake_serving_finish(&bench->serving);
}

static unsigned counted;

static void count_one(struct upstream *upstream)
{
    assert_false(upstream->closed);
    counted++;
}

static unsigned connections(const struct bench *bench)
{
    counted = 0;
    pool_each(bench->pool, count_one);
    return counted;
}

static struct upstream *led_to(const struct bench *bench, uint64_t client)
{
    return pool_shared(bench->pool, 0, false, client);
}

/* Something is under way there, or has its reply. */
static void ask(struct upstream *upstream)
{
    upstream->count = 1;
}

static void answer(struct upstream *upstream)
{
    upstream->count = 0;
}

static void more_are_used_when_they_are_up(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    struct upstream *first = led_to(&bench, 0), *second = led_to(&bench, 3);
    upstreams_begin_down = true;
    set_count(&bench, 4);
    pool_tick(bench.pool);
    struct upstream *last = last_upstream;
    assert_int_equal(connections(&bench), 4);
    assert_ptr_equal(led_to(&bench, 3), second);
    assert_int_equal(bench.changes, 0);
    last->previous->down = false; /* each as soon as it may be */
    pool_tick(bench.pool);
    assert_ptr_equal(led_to(&bench, 2), last->previous);
    assert_ptr_equal(led_to(&bench, 3), first);
    last->down = false;
    pool_tick(bench.pool);
    assert_ptr_equal(led_to(&bench, 3), last);
    assert_int_equal(bench.changes, 2);
    assert_int_equal(connections(&bench), 4);
    end(&bench);
}

/* Nobody loses by it. */
static void more_are_used_at_once_while_none_is_up(void **state)
{
    struct bench bench;
    (void)state;
    upstreams_begin_down = true;
    begin(&bench, 1);
    set_count(&bench, 3);
    pool_tick(bench.pool);
    assert_int_equal(bench.changes, 1);
    assert_ptr_equal(led_to(&bench, 2), last_upstream);
    end(&bench);
}

static void one_too_many_ends_when_nothing_is_under_way_on_it(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 3);
    struct upstream *first = led_to(&bench, 0), *busy = led_to(&bench, 1);
    struct upstream *idle = led_to(&bench, 2);
    ask(busy);
    set_count(&bench, 1);
    assert_int_equal(bench.changes, 1);
    assert_ptr_equal(led_to(&bench, 1), first);
    pool_tick(bench.pool);
    assert_true(idle->closed && bench.ended == idle);
    assert_false(busy->closed || first->closed);
    answer(busy);
    pool_tick(bench.pool);
    assert_true(busy->closed && bench.ended == busy);
    assert_int_equal(bench.ends, 2);
    assert_int_equal(connections(&bench), 1);
    end(&bench);
}

static void one_that_has_not_ended_yet_is_used_again(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    struct upstream *busy = led_to(&bench, 1);
    ask(busy);
    set_count(&bench, 1);
    pool_tick(bench.pool);
    set_count(&bench, 2);
    pool_tick(bench.pool);
    answer(busy);
    pool_tick(bench.pool);
    assert_ptr_equal(led_to(&bench, 1), busy);
    assert_false(busy->closed);
    assert_int_equal(bench.ends, 0);
    end(&bench);
}

/* What a node sends on to another goes there over the same lane, whatever their number is by then.
 */
static void a_lane_that_is_left_is_still_there_for_what_was_on_it(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    struct upstream *busy = led_to(&bench, 1);
    ask(busy);
    set_count(&bench, 1);
    assert_ptr_equal(pool_lane(bench.pool, 0, false, 1), busy);
    answer(busy);
    end(&bench);
}

static void a_protocol_that_nobody_speaks_has_none(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 1);
    set_count(&bench, 3);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 3);
    assert_true(pool_shared(bench.pool, 0, true, 1)->options.resp3);
    set_count(&bench, 4);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 6);
    set_count(&bench, 1);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 1);
    end(&bench);
}

/* To another cache, while the number changes: it has as many as there are to be. */
static void another_pool_begins_with_as_many_as_are_wanted(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    upstreams_begin_down = true;
    set_count(&bench, 4);
    struct pool *before = bench.pool;
    bench.pool = pool_create(bench.serving.serving, &bench.serving.route, &bench.events);
    pool_open(bench.pool);
    assert_false(pool_prepare_as(bench.pool, before));
    assert_int_equal(connections(&bench), 4);
    pool_destroy(before);
    end(&bench);
}

static unsigned held;

static void count_held(struct upstream *upstream)
{
    held += upstream->held;
}

static void what_is_held_holds_what_is_opened_meanwhile(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 1);
    pool_hold(bench.pool, true);
    pool_shared(bench.pool, 0, true, 0);
    held = 0;
    pool_each(bench.pool, count_held);
    assert_int_equal(held, 2);
    pool_hold(bench.pool, false);
    held = 0;
    pool_each(bench.pool, count_held);
    assert_int_equal(held, 0);
    end(&bench);
}

/* It is nobody else's, does not count among the others, and ends when nobody asks for it. */
static void who_takes_much_has_a_lane_apart(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    assert_int_equal(connections(&bench), 2);
    assert_true(pool_takes_much(bench.pool, false, false));
    struct upstream *large = led_to(&bench, POOL_TAKES_MUCH);
    assert_true(large->options.large);
    assert_int_equal(connections(&bench), 3);
    for (uint64_t client = 0; client < 10; client++) {
        assert_ptr_not_equal(led_to(&bench, client), large);
        assert_false(led_to(&bench, client)->options.large);
    }
    set_count(&bench, 1);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 2);
    set_count(&bench, 64);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 65);
    assert_ptr_equal(led_to(&bench, POOL_TAKES_MUCH), large);
    now_ms += 10000;
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 65);
    ask(large);
    now_ms++;
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 65);
    answer(large);
    pool_tick(bench.pool);
    assert_int_equal(connections(&bench), 64);
    assert_ptr_equal(bench.ended, large);
    end(&bench);
}

/* Nobody is led to where he fails, while others do not. */
static void a_lane_apart_is_as_good_as_the_others(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, 2);
    upstreams_begin_down = true;
    assert_false(pool_takes_much(bench.pool, false, false));
    struct upstream *large = led_to(&bench, POOL_TAKES_MUCH);
    assert_true(pool_takes_much(bench.pool, true, false)); /* with which nobody has spoken */
    large->down = false;
    large->dialing = true;
    assert_false(pool_takes_much(bench.pool, false, false));
    assert_true(pool_takes_much(bench.pool, false, true));
    large->dialing = false;
    assert_true(pool_takes_much(bench.pool, false, false));
    large->down = true;
    assert_false(pool_takes_much(bench.pool, false, true));
    led_to(&bench, 0)->down = led_to(&bench, 1)->down = true;
    assert_true(pool_takes_much(bench.pool, false, true));
    end(&bench);
}

enum { CLIENTS = 1000 };

/* How many clients' commands without a key go to number 0. */
static unsigned at_first(const struct bench *bench)
{
    unsigned count = 0;
    for (uint64_t client = 0; client < CLIENTS; client++)
        count += pool_node_for(bench->pool, client) == 0;
    return count;
}

static void what_has_no_key_goes_where_slots_are(void **state)
{
    struct bench bench;
    struct redis_cluster cluster;
    (void)state;
    begin(&bench, 1);
    fake_cluster_init(&cluster);
    bench.serving.route.cluster = &cluster;
    assert_in_range(at_first(&bench), CLIENTS * 9 / 20, CLIENTS * 11 / 20);
    for (unsigned slot = 1; slot < REDIS_SLOTS; slot++)
        redis_map_move(&cluster.map, slot, 1);
    assert_in_range(at_first(&bench), 0, 1); /* client 0 has slot 0 */
    redis_map_move(&cluster.map, 0, 1);
    assert_int_equal(at_first(&bench), 0);
    bench.serving.route.cluster = NULL;
    fake_cluster_finish(&cluster);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_holds_what_is_opened_meanwhile),
        cmocka_unit_test(more_are_used_when_they_are_up),
        cmocka_unit_test(more_are_used_at_once_while_none_is_up),
        cmocka_unit_test(one_too_many_ends_when_nothing_is_under_way_on_it),
        cmocka_unit_test(one_that_has_not_ended_yet_is_used_again),
        cmocka_unit_test(a_lane_that_is_left_is_still_there_for_what_was_on_it),
        cmocka_unit_test(a_protocol_that_nobody_speaks_has_none),
        cmocka_unit_test(another_pool_begins_with_as_many_as_are_wanted),
        cmocka_unit_test(who_takes_much_has_a_lane_apart),
        cmocka_unit_test(a_lane_apart_is_as_good_as_the_others),
        cmocka_unit_test(what_has_no_key_goes_where_slots_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
