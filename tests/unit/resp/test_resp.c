#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "resp/resp.h"

static const struct resp_limits roomy = {1024 * 1024, 512 << 20, (size_t)1 << 30, 64 * 1024, 0};

/* One command read from a heap copy of exactly its length, so that AddressSanitizer sees every
 * byte read or written past the input. */
struct reading {
    enum resp_status status;
    struct resp_command command;
    struct resp_arguments arguments;
    char *input;
};

static struct reading read_limited(const char *text, size_t length,
                                   const struct resp_limits *limits)
{
    struct reading reading = {.input = xmalloc(length)};
    memcpy(reading.input, text, length);
    reading.status =
        resp_read_command(reading.input, length, limits, &reading.arguments, &reading.command);
    return reading;
}

static struct reading read_text(const char *text)
{
    return read_limited(text, strlen(text), &roomy);
}

static void finish(struct reading *reading)
{
    resp_arguments_finish(&reading->arguments);
    free(reading->input);
}

/* The arguments, each in [brackets]. */
static char *shown(const struct reading *reading)
{
    struct buffer out = {0};
    for (size_t i = 0; i < reading->command.count; i++) {
        struct span argument = reading->arguments.at[reading->command.first + i];
        buffer_printf(&out, "[%.*s]", (int)argument.length, argument.at);
    }
    buffer_append(&out, "", 1);
    return out.bytes;
}

static void assert_reads(const char *text, const char *arguments)
{
    struct reading reading = read_text(text);
    assert_int_equal(reading.status, RESP_DONE);
    assert_int_equal(reading.command.length, strlen(text));
    assert_null(reading.command.error);
    char *got = shown(&reading);
    assert_string_equal(got, arguments);
    free(got);
    finish(&reading);
}

static void assert_bad_with(const char *text, size_t length, const struct resp_limits *limits,
                            const char *error)
{
    struct reading reading = read_limited(text, length, limits);
    assert_int_equal(reading.status, RESP_BAD);
    assert_string_equal(reading.command.error, error);
    assert_int_equal(reading.arguments.count, 0);
    finish(&reading);
}

static void assert_bad(const char *text, const char *error)
{
    assert_bad_with(text, strlen(text), &roomy, error);
}

static void assert_more(const char *text, size_t need)
{
    struct reading reading = read_text(text);
    assert_int_equal(reading.status, RESP_MORE);
    assert_int_equal(reading.command.need, need);
    assert_int_equal(reading.arguments.count, 0);
    finish(&reading);
}

static void a_multibulk_command_gives_its_arguments(void **state)
{
    (void)state;
    assert_reads("*1\r\n$4\r\nPING\r\n", "[PING]");
    assert_reads("*2\r\n$3\r\nGET\r\n$6\r\nitem:1\r\n", "[GET][item:1]");
    assert_reads("*2\r\n$3\r\nGET\r\n$0\r\n\r\n", "[GET][]");
    assert_reads("*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$12\r\n*1\r\n$1\r\nx\r\n\t\r\n",
                 "[SET][\r\n][*1\r\n$1\r\nx\r\n\t]");
}

static void arguments_may_hold_any_byte(void **state)
{
    (void)state;
    char text[] = "*1\r\n$256\r\n................................................................"
                  "................................................................"
                  "................................................................"
                  "................................................................\r\n";
    for (int i = 0; i < 256; i++) {
        text[10 + i] = (char)i;
    }
    struct reading reading = read_limited(text, sizeof text - 1, &roomy);
    assert_int_equal(reading.status, RESP_DONE);
    assert_int_equal(reading.arguments.at[0].length, 256);
    assert_memory_equal(reading.arguments.at[0].at, text + 10, 256);
    assert_false(reading.command.is_inline);
    finish(&reading);
}

/* A command of one argument with the header $ and `line`, behind which a bulk of any length that is
 * even (or, with `phase` 1, odd) would end well. */
static struct reading read_header_of(const char *line, size_t phase)
{
    char bytes[256];
    size_t at = (size_t)sprintf(bytes, "*1\r\n$");
    memcpy(bytes + at, line, 2);
    at += line[1] == '\r' ? 1 : 2;
    memcpy(bytes + at, "\r\n\r", 3);
    for (size_t i = at + 2 + phase; i < sizeof bytes; i++)
        bytes[i] = (i - at - phase) % 2 ? '\n' : '\r';
    return read_limited(bytes, sizeof bytes, &roomy);
}

/* Of one byte or two: digits and nothing else, and no zero in front. */
static void only_decimal_digits_make_a_length(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 256 * 256; pair++) {
        const char line[] = {(char)(pair / 256), (char)(pair % 256), 0};
        size_t digits = line[1] == '\r' ? 1 : 2;
        bool valid = strspn(line, "0123456789") == digits && (digits == 1 || line[0] != '0');
        size_t length = valid ? strtoul(line, NULL, 10) : 0;
        for (size_t phase = 0; phase < 2; phase++) {
            struct reading reading = read_header_of(line, phase);
            bool read = reading.status == RESP_DONE;
            if (read != (valid && length % 2 == phase) ||
                (read && reading.arguments.at[0].length != length))
                fail_msg("$ and %02x %02x", pair / 256, pair % 256);
            finish(&reading);
        }
    }
}

static void only_a_decimal_digit_makes_a_count(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char bytes[] = "*x\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n"
                       "$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n";
        bool valid = byte >= '0' && byte <= '9';
        bytes[1] = (char)byte;
        struct reading reading = read_limited(bytes, sizeof bytes - 1, &roomy);
        if ((reading.status == RESP_DONE) != valid)
            fail_msg("* and %02x", byte);
        assert_int_equal(reading.command.count, valid ? byte - '0' : 0);
        finish(&reading);
    }
}

static void no_arguments_make_an_empty_command(void **state)
{
    (void)state;
    assert_reads("*0\r\n", "");
    assert_reads("*-1\r\n", "");
    assert_reads("*-1000\r\n", "");
    assert_reads("\r\n", "");
    assert_reads("\n", "");
    assert_reads("  \t \r\n", "");
}

static void many_commands_in_one_read_follow_one_another(void **state)
{
    (void)state;
    char input[] = "*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING x\r\n*0\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$";
    const size_t counts[] = {2, 2, 0, 1, 0};
    struct resp_arguments arguments = {0};
    struct resp_command command;
    size_t at = 0, arguments_seen = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(
            resp_read_command(input + at, sizeof input - 1 - at, &roomy, &arguments, &command),
            RESP_DONE);
        assert_int_equal(command.first, arguments_seen);
        assert_int_equal(command.count, counts[i]);
        assert_int_equal(command.is_inline, i == 1);
        arguments_seen += command.count;
        at += command.length;
    }
    assert_int_equal(
        resp_read_command(input + at, sizeof input - 1 - at, &roomy, &arguments, &command),
        RESP_MORE);
    assert_int_equal(arguments.count, 5);
    assert_memory_equal(arguments.at[4].at, "QUIT", 4);
    resp_arguments_finish(&arguments);
}

/* Commands that follow each other with the same head are read by it. */
static void commands_of_one_name_have_one_head(void **state)
{
    char input[] = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
                   "*2\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n"
                   "*2\r\n$3\r\nget\r\n$1\r\nb\r\n"
                   "*3\r\n$3\r\nget\r\n$0\r\n\r\n$1\r\nx\r\n"
                   "*3\r\n$3\r\nget\r\n$1\r\nc\r\n$1\r\ny\r\n"
                   "*2\r\n$6\r\nSTRLEN\r\n$1\r\na\r\n"
                   "*1\r\n$4\r\nPING\r\n"
                   "*3\r\n$3\r\nget\r\n$1\r\nd\r\n$1\r\nz\r\n";
    const uint64_t heads[] = {1, 1, 2, 3, 3, 0, 0, 3};
    const char *last[] = {"a", "0123456789", "b", "x", "y", "a", "PING", "z"};
    struct resp_arguments arguments = {0};
    struct resp_command command;
    size_t at = 0;
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(
            resp_read_command(input + at, sizeof input - 1 - at, &roomy, &arguments, &command),
            RESP_DONE);
        assert_int_equal(command.head, heads[i]);
        assert_int_equal(command.count, (size_t)(input[at + 1] - '0'));
        struct span argument = arguments.at[arguments.count - 1];
        assert_int_equal(argument.length, strlen(last[i]));
        assert_memory_equal(argument.at, last[i], argument.length);
        at += command.length;
    }
    assert_int_equal(at, sizeof input - 1);
    resp_arguments_finish(&arguments);
}

/* What the last command was allowed the next may not be. */
/* Whoever knows a command by its head's number would take another for it. */
static void a_number_of_a_head_is_not_given_again(void **state)
{
    char set[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    char get[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    struct resp_arguments arguments = {0};
    struct resp_command first, second;
    (void)state;
    assert_int_equal(resp_read_command(set, sizeof set - 1, &roomy, &arguments, &first), RESP_DONE);
    resp_arguments_finish(&arguments);
    assert_int_equal(resp_read_command(get, sizeof get - 1, &roomy, &arguments, &second),
                     RESP_DONE);
    assert_int_not_equal(first.head, second.head);
    resp_arguments_finish(&arguments);
    assert_int_equal(resp_read_command(get, sizeof get - 1, &roomy, &arguments, &first), RESP_DONE);
    assert_int_equal(first.head, second.head);
    assert_memory_equal(arguments.at[0].at, "GET", 3);
    resp_arguments_finish(&arguments);
}

static void a_known_head_is_held_to_the_limits(void **state)
{
    char input[] = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\nv\r\n";
    const struct resp_limits few = {2, 100, 1000, 100, 0}, small = {9, 2, 1000, 100, 0},
                             brief = {9, 100, sizeof input - 2, 100, 0};
    const struct resp_limits *strict[] = {&few, &small, &brief};
    struct resp_arguments arguments = {0};
    struct resp_command command;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(resp_read_command(input, sizeof input - 1, &roomy, &arguments, &command),
                         RESP_DONE);
        size_t count = arguments.count;
        assert_int_equal(
            resp_read_command(input, sizeof input - 1, strict[i], &arguments, &command), RESP_BAD);
        assert_int_equal(arguments.count, count);
    }
    resp_arguments_finish(&arguments);
}

static void lengths_are_strictly_decimal(void **state)
{
    (void)state;
    const char *bad[] = {"",
                         " 1",
                         "+1",
                         "1 ",
                         "01",
                         "-0",
                         "-",
                         "0x1",
                         "1.0",
                         "99999999999999999999",
                         "--1",
                         "1\n",
                         "1\r\r",
                         "2147483648",
                         "18446744073709551617",
                         "1-",
                         "a",
                         "1000000000000000000",
                         "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *text = xasprintf("*%s\r\n$4\r\nPING\r\n", bad[i]);
        assert_bad(text, "invalid multibulk length");
        free(text);
        text = xasprintf("*1\r\n$%s\r\nPING\r\n", bad[i]);
        assert_bad(text, "invalid bulk length");
        free(text);
    }
}

static void a_nil_bulk_is_no_argument(void **state)
{
    (void)state;
    assert_bad("*1\r\n$-1\r\n", "invalid bulk length");
    assert_bad("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", "invalid bulk length");
}

static void what_is_no_bulk_is_named(void **state)
{
    (void)state;
    assert_bad("*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "expected '$', got 'f'");
    assert_bad("*1\r\n:1\r\n", "expected '$', got ':'");
    assert_bad("*1\r\n\r\n", "expected '$', got ' '");
}

static void a_bulk_must_end_where_it_says(void **state)
{
    (void)state;
    assert_bad("*1\r\n$4\r\nPINGxx", "expected CRLF after a bulk");
    assert_bad("*1\r\n$4\r\nPING\rx", "expected CRLF after a bulk");
    assert_bad("*1\r\n$3\r\nPING\r\n", "expected CRLF after a bulk");
}

static void limits_hold(void **state)
{
    (void)state;
    const struct resp_limits tight = {3, 10, 40, 20, 0};
    const char *many = "*4\r\n", *large = "*1\r\n$11\r\n";
    assert_bad_with(many, strlen(many), &tight, "invalid multibulk length");
    assert_bad_with(large, strlen(large), &tight, "invalid bulk length");
    const char *fits = "*3\r\n$1\r\na\r\n$10\r\n0123456789\r\n$4\r\nabcd\r\n";
    assert_int_equal(strlen(fits), 38);
    struct reading reading = read_limited(fits, strlen(fits), &tight);
    assert_int_equal(reading.status, RESP_DONE);
    finish(&reading);
    /* Known to be too long before its last bulks have come. */
    const char *longer = "*3\r\n$1\r\na\r\n$10\r\n0123456789\r\n$8\r\n";
    assert_bad_with(longer, strlen(longer), &tight, "command longer than max_command");
    const char *whole = "*3\r\n$1\r\na\r\n$10\r\n0123456789\r\n$8\r\n12345678\r\n";
    assert_bad_with(whole, strlen(whole), &tight, "command longer than max_command");
    assert_bad_with("a b c d\r\n", 9, &tight, "more arguments than max_arguments");
    assert_bad_with("01234567890\r\n", 13, &tight, "invalid bulk length");
}

static void a_header_of_many_small_arguments_is_too_long_at_once(void **state)
{
    (void)state;
    const struct resp_limits limits = {1000000, 100, 1000, 100, 0};
    assert_bad_with("*1000\r\n", 7, &limits, "command longer than max_command");
}

static void endless_lines_are_refused(void **state)
{
    (void)state;
    enum { LENGTH = 64 * 1024 + 8 };
    char *text = xmalloc(LENGTH);
    memset(text, '1', LENGTH);
    assert_bad_with(text, LENGTH, &roomy, "too big inline request");
    text[0] = '*';
    assert_bad_with(text, LENGTH, &roomy, "too big mbulk count string");
    memcpy(text, "*1\r\n$", 5);
    assert_bad_with(text, LENGTH, &roomy, "too big bulk count string");
    struct reading reading = read_limited(text, 64 * 1024, &roomy);
    assert_int_equal(reading.status, RESP_MORE);
    finish(&reading);
    free(text);
}

static void an_inline_line_fills_its_limit(void **state)
{
    (void)state;
    const struct resp_limits limits = {10, 100, 1000, 8, 0};
    struct reading reading = read_limited("1234567\n", 8, &limits);
    assert_int_equal(reading.status, RESP_DONE);
    finish(&reading);
    assert_bad_with("12345678\n", 9, &limits, "too big inline request");
    reading = read_limited("12345678", 8, &limits);
    assert_int_equal(reading.status, RESP_MORE);
    finish(&reading);
    const struct resp_limits shorter = {10, 100, 5, 8, 0};
    assert_bad_with("12345\n", 6, &shorter, "command longer than max_command");
    assert_bad_with("12345", 5, &shorter, "command longer than max_command");
}

static void an_incomplete_command_says_what_it_needs(void **state)
{
    (void)state;
    assert_more("", 1);
    assert_more("*", 2);
    assert_more("*2", 3);
    assert_more("*2\r", 4);
    assert_more("*2\r\n", 4 + 12);
    assert_more("*2\r\n$", 4 + 12);
    assert_more("*2\r\n$3\r\nG", 4 + 9 + 6);
    assert_more("*2\r\n$3\r\nGET\r", 4 + 9 + 6);
    assert_more("*2\r\n$3\r\nGET\r\n", 4 + 9 + 6);
    assert_more("*2\r\n$3\r\nGET\r\n$1000\r\nx", 4 + 9 + 7 + 1002);
    assert_more("*1\r\n$100000000\r\n", 4 + 12 + 100000002);
    assert_more("*1000\r\n", 7 + 6000);
    assert_more("PING", 5);
    assert_more("*1\r\nx", 10);
}

/* `text` is a command of many arguments: it is measured in pieces of up to `most` bytes. */
static void measure_in_pieces(const char *text, size_t length, size_t most)
{
    struct resp_measure measure = {0};
    char *input = xmalloc(length);
    for (size_t have = 0; have < length;) {
        size_t piece = (size_t)rand() % most + 1;
        piece = piece < length - have ? piece : length - have;
        memcpy(input + have, text + have, piece);
        have += piece;
        size_t need = resp_measure(&measure, input, have, &roomy, SIZE_MAX);
        if (have == length)
            assert_int_equal(need, 0);
        else if (measure.scanned)
            assert_in_range(need, have + 1, length);
        memset(input, '?', measure.scanned);
    }
    assert_int_equal(measure.left, 0);
    free(input);
}

/* What was passed is overwritten: nobody looks there a second time. */
static void of_an_incomplete_command_only_what_is_new_is_looked_at(void **state)
{
    enum { ARGUMENTS = 2000, LONGEST = 300 };
    struct buffer text = {0};
    char argument[LONGEST] = "";
    (void)state;
    resp_write_array(&text, ARGUMENTS);
    for (int i = 0; i < ARGUMENTS; i++)
        resp_write_bulk(&text, argument, (size_t)rand() % LONGEST);
    for (size_t most = 1; most < 100000; most *= 10)
        measure_in_pieces(buffer_span(&text).at, buffer_length(&text), most);
    buffer_finish(&text);
}

/* A step of so many arguments says that it is to go on; what was measured is read from there. */
static void what_was_measured_in_steps_is_read_in_steps(void **state)
{
    enum { ARGUMENTS = 2000, STEP = 300 };
    struct buffer text = {0};
    struct resp_measure measure = {0};
    struct span arguments[STEP];
    (void)state;
    resp_write_array(&text, ARGUMENTS);
    for (int i = 0; i < ARGUMENTS; i++)
        resp_write_bulk(&text, "0123456789", (size_t)i % 11);
    struct span all = buffer_span(&text);
    for (int steps = 0; steps < ARGUMENTS / STEP; steps++) {
        assert_int_equal(resp_measure(&measure, all.at, all.length, &roomy, STEP), all.length);
        assert_int_equal(measure.passed, (steps + 1) * STEP);
    }
    assert_int_equal(resp_measure(&measure, all.at, all.length, &roomy, STEP), 0);
    assert_int_equal(measure.left, 0);
    assert_int_equal(measure.scanned, all.length);
    const char *at = resp_measured_open(all.at);
    for (size_t i = 0; i < ARGUMENTS; i++) {
        if (i % STEP == 0)
            resp_measured_next(&at, arguments, ARGUMENTS - i < STEP ? ARGUMENTS - i : STEP);
        assert_int_equal(arguments[i % STEP].length, i % 11);
        assert_memory_equal(arguments[i % STEP].at, "0123456789", i % 11);
    }
    assert_ptr_equal(at, all.at + all.length);
    buffer_finish(&text);
}

/* The reader has the word of what is no array of bulks, or over a limit. */
static void of_what_is_wrong_nothing_is_measured(void **state)
{
    static const char *const wrong[] = {"",
                                        "get item:1",
                                        "*",
                                        "*x\r\n",
                                        "*-1\r\n",
                                        "*2\r\n:1\r\n",
                                        "*2\r\n$-1\r\n",
                                        "*2\r\n$1\r\nab\r\n",
                                        "*2\r\n$20\r\n",
                                        "*20\r\n$1\r\n"};
    const struct resp_limits small = {100, 10, 100, 100, 0}, few = {3, 100, 1000, 100, 0};
    struct resp_measure measure = {0};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        measure = (struct resp_measure){0};
        assert_int_equal(resp_measure(&measure, wrong[i], strlen(wrong[i]), &small, SIZE_MAX), 0);
    }
    measure = (struct resp_measure){0};
    assert_int_equal(resp_measure(&measure, "*4\r\n", 4, &few, SIZE_MAX), 0);
    assert_int_not_equal(resp_measure(&measure, "*3\r\n", 4, &few, SIZE_MAX), 0);
}

/* Byte by byte as slowly as it may come, all before it is not read for each. */
static void a_wrong_header_is_measured_to_its_end(void **state)
{
    static const char start[] = "*3\r\n$1\r\na\r\n$1\r\nb\r\n$x";
    struct resp_measure measure = {0};
    char text[sizeof start + 200];
    size_t length = strlen(start);
    (void)state;
    memcpy(text, start, length);
    for (; length < sizeof text - 1; text[length++] = 'x')
        assert_int_equal(resp_measure(&measure, text, length, &roomy, SIZE_MAX),
                         length + 1 > 24 ? length + 1 : 24);
    text[length++] = '\r';
    assert_int_equal(resp_measure(&measure, text, length, &roomy, SIZE_MAX), 0);
}

static void a_header_alone_allocates_nothing(void **state)
{
    (void)state;
    struct reading reading = read_text("*1048576\r\n$3\r\nGET\r\n");
    assert_int_equal(reading.status, RESP_MORE);
    assert_in_range(reading.arguments.size, 1, 64);
    finish(&reading);
}

static void arguments_grow_as_they_come(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct buffer out = {0};
    struct span *arguments = xcalloc(COUNT, sizeof *arguments);
    for (size_t i = 0; i < COUNT; i++) {
        arguments[i] = span_of(i % 2 ? "odd" : "");
    }
    resp_write_command(&out, arguments, COUNT);
    struct reading reading = read_limited(out.bytes, buffer_length(&out), &roomy);
    assert_int_equal(reading.status, RESP_DONE);
    assert_int_equal(reading.command.count, COUNT);
    assert_int_equal(reading.arguments.at[COUNT - 1].length, 3);
    assert_in_range(reading.arguments.size, COUNT, 2 * COUNT);
    finish(&reading);
    free(arguments);
    buffer_finish(&out);
}

static void inline_arguments_stand_between_blanks(void **state)
{
    (void)state;
    assert_reads("PING\r\n", "[PING]");
    assert_reads("PING\n", "[PING]");
    assert_reads("  get \t item:1  \r\n", "[get][item:1]");
    assert_reads("a\vb \vc\r\n", "[a\vb][c]");
    assert_reads("$3 *1\r\n", "[$3][*1]");
}

static void inline_quotes_follow_redis(void **state)
{
    (void)state;
    assert_reads("set \"a b\" ''\r\n", "[set][a b][]");
    assert_reads("\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n", "[\n\r\t\b\a\\\"q]");
    assert_reads("\"\\x41\\x6a\\x6A\\xg1\\x4\"\n", "[Ajjxg1x4]");
}

static void inline_single_quotes_know_one_escape(void **state)
{
    (void)state;
    assert_reads("'it\\'s' '\\n\\\\ ' '\"'\n", "[it's][\\n\\\\ ][\"]");
}

static void an_inline_quote_may_open_inside_an_argument(void **state)
{
    (void)state;
    assert_reads("item:\"1 2\" x'y z'\n", "[item:1 2][xy z]");
}

static void unbalanced_inline_quotes_are_refused(void **state)
{
    (void)state;
    const char *bad[] = {"\"\r\n",      "'\n",         "set \"\"\"test-key\"\"\" v\r\n",
                         "\"a\"b\n",    "'a'b\n",      "\"a\\\"\n",
                         "x \"abc\\\n", "'abc\\'\n",   "a \"b c\n",
                         "\"\\x4\n",    "\"a\"\"b\"\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_bad(bad[i], "unbalanced quotes in request");
    }
}

static void earlier_arguments_survive_a_bad_command(void **state)
{
    (void)state;
    struct resp_arguments arguments = {0};
    struct resp_command command;
    char good[] = "a b\n", bad[] = "c 'd\n", part[] = "*2\r\n$1\r\nx\r\n";
    assert_int_equal(resp_read_command(good, 4, &roomy, &arguments, &command), RESP_DONE);
    assert_int_equal(resp_read_command(bad, 5, &roomy, &arguments, &command), RESP_BAD);
    assert_int_equal(arguments.count, 2);
    assert_int_equal(resp_read_command(part, 11, &roomy, &arguments, &command), RESP_MORE);
    assert_int_equal(arguments.count, 2);
    assert_memory_equal(arguments.at[1].at, "b", 1);
    resp_arguments_finish(&arguments);
}

static void assert_written(struct buffer *out, const char *text)
{
    assert_int_equal(buffer_length(out), strlen(text));
    assert_memory_equal(out->bytes, text, strlen(text));
    buffer_clear(out);
}

static void writers_write_resp(void **state)
{
    (void)state;
    struct buffer out = {0};
    resp_write_bulk(&out, "hello", 5);
    resp_write_bulk(&out, NULL, 0);
    assert_written(&out, "$5\r\nhello\r\n$0\r\n\r\n");
    resp_write_array(&out, 0);
    resp_write_array(&out, 1000000);
    assert_written(&out, "*0\r\n*1000000\r\n");
    resp_write_status(&out, "OK");
    resp_write_nil(&out, false);
    assert_written(&out, "+OK\r\n$-1\r\n");
    buffer_finish(&out);
}

static void integers_are_written_over_their_whole_range(void **state)
{
    (void)state;
    const int64_t numbers[] = {0, 1, -1, 9, 10, 42, -100, INT64_MAX, INT64_MIN};
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char *text = xasprintf(":%lld\r\n", (long long)numbers[i]);
        resp_write_integer(&out, numbers[i]);
        assert_written(&out, text);
        free(text);
    }
    buffer_finish(&out);
}

static void an_error_is_always_one_line(void **state)
{
    (void)state;
    struct buffer out = {0};
    resp_write_error(&out, "ERR unknown command '%s'", "a\r\n+OK\r\n");
    assert_written(&out, "-ERR unknown command 'a  +OK  '\r\n");
    resp_write_error(&out, "%s", "\n");
    assert_written(&out, "- \r\n");
    buffer_finish(&out);
}

static void a_written_command_reads_back(void **state)
{
    (void)state;
    struct span arguments[] = {span_of("SET"), span_of(""), {"\r\n$\0*", 5}};
    struct buffer out = {0};
    resp_write_command(&out, arguments, 3);
    struct reading reading = read_limited(out.bytes, buffer_length(&out), &roomy);
    assert_int_equal(reading.status, RESP_DONE);
    assert_int_equal(reading.command.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(reading.arguments.at[i].length, arguments[i].length);
        assert_memory_equal(reading.arguments.at[i].at, arguments[i].at, arguments[i].length);
    }
    finish(&reading);
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_multibulk_command_gives_its_arguments),
        cmocka_unit_test(arguments_may_hold_any_byte),
        cmocka_unit_test(only_decimal_digits_make_a_length),
        cmocka_unit_test(only_a_decimal_digit_makes_a_count),
        cmocka_unit_test(no_arguments_make_an_empty_command),
        cmocka_unit_test(many_commands_in_one_read_follow_one_another),
        cmocka_unit_test(commands_of_one_name_have_one_head),
        cmocka_unit_test(a_number_of_a_head_is_not_given_again),
        cmocka_unit_test(a_known_head_is_held_to_the_limits),
        cmocka_unit_test(lengths_are_strictly_decimal),
        cmocka_unit_test(a_nil_bulk_is_no_argument),
        cmocka_unit_test(what_is_no_bulk_is_named),
        cmocka_unit_test(a_bulk_must_end_where_it_says),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_header_of_many_small_arguments_is_too_long_at_once),
        cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(an_inline_line_fills_its_limit),
        cmocka_unit_test(an_incomplete_command_says_what_it_needs),
        cmocka_unit_test(of_an_incomplete_command_only_what_is_new_is_looked_at),
        cmocka_unit_test(what_was_measured_in_steps_is_read_in_steps),
        cmocka_unit_test(of_what_is_wrong_nothing_is_measured),
        cmocka_unit_test(a_wrong_header_is_measured_to_its_end),
        cmocka_unit_test(a_header_alone_allocates_nothing),
        cmocka_unit_test(arguments_grow_as_they_come),
        cmocka_unit_test(inline_arguments_stand_between_blanks),
        cmocka_unit_test(inline_quotes_follow_redis),
        cmocka_unit_test(inline_single_quotes_know_one_escape),
        cmocka_unit_test(an_inline_quote_may_open_inside_an_argument),
        cmocka_unit_test(unbalanced_inline_quotes_are_refused),
        cmocka_unit_test(earlier_arguments_survive_a_bad_command),
        cmocka_unit_test(writers_write_resp),
        cmocka_unit_test(integers_are_written_over_their_whole_range),
        cmocka_unit_test(an_error_is_always_one_line),
        cmocka_unit_test(a_written_command_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
