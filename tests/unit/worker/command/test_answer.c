/* What lookups' answers read like, and which of the cache's replies are answers at all. */
#include "worker/command/keys/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static void must_read(struct buffer *out, const char *wanted)
{
    assert_int_equal(buffer_length(out), strlen(wanted));
    assert_memory_equal(buffer_span(out).at, wanted, strlen(wanted));
    buffer_clear(out);
}

static void a_nil_is_one_in_either_protocol(void **state)
{
    (void)state;
    struct reply_slot resp2 = {.resp3 = false}, resp3 = {.resp3 = true};
    assert_string_equal(answer_nil(&resp2), "$-1\r\n");
    assert_string_equal(answer_nil(&resp3), "_\r\n");
}

static void only_what_keeps_the_cache_from_answering_is_its_failure(void **state)
{
    (void)state;
    static const char *const failures[] = {"-LOADING Redis is loading\r\n", "-MASTERDOWN Link\r\n",
                                           "-CLUSTERDOWN Hash slot\r\n", "-BUSY Redis is busy\r\n"};
    static const char *const answers[] = {
        "-BUSYKEY there\r\n", "-BUSYGROUP there\r\n", "-WRONGTYPE Operation\r\n",
        "-NOPERM no\r\n",     "+LOADING\r\n",         "$1\r\n-\r\n"};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        assert_true(answer_is_cache_failure(span_of(failures[i])));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_false(answer_is_cache_failure(span_of(answers[i])));
}

static void an_errors_words_are_cut_to_their_room(void **state)
{
    char words[ANSWER_WORDS], error[300];
    (void)state;
    assert_string_equal(answer_error_words(span_of("-NOPERM no\r\n"), words), "NOPERM no");
    assert_string_equal(answer_error_words(span_of("-\r\n"), words), "");
    assert_string_equal(answer_error_words(span_of("$6\r\nsecret\r\n"), words),
                        "NESTGUARD cache error: its reply is none that this command has");
    memset(error, 'x', sizeof error);
    error[0] = '-';
    struct span longer = {error, sizeof error};
    assert_int_equal(strlen(answer_error_words(longer, words)), ANSWER_WORDS - 1);
}

static void an_absent_key_reads_as_its_keyspace_says(void **state)
{
    struct keyspace keyspace = {.on_absent = ABSENT_NIL};
    struct buffer out = {0};
    (void)state;
    keyspace.name = "items";
    keyspace.absent_value = "none";
    answer_write_absent(&out, &keyspace, "$-1\r\n", true);
    must_read(&out, "$-1\r\n");
    keyspace.on_absent = ABSENT_VALUE;
    answer_write_absent(&out, &keyspace, "$-1\r\n", true);
    must_read(&out, "$4\r\nnone\r\n");
    answer_write_absent(&out, &keyspace, ":0\r\n", false); /* STRLEN takes no value */
    must_read(&out, ":0\r\n");
    keyspace.on_absent = ABSENT_ERROR;
    answer_write_absent(&out, &keyspace, ":0\r\n", false);
    must_read(&out, "-NESTGUARD absent: no row of keyspace items has this key\r\n");
    buffer_finish(&out);
}

/* Above all none of them is empty, or a nil. */
static void every_failed_load_has_an_error_of_its_own(void **state)
{
    static const enum load_outcome outcomes[] = {
        LOAD_BUSY, LOAD_CUT, LOAD_TIMEOUT, LOAD_DOWN, LOAD_REFUSED, LOAD_AMBIGUOUS, LOAD_TOO_LARGE};
    enum { OUTCOMES = sizeof outcomes / sizeof *outcomes };
    char texts[OUTCOMES][100] = {""};
    struct buffer out = {0};
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        answer_write_load_error(&out, outcomes[i]);
        struct span text = buffer_span(&out);
        assert_true(span_starts(text, "-NESTGUARD "));
        assert_memory_equal(text.at + text.length - 2, "\r\n", 2);
        memcpy(texts[i], text.at, text.length < 99 ? text.length : 99);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(texts[i], texts[other]);
        buffer_clear(&out);
    }
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nil_is_one_in_either_protocol),
        cmocka_unit_test(only_what_keeps_the_cache_from_answering_is_its_failure),
        cmocka_unit_test(an_errors_words_are_cut_to_their_room),
        cmocka_unit_test(an_absent_key_reads_as_its_keyspace_says),
        cmocka_unit_test(every_failed_load_has_an_error_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
