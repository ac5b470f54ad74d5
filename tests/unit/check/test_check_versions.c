#include "check/check_versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_silent(struct check_versions *versions)
{
    struct problems problems = {0};
    check_versions_end(versions, &problems);
    assert_int_equal(problems.count, 0);
    problems_finish(&problems);
}

static void assert_warns(struct check_versions *versions, const char *text)
{
    struct problems problems = {0};
    check_versions_end(versions, &problems);
    assert_int_equal(problems.count, 1);
    assert_int_equal(problems.at[0].level, PROBLEM_WARNING);
    assert_non_null(strstr(problems.at[0].text, text));
    problems_finish(&problems);
}

static void nodes_of_one_version_are_nothing_to_tell(void **state)
{
    struct check_versions versions = {0};
    (void)state;
    assert_silent(&versions);
    check_versions_add(&versions, "7.0.15", "a:1");
    check_versions_add(&versions, "7.0.15", "a:2");
    assert_silent(&versions);
}

static void one_that_does_not_say_counts_for_nothing(void **state)
{
    struct check_versions versions = {0};
    (void)state;
    check_versions_add(&versions, "", "a:0");
    check_versions_add(&versions, "7.0.15", "a:1");
    check_versions_add(&versions, "", "a:2");
    assert_silent(&versions);
}

static void different_ones_are_told_with_their_nodes(void **state)
{
    struct check_versions versions = {0};
    (void)state;
    check_versions_add(&versions, "7.0.15", "a:1");
    check_versions_add(&versions, "7.4.1", "a:2");
    check_versions_add(&versions, "7.0.15", "a:3");
    assert_warns(&versions, ": 7.0.15 (a:1, a:3), 7.4.1 (a:2)");
}

static void of_many_nodes_the_first_are_named(void **state)
{
    struct check_versions versions = {0};
    char node[16];
    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(node, sizeof node, "a:%d", i);
        check_versions_add(&versions, i ? "7.0.15" : "6.2.0", node);
    }
    assert_warns(&versions, ": 6.2.0 (a:0), 7.0.15 (a:1, a:2, a:3, a:4 and 95 more)");
}

static void as_many_versions_as_there_is_room_for_are_told(void **state)
{
    struct check_versions versions = {0};
    char version[16];
    (void)state;
    for (int i = 0; i < 2 * VERSIONS_TOLD; i++) {
        snprintf(version, sizeof version, "7.%d.0", i);
        check_versions_add(&versions, version, "a:1");
    }
    assert_warns(&versions, "7.7.0 (a:1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_one_version_are_nothing_to_tell),
        cmocka_unit_test(one_that_does_not_say_counts_for_nothing),
        cmocka_unit_test(different_ones_are_told_with_their_nodes),
        cmocka_unit_test(of_many_nodes_the_first_are_named),
        cmocka_unit_test(as_many_versions_as_there_is_room_for_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
