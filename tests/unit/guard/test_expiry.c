/* Entries that have ended are dropped a few at a time, on a loop of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "guard/expiry.h"
#include "guard/overrides.h"
#include "guard/view.h"

#include <stdio.h>

enum { MANY = 100000, AT_MOST = 1000 }; /* dropped between two looks at the sockets */

struct bench {
    uv_loop_t loop;
    struct overrides table;
    struct expiry expiry;
};

static void bench_init(struct bench *bench, size_t count)
{
    char text[32];
    uv_loop_init(&bench->loop);
    overrides_init(&bench->table);
    expiry_init(&bench->expiry, &bench->loop, &bench->table);
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "item:%zu", i);
        overrides_set(&bench->table, key_make(0, span_of(text)),
                      (struct override){OVERRIDE_TOMBSTONE, .sticky = true, .epoch = 3});
    }
}

static void bench_finish(struct bench *bench)
{
    expiry_close(&bench->expiry);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    overrides_finish(&bench->table);
}

static void others_have_their_turn_between_a_few_entries(void **state)
{
    struct bench bench;
    struct generation generation = {.number = 4, .settled = 4};
    (void)state;
    bench_init(&bench, MANY);
    overrides_use_generation(&bench.table, &generation);
    expiry_hurry(&bench.expiry);
    for (size_t before = MANY; before; before = overrides_count(&bench.table)) {
        assert_true(uv_loop_alive(&bench.loop));
        uv_run(&bench.loop, UV_RUN_NOWAIT);
        assert_in_range(before - overrides_count(&bench.table), 1, AT_MOST);
    }
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_false(uv_loop_alive(&bench.loop));
    bench_finish(&bench);
}

static void what_still_holds_is_looked_at_once_and_stays(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, MANY);
    expiry_hurry(&bench.expiry);
    expiry_tick(&bench.expiry); /* it is at it already */
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    assert_int_equal(overrides_count(&bench.table), MANY);
    bench_finish(&bench);
}

static void ticks_reach_every_entry(void **state)
{
    struct bench bench;
    struct generation generation = {.number = 4, .settled = 4};
    (void)state;
    bench_init(&bench, MANY);
    overrides_use_generation(&bench.table, &generation);
    for (int ticks = 0; ticks < 100; ticks++) {
        expiry_tick(&bench.expiry);
        uv_run(&bench.loop, UV_RUN_DEFAULT);
    }
    assert_int_equal(overrides_count(&bench.table), 0);
    expiry_tick(&bench.expiry);
    assert_false(uv_loop_alive(&bench.loop));
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_have_their_turn_between_a_few_entries),
        cmocka_unit_test(what_still_holds_is_looked_at_once_and_stays),
        cmocka_unit_test(ticks_reach_every_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
