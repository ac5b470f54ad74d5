#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "pgoutput_text.h"

/* ---- messages made by hand ---- */

struct message {
    char at[4096];
    size_t length;
};

static void put(struct message *message, const void *bytes, size_t length)
{
    assert_true(length <= sizeof message->at - message->length);
    memcpy(message->at + message->length, bytes, length);
    message->length += length;
}

static void put_number(struct message *message, uint64_t number, int size)
{
    while (size-- > 0) {
        char byte = (char)(number >> (8 * size));
        put(message, &byte, 1);
    }
}

static void put_value(struct message *message, char kind, const char *value)
{
    put(message, &kind, 1);
    put_number(message, strlen(value), 4);
    put(message, value, strlen(value));
}

/* One field a letter: c h w q numbers of 1, 2, 4, 8 bytes, s a name with its zero byte, x a name
 * without; values: t text, b binary, n NULL, u unchanged. */
static struct message compose_list(const char *fields, va_list arguments)
{
    struct message message = {.length = 0};
    for (; *fields; fields++) {
        if (strchr("chw", *fields))
            put_number(&message, va_arg(arguments, unsigned),
                       *fields == 'c'   ? 1
                       : *fields == 'h' ? 2
                                        : 4);
        else if (*fields == 'q')
            put_number(&message, va_arg(arguments, uint64_t), 8);
        else if (strchr("tb", *fields))
            put_value(&message, *fields, va_arg(arguments, const char *));
        else if (strchr("nu", *fields))
            put(&message, fields, 1);
        else {
            const char *name = va_arg(arguments, const char *);
            put(&message, name, strlen(name) + (*fields == 's'));
        }
    }
    return message;
}

static struct message compose(const char *fields, ...)
{
    va_list arguments;
    va_start(arguments, fields);
    struct message message = compose_list(fields, arguments);
    va_end(arguments);
    return message;
}

enum { PLAIN, STREAMED };

/* Reads a copy that ends where AddressSanitizer watches; it lives until the next call. */
static int read_copy(const struct message *message, size_t length, int in_stream,
                     struct pgoutput_event *event, const char **error)
{
    static char *copy;
    free(copy);
    copy = length > 0 ? malloc(length) : NULL;
    if (copy)
        memcpy(copy, message->at, length);
    memset(event, '#', sizeof *event);
    int status = pgoutput_read(copy, length, in_stream == STREAMED, event, error);
    if (status < 0) {
        free(copy);
        copy = NULL;
    }
    return status;
}

static struct pgoutput_event read_well(struct message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error = "none was set";
    if (read_copy(&message, message.length, in_stream, &event, &error) != 0)
        fail_msg("%s", error);
    assert_null(error);
    return event;
}

static void expect_text(const char *wanted, struct message message, int in_stream)
{
    struct event_text text = {.length = 0};
    struct pgoutput_event event = read_well(message, in_stream);
    print_event(&text, &event);
    assert_string_equal(text.at, wanted);
}

static void expect_error(const char *wanted, struct message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error = NULL;
    assert_int_equal(read_copy(&message, message.length, in_stream, &event, &error), -EPROTO);
    assert_string_equal(error, wanted);
}

/* What the same message is within a streamed block: changes carry a transaction's id there. */
static struct message streamed(struct message message)
{
    struct message out = {.length = 0};
    put(&out, message.at, 1);
    if (strchr("RYIUDTM", message.at[0]))
        put_number(&out, 4711, 4);
    put(&out, message.at + 1, message.length - 1);
    return out;
}

/* Calls `each` with one message of every kind and shape, outside and inside a streamed block, as
 * far as the kind may be there. */
static void for_each_sample(void (*each)(struct message message, int in_stream))
{
    const struct message samples[] = {
        compose("cqqw", 'B', UINT64_C(0x1122334455667788), UINT64_C(99), 7),
        compose("ccqqq", 'C', 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)),
        compose("cqs", 'O', UINT64_C(5), "elsewhere"),
        compose("cwsschcswwcsww", 'R', 16385, "public", "items", 'd', 2, 1, "id", 20, -1, 0, "n",
                1043, 54),
        compose("cwssch", 'R', 16385, "", "nothing", 'n', 0),
        compose("cwss", 'Y', 16390, "public", "colour"),
        compose("cwchtnub", 'I', 16385, 'N', 4, "text", "binary"),
        compose("cwch", 'I', 16385, 'N', 0),
        compose("cwcht", 'U', 16385, 'N', 1, "1"),
        compose("cwchtncht", 'U', 16385, 'K', 2, "1", 'N', 1, "2"),
        compose("cwchtnchtu", 'U', 16385, 'O', 2, "1", 'N', 2, "2"),
        compose("cwcht", 'D', 16385, 'K', 1, "1"),
        compose("cwchtt", 'D', 16385, 'O', 2, "1", ""),
        compose("cwcwww", 'T', 3, 3, 1, 2, 3),
        compose("ccqswc", 'M', 1, UINT64_C(77), "guard", 1, 'x'),
        compose("cwc", 'S', 7, 1),
        compose("c", 'E'),
        compose("cwcqqq", 'c', 7, 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)),
        compose("cww", 'A', 7, 8),
        compose("cwwqq", 'A', 7, 8, UINT64_C(5), UINT64_C(6)),
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (samples[i].at[0] != 'E')
            each(samples[i], PLAIN);
        if (!strchr("BCScA", samples[i].at[0]))
            each(streamed(samples[i]), STREAMED);
    }
}

/* ---- what each kind says ---- */

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
    struct message message =
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
    struct message message = compose("cwchtnutb", 'I', 7, 'N', 5, "a", "", "xyz");
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
    struct message origin = compose("cqs", 'O', UINT64_C(5), "elsewhere");
    struct message insert = compose("cwcht", 'I', 7, 'N', 1, "a");
    (void)state;
    expect_text("insert 7 new (a)\n", streamed(insert), STREAMED);
    assert_int_equal(read_well(streamed(insert), STREAMED).xid, 4711);
    assert_int_equal(read_well(insert, PLAIN).xid, 0);
    assert_int_equal(read_well(origin, STREAMED).xid, 0);
}

static void expect_streamed_xid(struct message message, int in_stream)
{
    if (in_stream == STREAMED)
        assert_int_equal(read_well(message, in_stream).xid, strchr("OE", message.at[0]) ? 0 : 4711);
}

static void every_streamed_change_carries_its_transaction(void **state)
{
    (void)state;
    for_each_sample(expect_streamed_xid);
}

/* ---- what does not fit ---- */

static void expect_every_cut_refused(struct message message, int in_stream)
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

static void expect_more_refused(struct message message, int in_stream)
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

static struct message row_of_nulls(unsigned columns)
{
    struct message message = compose("cwch", 'I', 7, 'N', columns);
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
