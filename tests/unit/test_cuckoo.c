/* What the cuckoo filter does beyond test_filter.c. */
#include "filter_bench.h"

static void test_what_is_stashed_moves_to_places_that_become_free(void **state)
{
    (void)state;
    struct filter *filter = make(2000, 1e-4);
    uint64_t end = fill_up(filter, 0);
    assert_int_equal(filter_stats(filter).stash_used, filter_stats(filter).stash_size);
    for (uint64_t i = 0; i < end / 4; i++)
        assert_int_equal(filter_remove(filter, hash_of(i)), 0);
    assert_int_equal(filter_stats(filter).stash_used, 0);
    assert_range_is_in(filter, end / 4, end);
    filter_destroy(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_stashed_moves_to_places_that_become_free),
    };
    kind = FILTER_CUCKOO;
    draw_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
