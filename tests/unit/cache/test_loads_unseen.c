/* Loads of keys whose change the log has told of before queries see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

enum { XID = 7 };

static const struct span item_1 = {"item:1", 6};
static const char running[] = "7:8:7", over[] = "8:8:";

/* As the keeper takes it. */
static void changed(struct bench *bench)
{
    visibility_changed(bench->visibility, key_make(ITEMS, item_1), XID);
    loads_changed(bench->loads, key_make(ITEMS, item_1));
}

static void a_row_that_may_be_old_serves_and_is_not_kept(void **state)
{
    struct bench bench;
    struct asked asked;
    (void)state;
    bench_init(&bench, "");
    changed(&bench);
    ask(&bench, &asked, "item:1");
    row_is("old");
    must_get_value(&bench, &asked, "old");
    assert_int_equal(fake_redis.count, 0);
    visibility_learn(bench.visibility, running);
    ask(&bench, &asked, "item:1");
    row_is("old");
    must_get_value(&bench, &asked, "old");
    assert_int_equal(fake_redis.count, 0);
    visibility_learn(bench.visibility, over);
    ask(&bench, &asked, "item:1");
    row_is("new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    must_get_value(&bench, &asked, "new");
    bench_finish(&bench);
}

static void an_absence_that_may_be_old_is_not_remembered(void **state)
{
    struct bench bench;
    struct asked asked;
    (void)state;
    bench_init(&bench, "");
    changed(&bench);
    ask(&bench, &asked, "item:1");
    fake_no_row();
    must_get(&bench, &asked, LOAD_ABSENT);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    assert_int_equal(COUNTED(&bench, false_positives), 0);
    visibility_learn(bench.visibility, over);
    ask(&bench, &asked, "item:1");
    fake_no_row();
    must_get(&bench, &asked, LOAD_ABSENT);
    assert_true(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    bench_finish(&bench);
}

/* That it has become visible meanwhile says nothing of a query that was sent before. */
static void what_was_asked_too_early_is_not_kept_whatever_comes_later(void **state)
{
    struct bench bench;
    struct asked asked;
    (void)state;
    bench_init(&bench, "");
    changed(&bench);
    ask(&bench, &asked, "item:1");
    visibility_learn(bench.visibility, over);
    row_is("old");
    assert_int_equal(fake_redis.count, 0);
    must_get_value(&bench, &asked, "old");
    bench_finish(&bench);
}

/* The commit may have returned to who joins. */
static void who_joins_gets_a_query_of_their_own(void **state)
{
    struct bench bench;
    struct asked first, late;
    (void)state;
    bench_init(&bench, "");
    changed(&bench);
    ask(&bench, &first, "item:1");
    visibility_learn(bench.visibility, over);
    ask(&bench, &late, "item:1");
    row_is("old");
    must_get_value(&bench, &first, "old");
    must_wait(&bench, &late);
    row_is("new");
    must_get_value(&bench, &late, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void other_keys_are_filled(void **state)
{
    struct bench bench;
    struct asked asked;
    (void)state;
    bench_init(&bench, "");
    visibility_changed(bench.visibility, key_make(0, span_of("item:11")), XID);
    ask(&bench, &asked, "item:1");
    row_is("payload");
    must_fill("item:1", "payload");
    fill_ends(REDIS_DONE);
    must_get_value(&bench, &asked, "payload");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_may_be_old_serves_and_is_not_kept),
        cmocka_unit_test(an_absence_that_may_be_old_is_not_remembered),
        cmocka_unit_test(what_was_asked_too_early_is_not_kept_whatever_comes_later),
        cmocka_unit_test(who_joins_gets_a_query_of_their_own),
        cmocka_unit_test(other_keys_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
