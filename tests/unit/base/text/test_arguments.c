#include "base/text/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static const char *rate, *kind, *plain[2];
static unsigned table;

static const struct argument_option options[] = {
    {"fpr", &rate, NULL, 'f'}, {"filter", &kind, NULL, 0}, {"table", NULL, &table, 't'}, {0}};

static struct arguments arguments;

/* Reads words that a NULL ends. */
static int read_words(const char *const *words, bool command_follows)
{
    int count = 0;
    rate = kind = plain[0] = plain[1] = NULL;
    table = 0;
    arguments = (struct arguments){
        .options = options, .plain = plain, .most = 2, .command_follows = command_follows};
    while (words[count])
        count++;
    return arguments_read(&arguments, count, (char **)(uintptr_t)words);
}

#define READ(...) read_words((const char *[]){"command", __VA_ARGS__, NULL}, false)

static void options_and_words_may_be_mixed(void **state)
{
    (void)state;
    assert_int_equal(READ("a", "--fpr", "1%", "b", "--table"), 2);
    assert_string_equal(plain[0], "a");
    assert_string_equal(plain[1], "b");
    assert_string_equal(rate, "1%");
    assert_int_equal(table, 1);
    assert_null(kind);
    assert_int_equal(read_words((const char *[]){"command", NULL}, false), 0);
    assert_int_equal(read_words((const char *[]){NULL}, false), 0);
}

static void a_value_may_stand_behind_an_equals_sign(void **state)
{
    (void)state;
    assert_int_equal(READ("--fpr=1%", "--filter="), 0);
    assert_string_equal(rate, "1%");
    assert_string_equal(kind, "");
}

static void a_value_may_look_like_an_option(void **state)
{
    (void)state;
    assert_int_equal(READ("--fpr", "--table"), 0);
    assert_string_equal(rate, "--table");
    assert_int_equal(table, 0);
}

static void a_dash_and_all_behind_two_are_words(void **state)
{
    (void)state;
    assert_int_equal(READ("-", "--", "--table"), 2);
    assert_string_equal(plain[0], "-");
    assert_string_equal(plain[1], "--table");
    assert_int_equal(table, 0);
}

static void an_option_may_have_a_letter(void **state)
{
    (void)state;
    assert_int_equal(READ("-f", "1%", "a", "-t", "-t"), 1);
    assert_string_equal(rate, "1%");
    assert_int_equal(table, 2);
    assert_int_equal(READ("-tf1%"), 0);
    assert_string_equal(rate, "1%");
    assert_int_equal(READ("-f"), -EINVAL);
    assert_string_equal(arguments.option->name, "fpr");
}

static void what_follows_a_command_is_left_to_it(void **state)
{
    static const char *const words[] = {"ctl", "--fpr", "1%", "status", "--table", NULL};
    (void)state;
    assert_int_equal(read_words(words, true), 3);
    assert_string_equal(rate, "1%");
    assert_int_equal(table, 0);
    assert_int_equal(read_words((const char *[]){"ctl", "-t", NULL}, true), 2);
    assert_int_equal(table, 1);
}

static void the_wrong_word_is_named(void **state)
{
    (void)state;
    assert_int_equal(READ("a", "--fast"), -EINVAL);
    assert_string_equal(arguments.wrong, "--fast");
    assert_int_equal(READ("--fprx", "1"), -EINVAL); /* a longer name is another name */
    assert_int_equal(READ("--tab"), -EINVAL);       /* and a shorter one */
    assert_string_equal(arguments.wrong, "--tab");
    assert_int_equal(READ("--tab=5"), -EINVAL);
    assert_int_equal(arguments.fault, ARGUMENT_UNKNOWN);
    assert_int_equal(READ("-tx"), -EINVAL);
    assert_string_equal(arguments.wrong, "-tx");
    assert_int_equal(READ("a", "--fpr"), -EINVAL);
    assert_non_null(strstr(arguments.why, "value is missing"));
    assert_int_equal(READ("--table=5"), -EINVAL);
    assert_non_null(strstr(arguments.why, "no value"));
    assert_int_equal(READ("a", "b", "c"), -EINVAL);
    assert_string_equal(arguments.wrong, "c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_words_may_be_mixed),
        cmocka_unit_test(a_value_may_stand_behind_an_equals_sign),
        cmocka_unit_test(a_value_may_look_like_an_option),
        cmocka_unit_test(a_dash_and_all_behind_two_are_words),
        cmocka_unit_test(an_option_may_have_a_letter),
        cmocka_unit_test(what_follows_a_command_is_left_to_it),
        cmocka_unit_test(the_wrong_word_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
