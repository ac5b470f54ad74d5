#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *file;
static int terminal;
static char text[8192];

static int capture(void **state)
{
    (void)state;
    file = tmpfile();
    terminal = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    log_configure(LOG_TEXT, LOG_LEVEL_INFO);
    unsetenv("JOURNAL_STREAM");
    return 0;
}

static int release(void **state)
{
    (void)state;
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    return fclose(file);
}

static const char *written(void)
{
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    return text;
}

static void a_line_has_time_level_and_message(void **state)
{
    (void)state;
    log_warning("disk %s is\nfull", "sda");
    assert_non_null(strstr(written(), "Z warning disk sda is full\n"));
    assert_int_equal(written()[4], '-');
}

static void what_is_less_than_the_level_is_not_written(void **state)
{
    (void)state;
    log_debug("%s", "one");
    assert_string_equal(written(), "");
    log_configure(LOG_TEXT, LOG_LEVEL_DEBUG);
    log_debug("%s", "two");
    assert_non_null(strstr(written(), "debug   two\n"));
    log_configure(LOG_TEXT, LOG_LEVEL_ERROR);
    log_warning("three");
    assert_null(strstr(written(), "three"));
}

static void json_says_what_kind_of_message_it_is(void **state)
{
    json_t *json;
    (void)state;
    log_configure(LOG_JSON, LOG_LEVEL_INFO);
    log_error("key \"%s\": %d bytes", "a\"b\xff", 3);
    json = json_loads(written(), 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(json, "event")), "key \"%s\": %d bytes");
    assert_string_equal(json_string_value(json_object_get(json, "message")),
                        "key \"a\"b?\": 3 bytes");
    json_decref(json);
}

static void json_has_what_was_put_into_it(void **state)
{
    (void)state;
    log_configure(LOG_JSON, LOG_LEVEL_INFO);
    log_info("%s %.3s %.*s, %d%% of %u, %ld %llu %zu, %.1f s, %5.2f, %x", "a", "bcdef", 2, "ghi",
             -3, 4u, -5L, 18446744073709551615ULL, sizeof(char[7]), 8.25, 9.5, 255u);
    json_t *json = json_loads(written(), 0, NULL);
    char *values = json_dumps(json_object_get(json, "values"), JSON_COMPACT);
    assert_string_equal(values,
                        "[\"a\",\"bcd\",\"gh\",-3,4,-5,1.8446744073709552e19,7,8.25,9.5,255]");
    free(values);
    json_decref(json);
}

static void long_texts_are_cut_off(void **state)
{
    char text_of_many[3000];
    (void)state;
    memset(text_of_many, 'x', sizeof text_of_many);
    text_of_many[sizeof text_of_many - 1] = '\0';
    memcpy(text_of_many + 1023, "\xc3\xa4", 2);
    log_configure(LOG_JSON, LOG_LEVEL_INFO);
    log_info("%s %s %d", text_of_many, "more", 7);
    json_t *json = json_loads(written(), 0, NULL), *values = json_object_get(json, "values");
    assert_int_equal(json_string_length(json_array_get(values, 0)), 1023);
    assert_int_equal(json_string_length(json_array_get(values, 1)), 1);
    assert_int_equal(json_integer_value(json_array_get(values, 2)), 7);
    json_decref(json);
}

/* The log goes through this one instead, until the test's end; its other end. */
static int through_pipe(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

/* What is written of a line of so many of these signs, which is JSON. */
static json_t *passed_on(int from, const char *sign, size_t count)
{
    char many[10000] = "";
    for (size_t i = 0; i < count; i++)
        strcat(many, sign);
    log_info("put %s: %d", many, 204);
    ssize_t length = read(from, text, sizeof text - 1);
    assert_in_range(length, 1, PIPE_BUF);
    text[length] = '\0';
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void whatever_is_in_it_a_pipe_takes_it(void **state)
{
    static const char *const signs[] = {
        "\"", "\\", "\x01", "\x7f", "\xd0\xb6", "\xf0\x9f\xa6\x89", "\xff", "\t"};
    int from = through_pipe();
    (void)state;
    log_configure(LOG_JSON, LOG_LEVEL_INFO);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        json_t *json = passed_on(from, signs[i], 2100);
        const char *message = json_string_value(json_object_get(json, "message"));
        assert_in_range(strlen(message), 300, 2047);
        assert_memory_equal(message, "put ", 4);
        const char *sign = signs[i][0] == '\xff' ? "?" : signs[i];
        assert_int_equal((strlen(message) - 4) % strlen(sign), 0);
        assert_string_equal(message + strlen(message) - strlen(sign), sign);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(json, "values"), 1)),
                         204);
        json_decref(json);
    }
    close(from);
}

static void what_was_lost_is_told_in_the_form_of_the_rest(void **state)
{
    static char read_first[1 << 20];
    char many[2000];
    int from = through_pipe();
    (void)state;
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    log_configure(LOG_JSON, LOG_LEVEL_ERROR);
    for (int i = 0; i < 100; i++)
        log_error("%s", many);
    assert_in_range(read(from, read_first, sizeof read_first), PIPE_BUF, sizeof read_first);
    log_error("the next");
    text[read(from, text, sizeof text - 1)] = '\0';
    json_t *json = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(json, "event")),
                        "(%lu lines of log were lost)");
    assert_in_range(json_integer_value(json_array_get(json_object_get(json, "values"), 0)), 1, 99);
    json_decref(json);
    json = json_loads(strchr(text, '\n'), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "message")), "the next");
    json_decref(json);
    close(from);
}

static void name_journal(unsigned long long inode)
{
    struct stat about;
    char name[64];
    fstat(STDERR_FILENO, &about);
    snprintf(name, sizeof name, "%llu:%llu", (unsigned long long)about.st_dev,
             (unsigned long long)about.st_ino + inode);
    setenv("JOURNAL_STREAM", name, 1);
}

static void journald_is_told_the_priority(void **state)
{
    (void)state;
    name_journal(0);
    log_error("one");
    log_info("two");
    assert_string_equal(written(), "<3>error   one\n<6>info    two\n");
    log_configure(LOG_JSON, LOG_LEVEL_INFO);
    log_warning("three");
    assert_non_null(strstr(written(), "\n<4>{\"time\":"));
}

static void another_stream_than_the_journal_gets_the_time(void **state)
{
    (void)state;
    name_journal(1);
    log_error("one");
    assert_non_null(strstr(written(), "Z error   one\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_and_message, capture, release),
        cmocka_unit_test_setup_teardown(what_is_less_than_the_level_is_not_written, capture,
                                        release),
        cmocka_unit_test_setup_teardown(json_says_what_kind_of_message_it_is, capture, release),
        cmocka_unit_test_setup_teardown(json_has_what_was_put_into_it, capture, release),
        cmocka_unit_test_setup_teardown(long_texts_are_cut_off, capture, release),
        cmocka_unit_test_setup_teardown(whatever_is_in_it_a_pipe_takes_it, capture, release),
        cmocka_unit_test_setup_teardown(what_was_lost_is_told_in_the_form_of_the_rest, capture,
                                        release),
        cmocka_unit_test_setup_teardown(journald_is_told_the_priority, capture, release),
        cmocka_unit_test_setup_teardown(another_stream_than_the_journal_gets_the_time, capture,
                                        release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
