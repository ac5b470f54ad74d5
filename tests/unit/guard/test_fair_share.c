/* What a host may have of places that all hosts share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "guard/fair_share.h"

static bool may_have(size_t most, size_t used, size_t host)
{
    return fair_share_allows(
        &(struct fair_share){.most = most, .used = used, .host = host, .few = 100});
}

static void one_host_leaves_a_quarter(void **state)
{
    (void)state;
    assert_true(may_have(1000, 750, 750));
    assert_false(may_have(1000, 751, 751));
}

/* Each takes what it may, one after the other. */
static void whoever_comes_next_has_three_quarters_of_what_is_left(void **state)
{
    size_t used = 0;
    (void)state;
    for (size_t left = 100000; left >= 1000; left /= 4) {
        size_t host = 0;
        for (; may_have(100000, used + 1, host + 1); used++)
            host++;
        assert_in_range(host, left * 3 / 4, left * 3 / 4 + 2);
    }
}

static void hosts_that_come_together_have_the_same(void **state)
{
    size_t each[5] = {0}, used = 0;
    (void)state;
    for (int round = 0; round < 1000; round++)
        for (int i = 0; i < 5; i++)
            if (may_have(1000, used + 1, each[i] + 1)) {
                used++;
                each[i]++;
            }
    for (int i = 0; i < 5; i++)
        assert_in_range(each[i], 1000 * 3 / 16, 1000 * 3 / 16 + 1);
}

static void a_host_that_has_few_may_have_the_last_ones(void **state)
{
    (void)state;
    assert_false(may_have(1000, 1000, 11));
    assert_true(may_have(1000, 1000, 10));
    assert_false(may_have(1000, 1001, 1));
}

static void of_a_few_places_nobody_loses_any(void **state)
{
    (void)state;
    for (size_t most = 0; most < 4; most++) {
        assert_true(may_have(most, most, most));
        assert_false(may_have(most, most + 1, 1));
    }
    assert_false(may_have(4, 4, 4));
    assert_true(may_have(4, 4, 1));
}

static void the_last_of_many_places_are_for_hosts_that_have_fewer(void **state)
{
    (void)state;
    assert_false(fair_share_is_kept(1600, 1500, 1500, 1));
    assert_true(fair_share_is_kept(1600, 1501, 1501, 1));
    assert_true(fair_share_is_kept(1600, 1600, 101, 1));
    assert_false(fair_share_is_kept(1600, 1600, 100, 1));
    assert_true(fair_share_is_kept(1600, 1600, 51, 2));
    assert_false(fair_share_is_kept(1600, 1600, 50, 2));
    assert_false(fair_share_is_kept(1600, 1600, 1, 1000));
}

static void of_fewer_places_none_is_kept(void **state)
{
    (void)state;
    assert_false(fair_share_is_kept(1023, 1023, 1023, 1));
    assert_true(fair_share_is_kept(1024, 1024, 1024, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host_leaves_a_quarter),
        cmocka_unit_test(whoever_comes_next_has_three_quarters_of_what_is_left),
        cmocka_unit_test(hosts_that_come_together_have_the_same),
        cmocka_unit_test(a_host_that_has_few_may_have_the_last_ones),
        cmocka_unit_test(of_a_few_places_nobody_loses_any),
        cmocka_unit_test(the_last_of_many_places_are_for_hosts_that_have_fewer),
        cmocka_unit_test(of_fewer_places_none_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
