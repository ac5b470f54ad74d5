#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "resp/resp.h"

/* Frames a heap copy of exactly these bytes, so that AddressSanitizer sees a read past them. */
static enum resp_status frame_bytes(struct resp_frame *frame, const char *text, size_t length,
                                    size_t *taken)
{
    char *copy = xmalloc(length);
    memcpy(copy, text, length);
    enum resp_status status = resp_frame_reply(frame, copy, length, taken);
    free(copy);
    return status;
}

/* A whole reply must be found alone, before other bytes, and when it comes byte by byte. */
static void assert_frames(const char *reply)
{
    size_t length = strlen(reply), taken = 0;
    struct resp_frame frame = {0};
    assert_int_equal(frame_bytes(&frame, reply, length, &taken), RESP_DONE);
    assert_int_equal(taken, length);
    assert_int_equal(frame.scanned, 0);
    assert_false(frame.begun);
    assert_int_equal(frame.depth, 0);

    char *followed = xasprintf("%s+OK\r\n", reply);
    assert_int_equal(frame_bytes(&frame, followed, length + 5, &taken), RESP_DONE);
    assert_int_equal(taken, length);
    free(followed);

    for (size_t have = 0; have < length; have++) {
        assert_int_equal(frame_bytes(&frame, reply, have, &taken), RESP_MORE);
    }
    taken = 0;
    assert_int_equal(frame_bytes(&frame, reply, length, &taken), RESP_DONE);
    assert_int_equal(taken, length);
}

static void assert_bad(const char *reply)
{
    struct resp_frame frame = {0};
    size_t taken = 0;
    assert_int_equal(frame_bytes(&frame, reply, strlen(reply), &taken), RESP_BAD);
}

static void simple_replies_are_framed(void **state)
{
    (void)state;
    assert_frames("+OK\r\n");
    assert_frames("+\r\n");
    assert_frames("-ERR no\r\n");
    assert_frames(":0\r\n");
    assert_frames(":-9223372036854775808\r\n");
    assert_frames("$0\r\n\r\n");
    assert_frames("$5\r\na\r\nbc\r\n");
    assert_frames("$-1\r\n");
    assert_frames("*0\r\n");
    assert_frames("*-1\r\n");
}

static void resp3_replies_are_framed(void **state)
{
    (void)state;
    assert_frames("_\r\n");
    assert_frames("#t\r\n");
    assert_frames("#f\r\n");
    assert_frames(",1.5e3\r\n");
    assert_frames(",-inf\r\n");
    assert_frames("(3492890328409238509324850943850943825024385\r\n");
    assert_frames("=7\r\ntxt:abc\r\n");
    assert_frames("!4\r\nERR \r\n");
    assert_frames("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n");
    assert_frames("%0\r\n");
    assert_frames("~2\r\n+a\r\n+b\r\n");
    assert_frames(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
}

static void nested_aggregates_are_framed(void **state)
{
    (void)state;
    assert_frames("*2\r\n*1\r\n:1\r\n:2\r\n");
    assert_frames("*3\r\n*0\r\n*-1\r\n*2\r\n$-1\r\n*1\r\n%1\r\n_\r\n~1\r\n#t\r\n");
    assert_frames("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

static void attributes_precede_the_value_they_belong_to(void **state)
{
    (void)state;
    assert_frames("|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n");
    assert_frames("|0\r\n:1\r\n");
    assert_frames("*2\r\n>2\r\n+a\r\n:1\r\n:2\r\n>1\r\n>1\r\n:1\r\n:2\r\n:3\r\n");
    assert_frames("*2\r\n|2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n:7\r\n:8\r\n");
    assert_frames("|1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n*1\r\n:3\r\n");
}

static void a_lone_cr_or_lf_does_not_end_a_line(void **state)
{
    (void)state;
    assert_frames("+a\nb\rc\r\r\n");
}

static void what_is_no_resp_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {"HTTP/1.1 200 OK\r\n",
                         "\r\n",
                         "$-2\r\n",
                         "*-2\r\n",
                         "%-1\r\n",
                         "~-1\r\n",
                         ">-1\r\n",
                         "|-1\r\n",
                         "!-1\r\n",
                         "=-1\r\n",
                         "$\r\n",
                         "$a\r\n",
                         "$01\r\nx\r\n",
                         "$ 1\r\n",
                         "$1\r\nxx\r\n",
                         "*+1\r\n",
                         "$1\n\nx\r\n",
                         "$1\r\nx\n\n",
                         "_x\r\n",
                         "#x\r\n",
                         "#true\r\n",
                         "*1.0\r\n",
                         "_\n",
                         "*1\r\n?\r\n",
                         "*99999999999999999999\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_bad(bad[i]);
    }
}

static void streamed_types_end_by_their_mark(void **state)
{
    (void)state;
    assert_frames("$?\r\n;4\r\nabcd\r\n;1\r\ne\r\n;0\r\n");
    assert_frames("$?\r\n;0\r\n");
    assert_frames("*?\r\n:1\r\n.\r\n");
    assert_frames("*?\r\n.\r\n");
    assert_frames("%?\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n.\r\n");
    assert_frames("~?\r\n$?\r\n;1\r\nx\r\n;0\r\n:2\r\n.\r\n");
    assert_frames(">?\r\n+message\r\n|1\r\n+a\r\n:1\r\n:2\r\n.\r\n");
    assert_frames("*3\r\n*?\r\n:1\r\n*?\r\n.\r\n*2\r\n:1\r\n:2\r\n.\r\n:3\r\n$1\r\nx\r\n");
}

static void marks_out_of_place_are_refused(void **state)
{
    (void)state;
    assert_bad(".\r\n");
    assert_bad(";1\r\nx\r\n");
    assert_bad("*?\r\n;1\r\nx\r\n");
    assert_bad("*?\r\n*1\r\n.\r\n");
    assert_bad("$?\r\n.\r\n");
    assert_bad("$?\r\n:1\r\n");
    assert_bad("$?\r\n$?\r\n");
    assert_bad("$?\r\n;-1\r\n");
    assert_bad("!?\r\n");
    assert_bad("*?x\r\n");
    assert_bad("*?\r\n*?\r\n*?\r\n*?\r\n*?\r\n");
}

static void announced_values_cannot_overflow_the_count(void **state)
{
    (void)state;
    struct buffer reply = {0};
    enum resp_status status = RESP_MORE;
    size_t taken;
    int headers = 0;
    while (status == RESP_MORE && headers < 20) {
        struct resp_frame frame = {0};
        buffer_printf(&reply, "%%999999999999999999\r\n");
        headers++;
        status = frame_bytes(&frame, reply.bytes, buffer_length(&reply), &taken);
        assert_true(frame.open >= 0);
    }
    assert_int_equal(status, RESP_BAD);
    assert_int_equal(headers, 5); /* 5 times 2e18 is past 2^63 */
    buffer_finish(&reply);
}

static void an_enormous_bulk_is_waited_for(void **state)
{
    (void)state;
    struct resp_frame frame = {0};
    size_t taken;
    const char *text = "$999999999999999999\r\nabc";
    assert_int_equal(frame_bytes(&frame, text, strlen(text), &taken), RESP_MORE);
    assert_int_equal(frame.scanned, strlen(text));
    assert_int_equal(frame.body, 999999999999999999 + 2 - 3);
}

static void deep_nesting_needs_no_stack(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    struct buffer reply = {0};
    for (int i = 0; i < DEPTH; i++) {
        buffer_append(&reply, "*1\r\n", 4);
    }
    buffer_append(&reply, ":1\r\n", 4);
    struct resp_frame frame = {0};
    size_t taken = 0;
    assert_int_equal(frame_bytes(&frame, reply.bytes, buffer_length(&reply), &taken), RESP_DONE);
    assert_int_equal(taken, buffer_length(&reply));
    buffer_finish(&reply);
}

/* Whole elements are never looked at twice: a reply in two halves goes on where it stopped. */
static void a_reply_in_pieces_is_resumed_behind_its_whole_values(void **state)
{
    (void)state;
    struct resp_frame frame = {0};
    size_t taken = 0;
    char reply[] = "*3\r\n$3\r\nabc\r\n:12\r\n$5\r\nhello\r\n";
    assert_int_equal(resp_frame_reply(&frame, reply, 23, &taken), RESP_MORE);
    assert_int_equal(frame.scanned, 18);
    assert_int_equal(frame.open, 1);
    memset(reply, 'x', 18); /* done with: must not be read again */
    assert_int_equal(resp_frame_reply(&frame, reply, sizeof reply - 1, &taken), RESP_DONE);
    assert_int_equal(taken, sizeof reply - 1);
}

static void the_body_of_a_large_bulk_is_not_scanned(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    struct buffer reply = {0};
    buffer_printf(&reply, "$%d\r\n", LENGTH);
    size_t header = buffer_length(&reply);
    memset(buffer_reserve(&reply, LENGTH + 2), '\r', LENGTH);
    buffer_commit(&reply, LENGTH);
    buffer_append(&reply, "\r\n", 2);
    struct resp_frame frame = {0};
    size_t taken = 0;
    for (size_t have = header; have < header + LENGTH + 2; have += 1000) {
        assert_int_equal(resp_frame_reply(&frame, reply.bytes, have, &taken), RESP_MORE);
    }
    assert_int_equal(resp_frame_reply(&frame, reply.bytes, buffer_length(&reply), &taken),
                     RESP_DONE);
    assert_int_equal(taken, header + LENGTH + 2);
    buffer_finish(&reply);
}

/* Whatever the pieces, the frame ends with the reply's last byte; and of what has come no more than
 * that is kept beside a piece. */
static void assert_passes(struct span reply, size_t most_kept)
{
    for (size_t piece = 1; piece < 3 * reply.length / 2; piece = piece * 3 + 1) {
        struct resp_frame frame = {0};
        enum resp_status status = RESP_MORE;
        size_t passed = 0, have = 0, taken = 0, kept = 0;
        while (status == RESP_MORE) {
            have = have + piece < reply.length ? have + piece : reply.length;
            status = frame_bytes(&frame, reply.at + passed, have - passed, &taken);
            passed += status == RESP_MORE ? resp_frame_pass(&frame) : taken;
            kept = have - passed > kept ? have - passed : kept;
        }
        assert_int_equal(status, RESP_DONE);
        assert_int_equal(passed, reply.length);
        assert_true(kept < piece + most_kept);
    }
}

static void a_large_blob_can_be_passed_on_before_it_is_whole(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    struct buffer reply = {0};
    buffer_printf(&reply, "*3\r\n$1\r\nx\r\n$%d\r\n", LENGTH);
    memset(buffer_reserve(&reply, LENGTH), '\r', LENGTH);
    buffer_commit(&reply, LENGTH);
    buffer_append(&reply, "\r\n:1\r\n", 6);
    assert_passes(buffer_span(&reply), 20);
    buffer_finish(&reply);
}

/* Of so many bytes, with its marker and its end; it holds CRs and LFs that do not end it. */
static void append_line(struct buffer *reply, char marker, size_t length)
{
    char *at = buffer_reserve(reply, length);
    memset(at, 'x', length);
    for (size_t i = 50; i < length; i += 100)
        memcpy(at + i, "\r\r-\n", 4);
    at[0] = marker;
    memcpy(at + length - 3, "\r\r\n", 3);
    buffer_commit(reply, length);
}

enum { WAITED_FOR = 4096 }; /* of a line, before it is gone through as it comes */

static void a_long_line_can_be_passed_on_before_it_is_whole(void **state)
{
    static const char *const heads[] = {"", "*2\r\n:1\r\n", "*?\r\n", "|1\r\n+a\r\n"};
    static const char *const tails[] = {"", "", ".\r\n", "*1\r\n:1\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct buffer reply = {0};
        buffer_append(&reply, heads[i], strlen(heads[i]));
        append_line(&reply, "+-(,"[i], 100000);
        buffer_append(&reply, tails[i], strlen(tails[i]));
        assert_passes(buffer_span(&reply), WAITED_FOR + 20);
        buffer_finish(&reply);
    }
}

/* What was looked at before is not read again: it is something else by then. */
static void a_long_line_is_looked_at_once(void **state)
{
    enum { LENGTH = 300000, PIECE = 1000 };
    struct buffer reply = {0};
    struct resp_frame frame = {0};
    size_t taken = 0;
    (void)state;
    append_line(&reply, '-', LENGTH);
    char *bytes = buffer_string(&reply);
    for (size_t have = PIECE; have < LENGTH; have += PIECE) {
        assert_int_equal(resp_frame_reply(&frame, bytes, have, &taken), RESP_MORE);
        assert_true(have < WAITED_FOR + PIECE || frame.scanned >= have - 1);
        for (size_t i = 1; i < frame.scanned; i += 2)
            memcpy(bytes + i - 1, "\r\n", 2);
    }
    assert_int_equal(resp_frame_reply(&frame, bytes, LENGTH, &taken), RESP_DONE);
    assert_int_equal(taken, LENGTH);
    free(bytes);
}

static void assert_splits(struct span reply, size_t first, bool passes)
{
    struct resp_frame frame = {0};
    size_t taken = 0;
    assert_int_equal(frame_bytes(&frame, reply.at, first, &taken), RESP_MORE);
    size_t passed = passes ? resp_frame_pass(&frame) : 0;
    assert_int_equal(frame_bytes(&frame, reply.at + passed, reply.length - passed, &taken),
                     RESP_DONE);
    assert_int_equal(passed + taken, reply.length);
    assert_int_equal(frame.scanned + (size_t)frame.body + frame.depth + frame.begun, 0);
}

/* As short ones may, of which each byte is tried in all the others. */
static void a_long_line_may_come_in_two_anywhere(void **state)
{
    struct buffer reply = {0};
    (void)state;
    buffer_printf(&reply, "*3\r\n|1\r\n+a\r\n");
    append_line(&reply, ',', WAITED_FOR - 1);
    append_line(&reply, '+', WAITED_FOR + 100);
    buffer_printf(&reply, "*?\r\n:1\r\n");
    append_line(&reply, '-', WAITED_FOR + 2);
    buffer_printf(&reply, ".\r\n$1\r\nx\r\n");
    for (size_t first = 1; first < buffer_length(&reply); first++) {
        assert_splits(buffer_span(&reply), first, false);
        assert_splits(buffer_span(&reply), first, true);
    }
    buffer_finish(&reply);
}

/* resp_frame_any() knows no shortcut for short ones; of a heap copy, as above. */
static void assert_same(const char *text, size_t length)
{
    struct resp_frame frame = {0}, slow = {0};
    size_t taken = 0, taken_slowly = 0;
    enum resp_status status = frame_bytes(&frame, text, length, &taken);
    assert_int_equal(status, resp_frame_any(&slow, text, length, &taken_slowly));
    assert_int_equal(taken, status == RESP_DONE ? taken_slowly : 0);
    assert_memory_equal(&frame, &slow, sizeof frame);
}

static void a_blob_that_is_taken_at_a_glance_is_what_it_is_byte_by_byte(void **state)
{
    static const char *const headers[] = {"$-",    "$:",    "$/",    "$+1", "$-1",
                                          "$00",   "$05",   "$5x",   "$1:", "$12/",
                                          "$123;", "$1000", "$0999", "$ 1", "$"};
    char text[1200];
    (void)state;
    for (int length = 0; length < 1100; length++) {
        memset(text, 'x', sizeof text);
        int header = snprintf(text, sizeof text, "$%d\r\n", length);
        memcpy(text + header + length, "\r\n", 2);
        size_t whole = (size_t)(header + length) + 2;
        assert_same(text, whole);
        assert_same(text, whole + 3);
        assert_same(text, whole - 1);
        text[whole - 1] = 'x';
        assert_same(text, whole);
    }
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        for (int wide = 0; wide < 1100; wide++) { /* wherever its end is looked for */
            memset(text, 'x', sizeof text);
            int header = snprintf(text, sizeof text, "%s\r\n", headers[i]);
            memcpy(text + header + wide, "\r\n", 2);
            assert_same(text, sizeof text);
        }
    }
}

static void an_array_gives_its_elements_whole(void **state)
{
    (void)state;
    const char *reply = "*4\r\n$1\r\na\r\n$-1\r\n*2\r\n:1\r\n:2\r\n+ok\r\n";
    const char *wanted[] = {"$1\r\na\r\n", "$-1\r\n", "*2\r\n:1\r\n:2\r\n", "+ok\r\n"};
    const char *at, *end = reply + strlen(reply);
    assert_int_equal(resp_array_open(span_of(reply), &at), 4);
    for (size_t i = 0; i < 4; i++) {
        struct span element = resp_array_next(&at, end);
        assert_int_equal(element.length, strlen(wanted[i]));
        assert_memory_equal(element.at, wanted[i], element.length);
    }
    assert_ptr_equal(at, end);
    assert_int_equal(resp_array_next(&at, end).length, 0);
}

static void an_array_without_elements_is_told_from_no_array(void **state)
{
    (void)state;
    const char *at;
    assert_int_equal(resp_array_open(span_of("*0\r\n"), &at), 0);
    assert_int_equal(resp_array_open(span_of("~1\r\n:1\r\n"), &at), 1);
    assert_int_equal(resp_array_open(span_of("*-1\r\n"), &at), -1);
    assert_int_equal(resp_array_open(span_of("$1\r\n3\r\n"), &at), -1);
    assert_int_equal(resp_array_open(span_of("-ERR\r\n"), &at), -1);
    assert_int_equal(resp_array_open(span_of(""), &at), -1);
}

static void a_map_opens_in_either_protocol(void **state)
{
    static const struct {
        const char *reply;
        int64_t pairs;
    } all[] = {{"%1\r\n+a\r\n+b\r\n", 1},
               {"*2\r\n+a\r\n+b\r\n", 1},
               {"%0\r\n", 0},
               {"*0\r\n", 0},
               {"*-1\r\n", -1},
               {"*1\r\n+a\r\n", -1},
               {"~2\r\n+a\r\n+b\r\n", -1},
               {"$1\r\na\r\n", -1},
               {"", -1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *at;
        assert_int_equal(resp_map_open(span_of(all[i].reply), &at), all[i].pairs);
        if (all[i].pairs > 0)
            assert_int_equal(*at, '+');
    }
}

static void a_blobs_text_is_what_stands_in_it(void **state)
{
    static const char *const others[] = {"$-1\r\n", "+a\r\n", ":1\r\n", "", "$2\r\na\r\n"};
    (void)state;
    struct span text = resp_bulk_text(span_of("$2\r\nab\r\n"));
    assert_true(span_is(text, "ab"));
    assert_int_equal(resp_bulk_text(span_of("$0\r\n\r\n")).length, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(resp_bulk_text(span_of(others[i])).length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_replies_are_framed),
        cmocka_unit_test(resp3_replies_are_framed),
        cmocka_unit_test(nested_aggregates_are_framed),
        cmocka_unit_test(attributes_precede_the_value_they_belong_to),
        cmocka_unit_test(a_lone_cr_or_lf_does_not_end_a_line),
        cmocka_unit_test(what_is_no_resp_is_refused),
        cmocka_unit_test(streamed_types_end_by_their_mark),
        cmocka_unit_test(marks_out_of_place_are_refused),
        cmocka_unit_test(a_large_blob_can_be_passed_on_before_it_is_whole),
        cmocka_unit_test(a_long_line_can_be_passed_on_before_it_is_whole),
        cmocka_unit_test(a_long_line_is_looked_at_once),
        cmocka_unit_test(a_long_line_may_come_in_two_anywhere),
        cmocka_unit_test(announced_values_cannot_overflow_the_count),
        cmocka_unit_test(an_enormous_bulk_is_waited_for),
        cmocka_unit_test(deep_nesting_needs_no_stack),
        cmocka_unit_test(a_reply_in_pieces_is_resumed_behind_its_whole_values),
        cmocka_unit_test(the_body_of_a_large_bulk_is_not_scanned),
        cmocka_unit_test(a_blob_that_is_taken_at_a_glance_is_what_it_is_byte_by_byte),
        cmocka_unit_test(an_array_gives_its_elements_whole),
        cmocka_unit_test(an_array_without_elements_is_told_from_no_array),
        cmocka_unit_test(a_map_opens_in_either_protocol),
        cmocka_unit_test(a_blobs_text_is_what_stands_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
