/* What the Bloom filters do beyond test_filter.c. */
#include "fakes/filter_bench.h"

#include "filters/bloom/bloom.h"

#include <errno.h>
#include <stdio.h>
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

/* A filter of so many bits a key and so many hashes lets as many pass as it is expected to. */
static void measure(unsigned bits, unsigned hashes, double *expected)
{
    enum { KEYS = 5000, PROBES = 60000 };
    struct filter *filter;
    const char *error;
    assert_int_equal(bloom_create_as(&filter, KEYS, (uint64_t)bits * KEYS, hashes, &error), 0);
    insert_range(filter, 0, KEYS);
    assert_range_is_in(filter, 0, KEYS);
    assert_int_equal(filter_insert(filter, hash_of(KEYS)), -ENOSPC);
    *expected = filter_stats(filter).expected_false_positive_rate;
    double hits = (double)count_false_positives(filter, PROBES);
    double spread = SPREADS * bloom_spread((double)bits * KEYS, KEYS, hashes);
    assert_true(hits <= most_hits(*expected * (1 + spread), PROBES));
    assert_true(hits >= least_hits(*expected * (1 - spread), PROBES));
    filter_destroy(filter);
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
        measure(table[i].bits, table[i].hashes, &expected);
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

static double share_of_set_bits(const uint64_t *words, size_t count)
{
    size_t set = 0;
    for (size_t i = 0; i < count; i++)
        set += (size_t)__builtin_popcountll(words[i]);
    return (double)set / (double)(count * 64);
}

/* The chance of a stranger whose positions are independent, in this very array of one block, or of
 * as many as it has: the mean over blocks of the share of set bits to the power of the hashes. */
static double rate_of_array(struct filter *filter, size_t words_of_block)
{
    struct filter_part parts[FILTER_PARTS_MAX];
    char text[100];
    unsigned hashes;
    assert_int_equal(filter->ops->parts(filter, parts), 2);
    filter_describe(filter, text, sizeof text);
    assert_int_equal(sscanf(text, "%u hashes", &hashes), 1);
    const uint64_t *words = parts[1].at;
    size_t count = parts[1].length / sizeof *words;
    size_t step = words_of_block ? words_of_block : count;
    double sum = 0;
    for (size_t at = 0; at < count; at += step)
        sum += pow(share_of_set_bits(words + at, step), hashes);
    return sum / (double)(count / step);
}

/* Two positions of one key are not the same more often than chance has it: the rates of very small
 * arrays show it first. What such an array's own rate is differs much from one to the next, of
 * blocks by as much as it is; so it is taken from the bits. */
static void test_small_filters_keep_small_rates(void **state)
{
    (void)state;
    enum { KEYS = 300, PROBES = 2000000, HASHES = 23 };
    const double wanted = 1e-7;
    static const size_t words_of_block[] = {[FILTER_BLOOM] = 0, [FILTER_BLOCKED_BLOOM] = 8};
    for (kind = FILTER_BLOOM; kind <= FILTER_BLOCKED_BLOOM; kind++) {
        struct filter *filter = make(KEYS, wanted);
        insert_range(filter, 0, KEYS);
        double rate = rate_of_array(filter, words_of_block[kind]);
        assert_true((double)count_false_positives(filter, PROBES) <= most_hits(rate, PROBES));
        filter_destroy(filter);
    }
    for (kind = FILTER_COUNTING_BLOOM; kind <= FILTER_SCALABLE_BLOOM; kind++) {
        struct filter *filter = make(KEYS, wanted);
        insert_range(filter, 0, KEYS);
        double rate = wanted * (1 + SPREADS * bloom_spread(HASHES * KEYS / log(2), KEYS, HASHES));
        assert_true((double)count_false_positives(filter, PROBES) <= most_hits(rate, PROBES));
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
    /* Others have room, but for the hundredth that shares a counter with it. */
    unsigned taken = 0;
    for (uint64_t i = 501; i < 521; i++)
        taken += filter_insert(filter, hash_of(i)) == 0;
    assert_in_range(taken, 10, 20);
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
        /* The first stage differs most from its mean, and is half of the sum at most. */
        unsigned hashes = (unsigned)ceil(-log2(rates[i])) + 1;
        double spread = SPREADS * bloom_spread(hashes * 100 / log(2), 100, hashes);
        double hits = (double)count_false_positives(filter, 50000);
        assert_true(hits <= most_hits(rates[i] * (1 + spread / 2), 50000));
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
