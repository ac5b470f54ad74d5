/* Space-Saving's promises, on random streams whose true counts are known, and on parts of them that
 * are merged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "traffic/heavy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 16, ITEMS = 400, PARTS = 5, STREAMS = 300 };

struct item {
    uint32_t number;
    char rest[12];
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static struct item item_of(size_t number)
{
    struct item item = {.number = (uint32_t)number};
    snprintf(item.rest, sizeof item.rest, "i%zu", number % 7);
    return item;
}

/* Some are asked for much more often than others, as in an attack. */
static size_t draw_item(unsigned skew)
{
    size_t item = draw(ITEMS);
    for (unsigned i = 0; i < skew; i++)
        item = draw(item + 1);
    return item;
}

static void must_hold(const struct heavy *heavy, const uint64_t *true_counts, uint64_t total)
{
    struct heavy_entry top[PLACES];
    bool placed[ITEMS] = {false};
    size_t count = heavy_top(heavy, top, PLACES);
    assert_int_equal(heavy_total(heavy), total);
    for (size_t i = 0; i < count; i++) {
        const struct item *item = top[i].item;
        uint64_t truth = true_counts[item->number];
        assert_true(!placed[item->number]);
        assert_true(i == 0 || top[i - 1].count >= top[i].count);
        assert_true(top[i].count >= truth);
        assert_true(top[i].count - top[i].error <= truth);
        assert_true(top[i].error <= total / PLACES);
        placed[item->number] = true;
    }
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(placed[i] || true_counts[i] <= total / PLACES);
}

/* Each is merged into one before it, at last into the first. */
static void run_stream(size_t parts)
{
    struct heavy *heavy[PARTS];
    uint64_t true_counts[ITEMS] = {0}, total = 0;
    unsigned skew = (unsigned)draw(5);
    size_t length = draw(3000);
    for (size_t i = 0; i < parts; i++)
        heavy[i] = heavy_create(PLACES, sizeof(struct item));
    for (size_t i = 0; i < length; i++) {
        size_t number = draw_item(skew);
        struct item item = item_of(number);
        uint64_t weight = 1 + draw(draw(2) ? 1 : 1000);
        heavy_add(heavy[draw(parts)], &item, weight);
        true_counts[number] += weight;
        total += weight;
    }
    for (size_t i = parts; i-- > 1;) {
        heavy_merge(heavy[draw(i)], heavy[i]);
        heavy_destroy(heavy[i]);
    }
    must_hold(heavy[0], true_counts, total);
    heavy_destroy(heavy[0]);
}

static void counts_are_never_too_low_and_too_high_by_their_error_at_most(void **state)
{
    (void)state;
    for (seed = 1; seed < STREAMS; seed++) {
        uint64_t keep = seed;
        run_stream(1);
        seed = keep;
    }
}

static void what_holds_of_parts_holds_of_their_sum(void **state)
{
    (void)state;
    for (seed = 1; seed < STREAMS; seed++) {
        uint64_t keep = seed;
        run_stream(PARTS);
        seed = keep;
    }
}

/* Of what comes once each none stands out, also where there are fewer than places, or parts of the
 * stream were merged; what comes in between does. */
static void only_what_comes_again_and_again_stands_out(void **state)
{
    struct heavy *heavy = heavy_create(PLACES, sizeof(struct item));
    struct heavy *other = heavy_create(PLACES, sizeof(struct item));
    struct heavy_entry top[PLACES];
    (void)state;
    for (size_t i = 1; i < ITEMS; i++) {
        struct item item = item_of(i);
        heavy_add(i % 2 ? heavy : other, &item, 1000 + i % 10);
        size_t count = heavy_top(heavy, top, PLACES);
        for (size_t j = 0; j < count; j++)
            assert_false(heavy_stands_out(heavy, &top[j]));
    }
    heavy_merge(heavy, other);
    for (size_t i = 0; i < heavy_top(heavy, top, PLACES); i++)
        assert_false(heavy_stands_out(heavy, &top[i]));
    struct item often = item_of(0);
    for (size_t i = 0; i < ITEMS; i++)
        heavy_add(heavy, &often, 1000);
    assert_int_equal(heavy_top(heavy, top, PLACES), PLACES);
    assert_int_equal(((const struct item *)top[0].item)->number, 0);
    assert_true(heavy_stands_out(heavy, &top[0]));
    assert_false(heavy_stands_out(heavy, &top[1]));
    heavy_destroy(heavy);
    heavy_destroy(other);
}

static void few_items_are_counted_exactly(void **state)
{
    struct heavy *heavy = heavy_create(PLACES, sizeof(struct item));
    struct heavy_entry top[PLACES];
    (void)state;
    for (size_t i = 0; i < PLACES; i++) {
        struct item item = item_of(i);
        heavy_add(heavy, &item, 10 + i);
        heavy_add(heavy, &item, 5);
    }
    assert_int_equal(heavy_top(heavy, top, 3), 3);
    assert_int_equal(((const struct item *)top[0].item)->number, PLACES - 1);
    assert_int_equal(top[0].count, 15 + PLACES - 1);
    assert_int_equal(top[0].error, 0);
    heavy_clear(heavy);
    assert_int_equal(heavy_top(heavy, top, PLACES), 0);
    assert_int_equal(heavy_total(heavy), 0);
    heavy_destroy(heavy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_never_too_low_and_too_high_by_their_error_at_most),
        cmocka_unit_test(what_holds_of_parts_holds_of_their_sum),
        cmocka_unit_test(only_what_comes_again_and_again_stands_out),
        cmocka_unit_test(few_items_are_counted_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
