#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resp/pubsub.h"

static void must_be(const char *frame, enum pubsub_kind kind, enum pubsub_family family,
                    unsigned count)
{
    struct pubsub_message message = pubsub_read(span_of(frame));
    assert_int_equal(message.kind, kind);
    if (kind == PUBSUB_NONE)
        return;
    assert_int_equal(message.family, family);
    assert_int_equal(message.count, count);
}

static void messages_are_told_by_their_first_word(void **state)
{
    (void)state;
    must_be("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n", PUBSUB_MESSAGE, PUBSUB_CHANNEL, 0);
    must_be(">4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$1\r\nx\r\n", PUBSUB_MESSAGE,
            PUBSUB_PATTERN, 0);
    must_be("*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\nx\r\n", PUBSUB_MESSAGE, PUBSUB_SHARD, 0);
}

static void confirmations_tell_how_many_subscriptions_there_are(void **state)
{
    (void)state;
    must_be("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL, 2);
    must_be(">3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n", PUBSUB_CONFIRMATION, PUBSUB_SHARD, 1);
    must_be("*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL, 0);
    must_be(">3\r\n$12\r\npunsubscribe\r\n_\r\n:17\r\n", PUBSUB_CONFIRMATION, PUBSUB_PATTERN, 17);
}

static void must_confirm(const char *frame, bool ends, const char *name)
{
    struct pubsub_message message = pubsub_read(span_of(frame));
    assert_int_equal(message.kind, PUBSUB_CONFIRMATION);
    assert_int_equal(message.ends, ends);
    assert_true(span_is(message.name, name));
}

static void confirmations_tell_what_has_begun_or_ended(void **state)
{
    (void)state;
    must_confirm("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n", false, "a");
    must_confirm(">3\r\n$12\r\nsunsubscribe\r\n$3\r\na:b\r\n:0\r\n", true, "a:b");
    must_confirm("*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", true, "");
}

static void must_mean(const char *word, enum pubsub_family expected, bool expected_end)
{
    enum pubsub_family family;
    bool ends;
    assert_true(pubsub_is_command(span_of(word), &family, &ends));
    assert_int_equal(family, expected);
    assert_int_equal(ends, expected_end);
}

static void commands_are_told_in_either_case(void **state)
{
    enum pubsub_family family;
    bool ends;
    (void)state;
    must_mean("SUBSCRIBE", PUBSUB_CHANNEL, false);
    must_mean("punsubscribe", PUBSUB_PATTERN, true);
    must_mean("SUnSubscribe", PUBSUB_SHARD, true);
    assert_false(pubsub_is_command(span_of("PUBLISH"), &family, &ends));
    assert_string_equal(pubsub_word(PUBSUB_SHARD, false), "ssubscribe");
}

static void other_replies_are_no_messages(void **state)
{
    (void)state;
    must_be("*2\r\n$4\r\npong\r\n$0\r\n\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be("*1\r\n$7\r\nmessage\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be("*0\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be("*-1\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be("+message\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
    must_be("*2\r\n:1\r\n:2\r\n", PUBSUB_NONE, PUBSUB_CHANNEL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_told_by_their_first_word),
        cmocka_unit_test(confirmations_tell_how_many_subscriptions_there_are),
        cmocka_unit_test(confirmations_tell_what_has_begun_or_ended),
        cmocka_unit_test(commands_are_told_in_either_case),
        cmocka_unit_test(other_replies_are_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
