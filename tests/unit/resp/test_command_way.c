#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resp/command_way.h"
#include <stdio.h>

static struct command_way way_of(const char *text)
{
    static char copy[200];
    struct span words[20];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = span_of(word);
    return command_way(command_find(words[0]), words, count);
}

static void the_first_key_tells_the_node(void **state)
{
    static const struct {
        const char *command;
        size_t key;
    } cases[] = {{"GET k", 1},
                 {"set k v", 1},
                 {"RENAME a b", 1},
                 {"BITOP AND d a", 2},
                 {"EVAL x 1 k v", 3},
                 {"MSETEX 2 k v l w", 2},
                 {"EVAL x 0 v", 0},
                 {"EVAL x y k", 0},
                 {"EVAL x 1", 0},
                 {"FCALL f 2 a b", 3},
                 {"ZUNION 2 a b", 2},
                 {"LMPOP 1 k LEFT", 2},
                 {"BLMPOP 0 1 k LEFT", 3},
                 {"XREAD COUNT 1 STREAMS s 0", 4},
                 {"XREAD BLOCK 5 STREAMS s 0", 4},
                 {"XREADGROUP GROUP STREAMS STREAMS COUNT 2 STREAMS s >", 7},
                 {"OBJECT ENCODING k", 2},
                 {"OBJECT HELP", 0},
                 {"MEMORY USAGE k", 2},
                 {"SORT k STORE d", 1},
                 {"SPUBLISH c m", 1},
                 {"SSUBSCRIBE c", 1},
                 {"BLPOP k 0", 1},
                 {"GET", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_way way = way_of(cases[i].command);
        assert_int_equal(way.route, ROUTE_KEY);
        assert_int_equal(way.key, cases[i].key);
    }
}

static void some_are_for_all_and_some_for_any(void **state)
{
    (void)state;
    assert_int_equal(way_of("DBSIZE").route, ROUTE_ALL);
    assert_int_equal(way_of("DBSIZE").join, JOIN_SUM);
    assert_int_equal(way_of("script load x").route, ROUTE_ALL);
    assert_int_equal(way_of("SCRIPT EXISTS x").join, JOIN_LEAST);
    assert_int_equal(way_of("SCRIPT KILL").route, ROUTE_END);
    assert_int_equal(way_of("function kill").join, JOIN_ENDED);
    assert_int_equal(way_of("CONFIG SET a b").route, ROUTE_ALL);
    assert_int_equal(way_of("CONFIG GET a").route, ROUTE_ANY);
    assert_int_equal(way_of("PING").route, ROUTE_ANY);
    assert_int_equal(way_of("SCAN 0").route, ROUTE_SCAN);
    assert_int_equal(way_of("MULTI").route, ROUTE_STATE);
    assert_int_equal(way_of("CLIENT ID").route, ROUTE_STATE);
    assert_int_equal(way_of("CLIENT UNBLOCK 7").route, ROUTE_STATE);
}

static void several_keys_are_taken_apart(void **state)
{
    (void)state;
    assert_int_equal(way_of("MSET a 1 b 2").route, ROUTE_KEYS);
    assert_int_equal(way_of("MSET a 1 b 2").step, 2);
    assert_int_equal(way_of("DEL a b").join, JOIN_SUM);
    assert_int_equal(way_of("DEL").key, 0);
    assert_int_equal(way_of("MSETNX a 1 b 2").route, ROUTE_KEY);
}

static void what_means_one_server_or_nobody_knows_is_refused(void **state)
{
    (void)state;
    assert_int_equal(way_of("MONITOR").route, ROUTE_REFUSED);
    assert_int_equal(way_of("SCRIPT DEBUG YES").route, ROUTE_REFUSED);
    assert_int_equal(way_of("CLIENT TRACKING ON").route, ROUTE_STATE);
    assert_int_equal(way_of("MEMORY DOCTOR").route, ROUTE_REFUSED);
    assert_int_equal(way_of("SOME.MODULE x").route, ROUTE_REFUSED);
}

static int prepare(void **state)
{
    (void)state;
    commands_prepare();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_key_tells_the_node),
        cmocka_unit_test(some_are_for_all_and_some_for_any),
        cmocka_unit_test(several_keys_are_taken_apart),
        cmocka_unit_test(what_means_one_server_or_nobody_knows_is_refused),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
