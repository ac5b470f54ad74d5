#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/topology/redis_redirect.h"
#include <string.h>

static struct redis_redirect got;

static bool read_text(const char *text)
{
    const struct redis_place from = {"10.0.0.9", 7000};
    memset(&got, 0, sizeof got);
    return redis_redirect_read(&got, text, strlen(text), &from);
}

static void must_read(const char *text, bool asks, unsigned slot, const char *host, uint16_t port)
{
    assert_true(read_text(text));
    assert_int_equal(got.asks, asks);
    assert_int_equal(got.slot, slot);
    assert_string_equal(got.place.host, host);
    assert_int_equal(got.place.port, port);
}

static void both_kinds_name_a_slot_and_a_place(void **state)
{
    (void)state;
    must_read("MOVED 3999 127.0.0.1:6381", false, 3999, "127.0.0.1", 6381);
    must_read("ASK 0 node-2.example:1", true, 0, "node-2.example", 1);
    must_read("MOVED 16383 ::1:65535", false, 16383, "::1", 65535);
}

static void a_host_that_is_left_out_is_that_of_whoever_answers(void **state)
{
    (void)state;
    must_read("MOVED 5 :6381", false, 5, "10.0.0.9", 6381);
}

static void what_is_not_right_leads_nowhere(void **state)
{
    static const char *const texts[] = {"",
                                        "MOVED",
                                        "MOVED ",
                                        "MOVED 1",
                                        "MOVED 1 ",
                                        "MOVED 1 a",
                                        "MOVED 1 a:",
                                        "MOVED 1 a:0",
                                        "MOVED 1 ?:6381",
                                        "ASK 1 ?:6381",
                                        "MOVED 1 a:65536",
                                        "MOVED 1 a:b",
                                        "ERR x",
                                        "MOVED -1 a:1",
                                        "MOVED 16384 a:1",
                                        "MOVED 1x a:1",
                                        "MOVEDx 1 a:1",
                                        "ASKING",
                                        "ASK 1 a b:1",
                                        "MOVED 1 a\n:1",
                                        "moved 1 a:1",
                                        "MOVED  1 a:1",
                                        "LOADING x",
                                        "MOVED 99999999999999999999 a:1"};
    char longest[600] = "MOVED 1 ";
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(read_text(texts[i]));
    memset(longest + 8, 'a', 500);
    memcpy(longest + 508, ":1", 3);
    assert_false(read_text(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds_name_a_slot_and_a_place),
        cmocka_unit_test(a_host_that_is_left_out_is_that_of_whoever_answers),
        cmocka_unit_test(what_is_not_right_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
