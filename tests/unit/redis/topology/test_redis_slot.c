#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/topology/redis_slot.h"
#include <stdlib.h>
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

/* A bit at a time, as CRC-16/XMODEM is defined. */
static unsigned plain_slot_of(const unsigned char *key, size_t length)
{
    unsigned crc = 0;
    for (size_t bit = 0; bit < 8 * length; bit++) {
        unsigned carry = crc >> 15 ^ (key[bit / 8] >> (7 - bit % 8) & 1);
        crc = (crc << 1 & 0xffff) ^ (carry & 1 ? 0x1021 : 0);
    }
    return crc % REDIS_SLOTS;
}

static void keys_of_every_length_have_it(void **state)
{
    unsigned char key[64];
    (void)state;
    srand(1);
    for (int turn = 0; turn < 10000; turn++) {
        size_t length = (size_t)rand() % sizeof key;
        for (size_t i = 0; i < length; i++)
            while ((key[i] = (unsigned char)rand()) == '{')
                continue;
        assert_int_equal(redis_slot_of((const char *)key, length), plain_slot_of(key, length));
    }
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
        cmocka_unit_test(keys_of_every_length_have_it),
        cmocka_unit_test(what_stands_in_braces_counts_alone),
        cmocka_unit_test(braces_with_nothing_in_them_are_part_of_the_key),
        cmocka_unit_test(any_bytes_are_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
