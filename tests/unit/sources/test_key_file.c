#include "sources/key_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sources/filter_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench {
    char path[64];
    struct key_template key;
    struct key_file_state state;
    struct key_file_options options;
    struct key_file_error error;
    struct filter *filter;
    struct filter_seed seed;
    atomic_bool stop;
};

static void bench_init(struct bench *bench)
{
    const char *why;
    *bench = (struct bench){.path = "/tmp/test_key_file.XXXXXX"};
    int fd = mkstemp(bench->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(key_template_parse(&bench->key, "item:{id}", &why), 0);
    bench->options = (struct key_file_options){.path = bench->path,
                                               .key = &bench->key,
                                               .filter = {.false_positive_rate = 1e-6},
                                               .stop = &bench->stop};
}

static void bench_finish(struct bench *bench)
{
    key_template_finish(&bench->key);
    unlink(bench->path);
}

static void write_bytes(const struct bench *bench, const char *bytes, size_t length)
{
    FILE *file = fopen(bench->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static int read_it(struct bench *bench)
{
    int status = key_file_look(bench->path, &bench->state);
    return status ? status
                  : key_file_read(&bench->filter, &bench->seed, &bench->state, &bench->options,
                                  &bench->error);
}

static int read_text(struct bench *bench, const char *text)
{
    write_bytes(bench, text, strlen(text));
    return read_it(bench);
}

static bool has(const struct bench *bench, const char *key)
{
    return filter_contains(bench->filter, filter_hash(&bench->seed, key, strlen(key)));
}

static void the_keys_of_a_file_are_known_once_each(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_int_equal(read_text(&bench, "item:1\nitem:two words\nitem:1\n"), 0);
    assert_true(has(&bench, "item:1") && has(&bench, "item:two words"));
    assert_false(has(&bench, "item:3"));
    assert_int_equal(filter_stats(bench.filter).keys, 2);
    filter_destroy(bench.filter);
    bench_finish(&bench);
}

static void an_empty_file_has_no_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_int_equal(read_text(&bench, ""), 0);
    assert_int_equal(filter_stats(bench.filter).keys, 0);
    filter_destroy(bench.filter);
    bench_finish(&bench);
}

static void what_no_lookup_asks_for_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {{"item:1\n42\n", "line 2 is no key like item:{id}"},
                 {"item:1\n\nitem:2\n", "line 2 is no key"},
                 {"item:1\r\nitem:2\r\n", "line 1 ends with a carriage return"},
                 {"item:1\nitem:2", "its last line does not end"},
                 {"item:1\nit", "its last line does not end"}};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_text(&bench, cases[i].text), -EINVAL);
        assert_non_null(strstr(bench.error.text, cases[i].why));
        assert_null(bench.filter);
    }
    bench_finish(&bench);
}

/* Enough keys for the image to have content after its header. */
static size_t make_image(struct bench *bench, char **bytes)
{
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-6};
    struct filter_file_error error;
    struct filter *filter;
    const char *why;
    struct stat status;
    assert_int_equal(filter_create(&filter, &options, &why), 0);
    assert_int_equal(filter_seed_random(&bench->seed), 0);
    assert_int_equal(filter_insert(filter, filter_hash(&bench->seed, "item:7", 6)), 0);
    assert_int_equal(filter_file_save(bench->path, filter, &bench->seed, &error), 0);
    filter_destroy(filter);
    assert_int_equal(stat(bench->path, &status), 0);
    *bytes = malloc((size_t)status.st_size);
    FILE *file = fopen(bench->path, "rb");
    assert_int_equal(fread(*bytes, 1, (size_t)status.st_size, file), status.st_size);
    fclose(file);
    return (size_t)status.st_size;
}

static void the_filter_of_a_file_is_taken_as_it_is_and_not_in_part(void **state)
{
    struct bench bench;
    char *bytes;
    (void)state;
    bench_init(&bench);
    size_t length = make_image(&bench, &bytes);
    assert_int_equal(read_it(&bench), 0);
    assert_true(has(&bench, "item:7"));
    assert_int_equal(filter_stats(bench.filter).keys, 1);
    filter_destroy(bench.filter);
    for (size_t cut = 1; cut < length; cut += length / 7) {
        write_bytes(&bench, bytes, length - cut);
        assert_true(read_it(&bench) < 0);
        assert_null(bench.filter);
    }
    free(bytes);
    bench_finish(&bench);
}

static void a_file_that_is_another_by_the_end_is_not_believed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    write_bytes(&bench, "item:1\n", 7);
    assert_int_equal(key_file_look(bench.path, &bench.state), 0);
    write_bytes(&bench, "item:1\nitem:2\n", 14);
    assert_int_equal(
        key_file_read(&bench.filter, &bench.seed, &bench.state, &bench.options, &bench.error),
        -EAGAIN);
    assert_null(bench.filter);
    bench_finish(&bench);
}

static void what_cannot_be_read_says_why(void **state)
{
    struct bench bench;
    struct key_file_state seen;
    (void)state;
    bench_init(&bench);
    assert_int_equal(key_file_look("/tmp", &seen), -EINVAL);
    assert_int_equal(key_file_look("/nothing/there", &seen), -ENOENT);
    assert_int_equal(seen.inode, 0);
    atomic_store(&bench.stop, true);
    assert_int_equal(read_text(&bench, "item:1\n"), -ECANCELED);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_keys_of_a_file_are_known_once_each),
        cmocka_unit_test(an_empty_file_has_no_key),
        cmocka_unit_test(what_no_lookup_asks_for_is_refused),
        cmocka_unit_test(the_filter_of_a_file_is_taken_as_it_is_and_not_in_part),
        cmocka_unit_test(a_file_that_is_another_by_the_end_is_not_believed),
        cmocka_unit_test(what_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
