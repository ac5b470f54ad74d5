#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/memory.h"
#include "resp/command.h"

static const struct command *find(const char *name)
{
    return command_find(span_of(name));
}

static bool is_stateful(const char *line)
{
    struct span arguments[16];
    size_t count = 0;
    char *copy = xstrdup(line), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        arguments[count++] = span_of(word);
    }
    bool stateful = command_is_stateful(command_find(arguments[0]), arguments, count);
    free(copy);
    return stateful;
}

static void every_row_is_found_in_any_case(void **state)
{
    (void)state;
    for (size_t row = 0; row < command_table_rows; row++) {
        char *name = xstrdup(command_table[row].name);
        assert_ptr_equal(find(name), &command_table[row]);
        for (size_t i = 0; name[i]; i++) {
            name[i] = (char)tolower((unsigned char)name[i]);
        }
        assert_ptr_equal(find(name), &command_table[row]);
        name[0] = (char)toupper((unsigned char)name[0]);
        assert_ptr_equal(find(name), &command_table[row]);
        free(name);
    }
}

static void rows_are_in_upper_case_and_unique(void **state)
{
    (void)state;
    for (size_t row = 0; row < command_table_rows; row++) {
        for (const char *at = command_table[row].name; *at; at++) {
            assert_false(islower((unsigned char)*at));
        }
        for (size_t other = 0; other < row; other++) {
            assert_string_not_equal(command_table[row].name, command_table[other].name);
        }
    }
}

static void what_a_row_holds_fits_its_kind(void **state)
{
    (void)state;
    for (size_t row = 0; row < command_table_rows; row++) {
        const struct command *command = &command_table[row];
        bool one_key = command->first_key == 1 && command->last_key == 1 && command->key_step == 1;
        switch (command->kind) {
        case COMMAND_GET:
        case COMMAND_READ:
            assert_true(one_key);
            assert_int_equal(command->absent[0] == NULL, command->hash == HASH_VALUES);
            assert_int_equal(command->absent[1] == NULL, command->hash == HASH_VALUES);
            break;
        case COMMAND_MGET:
        case COMMAND_EXISTS:
        case COMMAND_WRITE:
        case COMMAND_DELETE:
            assert_true(command->first_key > 0 && command->key_step > 0);
            assert_true(abs(command->arity) > command->first_key || command->last_key < -1);
            break;
        case COMMAND_MEMBER:
        case COMMAND_ADMIT:
        case COMMAND_FILTER:
            assert_true(one_key);
            break;
        case COMMAND_STATEFUL:
            assert_true(!command->first_key || command->effect == EFFECT_BLOCK);
            assert_true(abs(command->arity) > command->last_key || !command->first_key);
            break;
        default:
            assert_int_equal(command->first_key, 0);
            assert_null(command->absent[0]);
            assert_null(command->absent[1]);
        }
    }
}

static void the_kinds_are_those_the_guard_relies_on(void **state)
{
    (void)state;
    assert_int_equal(find("get")->kind, COMMAND_GET);
    assert_int_equal(find("mget")->kind, COMMAND_MGET);
    assert_int_equal(find("exists")->kind, COMMAND_EXISTS);
    assert_int_equal(find("ttl")->kind, COMMAND_READ);
    assert_string_equal(find("ttl")->absent[0], ":-2\r\n");
    assert_string_equal(find("hgetall")->absent[1], "%0\r\n");
    assert_int_equal(find("set")->kind, COMMAND_WRITE);
    assert_int_equal(find("hello")->kind, COMMAND_LOCAL);
    assert_int_equal(find("multi")->kind, COMMAND_STATEFUL);
    assert_int_equal(find("host:")->kind, COMMAND_STATEFUL);
}

/* One key of several, or a reply whose shape depends on arguments: never answered by a constant. */
static void replies_that_are_not_constant_are_forwarded(void **state)
{
    (void)state;
    const char *names[] = {"SMISMEMBER", "LPOS",    "SRANDMEMBER", "HRANDFIELD",  "GEOPOS",
                           "GEOHASH",    "ZMSCORE", "BITPOS",      "ZRANDMEMBER", "TOUCH",
                           "PFCOUNT",    "OBJECT",  "BITFIELD_RO", "SORT_RO",     "LCS",
                           "XPENDING",   "SINTER"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(find(names[i])->kind, COMMAND_FORWARD);
    }
}

static void unknown_names_are_not_for_shared_connections(void **state)
{
    (void)state;
    const char *names[] = {"",
                           "G",
                           "GE",
                           "GETS",
                           "XGET",
                           "FROBNICATE",
                           "GET ",
                           "ge t",
                           "{et",
                           "'ET",
                           "\347ET",
                           "GEORADIUSBYMEMBER_ROX",
                           "AVERYVERYLONGCOMMANDNAMETHATNOBODYHAS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct command *command = find(names[i]);
        assert_int_equal(command->kind, COMMAND_STATEFUL);
        assert_int_equal(command->first_key, 0);
        assert_true(command_arity_ok(command, 1));
        assert_int_equal(command->effect, EFFECT_NONE);
        assert_true(command_is_stateful(command, &(struct span){names[i], 1}, 1));
    }
}

/* Each byte in the place of each letter of names that take one word, two and three. */
static void only_the_two_cases_of_a_letter_are_the_same(void **state)
{
    const char *names[] = {"Get", "strLEN", "zinterstore", "georadiusbymember_ro"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t at = 0; at < strlen(names[i]); at++) {
            for (int byte = 0; byte < 256; byte++) {
                char changed[32] = {0};
                memcpy(changed, names[i], strlen(names[i]));
                changed[at] = (char)byte;
                struct span name = {changed, strlen(names[i])};
                bool same = toupper(byte) == toupper((unsigned char)names[i][at]);
                assert_int_equal(command_find(name) == find(names[i]), same);
            }
        }
    }
}

static void a_zero_byte_is_part_of_a_name(void **state)
{
    (void)state;
    assert_int_equal(command_find((struct span){"GET\0", 4})->kind, COMMAND_STATEFUL);
    assert_int_equal(command_find((struct span){"GET\0GET\0GET\0GET\0GET\0GET", 23})->kind,
                     COMMAND_STATEFUL);
}

static void names_of_any_length_are_looked_up_inside_their_bytes(void **state)
{
    (void)state;
    for (size_t length = 0; length < 2000; length++) {
        char *name = xmalloc(length);
        memset(name, 'g', length);
        assert_int_equal(command_find((struct span){name, length})->kind, COMMAND_STATEFUL);
        free(name);
    }
}

static void stateful_commands_are_told_by_name(void **state)
{
    (void)state;
    assert_true(is_stateful("multi"));
    assert_true(is_stateful("BLPOP k 0"));
    assert_true(is_stateful("unsubscribe"));
    assert_false(is_stateful("GET k"));
    assert_false(is_stateful("SET block streams"));
    assert_false(is_stateful("CLIENT REPLY OFF"));
    assert_false(is_stateful("DEL BLOCK"));
}

static void reading_a_stream_is_stateful_only_when_it_blocks(void **state)
{
    (void)state;
    assert_true(is_stateful("XREAD BLOCK 0 STREAMS s $"));
    assert_true(is_stateful("xread count 1 block 0 streams s $"));
    assert_true(is_stateful("XREADGROUP GROUP g c BLOCK 5 STREAMS s >"));
    assert_true(is_stateful("XREADGROUP GROUP g c NOACK COUNT 2 BLOCK 5 STREAMS s >"));
    assert_false(is_stateful("XREAD STREAMS s 0"));
    assert_false(is_stateful("XREAD COUNT 1 STREAMS block 0"));
    assert_false(is_stateful("XREAD STREAMS streams block 0 0"));
    assert_false(is_stateful("XREADGROUP GROUP block block STREAMS s >"));
    assert_false(is_stateful("XREADGROUP GROUP g"));
    assert_false(is_stateful("XREAD COUNT"));
    assert_false(is_stateful("XREAD"));
}

static void debugging_scripts_is_stateful(void **state)
{
    (void)state;
    assert_true(is_stateful("script debug yes"));
    assert_false(is_stateful("SCRIPT LOAD debug"));
    assert_false(is_stateful("SCRIPT"));
}

static void arity_is_exact_or_at_least(void **state)
{
    (void)state;
    assert_true(command_arity_ok(find("GET"), 2));
    assert_false(command_arity_ok(find("GET"), 1));
    assert_false(command_arity_ok(find("GET"), 3));
    assert_false(command_arity_ok(find("MGET"), 1));
    assert_true(command_arity_ok(find("MGET"), 2));
    assert_true(command_arity_ok(find("MGET"), 1000000));
    assert_true(command_arity_ok(find("PING"), 17));
    assert_true(command_arity_ok(find("MULTI"), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found_in_any_case),
        cmocka_unit_test(rows_are_in_upper_case_and_unique),
        cmocka_unit_test(what_a_row_holds_fits_its_kind),
        cmocka_unit_test(the_kinds_are_those_the_guard_relies_on),
        cmocka_unit_test(replies_that_are_not_constant_are_forwarded),
        cmocka_unit_test(unknown_names_are_not_for_shared_connections),
        cmocka_unit_test(only_the_two_cases_of_a_letter_are_the_same),
        cmocka_unit_test(a_zero_byte_is_part_of_a_name),
        cmocka_unit_test(names_of_any_length_are_looked_up_inside_their_bytes),
        cmocka_unit_test(stateful_commands_are_told_by_name),
        cmocka_unit_test(reading_a_stream_is_stateful_only_when_it_blocks),
        cmocka_unit_test(debugging_scripts_is_stateful),
        cmocka_unit_test(arity_is_exact_or_at_least),
    };
    commands_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
