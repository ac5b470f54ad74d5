#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log/log.h"

#include <jansson.h>
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
        cmocka_unit_test_setup_teardown(journald_is_told_the_priority, capture, release),
        cmocka_unit_test_setup_teardown(another_stream_than_the_journal_gets_the_time, capture,
                                        release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
