#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow/values.h"

enum { KEYSPACES = 3 };

static unsigned told[KEYSPACES];

static void on_altered(void *arg, int keyspace)
{
    assert_ptr_equal(arg, told);
    told[keyspace]++;
}

static struct values *create(void)
{
    for (unsigned i = 0; i < KEYSPACES; i++)
        told[i] = 0;
    return values_create(&(struct values_options){KEYSPACES, on_altered, told});
}

static void assert_told(unsigned first, unsigned second, unsigned third)
{
    assert_int_equal(told[0], first);
    assert_int_equal(told[1], second);
    assert_int_equal(told[2], third);
}

static void the_first_answer_is_compared_with_nothing(void **state)
{
    struct values *values = create();
    (void)state;
    assert_false(values_are_known(values));
    values_learn(values, "a,b,c", 10);
    assert_true(values_are_known(values));
    values_learn(values, "a,b,c", 20);
    values_check_time(values, 100000);
    assert_told(0, 0, 0);
    values_destroy(values);
    values_destroy(NULL);
}

static void what_differs_is_told_at_once_and_once_more(void **state)
{
    struct values *values = create();
    (void)state;
    values_learn(values, "a,b,c", 10);
    values_learn(values, "a,x,c", 20);
    assert_told(0, 1, 0);
    values_learn(values, "a,x,c", 30);
    values_check_time(values, 20 + VALUES_SETTLE_MS - 1);
    assert_told(0, 1, 0);
    values_check_time(values, 20 + VALUES_SETTLE_MS);
    assert_told(0, 2, 0);
    values_check_time(values, 100000);
    assert_told(0, 2, 0);
    values_destroy(values);
}

static void what_is_altered_back_is_told_too_and_settles_anew(void **state)
{
    struct values *values = create();
    (void)state;
    values_learn(values, "a,b,c", 10);
    values_learn(values, "x,b,y", 20);
    values_learn(values, "a,b,c", 500);
    assert_told(2, 0, 2);
    values_check_time(values, 20 + VALUES_SETTLE_MS);
    assert_told(2, 0, 2);
    values_check_time(values, 500 + VALUES_SETTLE_MS);
    assert_told(3, 0, 3);
    values_destroy(values);
}

static void an_answer_tells_of_the_keyspaces_that_it_was_asked_for(void **state)
{
    struct values *values = create();
    (void)state;
    values_learn(values, "", 10);
    values_learn(values, "a", 20);
    values_learn(values, "a,b,c,d", 30);
    assert_told(0, 0, 0);
    values_learn(values, "x,b", 40);
    assert_told(1, 0, 0);
    values_learn(values, "x,b,y", 50);
    assert_told(1, 0, 1);
    values_destroy(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_answer_is_compared_with_nothing),
        cmocka_unit_test(what_differs_is_told_at_once_and_once_more),
        cmocka_unit_test(what_is_altered_back_is_told_too_and_settles_anew),
        cmocka_unit_test(an_answer_tells_of_the_keyspaces_that_it_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
