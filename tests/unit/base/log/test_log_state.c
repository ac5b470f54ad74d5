/* What flaps is told of once a second, and in the end as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/log/log_state.h"

static void what_was_never_otherwise_is_not_told(void **state)
{
    struct log_state log = {0};
    (void)state;
    assert_false(log_state_may_tell(&log, 1));
    log_state_set(&log, false, "%s", "");
    assert_false(log_state_may_tell(&log, 1));
}

static void a_change_is_told_at_once_and_only_once(void **state)
{
    struct log_state log = {0};
    (void)state;
    log_state_set(&log, true, "refused");
    assert_true(log_state_may_tell(&log, 5000));
    log_state_set(&log, true, "refused");
    assert_false(log_state_may_tell(&log, 9000));
    log_state_set(&log, true, "timed out");
    assert_true(log_state_may_tell(&log, 9000));
    assert_string_equal(log.text, "timed out");
}

static void what_flaps_is_told_once_a_second_and_then_as_it_is(void **state)
{
    struct log_state log = {0};
    unsigned told = 0;
    (void)state;
    for (uint64_t now = 1000; now < 11000; now += 10) {
        log_state_set(&log, now / 10 % 2, "%s", now / 10 % 2 ? "lost" : "there");
        told += log_state_may_tell(&log, now);
    }
    assert_in_range(told, 9, 11);
    log_state_set(&log, false, "there");
    assert_true(log_state_may_tell(&log, 12000));
    assert_string_equal(log.text, "there");
    assert_false(log_state_may_tell(&log, 14000));
}

static void what_is_as_before_within_the_second_is_told_all_the_same(void **state)
{
    struct log_state log = {0};
    (void)state;
    log_state_set(&log, false, "there");
    assert_true(log_state_may_tell(&log, 1000));
    log_state_set(&log, true, "lost");
    log_state_set(&log, false, "there");
    assert_false(log_state_may_tell(&log, 1500));
    assert_true(log_state_may_tell(&log, 2000)); /* it was lost meanwhile */
}

static void a_long_reason_is_no_news_again(void **state)
{
    struct log_state log = {0};
    char reason[1000];
    (void)state;
    memset(reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    log_state_set(&log, true, "%s", reason);
    assert_true(log_state_may_tell(&log, 1000));
    log_state_set(&log, true, "%s", reason);
    assert_false(log_state_may_tell(&log, 3000));
    assert_int_equal(strlen(log.text), sizeof log.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_never_otherwise_is_not_told),
        cmocka_unit_test(a_change_is_told_at_once_and_only_once),
        cmocka_unit_test(what_flaps_is_told_once_a_second_and_then_as_it_is),
        cmocka_unit_test(what_is_as_before_within_the_second_is_told_all_the_same),
        cmocka_unit_test(a_long_reason_is_no_news_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
