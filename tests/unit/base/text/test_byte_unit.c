/* Amounts of memory in the units that people read. */
#include "base/text/byte_unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

static void must_read(double bytes, const char *wanted)
{
    const char *unit;
    char text[40];
    double number = byte_unit(bytes, &unit);
    snprintf(text, sizeof text, "%.1f %s", number, unit);
    assert_string_equal(text, wanted);
}

static void an_amount_is_given_in_the_largest_unit_that_it_fills(void **state)
{
    (void)state;
    must_read(0, "0.0 B");
    must_read(1023, "1023.0 B");
    must_read(1024, "1.0 KiB");
    must_read(22125117, "21.1 MiB");
    must_read(3.0 * (1 << 30), "3.0 GiB");
}

static void past_the_last_unit_the_number_grows(void **state)
{
    (void)state;
    must_read(5000.0 * 1024 * 1024 * 1024 * 1024 * 1024, "5000.0 PiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_amount_is_given_in_the_largest_unit_that_it_fills),
        cmocka_unit_test(past_the_last_unit_the_number_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
