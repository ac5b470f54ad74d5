#include "sources/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct seen {
    size_t count, pauses;
    char first[100];
    size_t longest;
    int stop_at; /* the line that ends it; 0: none */
};

static int on_line(void *arg, struct span line)
{
    struct seen *seen = arg;
    if (seen->count++ == 0 && line.length < sizeof seen->first)
        memcpy(seen->first, line.at, line.length);
    if (line.length > seen->longest)
        seen->longest = line.length;
    return (int)seen->count == seen->stop_at ? -ECANCELED : 0;
}

static int on_pause(void *arg)
{
    ((struct seen *)arg)->pauses++;
    return 0;
}

static int read_text(const char *text, size_t length, struct seen *seen)
{
    int ends[2];
    const struct lines_reader reader = {on_line, on_pause, seen};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, length), length);
    close(ends[1]);
    int code = lines_read(ends[0], &reader);
    close(ends[0]);
    return code;
}

static size_t lines_of(const char *text)
{
    struct seen seen = {0};
    assert_int_equal(read_text(text, strlen(text), &seen), 0);
    assert_true(seen.pauses > 0);
    return seen.count;
}

static void the_last_line_needs_no_newline(void **state)
{
    (void)state;
    assert_int_equal(lines_of(""), 0);
    assert_int_equal(lines_of("a"), 1);
    assert_int_equal(lines_of("a\n"), 1);
    assert_int_equal(lines_of("a\nb"), 2);
    assert_int_equal(lines_of("\n\n"), 2);
}

static void a_line_is_any_bytes(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_int_equal(read_text("a\0b\r\nc", 6, &seen), 0);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.longest, 4);
    assert_memory_equal(seen.first, "a\0b\r", 4);
}

static void whoever_takes_lines_may_stop(void **state)
{
    (void)state;
    struct seen seen = {.stop_at = 2};
    assert_int_equal(read_text("a\nb\nc\n", 6, &seen), -ECANCELED);
    assert_int_equal(seen.count, 2);
}

static void a_line_without_end_is_refused(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct lines_reader reader = {on_line, NULL, &seen};
    int fd = open("/dev/zero", O_RDONLY);
    assert_int_equal(lines_read(fd, &reader), -EMSGSIZE);
    close(fd);
    assert_int_equal(seen.count, 0);
}

static void what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct lines_reader reader = {on_line, NULL, &seen};
    int fd = open("/", O_RDONLY);
    assert_int_equal(lines_read(fd, &reader), -EISDIR);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_needs_no_newline),
        cmocka_unit_test(a_line_is_any_bytes),
        cmocka_unit_test(whoever_takes_lines_may_stop),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
