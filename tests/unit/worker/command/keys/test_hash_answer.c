/* What is said of a hash, in the words of Redis. */
#include "worker/command/keys/hash_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#define THREE "$1\r\na\r\n$3\r\none\r\n$1\r\nb\r\n$0\r\n\r\n$2\r\nab\r\n$3\r\ntwo\r\n"

static const char *const hashes[] = {"*6\r\n" THREE, "%3\r\n" THREE};

/* Names of fields, up to three. */
struct asked {
    enum command_hash what;
    const char *names[3];
};

static void must_say(const struct asked *asked, bool resp3, const char *hash, const char *wanted)
{
    struct lookup fields[3];
    struct hash_question question = {.what = asked->what, .fields = fields, .resp3 = resp3};
    struct buffer out = {0};
    while (question.count < 3 && asked->names[question.count]) {
        fields[question.count].key = span_of(asked->names[question.count]);
        question.count++;
    }
    assert_true(hash_answer_write(&question, span_of(hash), &out));
    assert_int_equal(buffer_length(&out), strlen(wanted));
    assert_memory_equal(buffer_span(&out).at, wanted, strlen(wanted));
    buffer_finish(&out);
}

/* Whichever protocol the hash came in. */
static void must_say_in_both(const struct asked *asked, const char *resp2, const char *resp3)
{
    for (size_t i = 0; i < 2; i++) {
        must_say(asked, false, hashes[i], resp2);
        must_say(asked, true, hashes[i], resp3);
    }
}

static void must_say_alike(const struct asked *asked, const char *wanted)
{
    must_say_in_both(asked, wanted, wanted);
}

static void a_field_has_its_value_or_is_nil(void **state)
{
    (void)state;
    must_say_alike(&(struct asked){HASH_VALUE, {"a"}}, "$3\r\none\r\n");
    must_say_alike(&(struct asked){HASH_VALUE, {"b"}}, "$0\r\n\r\n");
    must_say_in_both(&(struct asked){HASH_VALUE, {"one"}}, "$-1\r\n", "_\r\n");
    must_say_in_both(&(struct asked){HASH_VALUE, {""}}, "$-1\r\n", "_\r\n");
}

static void many_fields_come_in_the_order_in_which_they_were_asked(void **state)
{
    (void)state;
    must_say_in_both(&(struct asked){HASH_VALUES, {"ab", "x", "a"}},
                     "*3\r\n$3\r\ntwo\r\n$-1\r\n$3\r\none\r\n",
                     "*3\r\n$3\r\ntwo\r\n_\r\n$3\r\none\r\n");
    must_say_alike(&(struct asked){HASH_VALUES, {"a", "a", NULL}},
                   "*2\r\n$3\r\none\r\n$3\r\none\r\n");
}

static void whether_and_how_long_are_numbers(void **state)
{
    (void)state;
    must_say_alike(&(struct asked){HASH_HAS, {"b"}}, ":1\r\n");
    must_say_alike(&(struct asked){HASH_HAS, {"x"}}, ":0\r\n");
    must_say_alike(&(struct asked){HASH_LENGTH, {"a"}}, ":3\r\n");
    must_say_alike(&(struct asked){HASH_LENGTH, {"b"}}, ":0\r\n");
    must_say_alike(&(struct asked){HASH_LENGTH, {"x"}}, ":0\r\n");
    must_say_alike(&(struct asked){HASH_COUNT, {NULL}}, ":3\r\n");
}

static void all_of_it_is_a_map_where_there_are_maps(void **state)
{
    (void)state;
    must_say_in_both(&(struct asked){HASH_ALL, {NULL}}, hashes[0], hashes[1]);
    must_say_alike(&(struct asked){HASH_NAMES, {NULL}}, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$2\r\nab\r\n");
    must_say_alike(&(struct asked){HASH_TEXTS, {NULL}},
                   "*3\r\n$3\r\none\r\n$0\r\n\r\n$3\r\ntwo\r\n");
}

static void a_hash_without_fields_is_none(void **state)
{
    static const struct {
        struct asked asked;
        const char *wanted;
    } all[] = {
        {{HASH_VALUE, {"a"}}, "$-1\r\n"}, {{HASH_VALUES, {"a", "b"}}, "*2\r\n$-1\r\n$-1\r\n"},
        {{HASH_HAS, {"a"}}, ":0\r\n"},    {{HASH_LENGTH, {"a"}}, ":0\r\n"},
        {{HASH_COUNT, {NULL}}, ":0\r\n"}, {{HASH_ALL, {NULL}}, "*0\r\n"},
        {{HASH_NAMES, {NULL}}, "*0\r\n"}, {{HASH_TEXTS, {NULL}}, "*0\r\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct hash_question question = {.what = all[i].asked.what};
        must_say(&all[i].asked, false, "*0\r\n", all[i].wanted);
        must_say(&all[i].asked, false, "%0\r\n", all[i].wanted);
        assert_true(hash_answer_is_nothing(&question, span_of(all[i].wanted)));
    }
}

static void only_nothing_is_taken_for_nothing(void **state)
{
    static const struct {
        enum command_hash what;
        const char *reply;
        bool nothing;
    } all[] = {{HASH_VALUE, "_\r\n", true},
               {HASH_VALUE, "$0\r\n\r\n", false},
               {HASH_VALUES, "*1\r\n_\r\n", true},
               {HASH_VALUES, "*2\r\n$-1\r\n$0\r\n\r\n", false},
               {HASH_VALUES, "*2\r\n$1\r\na\r\n$-1\r\n", false},
               {HASH_HAS, ":1\r\n", false},
               {HASH_COUNT, ":10\r\n", false},
               {HASH_ALL, "%0\r\n", true},
               {HASH_ALL, "*2\r\n$0\r\n\r\n$0\r\n\r\n", false},
               {HASH_NAMES, "*1\r\n$0\r\n\r\n", false}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct hash_question question = {.what = all[i].what};
        assert_int_equal(hash_answer_is_nothing(&question, span_of(all[i].reply)), all[i].nothing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_has_its_value_or_is_nil),
        cmocka_unit_test(many_fields_come_in_the_order_in_which_they_were_asked),
        cmocka_unit_test(whether_and_how_long_are_numbers),
        cmocka_unit_test(all_of_it_is_a_map_where_there_are_maps),
        cmocka_unit_test(a_hash_without_fields_is_none),
        cmocka_unit_test(only_nothing_is_taken_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
