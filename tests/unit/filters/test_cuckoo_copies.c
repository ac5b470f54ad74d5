/* Entries that look the same to a cuckoo filter, in numbers that two buckets cannot hold: rows that
 * share a key, by accident or because a hostile user makes them. */
#include "filters/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7};
enum { RATES = sizeof rates / sizeof rates[0] };

static uint64_t run_seed;

static uint64_t hash_of(uint64_t number)
{
    struct filter_seed seed = {run_seed, ~run_seed};
    return filter_hash(&seed, &number, sizeof number);
}

static struct filter *make(size_t capacity, double rate, size_t max_bytes)
{
    struct filter_options options = {.kind = FILTER_CUCKOO,
                                     .capacity = capacity,
                                     .false_positive_rate = rate,
                                     .max_bytes = max_bytes};
    struct filter *filter = NULL;
    const char *error = NULL;
    assert_int_equal(filter_create(&filter, &options, &error), 0);
    return filter;
}

static void insert_times(struct filter *filter, uint64_t hash, size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_int_equal(filter_insert(filter, hash), 0);
}

/* It is found as long as one copy is in, and not a removal longer. */
static void remove_times(struct filter *filter, uint64_t hash, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        assert_true(filter_contains(filter, hash));
        assert_int_equal(filter_remove(filter, hash), 0);
    }
}

static void assert_range_is_in(const struct filter *filter, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (!filter_contains(filter, hash_of(i)))
            fail_msg("key %" PRIu64 " is lost (seed %" PRIu64 ")", i, run_seed);
}

static void test_any_number_of_copies_of_one_key_fits(void **state)
{
    (void)state;
    enum { COPIES = 20000, OTHERS = 1000 };
    for (size_t r = 0; r < RATES; r++) {
        struct filter *filter = make(COPIES + OTHERS, rates[r], 0);
        insert_times(filter, hash_of(0), COPIES);
        for (uint64_t i = 1; i <= OTHERS; i++)
            assert_int_equal(filter_insert(filter, hash_of(i)), 0);
        assert_int_equal(filter_stats(filter).keys, COPIES + OTHERS);
        assert_int_equal(filter_stats(filter).stash_used, 0);
        remove_times(filter, hash_of(0), COPIES);
        assert_range_is_in(filter, 1, OTHERS + 1);
        assert_int_equal(filter_stats(filter).keys, OTHERS);
        filter_destroy(filter);
    }
}

static void test_copies_of_many_keys_do_not_fill_the_stash(void **state)
{
    (void)state;
    enum { COPIES = 11, KEYS = 3000 };
    for (size_t r = 0; r < RATES; r++) {
        struct filter *filter = make((size_t)COPIES * KEYS, rates[r], 0);
        for (size_t round = 0; round < COPIES; round++)
            for (uint64_t i = 0; i < KEYS; i++)
                assert_int_equal(filter_insert(filter, hash_of(i)), 0);
        assert_int_equal(filter_stats(filter).stash_used, 0);
        assert_range_is_in(filter, 0, KEYS);
        for (uint64_t i = 0; i < KEYS; i += 2)
            remove_times(filter, hash_of(i), COPIES);
        for (uint64_t i = 1; i < KEYS; i += 2)
            remove_times(filter, hash_of(i), COPIES);
        assert_int_equal(filter_stats(filter).keys, 0);
        assert_int_equal(filter_remove(filter, hash_of(1)), -ENOENT);
        filter_destroy(filter);
    }
}

/* Two entries for each key leave no slack: a table that took both would be full at 90 %. */
static void test_a_table_made_for_pairs_of_copies_holds_them(void **state)
{
    (void)state;
    enum { KEYS = 30000 };
    struct filter *filter = make((size_t)2 * KEYS, 1e-4, 0);
    for (uint64_t i = 0; i < KEYS; i++)
        insert_times(filter, hash_of(i), 2);
    assert_int_equal(filter_stats(filter).stash_used, 0);
    for (uint64_t i = 0; i < KEYS; i++)
        remove_times(filter, hash_of(i), 2);
    assert_int_equal(filter_stats(filter).keys, 0);
    filter_destroy(filter);
}

static uint64_t fill_up(struct filter *filter)
{
    uint64_t i = 0;
    while (filter_insert(filter, hash_of(i)) == 0)
        i++;
    return i;
}

/* Of what is in the table and of what is in the stash. */
static void test_a_full_filter_takes_copies_of_what_it_has(void **state)
{
    (void)state;
    for (size_t r = 0; r < RATES; r++) {
        struct filter *filter = make(1000, rates[r], 0);
        uint64_t end = fill_up(filter);
        assert_int_equal(filter_stats(filter).stash_used, filter_stats(filter).stash_size);
        for (unsigned round = 0; round < 5; round++)
            for (uint64_t i = 0; i < end; i++)
                assert_int_equal(filter_insert(filter, hash_of(i)), 0);
        assert_int_equal(filter_stats(filter).keys, 6 * end);
        for (unsigned round = 0; round < 6; round++) {
            assert_range_is_in(filter, 0, end);
            for (uint64_t i = 0; i < end; i++)
                assert_int_equal(filter_remove(filter, hash_of(i)), 0);
        }
        assert_int_equal(filter_stats(filter).keys, 0);
        assert_int_equal(filter_stats(filter).stash_used, 0);
        filter_destroy(filter);
    }
}

/* Hashes that differ in a middle bit alone look the same to a table of short fingerprints. */
static void test_what_only_looks_the_same_is_counted_as_well(void **state)
{
    (void)state;
    enum { TWINS = 16, FAMILIES = 200 };
    struct filter *filter = make((size_t)TWINS * FAMILIES, 1e-4, 0);
    for (uint64_t i = 0; i < (uint64_t)TWINS * FAMILIES; i++)
        assert_int_equal(filter_insert(filter, hash_of(i / TWINS) ^ i % TWINS << 24), 0);
    assert_int_equal(filter_stats(filter).stash_used, 0);
    for (uint64_t i = 0; i < (uint64_t)TWINS * FAMILIES; i++) {
        for (uint64_t twin = i % TWINS; twin < TWINS; twin++)
            assert_true(filter_contains(filter, hash_of(i / TWINS) ^ twin << 24));
        assert_int_equal(filter_remove(filter, hash_of(i / TWINS) ^ i % TWINS << 24), 0);
    }
    assert_int_equal(filter_stats(filter).keys, 0);
    filter_destroy(filter);
}

static void test_copies_take_no_more_memory_than_allowed(void **state)
{
    (void)state;
    enum { CAPACITY = 1000, COPIES = 4 };
    struct filter *filter = make(CAPACITY, 1e-4, 0);
    size_t bytes = filter_stats(filter).bytes;
    filter_destroy(filter);
    filter = make(CAPACITY, 1e-4, bytes);
    for (uint64_t i = 0; i < CAPACITY / COPIES; i++)
        insert_times(filter, hash_of(i), COPIES);
    assert_int_equal(filter_stats(filter).bytes, bytes);
    for (uint64_t i = 0; i < CAPACITY / COPIES; i++)
        remove_times(filter, hash_of(i), COPIES);
    assert_int_equal(filter_stats(filter).keys, 0);
    filter_destroy(filter);
}

/* The ninth copy of a hash must not send a search through the whole table. */
static void test_copies_go_in_quickly(void **state)
{
    (void)state;
    enum { COPIES = 1000000 };
    struct filter *filter = make(100000, 1e-4, 0);
    clock_t began = clock();
    insert_times(filter, hash_of(0), COPIES);
    double ns = (double)(clock() - began) * 1e9 / CLOCKS_PER_SEC / COPIES;
    print_message("%.0f ns a copy\n", ns);
    assert_true(ns < 5000);
    filter_destroy(filter);
}

int main(void)
{
    const char *given = getenv("NESTGUARD_TEST_SEED");
    run_seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("NESTGUARD_TEST_SEED=%" PRIu64 "\n", run_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_copies_of_one_key_fits),
        cmocka_unit_test(test_copies_of_many_keys_do_not_fill_the_stash),
        cmocka_unit_test(test_a_table_made_for_pairs_of_copies_holds_them),
        cmocka_unit_test(test_a_full_filter_takes_copies_of_what_it_has),
        cmocka_unit_test(test_what_only_looks_the_same_is_counted_as_well),
        cmocka_unit_test(test_copies_take_no_more_memory_than_allowed),
        cmocka_unit_test(test_copies_go_in_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
