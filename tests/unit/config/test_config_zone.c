#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"

static bool is_in(const char *zone, const char *host)
{
    struct config config = {.cache_zone = (char *)(size_t)zone};
    return config_is_in_zone(&config, host);
}

static void without_a_zone_all_are_near(void **state)
{
    (void)state;
    assert_true(is_in(NULL, "10.1.0.7"));
}

static void any_pattern_of_the_list_will_do(void **state)
{
    (void)state;
    assert_true(is_in("10.1.*", "10.1.0.7"));
    assert_true(is_in("10.2.*,10.1.*", "10.1.0.7"));
    assert_true(is_in(" 10.2.* , *.a.example ", "cache-3.a.example"));
    assert_true(is_in("fd00:1:*", "fd00:1::7"));
    assert_false(is_in("10.1.*", "10.11.0.7"));
    assert_false(is_in("10.1", "10.1.0.7"));
    assert_false(is_in(",", "10.1.0.7"));
}

static void a_pattern_without_end_is_none(void **state)
{
    char zone[2000];
    (void)state;
    for (size_t i = 0; i < sizeof zone - 1; i++)
        zone[i] = 'a';
    zone[sizeof zone - 1] = '\0';
    assert_false(is_in(zone, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_zone_all_are_near),
        cmocka_unit_test(any_pattern_of_the_list_will_do),
        cmocka_unit_test(a_pattern_without_end_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
