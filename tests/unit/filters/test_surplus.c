#include "filters/cuckoo/surplus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const size_t no_bound = SIZE_MAX;

static void test_it_counts_each_number_exactly(void **state)
{
    (void)state;
    enum { NUMBERS = 5000 };
    struct surplus surplus = {0};
    for (uint64_t n = 1; n <= NUMBERS; n++)
        for (uint64_t i = 0; i <= n % 3; i++)
            assert_true(surplus_add(&surplus, n << 40, no_bound));
    for (uint64_t n = 1; n <= NUMBERS; n++) {
        for (uint64_t i = 0; i <= n % 3; i++)
            assert_true(surplus_take(&surplus, n << 40));
        assert_false(surplus_take(&surplus, n << 40));
    }
    assert_true(surplus_doublings(&surplus) > 8);
    surplus_finish(&surplus);
    assert_int_equal(surplus_bytes(&surplus), 0);
}

static void test_an_empty_one_has_nothing_and_takes_no_memory(void **state)
{
    (void)state;
    struct surplus surplus = {0};
    assert_false(surplus_take(&surplus, 1));
    assert_int_equal(surplus_bytes(&surplus), 0);
    assert_int_equal(surplus_doublings(&surplus), 0);
    surplus_finish(&surplus);
}

static void test_numbers_that_come_and_go_do_not_make_it_grow(void **state)
{
    (void)state;
    struct surplus surplus = {0};
    for (uint64_t n = 1; n <= 100000; n++) {
        assert_true(surplus_add(&surplus, n, no_bound));
        if (n > 10)
            assert_true(surplus_take(&surplus, n - 10));
    }
    assert_true(surplus_bytes(&surplus) <= 64 * sizeof(struct surplus_cell));
    for (uint64_t n = 100000 - 9; n <= 100000; n++)
        assert_true(surplus_take(&surplus, n));
    surplus_finish(&surplus);
}

static void test_it_stays_within_its_bound_and_keeps_what_it_has(void **state)
{
    (void)state;
    const size_t most = 64 * sizeof(struct surplus_cell);
    struct surplus surplus = {0};
    uint64_t n = 1;
    while (surplus_add(&surplus, n, most))
        n++;
    assert_true(n > 32);
    assert_int_equal(surplus_bytes(&surplus), most);
    assert_true(surplus_add(&surplus, n - 1, most)); /* a count more needs no cell */
    assert_false(surplus_grow(&surplus, most));
    assert_true(surplus_take(&surplus, n - 1));
    for (uint64_t i = 1; i < n; i++)
        assert_true(surplus_take(&surplus, i));
    surplus_finish(&surplus);
}

/* As a damaged file could leave it: no free cell, numbers twice, no count of them. */
static void test_cells_full_of_anything_end_no_search_in_a_circle(void **state)
{
    (void)state;
    struct surplus surplus = {0};
    assert_true(surplus_grow(&surplus, no_bound));
    memset(surplus.cells, 0x55, surplus_bytes(&surplus));
    assert_false(surplus_take(&surplus, 1));
    assert_false(surplus_add(&surplus, 1, surplus_bytes(&surplus)));
    surplus.used = surplus.size;
    assert_true(surplus_add(&surplus, 1, no_bound));
    assert_true(surplus_take(&surplus, 1));
    assert_false(surplus_take(&surplus, 1));
    surplus_finish(&surplus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_counts_each_number_exactly),
        cmocka_unit_test(test_an_empty_one_has_nothing_and_takes_no_memory),
        cmocka_unit_test(test_numbers_that_come_and_go_do_not_make_it_grow),
        cmocka_unit_test(test_it_stays_within_its_bound_and_keeps_what_it_has),
        cmocka_unit_test(test_cells_full_of_anything_end_no_search_in_a_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
