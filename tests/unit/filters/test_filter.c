/* One body of tests that runs over every kind of filter; what only one kind promises is tested in
 * test_cuckoo.c and test_bloom.c. */
#include "fakes/filter_bench.h"

#include <errno.h>
#include <string.h>

/* What a kind promises beyond the interface. */
static const struct {
    double bits_at_1e_4; /* a key, at most */
    bool removes;
} promises[] = {
    [FILTER_CUCKOO] = {17.5, true},          [FILTER_BLOOM] = {19.6, false},
    [FILTER_BLOCKED_BLOOM] = {22.5, false},  [FILTER_COUNTING_BLOOM] = {77.5, true},
    [FILTER_SCALABLE_BLOOM] = {21.5, false},
};

/* For tests that remove. */
static bool cannot_remove(void)
{
    if (!promises[kind].removes)
        print_message("%s cannot remove\n", filter_kind_name(kind));
    return !promises[kind].removes;
}

static int create_code(const struct filter_options *options)
{
    struct filter *filter = NULL;
    const char *error = NULL;
    int code = filter_create(&filter, options, &error);
    assert_true((code == 0) == (filter != NULL));
    assert_true((code == 0) == (error == NULL));
    filter_destroy(filter); /* also when it is NULL */
    return code;
}

static void test_an_empty_filter_contains_nothing(void **state)
{
    (void)state;
    struct filter *filter = make(1000, 1e-4);
    assert_int_equal(count_false_positives(filter, 100000), 0);
    assert_false(filter_contains(filter, 0));
    assert_false(filter_contains(filter, UINT64_MAX));
    assert_int_equal(filter_remove(filter, hash_of(1)),
                     promises[kind].removes ? -ENOENT : -ENOTSUP);
    assert_int_equal(filter_stats(filter).keys, 0);
    filter_destroy(filter);
}

static void test_options_out_of_range_are_refused(void **state)
{
    (void)state;
    const double bad[] = {0, -1, 0.99e-7, 0.0301, 1, INFINITY, (double)NAN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct filter_options options = {.kind = kind, .false_positive_rate = bad[i]};
        assert_int_equal(create_code(&options), -EINVAL);
    }
    struct filter_options no_kind = {.kind = (enum filter_kind)99, .false_positive_rate = 1e-4};
    assert_int_equal(create_code(&no_kind), -EINVAL);
    struct filter_options huge = {.kind = kind, .capacity = SIZE_MAX, .false_positive_rate = 1e-4};
    assert_int_equal(create_code(&huge), -EINVAL);
}

static void test_max_bytes_is_an_exact_bound(void **state)
{
    (void)state;
    struct filter_options options = {.kind = kind, .capacity = 100000, .false_positive_rate = 1e-4};
    struct filter *filter = make(options.capacity, options.false_positive_rate);
    size_t bytes = filter_stats(filter).bytes;
    filter_destroy(filter);
    options.max_bytes = bytes;
    assert_int_equal(create_code(&options), 0);
    options.max_bytes = bytes - 1;
    assert_int_equal(create_code(&options), -E2BIG);
    options.max_bytes = 1;
    assert_int_equal(create_code(&options), -E2BIG);
}

static void test_memory_that_is_not_there_is_reported(void **state)
{
    (void)state;
    /* Some 500 TiB: more than the address space of a process. */
    struct filter_options options = {
        .kind = kind, .capacity = (size_t)1 << 48, .false_positive_rate = 1e-4};
    assert_int_equal(create_code(&options), -ENOMEM);
}

static void test_any_capacity_holds_what_it_was_made_for(void **state)
{
    (void)state;
    const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        for (size_t capacity = 0; capacity < 2000; capacity += 1 + capacity / 3) {
            struct filter *filter = make(capacity, rates[r]);
            insert_range(filter, 0, capacity);
            assert_range_is_in(filter, 0, capacity);
            assert_int_equal(filter_stats(filter).keys, capacity);
            assert_int_equal(filter_stats(filter).capacity, capacity);
            filter_destroy(filter);
        }
    }
}

static void test_at_1e_4_a_key_takes_as_many_bits_as_promised(void **state)
{
    (void)state;
    const size_t capacities[] = {131071, 300000};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        struct filter *filter = make(capacities[i], 1e-4);
        insert_range(filter, 0, capacities[i]);
        assert_range_is_in(filter, 0, capacities[i]);
        struct filter_stats stats = filter_stats(filter);
        double bits = 8.0 * (double)stats.bytes / (double)stats.keys;
        print_message("%zu keys: %.2f bits each, %zu in the stash\n", stats.keys, bits,
                      stats.stash_used);
        assert_true(bits <= promises[kind].bits_at_1e_4);
        filter_destroy(filter);
    }
}

/* `spread`: the standard deviation of the rate among blocked arrays of so many keys, as a share of
 * it. The others' is a fifth of that, or less, but not below a hundredth. */
static void assert_rate_holds(size_t capacity, double rate, double spread)
{
    double differs = SPREADS * (kind == FILTER_BLOCKED_BLOOM ? spread : 0.013);
    const size_t probes = 200000;
    struct filter *filter = make(capacity, rate);
    insert_range(filter, 0, capacity);
    struct filter_stats stats = filter_stats(filter);
    size_t hits = count_false_positives(filter, probes);
    double expected = stats.expected_false_positive_rate * (double)probes;
    print_message("rate %g, %zu keys: %zu of %zu strangers, %.1f expected\n", rate, capacity, hits,
                  probes, expected);
    assert_true((double)hits <= most_hits(rate * (1 + differs), probes));
    assert_true(stats.expected_false_positive_rate <= rate);
    assert_true((double)hits <= most_hits(expected * (1 + differs) / (double)probes, probes));
    if (differs < 1)
        assert_true((double)hits >= least_hits(expected * (1 - differs) / (double)probes, probes));
    filter_destroy(filter);
}

static void test_false_positives_stay_within_the_rate(void **state)
{
    (void)state;
    assert_rate_holds(30011, 0.03, 0.021);
    assert_rate_holds(40961, 0.01, 0.022);
    assert_rate_holds(49999, 1e-3, 0.032);
    assert_rate_holds(65535, 1e-4, 0.043);
    assert_rate_holds(30011, 1e-5, 0.096);
    assert_rate_holds(30011, 1e-7, 0.257);
}

static void test_the_same_hash_goes_in_many_times_and_out_as_often(void **state)
{
    (void)state;
    if (cannot_remove())
        return;
    struct filter *filter = make(5000, 1e-4);
    insert_range(filter, 0, 1000);
    const uint64_t many = hash_of(STRANGERS);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(filter_insert(filter, many), 0);
    assert_int_equal(filter_stats(filter).keys, 1020);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(filter_contains(filter, many));
        assert_int_equal(filter_remove(filter, many), 0);
    }
    assert_false(filter_contains(filter, many));
    assert_int_equal(filter_remove(filter, many), -ENOENT);
    assert_range_is_in(filter, 0, 1000);
    assert_int_equal(filter_stats(filter).keys, 1000);
    assert_int_equal(filter_stats(filter).stash_used, 0);
    filter_destroy(filter);
}

static void test_a_batch_answers_as_single_lookups_do(void **state)
{
    (void)state;
    enum { KEYS = 3001 };
    static uint64_t hashes[KEYS];
    static bool found[KEYS + 1];
    struct filter *filter = make(KEYS, 0.03); /* many false positives to agree on */
    for (size_t i = 0; i < KEYS; i++)
        hashes[i] = hash_of(i);
    for (size_t i = 0; i < KEYS; i += 3) /* a pattern that no power of two repeats */
        assert_int_equal(filter_insert(filter, hashes[i]), 0);
    const size_t counts[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, KEYS};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        size_t first = KEYS - counts[c];
        memset(found, 0, sizeof found);
        found[counts[c]] = true; /* must not be touched */
        filter_contains_batch(filter, hashes + first, counts[c], found);
        for (size_t i = 0; i < counts[c]; i++)
            assert_int_equal(found[i], filter_contains(filter, hashes[first + i]));
        assert_true(found[counts[c]]);
    }
    filter_prefetch(filter, hashes[0]);
    filter_destroy(filter);
}

/* As of the second step: what came in after the first is found. */
static void test_a_lookup_in_two_steps_equals_one(void **state)
{
    (void)state;
    enum { KEYS = 300 };
    struct filter *filter = make(KEYS, 0.03);
    struct filter_ask asks[2 * KEYS];
    for (size_t i = 0; i < KEYS; i += 2)
        assert_int_equal(filter_insert(filter, hash_of(i)), 0);
    for (size_t i = 0; i < 2 * KEYS; i++)
        filter_ask_begin(filter, hash_of(i), &asks[i]);
    for (size_t i = 1; i < KEYS; i += 2)
        assert_int_equal(filter_insert(filter, hash_of(i)), 0);
    for (size_t i = 0; i < 2 * KEYS; i++)
        assert_int_equal(filter_ask_end(filter, &asks[i]), filter_contains(filter, hash_of(i)));
    for (size_t i = 0; i < KEYS; i++)
        assert_true(filter_ask_end(filter, &asks[i]));
    filter_destroy(filter);
}

static void assert_same_stats(struct filter_stats a, struct filter_stats b)
{
    assert_int_equal(a.keys, b.keys);
    assert_int_equal(a.bytes, b.bytes);
    assert_int_equal(a.slots, b.slots);
    assert_int_equal(a.stash_used, b.stash_used);
}

/* Whatever is tried on a full filter, what is in stays in. */
static void assert_more_changes_nothing(struct filter *filter, uint64_t end)
{
    struct filter_stats full = filter_stats(filter);
    for (uint64_t i = end; i < end + 50; i++) {
        if (filter_insert(filter, hash_of(i)) == 0)
            assert_int_equal(filter_remove(filter, hash_of(i)), 0);
        else
            assert_same_stats(filter_stats(filter), full);
        full = filter_stats(filter);
        assert_int_equal(full.keys, end);
    }
    assert_range_is_in(filter, 0, end);
}

static void assert_can_be_emptied(struct filter *filter, uint64_t end)
{
    for (uint64_t i = 0; i < end; i++) {
        assert_true(filter_contains(filter, hash_of(i)));
        assert_int_equal(filter_remove(filter, hash_of(i)), 0);
    }
    assert_int_equal(filter_stats(filter).keys, 0);
    assert_int_equal(filter_stats(filter).stash_used, 0);
    assert_int_equal(count_false_positives(filter, 50000), 0);
}

static void assert_full_filter_keeps_all(size_t capacity, double rate)
{
    struct filter *filter = make_bounded(capacity, rate);
    uint64_t end = fill_up(filter, 0);
    struct filter_stats full = filter_stats(filter);
    print_message("made for %zu at %g: full with %" PRIu64 ", fill %.3f\n", capacity, rate, end,
                  (double)end / (double)full.slots);
    assert_true(end >= capacity);
    assert_int_equal(full.keys, end);
    assert_range_is_in(filter, 0, end);
    assert_more_changes_nothing(filter, end);
    if (promises[kind].removes) {
        assert_can_be_emptied(filter, end);
        insert_range(filter, 0, capacity);
    }
    filter_destroy(filter);
}

static void test_a_full_filter_loses_nothing_and_can_be_emptied(void **state)
{
    (void)state;
    assert_full_filter_keeps_all(0, 1e-4);
    assert_full_filter_keeps_all(1, 0.03);
    assert_full_filter_keeps_all(777, 0.03);
    assert_full_filter_keeps_all(777, 5e-3);
    assert_full_filter_keeps_all(777, 1e-3);
    assert_full_filter_keeps_all(777, 1e-5);
    assert_full_filter_keeps_all(7001, 1e-4);
    assert_full_filter_keeps_all(2001, 1e-7);
}

static void test_in_a_full_filter_a_key_can_make_way_for_itself(void **state)
{
    (void)state;
    if (cannot_remove())
        return;
    struct filter *filter = make(2000, 1e-4);
    uint64_t end = fill_up(filter, 0);
    for (uint64_t i = 0; i < end; i++) {
        assert_int_equal(filter_remove(filter, hash_of(i)), 0);
        assert_int_equal(filter_insert(filter, hash_of(i)), 0);
    }
    assert_range_is_in(filter, 0, end);
    filter_destroy(filter);
}

/* The model of the churn tests: an exact multiset of hashes, named by their numbers. */
struct model {
    struct filter *filter;
    uint64_t *hashes;
    size_t size;
    size_t *live; /* the number of each entry that is in, a copy each */
    size_t keys;
};

static struct model make_model(size_t capacity, double rate, size_t size)
{
    struct model model = {.filter = make(capacity, rate), .size = size};
    model.hashes = calloc(size, sizeof *model.hashes);
    model.live = calloc(2 * capacity + 1000, sizeof *model.live);
    for (size_t i = 0; i < size; i++)
        model.hashes[i] = hash_of(i);
    return model;
}

static void free_model(struct model *model)
{
    free(model->hashes);
    free(model->live);
    filter_destroy(model->filter);
}

static void assert_model_holds(const struct model *model)
{
    assert_int_equal(filter_stats(model->filter).keys, model->keys);
    for (size_t k = 0; k < model->keys; k++)
        if (!filter_contains(model->filter, model->hashes[model->live[k]]))
            fail_msg("hash %zu is lost (seed %" PRIu64 ")", model->live[k], run_seed);
}

static void model_insert(struct model *model, size_t i)
{
    int code = filter_insert(model->filter, model->hashes[i]);
    assert_true(code == 0 || code == -ENOSPC);
    if (code == 0)
        model->live[model->keys++] = i;
}

static void model_remove(struct model *model, size_t k)
{
    uint64_t hash = model->hashes[model->live[k]];
    assert_true(filter_contains(model->filter, hash));
    assert_int_equal(filter_remove(model->filter, hash), 0);
    model->live[k] = model->live[--model->keys];
}

/* Comes and goes at random just below `level` entries. */
static void churn(struct model *model, size_t level, size_t operations, size_t check_every)
{
    for (size_t done = 0; done < operations; done++) {
        bool room = model->keys < level;
        bool low = model->keys < level - level / 200;
        if (low || (room && random_below(2)))
            model_insert(model, random_below(model->size));
        else
            model_remove(model, random_below(model->keys));
        if (done % check_every == 0)
            assert_model_holds(model);
    }
    assert_model_holds(model);
}

static void empty_model(struct model *model)
{
    while (model->keys > 0)
        model_remove(model, random_below(model->keys));
    assert_int_equal(filter_stats(model->filter).keys, 0);
    assert_int_equal(filter_stats(model->filter).stash_used, 0);
    assert_int_equal(count_false_positives(model->filter, 10000), 0);
}

static void assert_churn_is_exact(size_t capacity, double rate, size_t operations)
{
    struct model model = make_model(capacity, rate, 20 * capacity);
    churn(&model, capacity, operations, operations / 10);
    struct filter_stats stats = filter_stats(model.filter);
    print_message("%zu operations at rate %g: fill %.3f, stash %zu\n", operations, rate,
                  (double)stats.keys / (double)stats.slots, stats.stash_used);
    empty_model(&model);
    free_model(&model);
}

static void test_many_changes_at_capacity_agree_with_a_model(void **state)
{
    (void)state;
    if (cannot_remove())
        return;
    assert_churn_is_exact(20011, 1e-4, 200000);
    assert_churn_is_exact(9001, 0.03, 100000);
    assert_churn_is_exact(9001, 5e-3, 100000);
    assert_churn_is_exact(9001, 1e-3, 100000);
    assert_churn_is_exact(9001, 1e-5, 100000);
    assert_churn_is_exact(9001, 1e-7, 100000);
}

/* Hashes that differ in a middle bit alone are likely to look the same to a table of short
 * fingerprints, and different to whatever stores whole hashes. */
static void test_lookalikes_beyond_what_buckets_hold_agree_with_a_model(void **state)
{
    (void)state;
    if (cannot_remove())
        return;
    enum { FAMILIES = 60, TWINS = 4 };
    const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct model model = make_model(100, rates[r], FAMILIES * TWINS);
        for (uint64_t i = 0; i < FAMILIES * TWINS; i++)
            model.hashes[i] = hash_of(i / TWINS) ^ (i % TWINS) << 40;
        size_t slots = filter_stats(model.filter).slots;
        for (unsigned round = 0; round < 2; round++) {
            churn(&model, slots + slots / 5, 2500, 20);
            churn(&model, 60, 1000, 20);
        }
        empty_model(&model);
        free_model(&model);
    }
}

static void test_extreme_hashes_are_as_good_as_any(void **state)
{
    (void)state;
    const uint64_t extremes[] = {
        0,          1,       UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_MAX << 32,
        UINT32_MAX, 0x1ffff, 0x1ff};
    const size_t count = sizeof extremes / sizeof extremes[0];
    for (size_t capacity = 0; capacity < 40; capacity++) {
        struct filter *filter = make(capacity, 1e-4);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(filter_insert(filter, extremes[i]), 0);
        for (size_t i = 0; i < count; i++) {
            assert_true(filter_contains(filter, extremes[i]));
            assert_int_equal(filter_remove(filter, extremes[i]),
                             promises[kind].removes ? 0 : -ENOTSUP);
        }
        assert_int_equal(filter_stats(filter).keys, promises[kind].removes ? 0 : count);
        filter_destroy(filter);
    }
}

static void test_what_cannot_be_removed_is_refused_and_stays(void **state)
{
    (void)state;
    assert_int_equal(filter_can_remove(kind), promises[kind].removes);
    if (promises[kind].removes)
        return;
    struct filter *filter = make(100, 1e-4);
    insert_range(filter, 0, 100);
    assert_int_equal(filter_remove(filter, hash_of(5)), -ENOTSUP);
    assert_int_equal(filter_stats(filter).keys, 100);
    assert_range_is_in(filter, 0, 100);
    filter_destroy(filter);
}

static void test_it_says_what_it_is(void **state)
{
    (void)state;
    char text[100], cut[5];
    struct filter *filter = make(1000, 1e-4);
    assert_int_equal(filter_kind_of(filter), kind);
    filter_describe(filter, text, sizeof text);
    print_message("%s\n", text);
    assert_true(strlen(text) > 10 && strlen(text) < sizeof text - 1);
    filter_describe(filter, cut, sizeof cut);
    assert_int_equal(strlen(cut), sizeof cut - 1);
    filter_destroy(filter);
}

static void test_every_kind_has_a_name_and_no_other(void **state)
{
    (void)state;
    assert_int_equal(sizeof promises / sizeof promises[0], FILTER_SCALABLE_BLOOM + 1);
    assert_null(filter_kind_name(FILTER_SCALABLE_BLOOM + 1));
    assert_null(filter_kind_name((enum filter_kind)99));
    assert_false(filter_can_remove((enum filter_kind)99));
    for (enum filter_kind k = 0; k < kind; k++)
        assert_string_not_equal(filter_kind_name(k), filter_kind_name(kind));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_an_empty_filter_contains_nothing),
    cmocka_unit_test(test_options_out_of_range_are_refused),
    cmocka_unit_test(test_max_bytes_is_an_exact_bound),
    cmocka_unit_test(test_memory_that_is_not_there_is_reported),
    cmocka_unit_test(test_any_capacity_holds_what_it_was_made_for),
    cmocka_unit_test(test_at_1e_4_a_key_takes_as_many_bits_as_promised),
    cmocka_unit_test(test_false_positives_stay_within_the_rate),
    cmocka_unit_test(test_the_same_hash_goes_in_many_times_and_out_as_often),
    cmocka_unit_test(test_a_batch_answers_as_single_lookups_do),
    cmocka_unit_test(test_a_lookup_in_two_steps_equals_one),
    cmocka_unit_test(test_a_full_filter_loses_nothing_and_can_be_emptied),
    cmocka_unit_test(test_in_a_full_filter_a_key_can_make_way_for_itself),
    cmocka_unit_test(test_many_changes_at_capacity_agree_with_a_model),
    cmocka_unit_test(test_lookalikes_beyond_what_buckets_hold_agree_with_a_model),
    cmocka_unit_test(test_extreme_hashes_are_as_good_as_any),
    cmocka_unit_test(test_what_cannot_be_removed_is_refused_and_stays),
    cmocka_unit_test(test_it_says_what_it_is),
    cmocka_unit_test(test_every_kind_has_a_name_and_no_other),
};

int main(void)
{
    int failures = 0;
    draw_seed();
    for (kind = 0; filter_kind_name(kind); kind++)
        failures += cmocka_run_group_tests_name(filter_kind_name(kind), tests, NULL, NULL);
    return failures;
}
