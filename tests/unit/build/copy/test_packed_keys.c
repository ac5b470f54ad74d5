/* The texts are what the server prints of the same values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build/copy/packed_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE(bytes) ((struct span){bytes, sizeof(bytes) - 1})

static void next_is(struct packed_keys *keys, const char *first, const char *second)
{
    const char *wanted[] = {first, second};
    struct span texts[KEY_COLUMNS_MAX];
    assert_true(packed_keys_next(keys, texts));
    for (size_t i = 0; i < keys->columns; i++) {
        assert_int_equal(texts[i].length, strlen(wanted[i]));
        assert_memory_equal(texts[i].at, wanted[i], texts[i].length);
    }
}

static void integers_come_as_they_are_printed(void **state)
{
    (void)state;
    const enum column_packing packing[] = {PACKS_INTEGER};
    struct packed_keys keys;
    struct span texts[KEY_COLUMNS_MAX];
    packed_keys_begin(&keys, packing, 1,
                      VALUE("\0\0\0\0\0\0\0\0"
                            "\0\0\0\0\0\0\0\12"
                            "\377\377\377\377\377\377\377\377"
                            "\200\0\0\0\0\0\0\0"
                            "\177\377\377\377\377\377\377\377"));
    next_is(&keys, "0", NULL);
    next_is(&keys, "10", NULL);
    next_is(&keys, "-1", NULL);
    next_is(&keys, "-9223372036854775808", NULL);
    next_is(&keys, "9223372036854775807", NULL);
    assert_false(packed_keys_next(&keys, texts));
}

static void columns_of_both_kinds_follow_each_other(void **state)
{
    (void)state;
    const enum column_packing packing[] = {PACKS_UUID, PACKS_INTEGER};
    struct packed_keys keys;
    struct span texts[KEY_COLUMNS_MAX];
    packed_keys_begin(&keys, packing, 2,
                      VALUE("\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10"
                            "\0\0\0\0\0\0\0\7"
                            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                            "\377\377\377\377\377\377\377\371"));
    next_is(&keys, "01234567-89ab-cdef-fedc-ba9876543210", "7");
    next_is(&keys, "00000000-0000-0000-0000-000000000000", "-7");
    assert_false(packed_keys_next(&keys, texts));
}

static void a_value_without_keys_has_none(void **state)
{
    (void)state;
    const enum column_packing packing[] = {PACKS_INTEGER};
    struct packed_keys keys;
    struct span texts[KEY_COLUMNS_MAX];
    packed_keys_begin(&keys, packing, 1, VALUE(""));
    assert_false(packed_keys_next(&keys, texts));
}

static void what_is_no_whole_key_is_left(void **state)
{
    (void)state;
    const enum column_packing packing[] = {PACKS_INTEGER};
    struct packed_keys keys;
    struct span texts[KEY_COLUMNS_MAX];
    packed_keys_begin(&keys, packing, 1,
                      VALUE("\0\0\0\0\0\0\0\1"
                            "\0\0\0"));
    next_is(&keys, "1", NULL);
    assert_false(packed_keys_next(&keys, texts));
    assert_int_equal(keys.rest.length, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_come_as_they_are_printed),
        cmocka_unit_test(columns_of_both_kinds_follow_each_other),
        cmocka_unit_test(a_value_without_keys_has_none),
        cmocka_unit_test(what_is_no_whole_key_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
