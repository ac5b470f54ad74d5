/* Who may go on with a handshake, as the loop's time passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "net/handshakes.h"

enum { LONG_NS = 10 * 1000 * 1000 };

static uv_loop_t loop;

static int open_loop(void **state)
{
    (void)state;
    return uv_loop_init(&loop);
}

static int close_loop(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

static void next_millisecond(void)
{
    uint64_t before = uv_now(&loop);
    while (uv_now(&loop) == before)
        uv_update_time(&loop);
}

static bool may_go_on(const struct handshake *handshake)
{
    return handshake_may_go_on(handshake, &loop);
}

static void what_one_takes_others_wait_for(void **state)
{
    struct handshake one = {.in_line = false};
    (void)state;
    next_millisecond();
    assert_true(may_go_on(&one));
    handshake_took(1000);
    assert_true(may_go_on(&one));
    handshake_took(LONG_NS);
    assert_false(may_go_on(&one));
    next_millisecond();
    assert_true(may_go_on(&one));
}

static void who_waits_has_his_turn_before_who_comes(void **state)
{
    struct handshake waiting[3], coming = {.in_line = false};
    (void)state;
    next_millisecond();
    for (int i = 0; i < 3; i++)
        handshake_line_up(&waiting[i]);
    assert_true(may_go_on(&waiting[0]));
    assert_false(may_go_on(&waiting[1]));
    assert_false(may_go_on(&coming));
    handshake_leave_line(&waiting[1]); /* it is closed */
    handshake_leave_line(&waiting[0]);
    handshake_leave_line(&waiting[0]);
    assert_true(may_go_on(&waiting[2]));
    handshake_took(LONG_NS);
    assert_false(may_go_on(&waiting[2]));
    handshake_line_up(&coming);
    next_millisecond();
    assert_true(may_go_on(&waiting[2]));
    assert_false(may_go_on(&coming));
    handshake_leave_line(&waiting[2]);
    assert_true(may_go_on(&coming));
    handshake_leave_line(&coming);
    assert_true(may_go_on(&waiting[0]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)
    const struct CMUnitTest tests[] = {TEST(what_one_takes_others_wait_for),
                                       TEST(who_waits_has_his_turn_before_who_comes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
