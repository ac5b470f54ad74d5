/* Buckets of every layout against a plain list of the fingerprints that are in; and which layout
 * belongs to which rate. */
#include "filters/cuckoo/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUCKETS = 3, CHANGES = 20000 };

/* The middle one of three buckets is worked on; its neighbours must not notice. */
struct model {
    const struct bucket_layout *layout;
    struct bucket_table table;
    _Alignas(8) unsigned char memory[BUCKETS * 16];
    uint32_t in[BUCKET_SLOTS_MAX];
    unsigned count;
    uint64_t drawn;
};

static uint64_t draw(struct model *model)
{
    uint64_t x = ++model->drawn * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

/* Half of them from a few, so that equal nibbles, equal low bits and equal fingerprints meet. */
static uint32_t draw_fingerprint(struct model *model)
{
    uint64_t hash = draw(model);
    if (hash >> 63)
        hash &= UINT64_C(3) << (model->layout->fingerprint_bits - 2) | 3;
    return bucket_fingerprint(model->layout, hash);
}

static unsigned copies(const struct model *model, uint32_t fingerprint)
{
    unsigned found = 0;
    for (unsigned i = 0; i < model->count; i++)
        found += model->in[i] == fingerprint;
    return found;
}

static unsigned copies_in_bucket(const struct model *model, uint32_t fingerprint)
{
    unsigned found = 0;
    for (unsigned i = 0; i < model->layout->words; i++) {
        uint64_t word = bucket_load(model->layout, &model->table, model->layout->words + i);
        found += (unsigned)__builtin_popcountll(bucket_find(model->layout, word, fingerprint));
    }
    return found;
}

static void assert_fields_are_in_order(const struct model *model, uint64_t word)
{
    const struct bucket_layout *layout = model->layout;
    uint32_t before = 0;
    bool taken = false;
    for (unsigned field = 0; field < layout->fingerprints; field++) {
        uint32_t fingerprint = bucket_get(layout, word, field);
        assert_true(fingerprint == 0 || copies(model, fingerprint) > 0);
        assert_true(fingerprint != 0 || !taken); /* empty ones first */
        taken |= fingerprint != 0;
        if (layout->rank_bits)
            assert_true(fingerprint >> layout->low_bits >= before >> layout->low_bits);
        before = fingerprint;
    }
}

static void assert_bucket_is(const struct model *model)
{
    const struct bucket_layout *layout = model->layout;
    size_t bytes = bucket_bytes(layout);
    const unsigned char zeros[16] = {0};
    assert_memory_equal(model->memory, zeros, bytes);
    assert_memory_equal(model->memory + 2 * bytes, zeros, bytes);
    for (unsigned i = 0; i < model->count; i++)
        assert_int_equal(copies_in_bucket(model, model->in[i]), copies(model, model->in[i]));
    for (unsigned i = 0; i < layout->words; i++)
        assert_fields_are_in_order(model, bucket_load(layout, &model->table, layout->words + i));
    bool room = bucket_room(layout, &model->table, 1) != 0;
    assert_int_equal(room, model->count < bucket_slots(layout));
}

static void assert_pair_has(const struct model *model, uint32_t fingerprint)
{
    const uint64_t pairs[][2] = {{1, 1}, {0, 1}, {1, 2}, {0, 2}};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(bucket_pair_has(model->layout, &model->table, pairs[i], fingerprint),
                         i < 3 && copies(model, fingerprint) > 0);
}

static void add(struct model *model)
{
    uint32_t fingerprint = draw_fingerprint(model);
    bool room = model->count < bucket_slots(model->layout);
    assert_int_equal(bucket_add(model->layout, &model->table, 1, fingerprint), room);
    if (room)
        model->in[model->count++] = fingerprint;
}

static void take(struct model *model)
{
    uint32_t stranger = draw_fingerprint(model);
    if (copies(model, stranger) == 0)
        assert_false(bucket_replace(model->layout, &model->table, 1, stranger, 0));
    if (model->count == 0)
        return;
    unsigned which = (unsigned)(draw(model) % model->count);
    assert_true(bucket_replace(model->layout, &model->table, 1, model->in[which], 0));
    model->in[which] = model->in[--model->count];
}

static void replace(struct model *model)
{
    if (model->count == 0)
        return;
    unsigned which = (unsigned)(draw(model) % model->count);
    uint32_t fingerprint = draw_fingerprint(model);
    assert_true(bucket_replace(model->layout, &model->table, 1, model->in[which], fingerprint));
    model->in[which] = fingerprint;
}

static void test_a_bucket_of_any_layout_holds_what_was_put_in(void **state)
{
    (void)state;
    (void)bucket_width_for(1e-4);
    for (enum bucket_width width = 0; width < BUCKET_WIDTHS; width++) {
        struct model model = {.layout = &bucket_layouts[width], .table.buckets = BUCKETS};
        model.table.memory = model.memory;
        void (*const changes[])(struct model *) = {add, add, take, replace};
        for (unsigned i = 0; i < CHANGES; i++) {
            changes[draw(&model) % 4](&model);
            assert_bucket_is(&model);
            assert_pair_has(&model, draw_fingerprint(&model));
            if (model.count > 0)
                assert_pair_has(&model, model.in[draw(&model) % model.count]);
        }
    }
}

static void test_a_layout_fits_its_word(void **state)
{
    (void)state;
    for (enum bucket_width width = 0; width < BUCKET_WIDTHS; width++) {
        const struct bucket_layout *layout = &bucket_layouts[width];
        assert_int_equal(layout->width, width);
        assert_true(layout->rank_bits + layout->fingerprints * layout->low_bits <=
                    8 * layout->word_bytes);
        assert_int_equal(layout->fingerprint_bits, layout->low_bits + (layout->rank_bits ? 4 : 0));
        assert_int_equal(__builtin_popcountll(layout->ones), layout->fingerprints);
        assert_in_range(bucket_slots(layout), 3, BUCKET_SLOTS_MAX);
    }
}

static void test_each_rate_gets_the_smallest_layout_that_keeps_it(void **state)
{
    (void)state;
    static const struct {
        double rate;
        enum bucket_width width;
    } wanted[] = {{0.03, BUCKET_4X9},    {0.018, BUCKET_4X9},   {0.016, BUCKET_3X11},
                  {0.01, BUCKET_3X11},   {0.0029, BUCKET_5X14}, {1e-3, BUCKET_5X14},
                  {6e-4, BUCKET_4X17},   {1e-4, BUCKET_4X17},   {6e-5, BUCKET_3X22},
                  {1.5e-6, BUCKET_3X22}, {1e-6, BUCKET_4X32},   {1e-7, BUCKET_4X32}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        enum bucket_width width = bucket_width_for(wanted[i].rate);
        assert_int_equal(width, wanted[i].width);
        double full = 2 * bucket_slots(&bucket_layouts[width]);
        assert_true(bucket_match_rate(width, full) <= wanted[i].rate);
        assert_true(bucket_match_rate(width, full) > bucket_match_rate(width, full / 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bucket_of_any_layout_holds_what_was_put_in),
        cmocka_unit_test(test_a_layout_fits_its_word),
        cmocka_unit_test(test_each_rate_gets_the_smallest_layout_that_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
