#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

static void every_byte_is_a_digit_or_none(void **state)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char text[] = {(char)byte, '\0'};
        bool digit = byte && strchr(digits, byte);
        assert_int_equal(hex_value(text[0]), digit ? strtol(text, NULL, 16) : -1);
    }
}

static void a_byte_is_two_digits_in_any_case(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char lower[] = {hex_digit_lower(byte >> 4), hex_digit_lower(byte)};
        char upper[] = {hex_digit_upper(byte >> 4), hex_digit_upper(byte)};
        assert_int_equal(hex_byte(lower), byte);
        assert_int_equal(hex_byte(upper), byte);
    }
    assert_int_equal(hex_byte("g0"), -1);
    assert_int_equal(hex_byte("0g"), -1);
    assert_int_equal(hex_byte(""), -1); /* its second byte is not there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_a_digit_or_none),
        cmocka_unit_test(a_byte_is_two_digits_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
