/* A tenth of a second of any second, whoever the newcomers are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/upstream/stall_budget.h"

enum { LASTS = 60000, BEGIN = 5000 };

static void nobody_has_more_than_a_piece_of_it(void **state)
{
    struct stall_budget budget = {0};
    (void)state;
    assert_int_equal(stall_budget_left(&budget, BEGIN), STALL_ONCE_MS);
    stall_budget_use(&budget, BEGIN, BEGIN + 15); /* the timer came late */
    assert_int_equal(stall_budget_left(&budget, BEGIN + 500), STALL_ONCE_MS);
    stall_budget_use(&budget, BEGIN + 500, BEGIN + 580);
    assert_int_equal(stall_budget_left(&budget, BEGIN + 1579), STALL_BUDGET_MS - 95);
    stall_budget_use(&budget, BEGIN + 1579, BEGIN + 1590);
    assert_int_equal(stall_budget_left(&budget, BEGIN + 2589), 0);
    assert_int_equal(stall_budget_left(&budget, BEGIN + 2590), STALL_ONCE_MS);
}

/* Whether it stands still in each millisecond; newcomers come at random, each with the patience of
 * its own. */
static void run(bool *still, unsigned every, unsigned longest)
{
    struct stall_budget budget = {0};
    uint64_t now = 0;
    while (now < LASTS) {
        uint64_t left = stall_budget_left(&budget, BEGIN + now);
        uint64_t wanted = (uint64_t)rand() % longest + 1, since = now;
        for (wanted = wanted < left ? wanted : left; wanted && now < LASTS; wanted--)
            still[now++] = true;
        if (now > since)
            stall_budget_use(&budget, BEGIN + since, BEGIN + now);
        now += (uint64_t)rand() % every + 1;
    }
}

static void no_second_has_more_than_that_wherever_it_begins(void **state)
{
    static const unsigned cases[][2] = {{1, 200}, {150, 1000}, {300, 20}, {1000, 100}, {2, 3}};
    (void)state;
    srand(7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool *still = calloc(LASTS, sizeof *still);
        unsigned in_second = 0, total = 0;
        run(still, cases[i][0], cases[i][1]);
        for (size_t at = 0; at < LASTS; at++) {
            total += still[at];
            in_second += still[at];
            if (at >= STALL_WINDOW_MS)
                in_second -= still[at - STALL_WINDOW_MS];
            assert_in_range(in_second, 0, STALL_BUDGET_MS);
        }
        assert_true(total > LASTS / 200); /* and it is used */
        free(still);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_more_than_a_piece_of_it),
        cmocka_unit_test(no_second_has_more_than_that_wherever_it_begins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
