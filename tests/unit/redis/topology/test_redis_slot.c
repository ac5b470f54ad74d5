#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/topology/redis_slot.h"
#include <string.h>

static unsigned slot_of(const char *key)
{
    return redis_slot_of(key, strlen(key));
}

/* By CLUSTER KEYSLOT of Redis 7.0. */
static void keys_have_the_slots_that_redis_gives_them(void **state)
{
    (void)state;
    assert_int_equal(slot_of("123456789"), 0x31c3);
    assert_int_equal(slot_of("foo"), 12182);
    assert_int_equal(slot_of("bar"), 5061);
    assert_int_equal(slot_of("hello"), 866);
    assert_int_equal(slot_of(""), 0);
    assert_int_equal(redis_slot_of(NULL, 0), 0);
}

static void what_stands_in_braces_counts_alone(void **state)
{
    (void)state;
    assert_int_equal(slot_of("{foo}bar"), slot_of("foo"));
    assert_int_equal(slot_of("bar{foo}"), slot_of("foo"));
    assert_int_equal(slot_of("a{foo}{bar}"), slot_of("foo"));
    assert_int_equal(slot_of("a{{foo}}b"), slot_of("{foo"));
    assert_int_equal(slot_of("a}{foo}"), slot_of("foo"));
}

static void braces_with_nothing_in_them_are_part_of_the_key(void **state)
{
    (void)state;
    assert_int_not_equal(slot_of("{}bar"), slot_of(""));
    assert_int_not_equal(slot_of("{}{bar}"), slot_of("bar"));
    assert_int_not_equal(slot_of("{bar"), slot_of("bar"));
    assert_int_not_equal(slot_of("bar}"), slot_of("bar"));
    assert_int_equal(redis_slot_of("{bar}", 4), slot_of("{bar"));
}

static void any_bytes_are_a_key(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    assert_in_range(redis_slot_of(bytes, sizeof bytes), 0, REDIS_SLOTS - 1);
    assert_int_not_equal(redis_slot_of("\0", 1), redis_slot_of("\0\0\1", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_slots_that_redis_gives_them),
        cmocka_unit_test(what_stands_in_braces_counts_alone),
        cmocka_unit_test(braces_with_nothing_in_them_are_part_of_the_key),
        cmocka_unit_test(any_bytes_are_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
