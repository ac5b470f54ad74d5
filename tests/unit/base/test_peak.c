#include "base/peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MEGABYTE = 1 << 20 };

static void a_peak_is_over_when_little_of_it_is_left(void **state)
{
    struct peak peak = {0};
    (void)state;
    peak_note(&peak, 100 * MEGABYTE);
    assert_false(peak_is_over(&peak, 26 * MEGABYTE));
    assert_true(peak_is_over(&peak, 25 * MEGABYTE));
    assert_false(peak_is_over(&peak, 0)); /* of what is left by then */
}

static void a_small_one_is_not_worth_it(void **state)
{
    struct peak peak = {0};
    (void)state;
    peak_note(&peak, 31 * MEGABYTE);
    assert_false(peak_is_over(&peak, 0));
}

static void what_is_there_when_it_is_looked_at_counts_too(void **state)
{
    struct peak peak = {0};
    (void)state;
    assert_false(peak_is_over(&peak, 40 * MEGABYTE));
    assert_true(peak_is_over(&peak, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_is_over_when_little_of_it_is_left),
        cmocka_unit_test(a_small_one_is_not_worth_it),
        cmocka_unit_test(what_is_there_when_it_is_looked_at_counts_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
