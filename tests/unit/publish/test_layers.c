#include "publish/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct layers layers_for(uint64_t items)
{
    struct bitmap_shape shape = bitmap_shape_for(BITMAP_GUAVA_64, items, 0.001);
    struct layers layers;
    layers_begin(&layers, bitmap_create(&shape));
    return layers;
}

static bool add(struct layers *layers, unsigned number)
{
    char text[16];
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    struct span item = {text, (size_t)snprintf(text, sizeof text, "%u", number)};
    return layers_add(layers, item, places);
}

static void what_an_older_layer_has_is_not_added_again(void **state)
{
    struct layers layers = layers_for(100);
    (void)state;
    assert_true(add(&layers, 1));
    assert_false(add(&layers, 1));
    assert_true(layers_grow(&layers));
    assert_false(add(&layers, 1));
    assert_int_equal(bitmap_set_bits(layers.at[1]), 0);
    assert_true(add(&layers, 2));
    assert_int_equal(layers_set_bits(&layers),
                     bitmap_set_bits(layers.at[0]) + bitmap_set_bits(layers.at[1]));
    layers_finish(&layers);
    assert_int_equal(layers.count, 0);
}

/* Whoever reads all of them is wrong by the sum: 3 times as many as one is made for, in three. */
static void a_layer_is_full_when_its_items_are_in(void **state)
{
    struct layers layers = layers_for(1000);
    unsigned number = 0;
    (void)state;
    for (unsigned i = 1; i < PUBLISH_LAYERS_MAX; i++) {
        while (!layers_are_full(&layers))
            add(&layers, number++);
        assert_in_range(number, i * 950, i * 1060);
        assert_true(layers_grow(&layers));
        assert_false(layers_are_full(&layers));
    }
    assert_false(layers_grow(&layers));
    assert_int_equal(layers.count, PUBLISH_LAYERS_MAX);
    layers_finish(&layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_older_layer_has_is_not_added_again),
        cmocka_unit_test(a_layer_is_full_when_its_items_are_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
