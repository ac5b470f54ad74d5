#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "postgres/log/pg_walmessage.h"

/* Read from memory of exactly this size, for the sanitizer. */
static int read_bytes(struct pg_walmessage *message, const char *bytes, size_t length)
{
    static char *copy;
    free(copy);
    copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    int rc = pg_walmessage_read(message, copy, length);
    if (rc == 0 && message->bytes)
        assert_ptr_equal(message->bytes + message->length, copy + length);
    return rc;
}

#define DATA "w\x01\x02\x03\x04\x05\x06\x07\x08--------........"
#define KEEPALIVE "k\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8........"

static void data_is_what_stands_behind_its_head(void **state)
{
    struct pg_walmessage message;
    (void)state;
    assert_int_equal(read_bytes(&message, DATA "Bxyz", 29), 0);
    assert_int_equal(message.kind, PG_WALMESSAGE_DATA);
    assert_true(message.lsn == UINT64_C(0x0102030405060708));
    assert_int_equal(message.length, 4);
    assert_memory_equal(message.bytes, "Bxyz", 4);
    assert_int_equal(read_bytes(&message, DATA, 25), 0);
    assert_int_equal(message.length, 0);
}

static void a_keepalive_says_whether_a_reply_is_wanted(void **state)
{
    struct pg_walmessage message;
    (void)state;
    assert_int_equal(read_bytes(&message, KEEPALIVE "\0", 18), 0);
    assert_int_equal(message.kind, PG_WALMESSAGE_KEEPALIVE);
    assert_true(message.lsn == UINT64_C(0xfffefdfcfbfaf9f8));
    assert_false(message.reply_wanted);
    assert_int_equal(read_bytes(&message, KEEPALIVE "\1", 18), 0);
    assert_true(message.reply_wanted);
}

static void what_is_too_short_or_unknown_is_refused(void **state)
{
    struct pg_walmessage message;
    (void)state;
    for (size_t length = 0; length < 25; length++)
        assert_int_equal(read_bytes(&message, DATA, length), -EPROTO);
    for (size_t length = 0; length < 18; length++)
        assert_int_equal(read_bytes(&message, KEEPALIVE, length), -EPROTO);
    for (int first = 0; first < 256; first++) {
        char bytes[64] = {(char)first};
        int wanted = first == 'w' || first == 'k' ? 0 : -EPROTO;
        assert_int_equal(read_bytes(&message, bytes, sizeof bytes), wanted);
    }
}

static uint64_t number_at(const char *at)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | (unsigned char)at[i];
    return number;
}

static void a_status_names_what_is_written_and_twice_what_is_applied(void **state)
{
    char status[PG_STATUS_SIZE];
    (void)state;
    pg_status_write(status, UINT64_C(0x16B374D848), UINT64_C(0x16B374D840), true);
    assert_int_equal(status[0], 'r');
    assert_true(number_at(status + 1) == UINT64_C(0x16B374D848));
    assert_true(number_at(status + 9) == UINT64_C(0x16B374D840));
    assert_true(number_at(status + 17) == UINT64_C(0x16B374D840));
    assert_int_equal(status[33], 1);
    pg_status_write(status, 0, 0, false);
    assert_int_equal(status[33], 0);
    /* Of the clock: 10957 days lie between the two epochs. */
    uint64_t seconds = number_at(status + 25) / 1000000 + UINT64_C(10957) * 86400;
    uint64_t now = (uint64_t)time(NULL);
    assert_in_range(seconds, now - 5, now + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_what_stands_behind_its_head),
        cmocka_unit_test(a_keepalive_says_whether_a_reply_is_wanted),
        cmocka_unit_test(what_is_too_short_or_unknown_is_refused),
        cmocka_unit_test(a_status_names_what_is_written_and_twice_what_is_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
