#include "cache/negative_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

static void what_is_added_is_known_until_it_is_forgotten(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 10, NULL);
    assert_false(negative_cache_has(&known, key_make(0, span_of("item:1"))));
    negative_cache_add(&known, key_make(0, span_of("item:1")));
    assert_true(negative_cache_has(&known, key_make(0, span_of("item:1"))));
    assert_false(negative_cache_has(&known, key_make(0, span_of("item:"))));
    assert_false(negative_cache_has(&known, key_make(0, span_of("item:11"))));
    negative_cache_forget(&known, key_make(0, span_of("item:2")));
    assert_true(negative_cache_has(&known, key_make(0, span_of("item:1"))));
    negative_cache_forget(&known, key_make(0, span_of("item:1")));
    assert_false(negative_cache_has(&known, key_make(0, span_of("item:1"))));
    negative_cache_finish(&known);
}

static void the_key_is_copied(void **state)
{
    struct negative_cache known;
    char key[] = "item:1";
    (void)state;
    negative_cache_init(&known, 10, NULL);
    negative_cache_add(&known, key_make(0, span_of(key)));
    key[5] = '2';
    assert_true(negative_cache_has(&known, key_make(0, span_of("item:1"))));
    assert_false(negative_cache_has(&known, key_make(0, span_of("item:2"))));
    negative_cache_finish(&known);
}

static void add_number(struct negative_cache *known, int number)
{
    char key[20];
    snprintf(key, sizeof key, "item:%d", number);
    negative_cache_add(known, key_make(0, span_of(key)));
}

static bool has_number(const struct negative_cache *known, int number)
{
    char key[20];
    snprintf(key, sizeof key, "item:%d", number);
    return negative_cache_has(known, key_make(0, span_of(key)));
}

static void past_the_limit_the_oldest_goes_first(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 100, NULL);
    for (int i = 0; i < 1000; i++) {
        add_number(&known, i);
        assert_in_range(known.map.count, 1, 100);
        assert_true(has_number(&known, i));
    }
    assert_false(has_number(&known, 899));
    for (int i = 900; i < 1000; i++)
        assert_true(has_number(&known, i));
    negative_cache_finish(&known);
}

static void adding_a_known_key_takes_no_place(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 2, NULL);
    add_number(&known, 1);
    for (int i = 0; i < 5; i++)
        add_number(&known, 2);
    assert_int_equal(known.map.count, 2);
    assert_true(has_number(&known, 1));
    negative_cache_finish(&known);
}

static void a_lower_limit_holds_at_once(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 10, NULL);
    for (int i = 0; i < 10; i++)
        add_number(&known, i);
    negative_cache_limit(&known, 3);
    assert_int_equal(known.map.count, 3);
    assert_false(has_number(&known, 6));
    assert_true(has_number(&known, 7));
    negative_cache_limit(&known, 4);
    add_number(&known, 10);
    add_number(&known, 11);
    assert_int_equal(known.map.count, 4);
    negative_cache_limit(&known, 0);
    assert_int_equal(known.map.count, 0);
    negative_cache_finish(&known);
}

static void a_limit_of_none_remembers_nothing(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 0, NULL);
    add_number(&known, 1);
    assert_false(has_number(&known, 1));
    negative_cache_finish(&known);
}

static void clearing_forgets_all_and_leaves_it_usable(void **state)
{
    struct negative_cache known;
    (void)state;
    negative_cache_init(&known, 50, NULL);
    for (int i = 0; i < 50; i++)
        add_number(&known, i);
    negative_cache_clear(&known);
    for (int i = 0; i < 50; i++)
        assert_false(has_number(&known, i));
    add_number(&known, 7);
    assert_true(has_number(&known, 7));
    negative_cache_finish(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_known_until_it_is_forgotten),
        cmocka_unit_test(the_key_is_copied),
        cmocka_unit_test(past_the_limit_the_oldest_goes_first),
        cmocka_unit_test(adding_a_known_key_takes_no_place),
        cmocka_unit_test(a_lower_limit_holds_at_once),
        cmocka_unit_test(a_limit_of_none_remembers_nothing),
        cmocka_unit_test(clearing_forgets_all_and_leaves_it_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
