#include "database/row_ttl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SECOND = 1000 };

#define MOST (3650LL * 24 * 60 * 60 * SECOND)

static void seconds_and_their_fractions_are_milliseconds(void **state)
{
    (void)state;
    assert_int_equal(row_ttl_ms("90"), 90 * SECOND);
    assert_int_equal(row_ttl_ms("0.25"), 250);
    assert_int_equal(row_ttl_ms("12.0009"), 12000);
    assert_int_equal(row_ttl_ms("1e3"), 1000 * SECOND);
}

/* To the cache 0 would mean "for ever". */
static void more_than_nothing_is_a_millisecond_at_least(void **state)
{
    (void)state;
    assert_int_equal(row_ttl_ms("0.0001"), 1);
    assert_int_equal(row_ttl_ms("1e-300"), 1);
}

static void nothing_and_less_is_over(void **state)
{
    static const char *const texts[] = {"0", "-0", "0.000", "-1", "-1e300", "-Infinity"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(row_ttl_ms(texts[i]), ROW_TTL_OVER);
}

static void the_most_is_that_of_a_ttl(void **state)
{
    static const char *const texts[] = {"315360000", "315360001", "1e30", "1e999", "Infinity"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(row_ttl_ms(texts[i]), MOST);
}

static void null_leaves_it_to_the_keyspace(void **state)
{
    (void)state;
    assert_int_equal(row_ttl_ms(NULL), ROW_TTL_UNSAID);
}

static void what_is_no_number_is_no_ttl(void **state)
{
    static const char *const texts[] = {"NaN", "", " ", "t", "10m", "2026-01-01", "1 day", "5 "};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(row_ttl_ms(texts[i]), ROW_TTL_UNREADABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_and_their_fractions_are_milliseconds),
        cmocka_unit_test(more_than_nothing_is_a_millisecond_at_least),
        cmocka_unit_test(nothing_and_less_is_over),
        cmocka_unit_test(the_most_is_that_of_a_ttl),
        cmocka_unit_test(null_leaves_it_to_the_keyspace),
        cmocka_unit_test(what_is_no_number_is_no_ttl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
