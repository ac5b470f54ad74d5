/* What scrapers see of it: bounds that rise, a bucket for everything, sums that add up. */
#include "guard/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static size_t bucket_taken(uint64_t nanoseconds)
{
    struct histogram histogram;
    struct durations read = {0};
    memset(&histogram, 0, sizeof histogram);
    histogram_add(&histogram, nanoseconds, 1);
    histogram_read(&histogram, &read);
    assert_int_equal(durations_count(&read), 1);
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        if (read.buckets[i])
            return i;
    fail();
    return 0;
}

static void the_bounds_rise(void **state)
{
    (void)state;
    for (size_t i = 1; i < HISTOGRAM_BOUNDS; i++)
        assert_true(histogram_bounds[i - 1] < histogram_bounds[i]);
}

static void a_bound_belongs_to_its_own_bucket(void **state)
{
    (void)state;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        uint64_t bound = (uint64_t)(histogram_bounds[i] * 1e9 + 0.5);
        assert_int_equal(bucket_taken(bound), i);
        assert_int_equal(bucket_taken(bound + 1), i + 1);
    }
}

static void there_is_a_bucket_for_everything(void **state)
{
    (void)state;
    assert_int_equal(bucket_taken(0), 0);
    assert_int_equal(bucket_taken(UINT64_MAX), HISTOGRAM_BOUNDS);
}

static void what_is_read_adds_up(void **state)
{
    struct histogram one, other;
    struct durations read = {0};
    (void)state;
    memset(&one, 0, sizeof one);
    memset(&other, 0, sizeof other);
    histogram_add(&one, 1500 * 1000, 4);
    histogram_add(&other, 1000 * 1000 * 1000, 1);
    histogram_read(&one, &read);
    histogram_read(&other, &read);
    assert_int_equal(durations_count(&read), 5);
    assert_float_equal(durations_seconds(&read), 1.006, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bounds_rise),
        cmocka_unit_test(a_bound_belongs_to_its_own_bucket),
        cmocka_unit_test(there_is_a_bucket_for_everything),
        cmocka_unit_test(what_is_read_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
