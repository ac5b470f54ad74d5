/* Patience. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/retry.h"

static void each_wait_is_about_twice_the_last_up_to_a_bound(void **state)
{
    static const uint64_t waits[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct retry retry = {0};
    uint64_t now = 1000;
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        retry_set(&retry, now);
        assert_in_range(retry.at, now + waits[i] * 3 / 4, now + waits[i]);
        retry_if_due(&retry, retry.at - 1);
        assert_int_not_equal(retry.at, 0);
        now = retry.at;
        retry_if_due(&retry, now);
        assert_int_equal(retry.at, 0);
    }
}

static void the_earlier_of_two_is_found_where_there_is_one(void **state)
{
    struct retry none = {0}, some = {.at = 7};
    (void)state;
    assert_int_equal(retry_earlier(0, &none), 0);
    assert_int_equal(retry_earlier(0, &some), 7);
    assert_int_equal(retry_earlier(5, &none), 5);
    assert_int_equal(retry_earlier(5, &some), 5);
    assert_int_equal(retry_earlier(9, &some), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_is_about_twice_the_last_up_to_a_bound),
        cmocka_unit_test(the_earlier_of_two_is_found_where_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
