/* Checks about a filter that follows a log with delay, while few keys come and go all the time: a
 * filter that is right must never be accused, one that has missed a row must be found out.
 *
 *   rows ─▶ log ─▶ follower ─▶ filter        each at its own random pace
 *    │       └─ probes of its end ─▶ known
 *    └─ answers
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "follow/checks/fn_checks.h"
#include "generation_bench.h"

enum { KEYS = 4, RUNS = 300, STEPS = 2000, LOG_MAX = STEPS, AT_ONCE = 8 };

struct world {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct fn_checks *fn_checks;
    bool row[KEYS];
    struct {
        int key;
        bool inserts;
    } log[LOG_MAX];
    size_t written, followed;
    uint64_t probe_time; /* 0: none */
    size_t probe_end;
    int missed; /* the key whose row the filter never heard of; -1: none */
    unsigned ends[FN_CHECK_OTHER_SPELLING + 1], missed_confirmed;
};

static uint32_t random_state;

static int draw(int below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return (int)(random_state % (uint32_t)below);
}

static const char *key_of(int key)
{
    static const char *const keys[KEYS] = {"item:0", "item:1", "item:2", "item:3"};
    return keys[key];
}

static void on_end(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    struct world *world = arg;
    (void)other;
    int number = key.text.at[key.text.length - 1] - '0';
    assert_int_equal(key.keyspace, ITEMS);
    world->ends[outcome]++;
    if (outcome != FN_CHECK_CONFIRMED)
        return;
    if (number != world->missed)
        fail_msg("a right filter was accused of %s", key_of(number));
    world->missed_confirmed++;
}

static void change_a_row(struct world *world)
{
    int key = draw(KEYS);
    if (key == world->missed)
        return;
    world->row[key] = !world->row[key];
    world->log[world->written].key = key;
    world->log[world->written++].inserts = world->row[key];
}

static void follow(struct world *world)
{
    for (int i = draw(4); i > 0 && world->followed < world->written; i--) {
        int key = world->log[world->followed].key;
        if (world->log[world->followed++].inserts)
            learn(world->generation, ITEMS, key_of(key));
        else
            unlearn(world->generation, ITEMS, key_of(key));
        fn_checks_changed(world->fn_checks, world->generation,
                          key_make(ITEMS, span_of(key_of(key))));
    }
    if (!world->probe_time || world->followed < world->probe_end)
        return;
    fn_checks_known(world->fn_checks, world->generation, world->probe_time);
    world->probe_time = 0;
}

static void probe(struct world *world)
{
    if (world->probe_time)
        return;
    world->probe_time = now_ms;
    world->probe_end = world->written;
}

static void answer(struct world *world)
{
    if (!fake_pool.count)
        return;
    int key = fake_pool.queries[0].values[0][0] - '0';
    if (world->row[key])
        row_is(key_of(key) + strlen("item:"));
    else
        fake_no_row();
}

static void fn_check(struct world *world)
{
    fn_checks_add(world->fn_checks, world->generation, key_make(ITEMS, span_of(key_of(draw(KEYS)))),
                  on_end, world);
}

static void step(struct world *world)
{
    static void (*const steps[])(struct world *) = {change_a_row, follow, probe, answer, fn_check};
    now_ms += draw(4) == 0;
    steps[draw(sizeof steps / sizeof *steps)](world);
}

static void live(struct world *world, uint32_t seed, int missed)
{
    *world = (struct world){
        .config = config_from_text(bench_text), .generation = generation_of(1), .missed = missed};
    world->rows.config = world->config;
    world->fn_checks =
        fn_checks_create(&(struct fn_checks_options){.rows = &world->rows, .max_at_once = AT_ONCE});
    if (missed >= 0)
        world->row[missed] = true;
    fake_pool.params = 1;
    now_ms = 1000;
    random_state = seed;
    for (int i = 0; i < STEPS; i++)
        step(world);
    fn_checks_destroy(world->fn_checks);
    while (fake_pool.count)
        fake_no_row();
    assert_int_equal(world->generation->references, 1);
    generation_release(world->generation);
    config_destroy(world->config);
}

static void a_filter_that_is_right_is_never_accused(void **state)
{
    struct world world;
    unsigned cleared = 0;
    (void)state;
    for (uint32_t seed = 1; seed <= RUNS; seed++) {
        live(&world, seed, -1);
        cleared += world.ends[FN_CHECK_CLEARED];
    }
    assert_true(cleared > 10 * RUNS);
}

static void a_row_that_the_filter_has_missed_is_found_out(void **state)
{
    struct world world;
    (void)state;
    for (uint32_t seed = 1; seed <= RUNS; seed++) {
        live(&world, seed, draw(KEYS));
        assert_true(world.missed_confirmed > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_is_right_is_never_accused),
        cmocka_unit_test(a_row_that_the_filter_has_missed_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
