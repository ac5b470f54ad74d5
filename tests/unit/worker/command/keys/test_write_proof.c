/* Which replies of the cache say that a write has made its key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "worker/command/keys/write_proof.h"

enum { WORDS = 8 };

/* Words are parted by one space each. */
static enum write_outcome outcome(const char *text, const char *reply)
{
    struct span words[WORDS];
    size_t count = 0;
    for (const char *at = text; at && *at && count < WORDS; count++) {
        const char *end = strchr(at, ' ');
        words[count] = (struct span){at, end ? (size_t)(end - at) : strlen(at)};
        at = end ? end + 1 : NULL;
    }
    const struct command *command = command_find(words[0]);
    assert_true(command->kind == COMMAND_WRITE || command->kind == COMMAND_DELETE);
    return write_outcome(write_proof(command, words, count), span_of(reply));
}

static bool is_done(const char *text, const char *reply)
{
    return outcome(text, reply) == WRITE_DONE;
}

/* What is on its way to the cache for its key may be old. */
static void what_makes_nothing_may_have_changed_something(void **state)
{
    (void)state;
    assert_int_equal(outcome("SET k v XX", "$-1\r\n"), WRITE_RUN);
    assert_int_equal(outcome("SET k v EXAT 1", "+OK\r\n"), WRITE_RUN);
    assert_int_equal(outcome("DELIFEQ k v", ":0\r\n"), WRITE_RUN);
    assert_int_equal(outcome("SUNIONSTORE k none", ":0\r\n"), WRITE_RUN);
    assert_int_equal(outcome("SET k v XX", "-NOPERM no\r\n"), WRITE_REFUSED);
    assert_int_equal(outcome("DELIFEQ k v", "-ERR unknown command\r\n"), WRITE_REFUSED);
}

static void a_refusal_makes_nothing(void **state)
{
    static const char *const writes[] = {"SET k v",    "GETSET k v",    "MSET k v",
                                         "SADD k m",   "COPY a k",      "SET k v GET",
                                         "RENAME a k", "RESTORE k 0 x", "SETBIT k 1 1",
                                         "EVAL s 1 k", "EVALSHA x 1 k", "LMOVE a k LEFT LEFT"};
    (void)state;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        assert_false(is_done(writes[i], "-NOPERM this user has no permissions\r\n"));
    assert_false(is_done("RENAME a k", "-ERR no such key\r\n"));
    assert_false(is_done("RESTORE k 0 x", "-ERR DUMP payload version or checksum are wrong\r\n"));
    assert_false(is_done("EVALSHA x 1 k", "-NOSCRIPT No matching script.\r\n"));
}

static void nil_says_that_nothing_was_written(void **state)
{
    (void)state;
    assert_false(is_done("SET k v XX", "$-1\r\n"));
    assert_false(is_done("SET k v XX", "_\r\n"));
    assert_false(is_done("SET k v GET XX", "$-1\r\n"));
    assert_false(is_done("RPOPLPUSH a k", "$-1\r\n"));
    assert_false(is_done("XADD k NOMKSTREAM * f v", "$-1\r\n"));
    assert_true(is_done("SET k v XX", "+OK\r\n"));
}

static void nil_may_be_what_was_there_before(void **state)
{
    (void)state;
    assert_true(is_done("GETSET k v", "$-1\r\n"));
    assert_true(is_done("SET k v GET", "$-1\r\n"));
    assert_true(is_done("SET k v nx get", "_\r\n"));
}

static void a_count_of_none_says_that_nothing_is_there(void **state)
{
    static const char *const writes[] = {"SINTERSTORE k a b", "ZUNIONSTORE k 1 a", "COPY a k",
                                         "RENAMENX a k",      "SORT a STORE k",    "BITOP AND k a",
                                         "MSETNX k v",        "ZADD k XX 1 m",     "SMOVE a k m"};
    (void)state;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        assert_false(is_done(writes[i], ":0\r\n"));
        assert_true(is_done(writes[i], ":1\r\n"));
    }
}

static void elsewhere_0_is_a_number_like_others(void **state)
{
    (void)state;
    assert_true(is_done("INCR k", ":0\r\n"));
    assert_true(is_done("SETBIT k 1 1", ":0\r\n"));
    assert_true(is_done("HSET k f v", ":0\r\n"));
    assert_true(is_done("APPEND k v", ":0\r\n"));
    assert_true(is_done("ZADD k 1 m", ":0\r\n"));
    assert_true(is_done("ZADD k 1 xx", ":0\r\n")); /* a member of that name */
    assert_true(is_done("ZADD k ch 1 xx", ":0\r\n"));
    assert_false(is_done("ZADD k ch xx 1 m", ":0\r\n"));
}

/* The keeper deletes once more behind a fill: also where there was nothing to delete before it. */
static void a_deletion_without_a_condition_is_done_whatever_was_there(void **state)
{
    (void)state;
    assert_true(is_done("DEL k", ":0\r\n"));
    assert_true(is_done("UNLINK k", ":0\r\n"));
    assert_true(is_done("GETDEL k", "$-1\r\n"));
    assert_true(is_done("DELEX k", ":0\r\n"));
    assert_true(is_done("DELEX k IFEQ v", ":1\r\n"));
    assert_false(is_done("DELEX k IFEQ v", ":0\r\n"));
    assert_false(is_done("DELEX k", "-NOPERM this user has no permissions\r\n"));
}

static void a_script_that_failed_may_have_written_before(void **state)
{
    (void)state;
    assert_true(is_done("EVAL s 1 k", "-ERR boom script: abc, on @user_script:1.\r\n"));
    assert_true(is_done("EVAL s 1 k", "-NOPERM no permission script: abc, on @user_script:1.\r\n"));
    assert_true(is_done("EVAL s 1 k", "$-1\r\n"));
    /* which it has worded itself */
    assert_true(is_done("EVAL s 1 k", "-BUSY try later\r\n"));
    assert_true(is_done("EVAL s 1 k", "-NOPERM not yours\r\n"));
    assert_true(is_done("EVAL s 1 k", "-LOADING mine\r\n"));
    assert_true(is_done("EVAL s 1 k", "-MOVED 1 elsewhere\r\n"));
    assert_false(is_done("EVAL s 1 k", "-BUSY Redis is busy running a script. You can only\r\n"));
    assert_false(is_done("EVAL s 1 k", "-NOPERM User a has no permissions to run the 'eval'\r\n"));
    assert_true(is_done("FCALL f 1 k", "-OWN my error\r\n"));
    /* an error of one of its commands, which it has returned */
    assert_true(is_done("EVAL s 1 k", "-ERR value is not an integer or out of range\r\n"));
    assert_true(is_done("EVAL s 1 k", "-ERR wrong number of arguments for 'set' command\r\n"));
}

static void what_has_expired_a_day_ago_is_not_there(void **state)
{
    char recently[100];
    (void)state;
    assert_false(is_done("SET k v EXAT 1000000000", "+OK\r\n"));
    assert_false(is_done("SET k v GET PXAT 1000000000000", "$1\r\nx\r\n"));
    assert_false(is_done("RESTORE k 1000000000000 x REPLACE ABSTTL", "+OK\r\n"));
    assert_true(is_done("RESTORE k 1000000000000 x REPLACE", "+OK\r\n"));
    assert_true(is_done("RESTORE k 0 x ABSTTL", "+OK\r\n")); /* lives for ever */
    assert_true(is_done("SET k v EXAT 100000000000", "+OK\r\n"));
    assert_true(is_done("SET k EXAT EX 1000000000", "+OK\r\n"));
    /* by the guard's clock: the cache's may be another */
    snprintf(recently, sizeof recently, "SET k v EXAT %lld", (long long)time(NULL) - 60);
    assert_true(is_done(recently, "+OK\r\n"));
}

static void what_is_queued_counts_as_done(void **state)
{
    (void)state;
    assert_true(is_done("SET k v", "+QUEUED\r\n"));
    assert_true(is_done("COPY a k", "+QUEUED\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_nothing_may_have_changed_something),
        cmocka_unit_test(a_refusal_makes_nothing),
        cmocka_unit_test(nil_says_that_nothing_was_written),
        cmocka_unit_test(nil_may_be_what_was_there_before),
        cmocka_unit_test(a_count_of_none_says_that_nothing_is_there),
        cmocka_unit_test(elsewhere_0_is_a_number_like_others),
        cmocka_unit_test(a_deletion_without_a_condition_is_done_whatever_was_there),
        cmocka_unit_test(a_script_that_failed_may_have_written_before),
        cmocka_unit_test(what_has_expired_a_day_ago_is_not_there),
        cmocka_unit_test(what_is_queued_counts_as_done)};
    commands_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
