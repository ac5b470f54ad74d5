/* What needs no servers; the rest is in tests/e2e/test_check.py. */
#include "check/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the headers above */
#include <cmocka.h>

/* Port 1 is nobody's: the kernel refuses at once. */
static struct config nowhere(enum sync_mode sync)
{
    static char host[] = "127.0.0.1", file[] = "nestguard.yaml", password[] = "redis-secret",
                database[] = "postgresql://app:pg-secret@127.0.0.1:1/shop";
    struct config config = {.file = file, .database = database, .sync = sync};
    config.cache.address.host = host;
    config.cache.address.port = 1;
    config.cache.password = password;
    return config;
}

static const struct problem *find(const struct problems *problems, const char *place)
{
    for (size_t i = 0; i < problems->count; i++)
        if (strcmp(problems->at[i].place, place) == 0)
            return &problems->at[i];
    return NULL;
}

static void test_servers_that_are_down_are_warnings_for_a_guard_that_starts(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct config config = nowhere(SYNC_NONE);
    struct check_reach reach = check_backends(&config, &problems);
    assert_false(reach.cache);
    assert_false(reach.database);
    assert_int_equal(problems.count, 2);
    assert_int_equal(problems.errors, 0);
    assert_non_null(find(&problems, "cache 127.0.0.1:1"));
    assert_non_null(find(&problems, "database 127.0.0.1:1/shop"));
    problems_finish(&problems);
}

static void test_no_finding_repeats_a_password(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct config config = nowhere(SYNC_NONE);
    check_backends(&config, &problems);
    for (size_t i = 0; i < problems.count; i++) {
        assert_null(strstr(problems.at[i].text, "secret"));
        assert_null(strstr(problems.at[i].place, "secret"));
    }
    problems_finish(&problems);
}

static void test_replication_is_not_judged_while_the_database_is_down(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct config config = nowhere(SYNC_REPLICATION);
    check_backends(&config, &problems);
    assert_int_equal(problems.count, 2);
    assert_int_equal(problems.errors, 0);
    problems_finish(&problems);
}

static void test_connection_string_that_is_none_is_an_error_and_not_repeated(void **state)
{
    (void)state;
    static char broken[] = "password=my secret host=127.0.0.1";
    struct problems problems = {0};
    struct config config = nowhere(SYNC_POLL);
    config.database = broken;
    struct check_reach reach = check_backends(&config, &problems);
    const struct problem *problem = find(&problems, "database");
    assert_false(reach.database);
    assert_int_equal(problems.errors, 1);
    assert_non_null(problem);
    assert_null(strstr(problem->text, "secret"));
    assert_non_null(strstr(problem->text, "missing \"=\""));
    problems_finish(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_that_are_down_are_warnings_for_a_guard_that_starts),
        cmocka_unit_test(test_no_finding_repeats_a_password),
        cmocka_unit_test(test_replication_is_not_judged_while_the_database_is_down),
        cmocka_unit_test(test_connection_string_that_is_none_is_an_error_and_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
