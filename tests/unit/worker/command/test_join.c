/* What several nodes say becomes what one server would. */
#include "worker/command/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 3000 };

static char draw(const char *const *replies, size_t count)
{
    struct reply_slot whole = {0};
    for (size_t i = 0; i < count; i++)
        join_part(&whole, JOIN_ANY, span_of(replies[i]));
    struct span drawn = buffer_span(&whole.reply);
    char letter = drawn.at[drawn.length - 3];
    buffer_finish(&whole.reply);
    return letter;
}

/* Whoever answers first, and whichever have nothing. */
static void each_that_is_not_nil_is_drawn_as_often(void **state)
{
    static const char *const replies[] = {"$-1\r\n",     "$1\r\na\r\n", "_\r\n",
                                          "$1\r\nb\r\n", "$1\r\nc\r\n", "$-1\r\n"};
    size_t drawn[3] = {0};
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        char letter = draw(replies, 6);
        assert_in_range(letter, 'a', 'c');
        drawn[letter - 'a']++;
    }
    for (size_t i = 0; i < 3; i++) /* 1,000, but for ten standard deviations */
        assert_in_range(drawn[i], 740, 1260);
}

static void with_nothing_but_nil_it_is_nil(void **state)
{
    static const char *const replies[] = {"$-1\r\n", "$-1\r\n"};
    (void)state;
    assert_int_equal(draw(replies, 2), '1');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_that_is_not_nil_is_drawn_as_often),
        cmocka_unit_test(with_nothing_but_nil_it_is_nil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
