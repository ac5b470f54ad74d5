#include "config/syntax/dependency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What is read of it: "schema.name: column = key_column, ". */
static const char *read_well(const char *text)
{
    static char out[300];
    struct dependency dependency;
    const char *error = NULL;
    if (dependency_parse(&dependency, text, &error))
        fail_msg("%s: %s", text, error);
    size_t used =
        (size_t)snprintf(out, sizeof out, "%s%s%s:", dependency.schema ? dependency.schema : "",
                         dependency.schema ? "." : "", dependency.name);
    for (size_t i = 0; i < dependency.columns; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, " %s = %s,", dependency.column[i],
                                 dependency.key_column[i]);
    dependency_finish(&dependency);
    return out;
}

static void names_are_read_as_sql_has_them(void **state)
{
    (void)state;
    assert_string_equal(read_well("authors"), "authors:");
    assert_string_equal(read_well("Shop.Authors"), "shop.authors:");
    assert_string_equal(read_well("lines on order_id = id"), "lines: order_id = id,");
    assert_string_equal(read_well("lines ON a=b AND c =d"), "lines: a = b, c = d,");
    assert_string_equal(read_well("\"a on b = c\""), "a on b = c:");
    assert_string_equal(read_well("\"a b\" on \"x = y\" = \"u and v\" and z = w"),
                        "a b: x = y = u and v, z = w,");
}

static void what_is_none_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "a b",
                                        "a.b.c",
                                        "a on",
                                        "a on b",
                                        "a on b =",
                                        "a on = b",

                                        "a on b = c and d",
                                        "a on \"b = c",
                                        "a on b = c and "};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dependency dependency;
        const char *error = NULL;
        if (!dependency_parse(&dependency, texts[i], &error))
            fail_msg("\"%s\" was taken", texts[i]);
        assert_non_null(error);
    }
}

/* "a,b" of a key with the columns customer and number; "" where none is told. */
static const char *key_columns(const char *text)
{
    static char out[100];
    struct dependency dependency;
    struct key_template key;
    const char *error;
    assert_int_equal(key_template_parse(&key, "order:{customer}:{number}", &error), 0);
    assert_int_equal(dependency_parse(&dependency, text, &error), 0);
    struct key_template of = dependency_key(&dependency, &key);
    snprintf(out, sizeof out, "%s%s%s", of.columns ? of.column[0] : "", of.columns ? "," : "",
             of.columns ? of.column[1] : "");
    dependency_finish(&dependency);
    key_template_finish(&key);
    return out;
}

static void a_key_is_told_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_string_equal(key_columns("lines on nr = number and who = customer"), "who,nr");
    assert_string_equal(key_columns("lines"), "");
    assert_string_equal(key_columns("lines on nr = number"), "");
    assert_string_equal(key_columns("lines on nr = number and a = b"), "");
    assert_string_equal(key_columns("lines on nr = number and a = number"), "");
    assert_string_equal(key_columns("lines on a = number and b = customer and c = number"), "");
}

static void what_means_the_same_is_equal(void **state)
{
    struct dependency one, other, third;
    const char *error;
    (void)state;
    assert_int_equal(dependency_parse(&one, "lines on a = b", &error), 0);
    assert_int_equal(dependency_parse(&other, "Lines  ON \"a\"=b", &error), 0);
    assert_int_equal(dependency_parse(&third, "lines on a = c", &error), 0);
    struct dependencies first = {&one, 1}, second = {&other, 1}, last = {&third, 1}, copy;
    assert_true(dependencies_equal(&first, &second));
    assert_false(dependencies_equal(&first, &last));
    assert_false(dependencies_equal(&first, &(struct dependencies){0}));
    dependencies_copy(&copy, &second);
    assert_true(dependencies_equal(&first, &copy));
    dependencies_finish(&copy);
    dependencies_finish(&copy);
    dependency_finish(&one);
    dependency_finish(&other);
    dependency_finish(&third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_as_sql_has_them),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(a_key_is_told_as_a_whole_or_not_at_all),
        cmocka_unit_test(what_means_the_same_is_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
