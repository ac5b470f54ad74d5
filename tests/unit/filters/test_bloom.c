/* What the Bloom filters do beyond test_filter.c. */
#include "fakes/filter_bench.h"

#include "filters/bloom/bloom.h"

#include <errno.h>
#include <string.h>

static size_t bits_of(double rate, size_t keys)
{
    struct filter *filter = make(keys, rate);
    size_t bits = 8 * filter_stats(filter).bytes;
    filter_destroy(filter);
    return bits;
}

static void test_a_plain_one_has_the_size_of_the_textbook(void **state)
{
    (void)state;
    char text[100];
    kind = FILTER_BLOOM;
    struct filter *filter = make(1000000, 0.01); /* 7 hashes; 9.593 bits a key */
    filter_describe(filter, text, sizeof text);
    assert_memory_equal(text, "7 hashes to 959", strlen("7 hashes to 959"));
    filter_destroy(filter);
    const double rates[] = {0.03, 0.01, 1e-3, 1e-5, 1e-7};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        double best = -1e6 * log(rates[i]) / (log(2) * log(2));
        assert_true((double)bits_of(rates[i], 1000000) < 1.01 * best + 8 * 8192);
        assert_true((double)bits_of(rates[i], 1000000) > best);
    }
}

/* The rate of a filter of so many bits a key and so many hashes. */
static double measured(unsigned bits, unsigned hashes, double *expected)
{
    enum { KEYS = 5000, PROBES = 60000 };
    struct filter *filter;
    const char *error;
    assert_int_equal(bloom_create_as(&filter, KEYS, (uint64_t)bits * KEYS, hashes, &error), 0);
    insert_range(filter, 0, KEYS);
    assert_range_is_in(filter, 0, KEYS);
    assert_int_equal(filter_insert(filter, hash_of(KEYS)), -ENOSPC);
    *expected = filter_stats(filter).expected_false_positive_rate;
    double rate = (double)count_false_positives(filter, PROBES) / PROBES;
    assert_true(fabs(rate - *expected) <= 5 * sqrt(*expected / PROBES) + 0.05 * *expected + 2e-5);
    filter_destroy(filter);
    return rate;
}

static void test_given_bits_and_hashes_give_the_rates_of_the_textbook(void **state)
{
    (void)state;
    static const struct {
        unsigned bits, hashes;
        double rate;
    } table[] = {{2, 1, 0.393}, {4, 3, 0.147}, {8, 5, 0.0217}, {16, 8, 0.000574}, {5, 64, 1.0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double expected;
        measured(table[i].bits, table[i].hashes, &expected);
        assert_true(fabs(expected / table[i].rate - 1) < 0.02);
    }
}

static void test_bits_and_hashes_out_of_range_are_refused(void **state)
{
    (void)state;
    struct filter *filter;
    const char *error = NULL;
    assert_int_equal(bloom_create_as(&filter, 1, 0, 1, &error), -EINVAL);
    assert_int_equal(bloom_create_as(&filter, 1, 64, 0, &error), -EINVAL);
    assert_int_equal(bloom_create_as(&filter, 1, 64, 65, &error), -EINVAL);
    assert_int_equal(bloom_create_as(&filter, 1, UINT64_MAX, 1, &error), -EINVAL);
    assert_null(filter);
    assert_non_null(error);
}

/* Two positions of one key are not the same more often than chance has it: the rates of very small
 * arrays show it first. */
static void test_small_filters_keep_small_rates(void **state)
{
    (void)state;
    for (kind = FILTER_BLOOM; kind <= FILTER_SCALABLE_BLOOM; kind++) {
        struct filter *filter = make(300, 1e-5);
        insert_range(filter, 0, 300);
        assert_true((double)count_false_positives(filter, 300000) <= most_hits(1e-5, 300000));
        filter_destroy(filter);
    }
}

static void test_counters_that_are_full_send_copies_to_the_stash(void **state)
{
    (void)state;
    kind = FILTER_COUNTING_BLOOM;
    struct filter *filter = make(1000, 1e-4);
    insert_range(filter, 0, 500);
    unsigned copies = 0;
    while (filter_insert(filter, hash_of(STRANGERS)) == 0)
        copies++;
    struct filter_stats full = filter_stats(filter);
    assert_int_equal(full.stash_used, full.stash_size);
    assert_in_range(copies, full.stash_size + 1, full.stash_size + 15);
    assert_int_equal(filter_insert(filter, hash_of(501)), 0); /* others have room */
    for (; copies > 0; copies--) {
        assert_true(filter_contains(filter, hash_of(STRANGERS)));
        assert_int_equal(filter_remove(filter, hash_of(STRANGERS)), 0);
    }
    assert_false(filter_contains(filter, hash_of(STRANGERS)));
    assert_int_equal(filter_stats(filter).stash_used, 0);
    assert_range_is_in(filter, 0, 500);
    filter_destroy(filter);
}

static void test_a_removal_of_what_never_was_in_hides_nothing(void **state)
{
    (void)state;
    kind = FILTER_COUNTING_BLOOM;
    struct filter *filter = make(2000, 1e-4);
    insert_range(filter, 0, 2000);
    for (uint64_t i = 0; i < 20000; i++)
        if (!filter_contains(filter, hash_of(STRANGERS + i)))
            assert_int_equal(filter_remove(filter, hash_of(STRANGERS + i)), -ENOENT);
    assert_range_is_in(filter, 0, 2000);
    filter_destroy(filter);
}

static void test_a_scalable_one_grows_and_keeps_its_rate(void **state)
{
    (void)state;
    const double rates[] = {0.03, 1e-3, 1e-7};
    kind = FILTER_SCALABLE_BLOOM;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct filter *filter = make(100, rates[i]);
        struct filter_stats before = filter_stats(filter), stats;
        insert_range(filter, 0, 20000);
        assert_range_is_in(filter, 0, 20000);
        stats = filter_stats(filter);
        assert_int_equal(stats.keys, 20000);
        assert_int_equal(stats.capacity, 100);
        assert_true(stats.slots >= 20000 && stats.slots < 60000);
        assert_true(stats.bytes > before.bytes);
        assert_true(stats.expected_false_positive_rate <= rates[i]);
        double hits = (double)count_false_positives(filter, 50000);
        assert_true(hits <= most_hits(rates[i], 50000));
        filter_destroy(filter);
    }
}

static void test_a_scalable_one_stops_at_its_bound_of_memory(void **state)
{
    (void)state;
    struct filter_options options = {.kind = FILTER_SCALABLE_BLOOM,
                                     .capacity = 1000,
                                     .false_positive_rate = 1e-3,
                                     .max_bytes = 100000};
    kind = options.kind;
    struct filter *filter = make_of(&options);
    uint64_t end = fill_up(filter, 0);
    assert_true(end > 10000);
    assert_true(filter_stats(filter).bytes <= options.max_bytes);
    assert_int_equal(filter_stats(filter).keys, end);
    assert_range_is_in(filter, 0, end);
    filter_destroy(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_one_has_the_size_of_the_textbook),
        cmocka_unit_test(test_given_bits_and_hashes_give_the_rates_of_the_textbook),
        cmocka_unit_test(test_bits_and_hashes_out_of_range_are_refused),
        cmocka_unit_test(test_small_filters_keep_small_rates),
        cmocka_unit_test(test_counters_that_are_full_send_copies_to_the_stash),
        cmocka_unit_test(test_a_removal_of_what_never_was_in_hides_nothing),
        cmocka_unit_test(test_a_scalable_one_grows_and_keeps_its_rate),
        cmocka_unit_test(test_a_scalable_one_stops_at_its_bound_of_memory),
    };
    draw_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
