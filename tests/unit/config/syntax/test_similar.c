#include "config/syntax/similar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the headers above */
#include <cmocka.h>

static void test_the_distance_counts_single_letters(void **state)
{
    (void)state;
    assert_int_equal(name_distance("items", "items"), 0);
    assert_int_equal(name_distance("items", "item"), 1);
    assert_int_equal(name_distance("item", "items"), 1);
    assert_int_equal(name_distance("itmes", "items"), 2);
    assert_int_equal(name_distance("kitten", "sitting"), 3);
    assert_int_equal(name_distance("", "abc"), 3);
    assert_int_equal(name_distance("abc", ""), 3);
    assert_int_equal(name_distance("", ""), 0);
}

static void test_the_case_of_letters_is_no_distance(void **state)
{
    (void)state;
    assert_int_equal(name_distance("Customer", "customer"), 0);
    assert_int_equal(name_distance("ID", "id"), 0);
    assert_true(name_is_similar("ID", "id"));
}

static void test_names_of_any_length_and_bytes_are_taken(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'a', sizeof name);
    name[299] = '\0';
    assert_true(name_distance(name, "a") == SIZE_MAX);
    assert_true(name_distance("a", name) == SIZE_MAX);
    assert_false(name_is_similar(name, name));
    name[127] = '\0';
    assert_int_equal(name_distance(name, name), 0);
    assert_int_equal(name_distance(name, ""), 127);
    assert_int_equal(name_distance("gr\xc3\xb6\xc3\x9f"
                                   "e",
                                   "gr\xc3\xb6\xc3\x9f"
                                   "e"),
                     0);
}

static void test_only_slips_are_similar(void **state)
{
    (void)state;
    assert_true(name_is_similar("itmes", "items"));
    assert_true(name_is_similar("custmer_ordres", "customer_orders"));
    assert_false(name_is_similar("id", "no"));
    assert_false(name_is_similar("id", "it"));
    assert_false(name_is_similar("items", "users"));
    assert_false(name_is_similar("payload", "deleted_at"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_distance_counts_single_letters),
        cmocka_unit_test(test_the_case_of_letters_is_no_distance),
        cmocka_unit_test(test_names_of_any_length_and_bytes_are_taken),
        cmocka_unit_test(test_only_slips_are_similar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
