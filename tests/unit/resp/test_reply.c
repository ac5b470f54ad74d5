/* What a reply is, to whoever takes it for more than bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "resp/reply.h"

#define HELLO(marker, count, proto)                                                                \
    marker count "\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:" proto "\r\n"

enum { ERROR = 1, OK = 2, QUEUED = 4, NIL = 8, NUMBER = 16, TEXT = 32, LIST = 64, GREETING = 128 };

static unsigned what_is(struct span reply)
{
    unsigned what = 0;
    what |= reply_is_error(reply) ? ERROR : 0;
    what |= reply_is_ok(reply) ? OK : 0;
    what |= reply_is_queued(reply) ? QUEUED : 0;
    what |= reply_is_nil(reply) ? NIL : 0;
    what |= reply_is_number(reply) ? NUMBER : 0;
    what |= reply_is_text(reply) ? TEXT : 0;
    what |= reply_is_list(reply) ? LIST : 0;
    what |= reply_is_hello(reply) ? GREETING : 0;
    return what;
}

static void each_is_one_thing_or_none(void **state)
{
    static const struct {
        const char *reply;
        unsigned what;
    } rows[] = {{"", 0},
                {"-ERR no\r\n", ERROR},
                {"-\r\n", ERROR},
                {"!2\r\nno\r\n", ERROR},
                {"+OK\r\n", OK},
                {"+OKAY\r\n", 0},
                {"+ok\r\n", 0},
                {"$2\r\nOK\r\n", TEXT},
                {"+QUEUED\r\n", QUEUED},
                {"+QUEUED.\r\n", 0},
                {"$-1\r\n", NIL},
                {"_\r\n", NIL},
                {"*-1\r\n", 0},
                {":0\r\n", NUMBER},
                {":-12\r\n", NUMBER},
                {":1000000\r\n", NUMBER},
                {":x\r\n", 0},
                {":\r\n", 0},
                {"#t\r\n", 0},
                {",1\r\n", 0},
                {"$0\r\n\r\n", TEXT},
                {"=5\r\ntxt:x\r\n", TEXT},
                {"*0\r\n", LIST},
                {"*1\r\n:1\r\n", LIST},
                {"~1\r\n:1\r\n", 0},
                {">1\r\n:1\r\n", 0},
                {"%0\r\n", 0},
                {HELLO("%", "2", "3"), GREETING},
                {HELLO("%", "2", "2"), 0},
                {HELLO("*", "4", "2"), LIST | GREETING},
                {HELLO("*", "4", "3"), LIST},
                {"*1\r\n$5\r\nproto\r\n", LIST},
                {"*4\r\n$6\r\nserver\r\n$5\r\nproto\r\n:2\r\n:2\r\n", LIST}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (what_is(span_of(rows[i].reply)) != rows[i].what)
            fail_msg("\"%s\" is 0x%x", rows[i].reply, what_is(span_of(rows[i].reply)));
}

static void a_list_has_as_many_elements_as_it_says(void **state)
{
    (void)state;
    assert_true(reply_is_list_of(span_of("*0\r\n"), 0));
    assert_true(reply_is_list_of(span_of("*2\r\n:1\r\n:2\r\n"), 2));
    assert_false(reply_is_list_of(span_of("*2\r\n:1\r\n:2\r\n"), 1));
    assert_false(reply_is_list_of(span_of("*-1\r\n"), 0));
    assert_false(reply_is_list_of(span_of("$1\r\n1\r\n"), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_one_thing_or_none),
        cmocka_unit_test(a_list_has_as_many_elements_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
