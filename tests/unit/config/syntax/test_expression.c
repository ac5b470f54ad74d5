#include "config/syntax/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the headers above */
#include <cmocka.h>

static void names_are_no_expressions(void **state)
{
    static const char *const names[] = {
        "payload",
        "Pay Load",
        "gr\303\266\303\237e",
        "first-name",
        "a.b",
        "50%",
        "",
        "\"upper(x)\"",
        "\"a\"\"(b)\"",
        "\"unclosed (",
        "\"a\" b",
        "Va:lue",
        "a|b",
        "a/b",
        "a = b",
        "a > b",
        "tags[1]",
        "price * 2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (expression_is_one(names[i]))
            fail_msg("%s", names[i]);
}

static void what_has_a_parenthesis_a_quote_or_an_operator_of_text_is_one(void **state)
{
    static const char *const expressions[] = {
        "upper(x)",
        "(x)",
        "a || b",
        "a::text",
        "(price * 2)",
        "(a + b)",
        "'x'",
        "\"A\" || b",
        "(tags[1])",
        "a->>'b'",
        "(a = b)",
        "a->b",
        "(CASE WHEN a THEN b END)",
        "\"A\"\"(\" || b",
    };
    (void)state;
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++)
        if (!expression_is_one(expressions[i]))
            fail_msg("%s", expressions[i]);
}

static void must_have(const char *expression, const char *wanted)
{
    struct expression_names names = {0};
    char all[300] = "";
    expression_names_add(&names, expression);
    for (size_t i = 0; i < names.count; i++) {
        strcat(all, names.at[i]);
        strcat(all, " ");
    }
    assert_string_equal(all, wanted);
    expression_names_finish(&names);
    assert_int_equal(names.count, 0);
}

static void words_are_folded_and_as_they_are_and_each_is_named_once(void **state)
{
    (void)state;
    must_have("jsonb_build_object('id', id, 'n', Name)::text",
              "jsonb_build_object id n name Name text ");
    must_have("f(1e5, $1, a1, _b$2)", "f a1 _b$2 ");
    must_have("\xc3\x84(x)", "\xc3\x84 x ");
    must_have("1 + 2", "");
    must_have("", "");
    must_have(NULL, "");
}

static void quoted_names_are_found_wherever_quotes_begin(void **state)
{
    (void)state;
    must_have("\"My Type\"(x)", "my My type Type x My Type ");
    must_have("'\"' || \"A b\"", "a A b ' ||  A b ");
    must_have("\"", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_no_expressions),
        cmocka_unit_test(what_has_a_parenthesis_a_quote_or_an_operator_of_text_is_one),
        cmocka_unit_test(words_are_folded_and_as_they_are_and_each_is_named_once),
        cmocka_unit_test(quoted_names_are_found_wherever_quotes_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
