/* A line a second, whoever wants to say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/log/log_pace.h"

static void the_first_is_said_at_once(void **state)
{
    struct log_pace pace = {0};
    uint64_t left_out = 99;
    (void)state;
    assert_true(log_pace_may(&pace, 1, &left_out));
    assert_int_equal(left_out, 0);
}

static void within_a_second_the_others_are_counted(void **state)
{
    struct log_pace pace = {0};
    uint64_t left_out;
    (void)state;
    assert_true(log_pace_may(&pace, 5000, &left_out));
    for (uint64_t now = 5000; now < 6000; now += 10)
        assert_false(log_pace_may(&pace, now, &left_out));
    assert_true(log_pace_may(&pace, 6000, &left_out));
    assert_int_equal(left_out, 100);
    assert_true(log_pace_may(&pace, 7000, &left_out));
    assert_int_equal(left_out, 0);
}

static void a_period_of_its_own_may_be_longer(void **state)
{
    struct log_pace pace = {.period_ms = 60000};
    (void)state;
    assert_true(log_pace_may(&pace, 5000, NULL));
    assert_false(log_pace_may(&pace, 64999, NULL));
    assert_true(log_pace_may(&pace, 65000, NULL));
}

static void nothing_is_said_of_none_that_was_left_out(void **state)
{
    char text[LOG_PACE_SAID];
    (void)state;
    assert_string_equal(log_pace_said(0, text), "");
    assert_string_equal(log_pace_said(1, text), "; 1 such line was left out since the last");
    assert_string_equal(log_pace_said(7, text), "; 7 such lines were left out since the last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_is_said_at_once),
                                       cmocka_unit_test(within_a_second_the_others_are_counted),
                                       cmocka_unit_test(a_period_of_its_own_may_be_longer),
                                       cmocka_unit_test(nothing_is_said_of_none_that_was_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
