/* Messages that do not fit: cut, too long, in the wrong place, with impossible fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "fakes/walsender.h"

static void expect_error(const char *wanted, struct log_message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error = NULL;
    assert_int_equal(read_copy(&message, message.length, in_stream, &event, &error), -EPROTO);
    assert_string_equal(error, wanted);
}

static void expect_every_cut_refused(struct log_message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error;
    read_well(message, in_stream);
    for (size_t length = 0; length < message.length; length++) {
        if (message.at[0] == 'A' && length == 9)
            continue; /* whole, in the form without place and time */
        error = NULL;
        assert_int_equal(read_copy(&message, length, in_stream, &event, &error), -EPROTO);
        assert_non_null(error);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for_each_sample(expect_every_cut_refused);
}

static void expect_more_refused(struct log_message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error = NULL;
    put(&message, "", 1);
    assert_int_equal(read_copy(&message, message.length, in_stream, &event, &error), -EPROTO);
    assert_non_null(strstr(error, message.at[0] == 'A' && message.length == 10
                                      ? "Stream Abort ends too early"
                                      : " goes on behind its end"));
}

static void bytes_behind_the_end_are_refused(void **state)
{
    (void)state;
    for_each_sample(expect_more_refused);
}

static void a_message_in_the_wrong_place_is_refused(void **state)
{
    (void)state;
    expect_error("Begin inside a streamed block", compose("cqqw", 'B', UINT64_C(1), UINT64_C(2), 3),
                 STREAMED);
    expect_error("Commit inside a streamed block",
                 compose("ccqqq", 'C', 0, UINT64_C(1), UINT64_C(2), UINT64_C(3)), STREAMED);
    expect_error("Stream Start inside a streamed block", compose("cwc", 'S', 7, 1), STREAMED);
    expect_error("Stream Stop outside a streamed block", compose("c", 'E'), PLAIN);
    expect_error("Stream Commit inside a streamed block",
                 compose("cwcqqq", 'c', 7, 0, UINT64_C(1), UINT64_C(2), UINT64_C(3)), STREAMED);
    expect_error("Stream Abort inside a streamed block", compose("cww", 'A', 7, 7), STREAMED);
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    expect_error("Commit has unknown flags",
                 compose("ccqqq", 'C', 1, UINT64_C(1), UINT64_C(2), UINT64_C(3)), PLAIN);
    expect_error("Truncate has unknown flags", compose("cwcw", 'T', 1, 4, 7), PLAIN);
    expect_error("Message has unknown flags", compose("ccqsw", 'M', 2, UINT64_C(1), "", 0), PLAIN);
    expect_error("Relation has unknown flags",
                 compose("cwsschcsww", 'R', 1, "s", "t", 'd', 1, 2, "id", 20, -1), PLAIN);
    expect_error("Stream Start has unknown flags", compose("cwc", 'S', 7, 2), PLAIN);
    expect_error("Stream Commit has unknown flags",
                 compose("cwcqqq", 'c', 7, 128, UINT64_C(1), UINT64_C(2), UINT64_C(3)), PLAIN);
}

static void names_must_end_inside_the_message(void **state)
{
    (void)state;
    expect_error("Relation holds a name without an end", compose("cwx", 'R', 1, "public"), PLAIN);
    expect_error("Relation holds a name without an end", compose("cwsx", 'R', 1, "s", "t"), PLAIN);
    expect_error("Relation holds a name without an end",
                 compose("cwsschcx", 'R', 1, "s", "t", 'd', 1, 1, "id"), PLAIN);
    expect_error("Type holds a name without an end", compose("cwsx", 'Y', 1, "s", "t"), PLAIN);
    expect_error("Origin holds a name without an end", compose("cqx", 'O', UINT64_C(1), "o"),
                 PLAIN);
    expect_error("Message holds a name without an end",
                 compose("ccqx", 'M', 0, UINT64_C(1), "prefix"), PLAIN);
}

static void values_must_end_inside_the_message(void **state)
{
    static const unsigned lengths[] = {2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        expect_error("Insert holds a value longer than itself",
                     compose("cwchcwc", 'I', 7, 'N', 1, 't', lengths[i], 'a'), PLAIN);
        expect_error("Update holds a value longer than itself",
                     compose("cwchcwc", 'U', 7, 'K', 1, 'b', lengths[i], 'a'), PLAIN);
        expect_error("Delete holds a value longer than itself",
                     compose("cwchcwc", 'D', 7, 'O', 1, 't', lengths[i], 'a'), PLAIN);
        expect_error("Message holds a value longer than itself",
                     compose("ccqswc", 'M', 0, UINT64_C(1), "p", lengths[i], 'a'), PLAIN);
    }
}

static void unknown_values_and_tuples_are_refused(void **state)
{
    (void)state;
    expect_error("Insert holds an unknown kind of value", compose("cwchcn", 'I', 7, 'N', 2, 'x'),
                 PLAIN);
    expect_error("Insert holds an unknown kind of tuple", compose("cwchn", 'I', 7, 'K', 1), PLAIN);
    expect_error("Update holds an unknown kind of tuple", compose("cwchn", 'U', 7, 'X', 1), PLAIN);
    expect_error("Update holds an unknown kind of tuple",
                 compose("cwchnchn", 'U', 7, 'K', 1, 'O', 1), PLAIN);
    expect_error("Update ends too early", compose("cwchn", 'U', 7, 'K', 1), PLAIN);
    expect_error("Delete holds an unknown kind of tuple", compose("cwchn", 'D', 7, 'N', 1), PLAIN);
    expect_error("Relation has an unknown replica identity",
                 compose("cwssch", 'R', 1, "s", "t", 'x', 0), PLAIN);
    expect_error("Relation has an unknown replica identity",
                 compose("cwssch", 'R', 1, "s", "t", 0, 0), PLAIN);
}

static struct log_message row_of_nulls(unsigned columns)
{
    struct log_message message = compose("cwch", 'I', 7, 'N', columns);
    for (unsigned i = 0; i < columns && i < 2000; i++)
        put(&message, "n", 1);
    return message;
}

static void a_row_has_no_more_columns_than_postgresql_allows(void **state)
{
    (void)state;
    struct pgoutput_event event = read_well(row_of_nulls(PGOUTPUT_COLUMNS_MAX), PLAIN);
    assert_int_equal(event.new_tuple.columns, PGOUTPUT_COLUMNS_MAX);
    expect_error("Insert has more columns than a table can have",
                 row_of_nulls(PGOUTPUT_COLUMNS_MAX + 1), PLAIN);
    expect_error("Insert has more columns than a table can have", row_of_nulls(0xFFFF), PLAIN);
    expect_error("Relation has more columns than a table can have",
                 compose("cwssch", 'R', 1, "s", "t", 'd', 0xFFFF), PLAIN);
}

static void a_truncate_cannot_list_more_than_it_holds(void **state)
{
    (void)state;
    expect_error("Truncate lists more relations than it holds", compose("cwcw", 'T', 2, 0, 7),
                 PLAIN);
    expect_error("Truncate lists more relations than it holds",
                 compose("cwcw", 'T', 0x40000001, 0, 7), PLAIN);
    expect_error("Truncate lists more relations than it holds",
                 compose("cwcw", 'T', 0xFFFFFFFF, 0, 7), PLAIN);
    expect_error("Truncate goes on behind its end", compose("cwcww", 'T', 1, 0, 7, 8), PLAIN);
}

static void unknown_messages_are_refused(void **state)
{
    (void)state;
    expect_error("empty message", compose(""), PLAIN);
    for (unsigned letter = 0; letter < 256; letter++) {
        if (letter == 0 || !strchr("BCORYIUDTMSEcAbPKrp", (int)letter))
            expect_error("unknown message", compose("cq", letter, UINT64_C(0)), PLAIN);
    }
}

static void two_phase_transactions_are_refused_by_name(void **state)
{
    (void)state;
    expect_error("Begin Prepare: two-phase transactions were not asked for", compose("c", 'b'),
                 PLAIN);
    expect_error("Prepare: two-phase transactions were not asked for", compose("c", 'P'), PLAIN);
    expect_error("Commit Prepared: two-phase transactions were not asked for", compose("c", 'K'),
                 PLAIN);
    expect_error("Rollback Prepared: two-phase transactions were not asked for", compose("c", 'r'),
                 PLAIN);
    expect_error("Stream Prepare: two-phase transactions were not asked for", compose("c", 'p'),
                 PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(bytes_behind_the_end_are_refused),
        cmocka_unit_test(a_message_in_the_wrong_place_is_refused),
        cmocka_unit_test(unknown_flags_are_refused),
        cmocka_unit_test(names_must_end_inside_the_message),
        cmocka_unit_test(values_must_end_inside_the_message),
        cmocka_unit_test(unknown_values_and_tuples_are_refused),
        cmocka_unit_test(a_row_has_no_more_columns_than_postgresql_allows),
        cmocka_unit_test(a_truncate_cannot_list_more_than_it_holds),
        cmocka_unit_test(unknown_messages_are_refused),
        cmocka_unit_test(two_phase_transactions_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
