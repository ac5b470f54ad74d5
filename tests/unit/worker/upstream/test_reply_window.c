/* How many commands are under way over a connection, by the size of their replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/upstream/reply_window.h"

enum { MEGABYTE = 1024 * 1024 };

static void answer(struct reply_window *window, size_t count, size_t bytes)
{
    while (count--) {
        reply_window_take(window, bytes);
        reply_window_end(window);
    }
}

static void any_number_where_nothing_is_said(void **state)
{
    struct reply_window window;
    (void)state;
    reply_window_init(&window);
    assert_int_equal(window.most, SIZE_MAX);
}

static void as_many_as_make_a_megabyte(void **state)
{
    struct reply_window window;
    (void)state;
    reply_window_narrow(&window);
    assert_int_equal(window.most, 1); /* before anything is known */
    answer(&window, 100, 8 * MEGABYTE);
    assert_int_equal(window.most, 1);
    answer(&window, 200, 100 * 1024);
    assert_in_range(window.most, 9, 11);
    answer(&window, 200, 5);
    assert_int_equal(window.most, 256);
    answer(&window, 200, 0);
    assert_int_equal(window.most, 256);
    answer(&window, 1, 8 * MEGABYTE); /* the first is noticed */
    assert_int_equal(window.most, 1);
}

static void a_reply_comes_in_parts(void **state)
{
    struct reply_window whole, parts;
    (void)state;
    reply_window_narrow(&whole);
    reply_window_narrow(&parts);
    for (int i = 0; i < 50; i++) {
        answer(&whole, 1, 300000);
        reply_window_take(&parts, 100000);
        reply_window_take(&parts, 150000);
        answer(&parts, 1, 50000);
    }
    assert_int_equal(whole.most, 3);
    assert_int_equal(parts.most, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_where_nothing_is_said),
                                       cmocka_unit_test(as_many_as_make_a_megabyte),
                                       cmocka_unit_test(a_reply_comes_in_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
