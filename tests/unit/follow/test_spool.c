/* Bytes in memory and in a file come out as they went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow/spool.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Pieces of many lengths, each of bytes that tell its number. */
static size_t length_of(unsigned piece)
{
    return piece * 7919 % 5000;
}

static const char *piece_of(unsigned piece)
{
    static char bytes[5000];
    memset(bytes, (int)(piece % 251), sizeof bytes);
    return bytes;
}

static void append_pieces(struct spool *spool, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(spool_append(spool, piece_of(i), length_of(i)), 0);
}

static void take_pieces(struct spool *spool, unsigned count)
{
    struct span bytes;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(spool_take(spool, length_of(i), &bytes), 0);
        assert_int_equal(bytes.length, length_of(i));
        assert_memory_equal(bytes.at, piece_of(i), bytes.length);
    }
    assert_int_equal(spool_take(spool, 1, &bytes), -ENODATA);
}

static void check_pieces(struct spool *spool, unsigned count, bool in_file)
{
    append_pieces(spool, count);
    assert_int_equal(spool->file != NULL, in_file);
    for (unsigned times = 0; times < 2; times++) {
        assert_int_equal(spool_rewind(spool), 0);
        take_pieces(spool, count);
    }
}

static void few_bytes_stay_in_memory_and_many_go_to_a_file(void **state)
{
    struct spool spool = {0};
    (void)state;
    check_pieces(&spool, 100, false);
    spool_clear(&spool);
    check_pieces(&spool, 3000, true);
    spool_clear(&spool);
    assert_null(spool.file);
    check_pieces(&spool, 10, false);
    spool_finish(&spool);
}

static void an_empty_one_has_nothing_to_take(void **state)
{
    struct spool spool = {0};
    struct span bytes;
    (void)state;
    assert_int_equal(spool_rewind(&spool), 0);
    assert_int_equal(spool_take(&spool, 1, &bytes), -ENODATA);
    spool_finish(&spool);
    spool_finish(&spool);
}

static void one_piece_larger_than_the_memory_goes_to_the_file(void **state)
{
    struct spool spool = {0};
    struct span bytes;
    size_t length = SPOOL_MEMORY_MAX + 1;
    char *large = malloc(length);
    (void)state;
    memset(large, 'x', length);
    assert_int_equal(spool_append(&spool, "a", 1), 0);
    assert_int_equal(spool_append(&spool, large, length), 0);
    assert_non_null(spool.file);
    assert_int_equal(spool_rewind(&spool), 0);
    assert_int_equal(spool_take(&spool, 1, &bytes), 0);
    assert_memory_equal(bytes.at, "a", 1);
    assert_int_equal(spool_take(&spool, length, &bytes), 0);
    assert_memory_equal(bytes.at, large, length);
    free(large);
    spool_finish(&spool);
}

static unsigned count_files(const char *directory)
{
    DIR *open = opendir(directory);
    unsigned count = 0;
    assert_non_null(open);
    for (const struct dirent *entry; (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

static void the_file_is_where_it_was_asked_for_and_has_no_name(void **state)
{
    char directory[] = "spool-XXXXXX";
    struct spool spool = {0};
    (void)state;
    assert_non_null(mkdtemp(directory));
    setenv("TMPDIR", directory, 1);
    append_pieces(&spool, 3000);
    assert_non_null(spool.file);
    assert_int_equal(count_files(directory), 0);
    spool_finish(&spool);
    assert_int_equal(rmdir(directory), 0);
    append_pieces(&spool, 100);
    int status = 0;
    for (unsigned i = 0; i < 3000 && !status; i++)
        status = spool_append(&spool, piece_of(i), length_of(i));
    assert_int_equal(status, -ENOENT);
    unsetenv("TMPDIR");
    spool_finish(&spool);
}

/* Whatever does not reach the file is told, at the latest when it is to be read. */
static void a_full_disk_is_told(void **state)
{
    struct spool spool = {0};
    (void)state;
    append_pieces(&spool, 3000);
    fclose(spool.file);
    spool.file = fopen("/dev/full", "w+");
    assert_non_null(spool.file);
    int status = spool_append(&spool, "x", 1);
    if (!status)
        status = spool_rewind(&spool);
    assert_int_equal(status, -ENOSPC);
    spool_finish(&spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_bytes_stay_in_memory_and_many_go_to_a_file),
        cmocka_unit_test(an_empty_one_has_nothing_to_take),
        cmocka_unit_test(one_piece_larger_than_the_memory_goes_to_the_file),
        cmocka_unit_test(the_file_is_where_it_was_asked_for_and_has_no_name),
        cmocka_unit_test(a_full_disk_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
