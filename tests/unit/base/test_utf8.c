#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

#include <string.h>

static size_t of(const char *text)
{
    return utf8_character(text, strlen(text));
}

static void a_character_has_its_length(void **state)
{
    (void)state;
    assert_int_equal(of("ab"), 1);
    assert_int_equal(of("\xd0\xb6s"), 2);
    assert_int_equal(of("\xe2\x82\xac"), 3);
    assert_int_equal(of("\xf0\x9f\xa6\x89"), 4);
    assert_int_equal(utf8_character("", 1), 1);
}

static void what_is_cut_off_is_none(void **state)
{
    (void)state;
    assert_int_equal(of("\xd0"), 0);
    assert_int_equal(of("\xe2\x82"), 0);
    assert_int_equal(of("\xf0\x9f\xa6"), 0);
    assert_int_equal(of("\xb6"), 0);
    assert_int_equal(of("\xd0s"), 0);
}

static void a_number_has_one_spelling(void **state)
{
    (void)state;
    assert_int_equal(of("\xc1\xbf"), 0);
    assert_int_equal(of("\xe0\x9f\xbf"), 0);
    assert_int_equal(of("\xe0\xa0\x80"), 3);
    assert_int_equal(of("\xed\x9f\xbf"), 3);
    assert_int_equal(of("\xed\xa0\x80"), 0);
    assert_int_equal(of("\xf0\x8f\xbf\xbf"), 0);
    assert_int_equal(of("\xf4\x8f\xbf\xbf"), 4);
    assert_int_equal(of("\xf4\x90\x80\x80"), 0);
    assert_int_equal(of("\xf5\x80\x80\x80"), 0);
}

static void a_cut_is_not_within_a_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_cut("abc", 2), 2);
    assert_int_equal(utf8_cut("a\xd0\xb6", 2), 1);
    assert_int_equal(utf8_cut("a\xd0\xb6s", 3), 3);
    assert_int_equal(utf8_cut("\xf0\x9f\xa6\x89", 3), 0);
    assert_int_equal(utf8_cut("ab\x80\x80\x80\x80\x80", 6), 6); /* no UTF-8: anywhere */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_has_its_length),
        cmocka_unit_test(what_is_cut_off_is_none),
        cmocka_unit_test(a_number_has_one_spelling),
        cmocka_unit_test(a_cut_is_not_within_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
