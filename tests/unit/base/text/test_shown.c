#include "base/text/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void must_show(struct span bytes, const char *wanted)
{
    char *text = text_shown(bytes);
    assert_string_equal(text, wanted);
    free(text);
}

static void what_people_can_read_stays(void **state)
{
    (void)state;
    must_show(span_of("item:42 {a}/b%3A"), "\"item:42 {a}/b%3A\"");
    must_show(span_of(""), "\"\"");
}

static void what_would_mislead_is_escaped(void **state)
{
    (void)state;
    must_show(span_of("a\"b\\c"), "\"a\\\"b\\\\c\"");
    must_show((struct span){"a\n\x1b[\0z", 6}, "\"a\\x0a\\x1b[\\x00z\"");
    must_show(span_of("\xc3\xa4\x7f"), "\"\\xc3\\xa4\\x7f\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_people_can_read_stays),
        cmocka_unit_test(what_would_mislead_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
