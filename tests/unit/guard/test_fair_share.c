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

static void a_host_that_has_many_leaves_a_quarter(void **state)
{
    (void)state;
    assert_true(may_have(1000, 750, 750));
    assert_false(may_have(1000, 751, 751));
    assert_false(may_have(1000, 751, 11));
}

static void a_host_that_has_few_may_have_of_the_last_quarter(void **state)
{
    (void)state;
    assert_true(may_have(1000, 751, 10));
    assert_true(may_have(1000, 1000, 1));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_has_many_leaves_a_quarter),
        cmocka_unit_test(a_host_that_has_few_may_have_of_the_last_quarter),
        cmocka_unit_test(of_a_few_places_nobody_loses_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
