#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "resp/command_info.h"

#define GET_REST ":1\r\n:1\r\n:1\r\n"

static struct command_info read(const char *reply)
{
    struct command_info info = {.first_key = 99};
    if (!command_info_read(span_of(reply), &info))
        fail_msg("\"%s\" was not understood", reply);
    return info;
}

static void the_first_key_is_told(void **state)
{
    (void)state;
    struct command_info info = read("*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*1\r\n+fast\r\n" GET_REST);
    assert_true(info.is_known);
    assert_false(info.blocks || info.hides_keys);
    assert_int_equal(info.first_key, 1);
    info = read("*1\r\n*6\r\n$4\r\nping\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n");
    assert_true(info.is_known);
    assert_int_equal(info.first_key, 0);
    assert_int_equal(read("*1\r\n*6\r\n$4\r\nping\r\n:2\r\n*0\r\n:-1\r\n:0\r\n:0\r\n").first_key,
                     0);
}

static void flags_are_told_in_both_protocols(void **state)
{
    (void)state;
    struct command_info info =
        read("*1\r\n*6\r\n$1\r\nm\r\n:2\r\n*2\r\n+write\r\n+blocking\r\n" GET_REST);
    assert_true(info.blocks && !info.hides_keys);
    info = read("*1\r\n*6\r\n$1\r\nm\r\n:2\r\n~2\r\n+movablekeys\r\n+readonly\r\n" GET_REST);
    assert_true(info.hides_keys && !info.blocks);
    info = read("*1\r\n*6\r\n$1\r\nm\r\n:2\r\n*2\r\n+nonblocking\r\n+block\r\n" GET_REST);
    assert_false(info.hides_keys || info.blocks);
}

/* Each has keys at places of its own. */
static void what_has_subcommands_hides_its_keys(void **state)
{
    (void)state;
    assert_true(read("*1\r\n*10\r\n$1\r\nm\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n"
                     "*1\r\n*10\r\n$3\r\nm|a\r\n:2\r\n*0\r\n:2\r\n:2\r\n:1\r\n*0\r\n*0\r\n*0\r\n"
                     "*0\r\n")
                    .hides_keys);
    assert_false(read("*1\r\n*10\r\n$1\r\nm\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n*1\r\n+@all\r\n*0\r\n"
                      "*1\r\n*0\r\n*0\r\n")
                     .hides_keys);
}

static void nil_is_a_command_that_the_cache_does_not_know(void **state)
{
    static const char *const nils[] = {"*1\r\n*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n_\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof nils / sizeof *nils; i++)
        assert_false(read(nils[i]).is_known);
}

static void what_is_no_such_answer_is_none(void **state)
{
    static const char *const others[] = {"-NOPERM no\r\n",
                                         "+OK\r\n",
                                         "*0\r\n",
                                         "*2\r\n*-1\r\n*-1\r\n",
                                         "*1\r\n+OK\r\n",
                                         "*1\r\n*0\r\n",
                                         "*1\r\n*3\r\n$1\r\nm\r\n:2\r\n*0\r\n",
                                         "*1\r\n*4\r\n$1\r\nm\r\n:2\r\n+OK\r\n:1\r\n",
                                         "*1\r\n*4\r\n$1\r\nm\r\n:2\r\n*0\r\n+1\r\n",
                                         "*1\r\n*4\r\n$1\r\nm\r\n:2\r\n*0\r\n:99999999999\r\n"};
    struct command_info info;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (command_info_read(span_of(others[i]), &info))
            fail_msg("\"%s\" was believed", others[i]);
}

static void must_find(const char *reply, const char *wanted)
{
    struct span key;
    assert_true(command_first_key_read(span_of(reply), &key));
    assert_true(span_is(key, wanted));
}

static void the_first_of_the_keys_is_told(void **state)
{
    struct span key;
    (void)state;
    must_find("*1\r\n$1\r\na\r\n", "a");
    must_find("*2\r\n$2\r\nbb\r\n$1\r\na\r\n", "bb");
    must_find("*0\r\n", "");
    must_find("-ERR The command has no key arguments\r\n", "");
    must_find("-ERR Invalid arguments specified for command\r\n", "");
    must_find("-ERR Invalid number of arguments specified for command\r\n", "");
    must_find("-ERR Invalid command specified\r\n", "");
    assert_false(command_first_key_read(span_of("-NOPERM no\r\n"), &key));
    assert_false(command_first_key_read(span_of("+OK\r\n"), &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_key_is_told),
        cmocka_unit_test(flags_are_told_in_both_protocols),
        cmocka_unit_test(what_has_subcommands_hides_its_keys),
        cmocka_unit_test(nil_is_a_command_that_the_cache_does_not_know),
        cmocka_unit_test(what_is_no_such_answer_is_none),
        cmocka_unit_test(the_first_of_the_keys_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
