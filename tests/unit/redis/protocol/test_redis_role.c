#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/protocol/redis_role.h"
#include <string.h>

static enum redis_role role_of(const char *word)
{
    return redis_role_of(word, strlen(word));
}

static void only_a_whole_word_names_a_role(void **state)
{
    (void)state;
    assert_int_equal(role_of("master"), REDIS_PRIMARY);
    assert_int_equal(role_of("slave"), REDIS_REPLICA);
    assert_int_equal(role_of("replica"), REDIS_REPLICA);
    assert_int_equal(role_of("sentinel"), REDIS_SENTINEL);
    assert_int_equal(role_of("slav"), REDIS_ROLE_UNKNOWN);
    assert_int_equal(role_of("slavery"), REDIS_ROLE_UNKNOWN);
    assert_int_equal(role_of(""), REDIS_ROLE_UNKNOWN);
    assert_int_equal(redis_role_of(NULL, 0), REDIS_ROLE_UNKNOWN);
    assert_int_equal(redis_role_of("slavery", 5), REDIS_REPLICA);
}

static void info_tells_the_role_by_whole_lines(void **state)
{
    (void)state;
    assert_int_equal(redis_role_read("# Replication\r\nrole:master\r\n"), REDIS_PRIMARY);
    assert_int_equal(redis_role_read("role:slave"), REDIS_REPLICA);
    assert_int_equal(redis_role_read("slave_role:slave\nrole:slavery\n"), REDIS_ROLE_UNKNOWN);
    assert_int_equal(redis_role_read("redis_mode:sentinel\r\nrole:master"), REDIS_SENTINEL);
    assert_int_equal(redis_role_read("redis_mode:standalone\r\n"), REDIS_ROLE_UNKNOWN);
    assert_int_equal(redis_role_read(""), REDIS_ROLE_UNKNOWN);
}

static void a_primary_and_who_does_not_say_are_believed(void **state)
{
    (void)state;
    assert_null(redis_role_objection(REDIS_PRIMARY));
    assert_null(redis_role_objection(REDIS_ROLE_UNKNOWN));
    assert_non_null(redis_role_objection(REDIS_REPLICA));
    assert_non_null(redis_role_objection(REDIS_SENTINEL));
}

static void errors_are_told_apart_by_their_code(void **state)
{
    (void)state;
    assert_true(redis_is_passing_trouble("BUSY x", 6));
    assert_true(redis_is_passing_trouble("LOADING x", 9));
    assert_false(redis_is_passing_trouble("BUSYKEY x", 9));
    assert_false(redis_is_passing_trouble("BUS", 3));
    assert_true(redis_is_full("OOM command", 11));
    assert_true(redis_is_full("MISCONF x", 9));
    assert_false(redis_is_full("ERR OOM", 7));
    assert_true(redis_is_readonly("READONLY You", 12));
    assert_false(redis_is_readonly("READONLY", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_whole_word_names_a_role),
        cmocka_unit_test(info_tells_the_role_by_whole_lines),
        cmocka_unit_test(a_primary_and_who_does_not_say_are_believed),
        cmocka_unit_test(errors_are_told_apart_by_their_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
