/* Names as people write them, and as SQL takes them. */
#include "base/text/identifier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

static void check_table(const char *text, const char *schema, const char *name)
{
    char *got_schema, *got_name;
    const char *error = NULL;
    if (table_name_parse(text, &got_schema, &got_name, &error) != 0)
        fail_msg("%s was refused: %s", text, error);
    assert_string_equal(got_name, name);
    assert_int_equal(!got_schema, !schema);
    if (schema)
        assert_string_equal(got_schema, schema);
    free(got_schema);
    free(got_name);
}

static void table_names_follow_the_rules_of_sql(void **state)
{
    (void)state;
    check_table("items", NULL, "items");
    check_table("public.items", "public", "items");
    check_table("Public.ITEMS_2$", "public", "items_2$");
    check_table("\"Public\".\"Items\"", "Public", "Items");
    check_table("shop.\"a.b\"", "shop", "a.b");
    check_table("\"a\"\"b\"", NULL, "a\"b");
    check_table("\"\"\"\"", NULL, "\"");
    check_table("ÄPFEL", NULL, "Äpfel");
    check_table("ELÉMENT", NULL, "elÉment"); /* only ASCII is folded */
}

static void mistakes_in_table_names_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",       ".",      "a.",      ".a",    "a.b.c", "a b",
                                        "1a",     "a-b",    "\"",      "\"a",   "\"\"",  "\"a\"b",
                                        "a.\"\"", "a;",     "a\"b\"",  "a.\"b", "$a",    " a",
                                        "a ",     "\"a\".", "\"a\"\"", NULL};
    for (size_t i = 0; texts[i]; i++) {
        char *schema, *name;
        const char *error = NULL;
        if (table_name_parse(texts[i], &schema, &name, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_non_null(error);
        assert_null(schema);
        assert_null(name);
    }
}

static void column_names_are_exact_or_quoted(void **state)
{
    (void)state;
    char *name;
    const char *error = NULL;
    assert_int_equal(column_name_parse("Some Column", &name, &error), 0);
    assert_string_equal(name, "Some Column");
    free(name);
    assert_int_equal(column_name_parse("\"json\"", &name, &error), 0);
    assert_string_equal(name, "json");
    free(name);
    static const char *const texts[] = {"", "\"a", "\"a\"b", "\"\""};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(column_name_parse(texts[i], &name, &error), -EINVAL);
        assert_null(name);
    }
}

static void identifiers_are_quoted(void **state)
{
    (void)state;
    char *quoted = identifier_quote("a\"b c");
    assert_string_equal(quoted, "\"a\"\"b c\"");
    free(quoted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_names_follow_the_rules_of_sql),
        cmocka_unit_test(mistakes_in_table_names_are_refused),
        cmocka_unit_test(column_names_are_exact_or_quoted),
        cmocka_unit_test(identifiers_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
