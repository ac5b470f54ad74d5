/* What the cuckoo filter does beyond test_filter.c. */
#include "fakes/filter_bench.h"

#include "filters/cuckoo/cuckoo_table.h"

#include <errno.h>

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

/* Indices of 32 bits end at 4 thousand million slots. No such table is made here: only where its
 * entries would lie. */
static void test_buckets_beyond_32_bits_are_reached_and_found_again(void **state)
{
    (void)state;
    enum { HASHES = 100000, PARTS = 8 };
    const uint64_t sizes[] = {1,
                              2,
                              3,
                              1000003,
                              UINT32_MAX,
                              (UINT64_C(1) << 32) + 1,
                              UINT64_C(5) << 33,
                              (UINT64_C(1) << 40) - 7};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const struct bucket_table table = {.width = BUCKET_4X17, .buckets = sizes[s]};
        size_t hits[2][PARTS] = {0};
        for (uint64_t i = 0; i < HASHES; i++) {
            struct spot spot = cuckoo_spot(&bucket_layouts[BUCKET_4X17], &table, hash_of(i));
            for (unsigned side = 0; side < 2; side++) {
                uint64_t bucket = spot.pair[side];
                assert_true(bucket < sizes[s]);
                hits[side][(size_t)((double)bucket / (double)sizes[s] * PARTS)]++;
                assert_true(spot.pair[1 - side] ==
                            cuckoo_other(bucket, spot.fingerprint, sizes[s]));
            }
        }
        for (unsigned i = 0; i < 2 * PARTS && sizes[s] > PARTS; i++)
            assert_in_range(hits[i / PARTS][i % PARTS], HASHES / PARTS * 9 / 10,
                            HASHES / PARTS * 11 / 10);
    }
}

static void test_a_capacity_of_thousands_of_millions_has_slots_for_all(void **state)
{
    (void)state;
    const char *error;
    struct filter_options options = {
        .kind = FILTER_CUCKOO, .capacity = (size_t)1 << 31, .false_positive_rate = 1e-4};
    struct filter *filter = NULL; /* of 4 GiB; what is not touched takes no memory */
    if (filter_create(&filter, &options, &error) == -ENOMEM)
        skip(); /* a machine that grants no more memory than it has */
    assert_true(filter_stats(filter).slots > options.capacity);
    assert_true(filter_stats(filter).bytes / 2 > options.capacity);
    uint64_t last = UINT64_MAX, first = 0;
    assert_int_equal(filter_insert(filter, first), 0);
    assert_int_equal(filter_insert(filter, last), 0);
    assert_true(filter_contains(filter, first) && filter_contains(filter, last));
    assert_int_equal(filter_remove(filter, last), 0);
    assert_true(filter_contains(filter, first) && !filter_contains(filter, last));
    filter_destroy(filter);
}

/* Hashes of one family have the same two buckets and fingerprint. */
static uint64_t lookalike(uint64_t family, uint64_t number)
{
    return hash_of(family) ^ number << 34;
}

/* Who can make rows by the thousand whose keys look alike, as if he knew the seed, gets what fits
 * and then a refusal that does not take long; nothing that others put in is lost by it. Without
 * room to count copies elsewhere this fills the stash. */
static void test_hostile_keys_fill_the_stash_and_no_more(void **state)
{
    (void)state;
    enum { CAPACITY = 20000, RESIDENTS = 15000, FAMILIES = 40, TRIES = 4000 };
    const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct filter *filter = make_bounded(CAPACITY, rates[r]);
        insert_range(filter, 0, RESIDENTS);
        size_t in = 0, refused = 0;
        clock_t began = clock();
        for (uint64_t i = 0; i < TRIES; i++) {
            int code = filter_insert(filter, lookalike(STRANGERS + i % FAMILIES, i / FAMILIES));
            assert_true(code == 0 || code == -ENOSPC);
            *(code == 0 ? &in : &refused) += 1;
        }
        double us = (double)(clock() - began) * 1e6 / CLOCKS_PER_SEC / TRIES;
        print_message("rate %g: %zu in, %zu refused, %.1f us each\n", rates[r], in, refused, us);
        assert_int_equal(filter_stats(filter).keys, RESIDENTS + in);
        assert_int_equal(filter_stats(filter).stash_used, filter_stats(filter).stash_size);
        assert_true(refused > 0);
        assert_true(us < 2000);
        assert_range_is_in(filter, 0, RESIDENTS);
        for (uint64_t i = 0; i < RESIDENTS; i++)
            assert_int_equal(filter_remove(filter, hash_of(i)), 0);
        assert_int_equal(filter_stats(filter).keys, in);
        filter_destroy(filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_stashed_moves_to_places_that_become_free),
        cmocka_unit_test(test_buckets_beyond_32_bits_are_reached_and_found_again),
        cmocka_unit_test(test_a_capacity_of_thousands_of_millions_has_slots_for_all),
        cmocka_unit_test(test_hostile_keys_fill_the_stash_and_no_more),
    };
    kind = FILTER_CUCKOO;
    draw_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
