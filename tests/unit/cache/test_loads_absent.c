/* What is remembered of keys that the database did not have, and when it is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

static const struct span item_1 = {"item:1", 6};

static void find_absent(struct bench *bench, const char *key)
{
    struct asked one;
    ask(bench, &one, key);
    assert_int_equal(fake_pool.count, 1);
    fake_no_row();
    must_get(bench, &one, LOAD_ABSENT);
}

static void a_false_positive_that_was_found_out_needs_no_second_query(void **state)
{
    struct bench bench;
    struct asked again;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    assert_true(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    ask(&bench, &again, "item:1");
    assert_int_equal(fake_pool.count, 0);
    must_get(&bench, &again, LOAD_ABSENT);
    assert_int_equal(COUNTED(&bench, known_absent), 1);
    assert_int_equal(COUNTED(&bench, false_positives), 1);
    bench_finish(&bench);
}

static bool expects_item_1(void *arg, struct key key)
{
    (void)arg;
    return key.text.length == item_1.length && !memcmp(key.text.at, item_1.at, item_1.length);
}

static void what_is_expected_is_not_remembered_as_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    loads_destroy(bench.loads);
    struct loads_options options = {.rows = &bench.rows,
                                    .counters = bench.counters,
                                    .visibility = bench.visibility,
                                    .spellings = bench.spellings,
                                    .is_expected = expects_item_1};
    bench.loads = loads_create(&options, bench.view);
    find_absent(&bench, "item:1");
    find_absent(&bench, "item:2");
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    assert_int_equal(COUNTED(&bench, false_positives), 1);
    find_absent(&bench, "item:1");
    bench_finish(&bench);
}

static void a_change_of_the_key_ends_what_was_remembered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    find_absent(&bench, "item:1");
    bench_finish(&bench);
}

/* Without permission the filter's word does not count, and neither does what was learnt by it. */
static void without_permission_nothing_is_remembered_and_nothing_used(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:2");
    use_view(&bench, KEYSPACE_PASSING, true);
    find_absent(&bench, "item:1");
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    find_absent(&bench, "item:2");
    assert_int_equal(COUNTED(&bench, known_absent), 0);
    bench_finish(&bench);
}

static void while_loading_nothing_is_remembered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    use_view(&bench, KEYSPACE_LOADING, false);
    find_absent(&bench, "item:1");
    find_absent(&bench, "item:1");
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    assert_int_equal(COUNTED(&bench, false_positives), 0);
    bench_finish(&bench);
}

static void a_new_generation_forgets_what_was_remembered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    use_view(&bench, KEYSPACE_GUARDING, true); /* a new view of the same generation */
    assert_true(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    use_view(&bench, KEYSPACE_GUARDING, false);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    find_absent(&bench, "item:1");
    bench_finish(&bench);
}

/* The query saw less than the new generation's snapshot may hold. */
static void must_not_remember_over(enum keyspace_state before, enum keyspace_state after)
{
    struct bench bench;
    struct asked one;
    bench_init(&bench, "");
    use_view(&bench, before, false);
    ask(&bench, &one, "item:1");
    use_view(&bench, after, false);
    fake_no_row();
    must_get(&bench, &one, LOAD_ABSENT);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    bench_finish(&bench);
}

static void an_absence_counts_only_under_the_generation_its_query_began_in(void **state)
{
    (void)state;
    must_not_remember_over(KEYSPACE_GUARDING, KEYSPACE_GUARDING);
    must_not_remember_over(KEYSPACE_LOADING, KEYSPACE_GUARDING);
    must_not_remember_over(KEYSPACE_PASSING, KEYSPACE_GUARDING);
    must_not_remember_over(KEYSPACE_GUARDING, KEYSPACE_PASSING);
}

static void a_second_query_counts_under_the_generation_it_began_in(void **state)
{
    struct bench bench;
    struct asked first, late;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &late, "item:1");
    use_view(&bench, KEYSPACE_GUARDING, false);
    fake_no_row();
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    fake_no_row();
    assert_true(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    must_get(&bench, &late, LOAD_ABSENT);
    bench_finish(&bench);
}

static void what_is_remembered_is_bounded(void **state)
{
    struct bench bench;
    char key[20];
    int known = 0;
    (void)state;
    bench_init(&bench, "");
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        find_absent(&bench, key);
        assert_true(loads_knows_absent(bench.loads, key_make(0, span_of(key))));
    }
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        known += loads_knows_absent(bench.loads, key_make(0, span_of(key)));
    }
    assert_int_equal(known, 10);
    bench_finish(&bench);
}

static void a_new_configuration_bounds_it_anew(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    find_absent(&bench, "item:2");
    bench.shared->config->max_known_absent = 1;
    use_view(&bench, KEYSPACE_GUARDING, true);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    assert_true(loads_knows_absent(bench.loads, key_make(0, span_of("item:2"))));
    bench_finish(&bench);
}

/* ---- shadow mode ---- */

static void enforce(struct bench *bench, bool enforced)
{
    static const char *const settings[] = {", enforce: false", ""};
    struct shared_config *before = bench->shared;
    bench->shared = shared_config_create(bench_config(settings[enforced]));
    use_view(bench, KEYSPACE_GUARDING, true);
    bench->rows.config = bench->shared->config;
    shared_config_release(before);
}

/* A row may have come of which nobody has told. Each lookup is one that would have gone on. */
static void what_is_not_enforced_is_asked_each_time(void **state)
{
    struct bench bench;
    struct asked again;
    (void)state;
    bench_init(&bench, ", enforce: false");
    find_absent(&bench, "item:1");
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    ask(&bench, &again, "item:1");
    row_is("late");
    must_get_value(&bench, &again, "late");
    fill_ends(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, known_absent), 0);
    assert_int_equal(COUNTED(&bench, false_positives), 0); /* the filter had ruled it out */
    bench_finish(&bench);
}

static void what_the_filter_lets_by_counts_though_nothing_is_enforced(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, ", enforce: false");
    struct generation *generation = generation_create(++bench.generations, 1);
    const struct filter_options options = {.capacity = 10, .false_positive_rate = 0.01};
    const char *error;
    assert_int_equal(filter_create(&generation->filters[ITEMS], &options, &error), 0);
    uint64_t hash = filter_hash(&generation->seed, item_1.at, item_1.length);
    assert_int_equal(filter_insert(generation->filters[ITEMS], hash), 0);
    use_generation(&bench, generation, KEYSPACE_GUARDING);
    generation_release(generation);
    find_absent(&bench, "item:1");
    find_absent(&bench, "item:1");
    assert_int_equal(COUNTED(&bench, false_positives), 2);
    bench_finish(&bench);
}

static void what_was_remembered_does_not_count_once_nothing_is_enforced(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    enforce(&bench, false);
    find_absent(&bench, "item:1");
    enforce(&bench, true); /* meanwhile its row may have come */
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    find_absent(&bench, "item:1");
    assert_int_equal(COUNTED(&bench, known_absent), 0);
    bench_finish(&bench);
}

static void what_is_enforced_all_along_stays_remembered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    find_absent(&bench, "item:1");
    enforce(&bench, true);
    assert_true(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    bench_finish(&bench);
}

static void a_query_under_way_while_enforcement_ends_leaves_nothing(void **state)
{
    struct bench bench;
    struct asked one, late;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    ask(&bench, &late, "item:1");
    enforce(&bench, false);
    fake_no_row();
    must_get(&bench, &one, LOAD_ABSENT);
    must_wait(&bench, &late);
    row_is("late");
    must_get_value(&bench, &late, "late");
    fill_ends(REDIS_DONE);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_false_positive_that_was_found_out_needs_no_second_query),
        cmocka_unit_test(what_is_expected_is_not_remembered_as_absent),
        cmocka_unit_test(a_change_of_the_key_ends_what_was_remembered),
        cmocka_unit_test(without_permission_nothing_is_remembered_and_nothing_used),
        cmocka_unit_test(while_loading_nothing_is_remembered),
        cmocka_unit_test(a_new_generation_forgets_what_was_remembered),
        cmocka_unit_test(an_absence_counts_only_under_the_generation_its_query_began_in),
        cmocka_unit_test(a_second_query_counts_under_the_generation_it_began_in),
        cmocka_unit_test(what_is_remembered_is_bounded),
        cmocka_unit_test(a_new_configuration_bounds_it_anew),
        cmocka_unit_test(what_is_not_enforced_is_asked_each_time),
        cmocka_unit_test(what_the_filter_lets_by_counts_though_nothing_is_enforced),
        cmocka_unit_test(what_was_remembered_does_not_count_once_nothing_is_enforced),
        cmocka_unit_test(what_is_enforced_all_along_stays_remembered),
        cmocka_unit_test(a_query_under_way_while_enforcement_ends_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
