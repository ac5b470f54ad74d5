#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/json_bytes.h"

static void must_be(json_t *json, const char *text)
{
    assert_string_equal(json_string_value(json), text);
    json_decref(json);
}

static void only_what_is_no_character_is_written_out(void **state)
{
    (void)state;
    must_be(json_text("\xd0\xb6 \xff \xd0"), "\xd0\xb6 \\xff \\xd0");
    must_be(json_text(""), "");
    assert_true(json_is_null(json_text(NULL)));
}

/* Each two bytes, and what may stand behind them. */
static void there_are_no_bytes_that_it_has_no_text_for(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[] = {(char)(pair >> 8), (char)pair, '\x80', '\x80'};
        for (size_t length = 1; length <= sizeof bytes; length++) {
            json_t *json = json_bytes(bytes, length);
            assert_non_null(json);
            json_decref(json);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_no_character_is_written_out),
        cmocka_unit_test(there_are_no_bytes_that_it_has_no_text_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
