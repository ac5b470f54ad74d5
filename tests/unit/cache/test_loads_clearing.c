/* Commands that may take any key out of the cache, and fills: who waits for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

struct clearing {
    struct loads_clearing *of_loads;
    int begun;
};

static void on_begin(void *arg)
{
    ((struct clearing *)arg)->begun++;
}

static void begin(struct bench *bench, struct clearing *clearing)
{
    bool begun;
    clearing->begun = 0;
    clearing->of_loads = loads_begin_clearing(bench->loads, on_begin, clearing, &begun);
    assert_int_equal(clearing->begun, 0);
    clearing->begun = begun;
}

static void end(struct bench *bench, struct clearing *clearing, bool done)
{
    assert_int_equal(clearing->begun, 1);
    if (done)
        loads_all_changed(bench->loads);
    loads_end_clearing(bench->loads, clearing->of_loads);
}

/* A row is there for whoever asks, and on its way to the cache, or waits for that. */
static void load_row(struct bench *bench, const char *value)
{
    struct asked asked;
    ask(bench, &asked, "item:1");
    row_is(value);
    must_get_value(bench, &asked, value);
}

static void must_not_fill(void)
{
    assert_int_equal(fake_redis.count, 0);
}

static void with_nothing_on_its_way_it_begins_at_once(void **state)
{
    struct bench bench;
    struct clearing clearing;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &clearing);
    end(&bench, &clearing, true);
    load_row(&bench, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void it_waits_for_the_fills_that_were_sent_before(void **state)
{
    struct bench bench;
    struct clearing clearing;
    (void)state;
    bench_init(&bench, "");
    load_row(&bench, "old");
    begin(&bench, &clearing);
    assert_int_equal(clearing.begun, 0);
    fill_ends(REDIS_DONE);
    end(&bench, &clearing, true);
    bench_finish(&bench);
}

static void what_was_read_before_it_is_not_filled_behind_it(void **state)
{
    struct bench bench;
    struct clearing clearing;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &clearing);
    load_row(&bench, "old");
    must_not_fill();
    end(&bench, &clearing, true);
    must_not_fill();
    load_row(&bench, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* Else who may not use it would keep everything out of the cache by asking for it again and again.
 */
static void refused_it_takes_nobodys_fill(void **state)
{
    struct bench bench;
    struct clearing clearing;
    struct asked waiting;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &waiting, "item:1");
    begin(&bench, &clearing);
    row_is("old");
    must_get_value(&bench, &waiting, "old");
    must_not_fill();
    end(&bench, &clearing, false);
    must_fill("item:1", "old");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void however_many_come_one_after_the_other_a_fill_has_its_turn(void **state)
{
    struct bench bench;
    struct clearing first, second, third;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &first);
    load_row(&bench, "old");
    begin(&bench, &second);
    assert_int_equal(second.begun, 0); /* it waits for the fill, which waits for the first */
    end(&bench, &first, false);
    must_fill("item:1", "old");
    begin(&bench, &third);
    assert_int_equal(second.begun + third.begun, 0);
    fill_ends(REDIS_DONE);
    end(&bench, &third, false);
    end(&bench, &second, true);
    bench_finish(&bench);
}

static void who_waits_for_one_of_two_is_no_sooner_for_the_end_of_the_other(void **state)
{
    struct bench bench;
    struct clearing first, second;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &first);
    begin(&bench, &second);
    load_row(&bench, "old");
    end(&bench, &first, false);
    must_not_fill();
    end(&bench, &second, false);
    must_fill("item:1", "old");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void meanwhile_who_asks_is_answered(void **state)
{
    struct bench bench;
    struct clearing clearing;
    struct asked later;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &clearing);
    load_row(&bench, "old");
    ask(&bench, &later, "item:1");
    must_get_value(&bench, &later, "old");
    end(&bench, &clearing, true);
    bench_finish(&bench);
}

static void a_change_of_the_row_ends_a_fill_that_waits(void **state)
{
    static const struct span item_1 = {"item:1", 6};
    struct bench bench;
    struct clearing clearing;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &clearing);
    load_row(&bench, "old");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    load_row(&bench, "new");
    end(&bench, &clearing, false);
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void at_the_end_what_waits_is_forgotten(void **state)
{
    struct bench bench;
    struct clearing clearing;
    (void)state;
    bench_init(&bench, "");
    begin(&bench, &clearing);
    load_row(&bench, "old");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_nothing_on_its_way_it_begins_at_once),
        cmocka_unit_test(it_waits_for_the_fills_that_were_sent_before),
        cmocka_unit_test(what_was_read_before_it_is_not_filled_behind_it),
        cmocka_unit_test(refused_it_takes_nobodys_fill),
        cmocka_unit_test(however_many_come_one_after_the_other_a_fill_has_its_turn),
        cmocka_unit_test(who_waits_for_one_of_two_is_no_sooner_for_the_end_of_the_other),
        cmocka_unit_test(meanwhile_who_asks_is_answered),
        cmocka_unit_test(a_change_of_the_row_ends_a_fill_that_waits),
        cmocka_unit_test(at_the_end_what_waits_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
