#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/backoff.h"

static const struct backoff_bounds bounds = {100, 5000};

static void each_wait_is_about_twice_the_last_up_to_a_bound(void **state)
{
    static const uint64_t waits[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct backoff backoff = {0};
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        assert_in_range(backoff_next(&backoff, &bounds), waits[i] * 3 / 4, waits[i]);
    backoff_reset(&backoff);
    assert_in_range(backoff_next(&backoff, &bounds), 75, 100);
}

static void many_who_are_refused_together_come_back_apart(void **state)
{
    uint64_t least = UINT64_MAX, most = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct backoff backoff = {.wait_ms = 5000};
        uint64_t wait = backoff_next(&backoff, &bounds);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    assert_true(most - least > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_is_about_twice_the_last_up_to_a_bound),
        cmocka_unit_test(many_who_are_refused_together_come_back_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
