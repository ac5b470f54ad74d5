/* Servers that are not there, in as many words as there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/parts/outage.h"

static void each_is_named_with_role_and_reason(void **state)
{
    struct outage outage = {0};
    (void)state;
    assert_string_equal(outage_text(&outage), "");
    outage_add(&outage, "10.0.0.1:6379", "primary", "connection refused");
    outage_add(&outage, "10.0.0.2:6379", NULL, "timed out");
    assert_string_equal(outage_text(&outage),
                        "10.0.0.1:6379 (primary): connection refused; 10.0.0.2:6379: timed out");
}

static void those_without_room_are_counted(void **state)
{
    struct outage outage = {0};
    char address[32], tail[40];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(address, sizeof address, "10.0.%d.%d:6379", i / 256, i % 256);
        outage_add(&outage, address, "primary", "connection refused");
    }
    assert_int_equal(outage.count, 1000);
    assert_in_range(outage.named, 5, 20);
    snprintf(tail, sizeof tail, "; and %zu more", 1000 - outage.named);
    const char *text = outage_text(&outage);
    assert_true(strlen(text) < sizeof outage.text);
    assert_string_equal(text + strlen(text) - strlen(tail), tail);
    assert_memory_equal(text, "10.0.0.0:6379 (primary): ", 25);
}

static void no_address_or_reason_is_too_long(void **state)
{
    struct outage outage = {0};
    char address[300], why[400];
    (void)state;
    memset(address, 'a', sizeof address - 1);
    memset(why, 'w', sizeof why - 1);
    address[sizeof address - 1] = why[sizeof why - 1] = '\0';
    outage_add(&outage, address, "primary", why);
    outage_add(&outage, address, "primary", why);
    assert_int_equal(outage.named, 1);
    assert_non_null(strstr(outage_text(&outage), "w; and 1 more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_named_with_role_and_reason),
        cmocka_unit_test(those_without_room_are_counted),
        cmocka_unit_test(no_address_or_reason_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
