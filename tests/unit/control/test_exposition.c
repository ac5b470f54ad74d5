/* What Prometheus reads of a histogram. */
#include "control/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct buffer out;

static const char *write(const char *labels, const struct durations *durations)
{
    buffer_clear(&out);
    exposition_durations(&out, "x_seconds", labels, durations);
    buffer_append(&out, "", 1);
    return buffer_span(&out).at;
}

static void each_bucket_holds_those_below_it(void **state)
{
    struct durations durations = {.nanoseconds = 3000001500};
    (void)state;
    durations.buckets[0] = 2;
    durations.buckets[HISTOGRAM_BOUNDS - 1] = 1;
    durations.buckets[HISTOGRAM_BOUNDS] = 4;
    const char *text = write("a=\"b\"", &durations);
    assert_non_null(strstr(text, "nestguard_x_seconds_bucket{a=\"b\",le=\"1e-06\"} 2\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_bucket{a=\"b\",le=\"5\"} 2\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_bucket{a=\"b\",le=\"10\"} 3\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_bucket{a=\"b\",le=\"+Inf\"} 7\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_sum{a=\"b\"} 3.000001500\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_count{a=\"b\"} 7\n"));
}

static void without_labels_only_the_bound_is_one(void **state)
{
    struct durations durations = {.nanoseconds = 0};
    (void)state;
    const char *text = write("", &durations);
    assert_non_null(strstr(text, "nestguard_x_seconds_bucket{le=\"1e-06\"} 0\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_sum 0.000000000\n"));
    assert_non_null(strstr(text, "nestguard_x_seconds_count 0\n"));
    buffer_finish(&out);
}

static void a_label_has_nothing_that_ends_it(void **state)
{
    (void)state;
    buffer_clear(&out);
    exposition_value(&out, "a\"b\\c\nd");
    assert_true(span_is(buffer_span(&out), "\"a\\\"b\\\\c\\nd\""));
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bucket_holds_those_below_it),
        cmocka_unit_test(without_labels_only_the_bound_is_one),
        cmocka_unit_test(a_label_has_nothing_that_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
