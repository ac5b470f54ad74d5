/* Published bitmaps: their places against Guava 31.1 itself, sizes against its formulas, the
 * classic hashes against the table on their author's page. */
#include "filters/bitmap/bitmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What BloomFilter.put() sets in a filter of 95 longs with 8 functions over
 * Funnels.stringFunnel(UTF_8), in order of size. */
struct answer {
    const char *item;
    uint64_t places[2][8]; /* by format */
};

static const struct answer answers[] = {
    {"", {{0}, {0}}},
    {"1",
     {{187, 1074, 1832, 2673, 2719, 3606, 4493, 5380},
      {148, 1517, 2085, 2904, 3472, 4841, 5409, 5660}}},
    {"42",
     {{399, 859, 2034, 2494, 3669, 4129, 4844, 5304},
      {180, 579, 2767, 3527, 3953, 4314, 4713, 5074}}},
    {"item:42",
     {{213, 1651, 1796, 2574, 2719, 2864, 5225, 5370},
      {316, 786, 1313, 2473, 2552, 3000, 4709, 5236}}},
    {"Gr\303\274\303\237e, \344\270\226\347\225\214",
     {{880, 1094, 1197, 2402, 2505, 4027, 5335, 5652},
      {630, 798, 2276, 2444, 3754, 3922, 5232, 5400}}},
    {"0123456789abcdef",
     {{385, 835, 1629, 1871, 2907, 3943, 4393, 5429},
      {476, 783, 1160, 1467, 1607, 3104, 3788, 4235}}},
    {"0123456789abcdef0",
     {{93, 575, 1959, 2441, 3825, 4307, 4789, 5691},
      {472, 1873, 2329, 3274, 3730, 4675, 5151, 6076}}},
};

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void the_places_are_those_of_guava(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        for (unsigned format = BITMAP_GUAVA_64; format <= BITMAP_GUAVA_32; format++) {
            struct bitmap_shape shape = {(enum bitmap_format)format, 6080, 8};
            uint64_t places[BITMAP_FUNCTIONS_MAX];
            bitmap_places(&shape, answers[i].item, strlen(answers[i].item), places);
            qsort(places, 8, sizeof *places, by_size);
            for (size_t k = 0; k < 8; k++)
                assert_int_equal(places[k], answers[i].places[format][k]);
        }
}

static void the_classic_hashes_are_those_of_their_author(void **state)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyz1234567890";
    struct bitmap_shape shape = {BITMAP_CLASSIC, UINT64_C(1) << 32, 3};
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    (void)state;
    bitmap_places(&shape, text, strlen(text), places);
    assert_int_equal(places[0], 3153586616);
    assert_int_equal(places[1], 3449571336);
    assert_int_equal(places[2], 1651003062);
}

static void sizes_are_those_of_the_formulas(void **state)
{
    (void)state;
    assert_int_equal(bitmap_optimal_bits(500, 0.003), 6045);
    assert_int_equal(bitmap_optimal_functions(500, 6045), 8);
    assert_int_equal(bitmap_optimal_functions(1000000, 1), 1);
    struct bitmap_shape shape = bitmap_shape_for(BITMAP_GUAVA_64, 500, 0.003);
    assert_int_equal(shape.bits, 95 * 64); /* as Guava's own filter for them has */
    assert_int_equal(shape.functions, 8);
    for (unsigned format = 0; format < BITMAP_FORMATS; format++) {
        assert_int_equal(bitmap_shape_for((enum bitmap_format)format, 0, 0.03).bits, 64);
        for (double rate = 0.03; rate > 1e-7; rate /= 10) {
            shape = bitmap_shape_for((enum bitmap_format)format, 1000000, rate);
            assert_true(bitmap_shape_rate(&shape, 1000000) < rate * 1.02);
            assert_true(shape.functions <= BITMAP_FUNCTIONS_MAX);
            assert_int_equal(shape.bits % 64, 0);
        }
    }
}

static struct bitmap *filled(enum bitmap_format format, unsigned from, unsigned to)
{
    struct bitmap_shape shape = bitmap_shape_for(format, to - from, 0.01);
    struct bitmap *bitmap = bitmap_create(&shape);
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    char item[16];
    for (unsigned i = from; i < to; i++)
        bitmap_add(bitmap, item, (size_t)snprintf(item, sizeof item, "%u", i), places);
    return bitmap;
}

static unsigned found(const struct bitmap *bitmap, unsigned from, unsigned to)
{
    unsigned count = 0;
    char item[16];
    for (unsigned i = from; i < to; i++)
        count += bitmap_contains(bitmap, item, (size_t)snprintf(item, sizeof item, "%u", i));
    return count;
}

/* Of the classic hashes nothing is promised: those of short numbers are no more than arithmetic. */
static void every_item_is_found_and_hardly_another(void **state)
{
    (void)state;
    for (unsigned format = 0; format < BITMAP_FORMATS; format++) {
        struct bitmap *bitmap = filled((enum bitmap_format)format, 0, 20000);
        assert_int_equal(found(bitmap, 0, 20000), 20000);
        unsigned wrong = found(bitmap, 1000000, 1100000);
        print_message("%s: %.3f %% false positives\n",
                      bitmap_format_name((enum bitmap_format)format), wrong / 1000.0);
        assert_true(format == BITMAP_CLASSIC || wrong < 1200);
        bitmap_destroy(bitmap);
    }
}

static void bits_stand_where_redis_has_them(void **state)
{
    struct bitmap_shape shape = {BITMAP_GUAVA_64, 6080, 8};
    struct bitmap *bitmap = bitmap_create(&shape);
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    size_t length;
    (void)state;
    const unsigned char *bytes = bitmap_bytes(bitmap, &length);
    assert_int_equal(length, 6080 / 8 + 1);
    assert_int_equal(bytes[760], 0x80); /* bit m */
    assert_true(bitmap_add(bitmap, "42", 2, places));
    assert_false(bitmap_add(bitmap, "42", 2, places));
    for (size_t k = 0; k < 8; k++)
        assert_true(bytes[places[k] / 8] & 0x80 >> places[k] % 8);
    assert_int_equal(bitmap_set_bits(bitmap), 8);
    assert_false(bitmap_is_half_full(bitmap));
    bitmap_destroy(bitmap);
}

/* It is made for so many items that at the end half of its bits are set. */
static void it_is_half_full_with_the_items_that_it_is_made_for(void **state)
{
    struct bitmap *bitmap = filled(BITMAP_GUAVA_64, 0, 19000);
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    char item[16];
    (void)state;
    double share = (double)bitmap_set_bits(bitmap) / (double)bitmap_shape(bitmap)->bits;
    assert_true(share > 0.48 && share < 0.52);
    for (unsigned i = 19000; i < 21000; i++)
        bitmap_add(bitmap, item, (size_t)snprintf(item, sizeof item, "%u", i), places);
    assert_true(bitmap_is_half_full(bitmap));
    bitmap_destroy(bitmap);
}

static void none_is_made_that_redis_has_no_place_for(void **state)
{
    struct bitmap_shape shape = bitmap_shape_for(BITMAP_GUAVA_64, 1000000000, 0.0001);
    (void)state;
    assert_true(shape.bits > BITMAP_BITS_MAX);
    assert_null(bitmap_create(&shape));
    bitmap_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_places_are_those_of_guava),
        cmocka_unit_test(the_classic_hashes_are_those_of_their_author),
        cmocka_unit_test(sizes_are_those_of_the_formulas),
        cmocka_unit_test(every_item_is_found_and_hardly_another),
        cmocka_unit_test(bits_stand_where_redis_has_them),
        cmocka_unit_test(it_is_half_full_with_the_items_that_it_is_made_for),
        cmocka_unit_test(none_is_made_that_redis_has_no_place_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
