#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "postgres/pg_copy.h"

/* A copy on the heap without a byte to spare, so that AddressSanitizer sees any step beyond. */
static char *exact_copy(const char *row, size_t length)
{
    char *copy = calloc(length ? length : 1, 1);
    memcpy(copy, row, length);
    return copy;
}

static void expect_columns(const char *row, size_t length, int count, const char *const *wanted)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    char *copy = exact_copy(row, length);
    assert_int_equal(pg_copy_split(copy, length, columns), count);
    for (int i = 0; i < count; i++) {
        if (!wanted[i]) {
            assert_null(columns[i].at);
            assert_int_equal(columns[i].length, 0);
            continue;
        }
        assert_non_null(columns[i].at);
        assert_int_equal(columns[i].length, strlen(wanted[i]));
        assert_memory_equal(columns[i].at, wanted[i], columns[i].length);
    }
    free(copy);
}

#define EXPECT(row, ...)                                                                           \
    do {                                                                                           \
        const char *const wanted[] = {__VA_ARGS__};                                                \
        expect_columns(row, sizeof(row) - 1, (int)(sizeof wanted / sizeof *wanted), wanted);       \
    } while (0)

static void plain_rows_are_split_at_tabs(void **state)
{
    (void)state;
    EXPECT("42\n", "42");
    EXPECT("42", "42");
    EXPECT("a\tb\tc\n", "a", "b", "c");
    EXPECT("\n", "");
    EXPECT("", "");
    EXPECT("\t\n", "", "");
    EXPECT("\ta\t\n", "", "a", "");
    EXPECT("gr\xc3\xbc\xc3\x9f\t\xe2\x82\xac\n", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac");
}

static void every_escape_is_undone(void **state)
{
    (void)state;
    EXPECT("\\b\\f\\n\\r\\t\\v\\\\\n", "\b\f\n\r\t\v\\");
    EXPECT("a\\tb\tc\\nd\n", "a\tb", "c\nd");
    EXPECT("\\101\\7z\\0601\n", "A\az01");
    EXPECT("\\x41\\x4\\x4a1\\xzz\n", "A\x04J1xzz");
    EXPECT("\\q\\.\n", "q.");
    EXPECT("\\\\N\n", "\\N");
    EXPECT("\\377\n", "\xff");
}

static void null_differs_from_the_text_that_looks_like_it(void **state)
{
    (void)state;
    EXPECT("\\N\n", NULL);
    EXPECT("\\N\t\t\\N\n", NULL, "", NULL);
    EXPECT("a\\N\tN\t\\NN\n", "aN", "N", "NN");
}

static void a_broken_escape_at_the_end_stays_inside_the_row(void **state)
{
    (void)state;
    EXPECT("\\", "\\");
    EXPECT("a\\\tb\n", "a\\", "b");
    EXPECT("\\x", "x");
    EXPECT("\\1", "\1");
}

static void zero_bytes_by_number_are_kept(void **state)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    char row[] = "a\\0b\n";
    (void)state;
    assert_int_equal(pg_copy_split(row, sizeof row - 1, columns), 1);
    assert_int_equal(columns[0].length, 3);
    assert_memory_equal(columns[0].at, "a\0b", 3);
}

static void more_than_sixteen_columns_are_refused(void **state)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    char sixteen[] = "1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\n";
    char seventeen[] = "1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\t\n";
    (void)state;
    assert_int_equal(pg_copy_split(sixteen, sizeof sixteen - 1, columns), 16);
    assert_memory_equal(columns[15].at, "16", 2);
    assert_int_equal(pg_copy_split(seventeen, sizeof seventeen - 1, columns), -E2BIG);
}

static void random_bytes_never_lead_out_of_the_row(void **state)
{
    static const char alphabet[] = "\\\\\\\t\nNx0178afg";
    unsigned seed = 7;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct pg_column columns[PG_COPY_COLUMNS_MAX];
        char row[24];
        size_t length = (size_t)rand_r(&seed) % sizeof row;
        for (size_t i = 0; i < length; i++)
            row[i] = alphabet[(size_t)rand_r(&seed) % (sizeof alphabet - 1)];
        char *copy = exact_copy(row, length);
        int count = pg_copy_split(copy, length, columns);
        for (int i = 0; i < count; i++)
            if (columns[i].at)
                assert_true(columns[i].at >= copy &&
                            columns[i].at + columns[i].length <= copy + length);
        free(copy);
    }
}

#define HEADER "PGCOPY\n\377\r\n\0\0\0\0\0"
#define BYTES(text) text, sizeof(text) - 1

static int split_binary(const char *row, size_t length, struct pg_column *columns)
{
    char *copy = exact_copy(row, length);
    int count = pg_copy_split_binary(copy, length, columns);
    for (int i = 0; i < count; i++) {
        if (columns[i].at) /* the same place of what lives on */
            columns[i].at = row + (columns[i].at - copy);
    }
    free(copy);
    return count;
}

static void a_binary_copy_begins_with_its_header(void **state)
{
    (void)state;
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER "\0\0\0\0")), 19);
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER "\0\0\0\0\0\1")), 19);
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER "\0\0\0\2xy\0\1")), 21);
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER "\0\0\0\2x")), -EPROTO);
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER "\377\377\377\377")), -EPROTO);
    assert_int_equal(pg_copy_binary_header(BYTES(HEADER)), -EPROTO);
    assert_int_equal(pg_copy_binary_header(BYTES("PGCOPY\n\377\n\r\0\0\0\0\0\0\0\0\0\0")), -EPROTO);
}

static void binary_columns_stand_behind_their_lengths(void **state)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    (void)state;
    assert_int_equal(split_binary(BYTES("\0\3\0\0\0\2ab\377\377\377\377\0\0\0\0"), columns), 3);
    assert_int_equal(columns[0].length, 2);
    assert_memory_equal(columns[0].at, "ab", 2);
    assert_null(columns[1].at);
    assert_non_null(columns[2].at);
    assert_int_equal(columns[2].length, 0);
    assert_int_equal(split_binary(BYTES("\0\0"), columns), 0);
    assert_int_equal(split_binary(BYTES("\377\377"), columns), -ENODATA);
}

static void what_is_no_binary_row_is_refused(void **state)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    (void)state;
    assert_int_equal(split_binary(BYTES(""), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\377\377\0"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0\1"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0\1\0\0\0\3ab"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0\1\377\377\377\376ab"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0\1\0\0\0\2abc"), columns), -EPROTO);
    assert_int_equal(split_binary(BYTES("\0\21\0\0\0\2ab"), columns), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_rows_are_split_at_tabs),
        cmocka_unit_test(every_escape_is_undone),
        cmocka_unit_test(null_differs_from_the_text_that_looks_like_it),
        cmocka_unit_test(a_broken_escape_at_the_end_stays_inside_the_row),
        cmocka_unit_test(zero_bytes_by_number_are_kept),
        cmocka_unit_test(more_than_sixteen_columns_are_refused),
        cmocka_unit_test(random_bytes_never_lead_out_of_the_row),
        cmocka_unit_test(a_binary_copy_begins_with_its_header),
        cmocka_unit_test(binary_columns_stand_behind_their_lengths),
        cmocka_unit_test(what_is_no_binary_row_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
