#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fakes/walsender.h"
#include "pgoutput_text.h"

static void expect_text(const char *wanted, struct log_message message, int in_stream)
{
    struct event_text text = {.length = 0};
    struct pgoutput_event event = read_well(message, in_stream);
    print_event(&text, &event);
    assert_string_equal(text.at, wanted);
}

static void a_begin_says_which_commit_it_leads_to(void **state)
{
    struct pgoutput_event event = read_well(compose("cqqw", 'B', UINT64_C(0x1122334455667788),
                                                    UINT64_C(0x8000000000000001), 0xFFFFFFFE),
                                            PLAIN);
    (void)state;
    assert_int_equal(event.kind, PGOUTPUT_BEGIN);
    assert_true(event.lsn == UINT64_C(0x1122334455667788));
    assert_true(event.time_us == INT64_MIN + 1);
    assert_true(event.xid == 0xFFFFFFFE);
}

static void a_commit_says_where_and_when(void **state)
{
    struct pgoutput_event event = read_well(
        compose("ccqqq", 'C', 0, UINT64_C(1) << 40, UINT64_C(1) << 41, UINT64_C(-3)), PLAIN);
    (void)state;
    assert_int_equal(event.kind, PGOUTPUT_COMMIT);
    assert_true(event.lsn == UINT64_C(1) << 40 && event.end_lsn == UINT64_C(1) << 41);
    assert_true(event.time_us == -3);
    assert_true(event.xid == 0);
}

static void a_relation_lists_its_columns(void **state)
{
    struct log_message message =
        compose("cwsschcswwcsww", 'R', 16385, "public", "items", 'd', 2, 1, "id", 20, -1, 0,
                "gr\xc3\xb6\xc3\x9f"
                "e",
                0x80000001, 54);
    struct pgoutput_relation relation = read_well(message, PLAIN).described;
    struct pgoutput_column column;
    (void)state;
    assert_int_equal(relation.id, 16385);
    assert_true(pgoutput_column_next(&relation, &column));
    assert_true(column.is_key && column.type == 20 && column.modifier == -1);
    assert_true(pgoutput_column_next(&relation, &column));
    assert_true(!column.is_key && column.type == 0x80000001 && column.modifier == 54);
    assert_false(pgoutput_column_next(&relation, &column));
    assert_false(pgoutput_column_next(&relation, &column));
    expect_text("relation public.items d (id*, gr\xc3\xb6\xc3\x9f"
                "e)\n",
                message, PLAIN);
}

static void a_relation_may_lie_in_pg_catalog_and_have_no_columns(void **state)
{
    (void)state;
    expect_text("relation .t f ()\n", compose("cwssch", 'R', 1, "", "t", 'f', 0), PLAIN);
}

static void an_insert_has_values_of_every_kind(void **state)
{
    struct pgoutput_value value;
    struct log_message message = compose("cwchtnutb", 'I', 7, 'N', 5, "a", "", "xyz");
    struct pgoutput_tuple tuple = read_well(message, PLAIN).new_tuple;
    (void)state;
    expect_text("insert 7 new (a, NULL, unchanged, , 3 binary bytes)\n", message, PLAIN);
    tuple = read_well(message, PLAIN).new_tuple;
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_int_equal(value.kind, PGOUTPUT_TEXT);
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_true(value.kind == PGOUTPUT_NULL && !value.at && value.length == 0);
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_true(value.kind == PGOUTPUT_UNCHANGED && !value.at && value.length == 0);
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_true(value.kind == PGOUTPUT_TEXT && value.at && value.length == 0);
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_int_equal(value.kind, PGOUTPUT_BINARY);
    assert_int_equal(value.length, 3);
    assert_memory_equal(value.at, "xyz", 3);
    assert_false(pgoutput_tuple_next(&tuple, &value));
    assert_false(pgoutput_tuple_next(&tuple, &value));
}

static void a_row_without_columns_is_a_row(void **state)
{
    struct pgoutput_event event = read_well(compose("cwch", 'I', 7, 'N', 0), PLAIN);
    (void)state;
    assert_non_null(event.new_tuple.at);
    assert_null(event.old_tuple.at);
    expect_text("insert 7 new ()\n", compose("cwch", 'I', 7, 'N', 0), PLAIN);
}

static void an_update_has_an_old_key_an_old_row_or_neither(void **state)
{
    (void)state;
    expect_text("update 7 new (1, b)\n", compose("cwchtt", 'U', 7, 'N', 2, "1", "b"), PLAIN);
    expect_text("update 7 key (1, NULL) new (2, b)\n",
                compose("cwchtnchtt", 'U', 7, 'K', 2, "1", 'N', 2, "2", "b"), PLAIN);
    expect_text("update 7 old (1, a) new (1, unchanged)\n",
                compose("cwchttchtu", 'U', 7, 'O', 2, "1", "a", 'N', 2, "1"), PLAIN);
}

static void a_missing_tuple_reads_as_an_empty_one(void **state)
{
    struct pgoutput_event event = read_well(compose("cwcht", 'U', 7, 'N', 1, "1"), PLAIN);
    struct pgoutput_value value;
    (void)state;
    assert_null(event.old_tuple.at);
    assert_int_equal(event.old_tuple.columns, 0);
    assert_false(pgoutput_tuple_next(&event.old_tuple, &value));
}

static void a_delete_has_an_old_key_or_an_old_row(void **state)
{
    (void)state;
    expect_text("delete 7 key (1, NULL)\n", compose("cwchtn", 'D', 7, 'K', 2, "1"), PLAIN);
    expect_text("delete 7 old (1, a)\n", compose("cwchtt", 'D', 7, 'O', 2, "1", "a"), PLAIN);
}

static void a_truncate_lists_its_relations(void **state)
{
    (void)state;
    expect_text("truncate 7\n", compose("cwcw", 'T', 1, 0, 7), PLAIN);
    expect_text("truncate 7 8 9 cascade\n", compose("cwcwww", 'T', 3, 1, 7, 8, 9), PLAIN);
    expect_text("truncate 7 8 restart identity\n", compose("cwcww", 'T', 2, 2, 7, 8), PLAIN);
    expect_text("truncate 7 cascade restart identity\n", compose("cwcw", 'T', 1, 3, 7), PLAIN);
}

static void types_origins_and_messages_are_told_by_their_kind(void **state)
{
    (void)state;
    expect_text("type\n", compose("cwss", 'Y', 16390, "public", "colour"), PLAIN);
    expect_text("origin\n", compose("cqs", 'O', UINT64_C(5), "elsewhere"), PLAIN);
    expect_text("message\n", compose("ccqsw", 'M', 0, UINT64_C(77), "guard", 0), PLAIN);
    expect_text("message\n", compose("ccqswcc", 'M', 1, UINT64_C(77), "", 2, 0, 1), PLAIN);
}

static void a_streamed_transaction_has_its_own_frame(void **state)
{
    (void)state;
    struct pgoutput_event event = read_well(compose("cwc", 'S', 9, 1), PLAIN);
    assert_true(event.kind == PGOUTPUT_STREAM_START && event.xid == 9 && event.first_segment);
    event = read_well(compose("cwc", 'S', 9, 0), PLAIN);
    assert_true(event.kind == PGOUTPUT_STREAM_START && event.xid == 9 && !event.first_segment);
    event = read_well(compose("c", 'E'), STREAMED);
    assert_true(event.kind == PGOUTPUT_STREAM_STOP && event.xid == 0);
    event = read_well(compose("cwcqqq", 'c', 9, 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)), PLAIN);
    assert_true(event.kind == PGOUTPUT_STREAM_COMMIT && event.xid == 9);
    assert_true(event.lsn == 5 && event.end_lsn == 6 && event.time_us == 7);
}

static void a_stream_abort_may_say_where_and_when(void **state)
{
    (void)state;
    struct pgoutput_event event = read_well(compose("cww", 'A', 9, 10), PLAIN);
    assert_true(event.kind == PGOUTPUT_STREAM_ABORT && event.xid == 9 && event.subxid == 10);
    assert_true(event.lsn == 0 && event.time_us == 0);
    event = read_well(compose("cwwqq", 'A', 9, 10, UINT64_C(5), UINT64_C(6)), PLAIN);
    assert_true(event.kind == PGOUTPUT_STREAM_ABORT && event.xid == 9 && event.subxid == 10);
    assert_true(event.lsn == 5 && event.time_us == 6);
}

static void streamed_changes_say_whose_they_are(void **state)
{
    struct log_message origin = compose("cqs", 'O', UINT64_C(5), "elsewhere");
    struct log_message insert = compose("cwcht", 'I', 7, 'N', 1, "a");
    (void)state;
    expect_text("insert 7 new (a)\n", streamed(insert), STREAMED);
    assert_int_equal(read_well(streamed(insert), STREAMED).xid, 4711);
    assert_int_equal(read_well(insert, PLAIN).xid, 0);
    assert_int_equal(read_well(origin, STREAMED).xid, 0);
}

static void expect_streamed_xid(struct log_message message, int in_stream)
{
    if (in_stream == STREAMED)
        assert_int_equal(read_well(message, in_stream).xid, strchr("OE", message.at[0]) ? 0 : 4711);
}

static void every_streamed_change_carries_its_transaction(void **state)
{
    (void)state;
    for_each_sample(expect_streamed_xid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_begin_says_which_commit_it_leads_to),
        cmocka_unit_test(a_commit_says_where_and_when),
        cmocka_unit_test(a_relation_lists_its_columns),
        cmocka_unit_test(a_relation_may_lie_in_pg_catalog_and_have_no_columns),
        cmocka_unit_test(an_insert_has_values_of_every_kind),
        cmocka_unit_test(a_row_without_columns_is_a_row),
        cmocka_unit_test(an_update_has_an_old_key_an_old_row_or_neither),
        cmocka_unit_test(a_missing_tuple_reads_as_an_empty_one),
        cmocka_unit_test(a_delete_has_an_old_key_or_an_old_row),
        cmocka_unit_test(a_truncate_lists_its_relations),
        cmocka_unit_test(types_origins_and_messages_are_told_by_their_kind),
        cmocka_unit_test(a_streamed_transaction_has_its_own_frame),
        cmocka_unit_test(a_stream_abort_may_say_where_and_when),
        cmocka_unit_test(streamed_changes_say_whose_they_are),
        cmocka_unit_test(every_streamed_change_carries_its_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
