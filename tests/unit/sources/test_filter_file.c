/* Filters in files: what is saved comes back, and nothing else is taken for it. */
#include "fakes/filter_bench.h"

#include "sources/filter_file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/nestguard-test-XXXXXX";
static char path[100];

static struct filter_seed seed_of_run(void)
{
    return (struct filter_seed){run_seed, ~run_seed};
}

static void save(struct filter *filter)
{
    struct filter_seed seed = seed_of_run();
    struct filter_file_error error;
    if (filter_file_save(path, filter, &seed, &error))
        fail_msg("%s", error.text);
}

static struct filter *load(void)
{
    struct filter *filter;
    struct filter_seed seed;
    struct filter_file_error error;
    if (filter_file_load(path, 0, &filter, &seed, &error))
        fail_msg("%s", error.text);
    assert_int_equal(seed.k0, run_seed);
    assert_int_equal(seed.k1, ~run_seed);
    return filter;
}

/* The file must be refused, with its name and this in the message. */
static int refused(const char *part)
{
    struct filter *filter = (void *)1;
    struct filter_seed seed;
    struct filter_file_error error = {""};
    int code = filter_file_load(path, 0, &filter, &seed, &error);
    if (code == 0)
        fail_msg("taken for a filter instead of \"%s\"", part);
    assert_null(filter);
    assert_memory_equal(error.text, path, strlen(path));
    if (!strstr(error.text, part))
        fail_msg("\"%s\" is not said in: %s", part, error.text);
    return code;
}

struct content {
    unsigned char bytes[40000];
    size_t length;
};

static struct content read_file(void)
{
    struct content content;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    content.length = fread(content.bytes, 1, sizeof content.bytes, file);
    assert_in_range(content.length, 1, sizeof content.bytes - 1);
    fclose(file);
    return content;
}

static void write_file(const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void save_small(void)
{
    struct filter *filter = make(20, 0.03);
    insert_range(filter, 0, 20);
    save(filter);
    filter_destroy(filter);
}

static void test_every_kind_comes_back_as_it_was(void **state)
{
    (void)state;
    for (kind = 0; filter_kind_name(kind); kind++) {
        struct filter *filter = make(3000, 1e-3);
        insert_range(filter, 0, 3000);
        save(filter);
        struct filter *again = load();
        struct filter_stats a = filter_stats(filter), b = filter_stats(again);
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(filter_kind_of(again), kind);
        assert_range_is_in(again, 0, 3000);
        for (uint64_t i = 0; i < 20000; i++)
            assert_int_equal(filter_contains(filter, hash_of(STRANGERS + i)),
                             filter_contains(again, hash_of(STRANGERS + i)));
        filter_destroy(again);
        filter_destroy(filter);
    }
}

static int load_within(size_t max_bytes, struct filter **out)
{
    struct filter_seed seed;
    struct filter_file_error error = {""};
    int code = filter_file_load(path, max_bytes, out, &seed, &error);
    if (code == -E2BIG)
        assert_non_null(strstr(error.text, "more memory than it is allowed"));
    return code;
}

static void test_a_bound_is_kept_from_the_reading_on(void **state)
{
    (void)state;
    for (kind = 0; filter_kind_name(kind); kind++) {
        struct filter *filter = make(3000, 1e-3), *again;
        insert_range(filter, 0, 3000);
        save(filter);
        size_t bytes = filter_stats(filter).bytes;
        filter_destroy(filter);
        assert_int_equal(load_within(1, &again), -E2BIG);
        assert_int_equal(load_within(bytes - 1, &again), -E2BIG);
        assert_null(again);
        assert_int_equal(load_within(bytes, &again), 0);
        for (uint64_t i = 0; i < 100000 && !filter_insert(again, hash_of(STRANGERS + i)); i++)
            ;
        assert_true(filter_stats(again).bytes <= bytes);
        filter_destroy(again);
    }
}

static void test_what_removes_still_removes_every_copy(void **state)
{
    (void)state;
    for (kind = 0; filter_kind_name(kind); kind++) {
        if (!filter_can_remove(kind))
            continue;
        struct filter *filter = make(200, 1e-4);
        size_t copies = 0;
        insert_range(filter, 0, 150);
        for (; copies < 25; copies++)
            assert_int_equal(filter_insert(filter, hash_of(STRANGERS)), 0);
        save(filter);
        filter_destroy(filter);
        filter = load();
        assert_int_equal(filter_stats(filter).keys, 150 + copies);
        for (; copies > 0; copies--)
            assert_int_equal(filter_remove(filter, hash_of(STRANGERS)), 0);
        assert_false(filter_contains(filter, hash_of(STRANGERS)));
        for (uint64_t i = 0; i < 150; i++)
            assert_int_equal(filter_remove(filter, hash_of(i)), 0);
        assert_int_equal(filter_stats(filter).keys, 0);
        filter_destroy(filter);
    }
}

static void test_a_grown_filter_comes_back_whole_and_grows_on(void **state)
{
    (void)state;
    kind = FILTER_SCALABLE_BLOOM;
    struct filter *filter = make(100, 0.01);
    insert_range(filter, 0, 1000);
    save(filter);
    filter_destroy(filter);
    filter = load();
    size_t slots = filter_stats(filter).slots;
    assert_range_is_in(filter, 0, 1000);
    insert_range(filter, 1000, 5000);
    assert_range_is_in(filter, 0, 5000);
    assert_true(filter_stats(filter).slots > slots);
    filter_destroy(filter);
}

static void test_an_empty_filter_comes_back_empty(void **state)
{
    (void)state;
    for (kind = 0; filter_kind_name(kind); kind++) {
        struct filter *filter = make(0, 1e-4);
        save(filter);
        filter_destroy(filter);
        filter = load();
        assert_int_equal(filter_stats(filter).keys, 0);
        assert_int_equal(count_false_positives(filter, 1000), 0);
        filter_destroy(filter);
    }
}

static void test_a_file_cut_off_anywhere_is_refused(void **state)
{
    (void)state;
    for (kind = FILTER_CUCKOO; kind <= FILTER_BLOOM; kind++) {
        save_small();
        struct content content = read_file();
        for (size_t length = 0; length < content.length; length++) {
            write_file(content.bytes, length);
            int code = refused("it is ");
            assert_true(code == -EINVAL || code == -EBADMSG);
        }
    }
}

static void test_any_flipped_bit_is_found(void **state)
{
    (void)state;
    for (kind = FILTER_CUCKOO; kind <= FILTER_BLOOM; kind++) {
        save_small();
        struct content content = read_file();
        for (size_t i = 0; i < content.length; i++) {
            content.bytes[i] ^= (unsigned char)(1 << i % 8);
            write_file(content.bytes, content.length);
            int code = refused("it");
            assert_true(code == -EINVAL || code == -EBADMSG);
            content.bytes[i] ^= (unsigned char)(1 << i % 8);
        }
    }
}

static void test_a_message_says_what_is_wrong(void **state)
{
    (void)state;
    kind = FILTER_BLOOM;
    save_small();
    struct content content = read_file();
    write_file(content.bytes, content.length + 1);
    assert_int_equal(refused("something behind its end"), -EBADMSG);
    write_file(content.bytes, content.length - 1);
    assert_int_equal(refused("cut off"), -EBADMSG);
    content.bytes[content.length - 20] ^= 4;
    write_file(content.bytes, content.length);
    assert_int_equal(refused("content is damaged"), -EBADMSG);
    content.bytes[8] ^= 2; /* the version */
    write_file(content.bytes, content.length);
    assert_int_equal(refused("another version"), -EINVAL);
    memset(content.bytes, 'x', 500);
    write_file(content.bytes, content.length);
    assert_int_equal(refused("no filter of nestguard"), -EINVAL);
    write_file("", 0);
    assert_int_equal(refused("too short"), -EINVAL);
    unlink(path);
    assert_int_equal(refused("No such file"), -ENOENT);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(refused("no regular file"), -EINVAL);
    rmdir(path);
}

static size_t files_in_directory(void)
{
    size_t count = 0;
    DIR *listing = opendir(directory);
    while (readdir(listing))
        count++;
    closedir(listing);
    return count - 2; /* . and .. */
}

static void test_saving_replaces_the_file_and_leaves_no_other(void **state)
{
    (void)state;
    kind = FILTER_CUCKOO;
    write_file("old", 3);
    save_small();
    assert_int_equal(files_in_directory(), 1);
    filter_destroy(load());
}

static struct stat status_of_file(void)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status;
}

static void test_a_new_file_is_its_owners_alone(void **state)
{
    (void)state;
    kind = FILTER_CUCKOO;
    unlink(path);
    save_small();
    assert_int_equal(status_of_file().st_mode & 0777, 0600); /* it holds the seed */
}

static void test_who_could_read_the_old_file_can_read_the_new_one(void **state)
{
    (void)state;
    kind = FILTER_CUCKOO;
    write_file("old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    bool gave = !chown(path, 4711, 4712); /* root's to do */
    struct stat before = status_of_file();
    save_small();
    assert_int_equal(status_of_file().st_mode & 07777, 0640);
    assert_int_equal(status_of_file().st_uid, gave ? 4711 : before.st_uid);
    assert_int_equal(status_of_file().st_gid, before.st_gid);
    unlink(path);
}

/* Of a user who is not of that group: it must not be his own group's instead. */
static void test_no_other_group_gets_the_rights_of_one(void **state)
{
    (void)state;
    if (geteuid())
        skip();
    kind = FILTER_CUCKOO;
    write_file("old", 3);
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(chown(path, 4711, 4712), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(setegid(4713), 0);
    assert_int_equal(seteuid(4711), 0);
    save_small();
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(status_of_file().st_mode & 07777, 0644);
    unlink(path);
}

static void assert_not_saved(struct filter *filter, const char *to, int wanted)
{
    struct filter_seed seed = seed_of_run();
    struct filter_file_error error = {""};
    assert_int_equal(filter_file_save(to, filter, &seed, &error), wanted);
    assert_memory_equal(error.text, to, strlen(to));
}

static void test_a_link_stays_and_what_it_names_is_replaced(void **state)
{
    char aim[sizeof path + 4], link[sizeof path];
    struct stat status;
    struct filter *filter;
    (void)state;
    kind = FILTER_CUCKOO;
    write_file("old", 3);
    snprintf(aim, sizeof aim, "%s.aim", path);
    assert_int_equal(rename(path, aim), 0);
    assert_int_equal(symlink("filter.aim", path), 0);
    save_small();
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    filter_destroy(load());
    assert_int_equal(unlink(aim), 0);
    filter = make(100, 1e-4);
    snprintf(link, sizeof link, "%s", path);
    assert_not_saved(filter, link, -ENOENT);
    filter_destroy(filter);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(files_in_directory(), 0);
}

/* The disk is full after half of it: a limit on the size of files stands for that. */
static void test_what_cannot_be_saved_leaves_the_old_file(void **state)
{
    (void)state;
    kind = FILTER_CUCKOO;
    struct filter *filter = make(5000, 1e-4);
    struct rlimit before, low;
    write_file("old", 3);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_not_saved(filter, path, -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(files_in_directory(), 1);
    assert_int_equal(read_file().length, 3);
    assert_not_saved(filter, "/nowhere/file", -ENOENT);
    assert_not_saved(filter, "/dev/null", -EEXIST);
    filter_destroy(filter);
}

static int make_directory(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    snprintf(path, sizeof path, "%s/filter", mkdtemp(directory));
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_comes_back_as_it_was),
        cmocka_unit_test(test_a_bound_is_kept_from_the_reading_on),
        cmocka_unit_test(test_what_removes_still_removes_every_copy),
        cmocka_unit_test(test_a_grown_filter_comes_back_whole_and_grows_on),
        cmocka_unit_test(test_an_empty_filter_comes_back_empty),
        cmocka_unit_test(test_a_file_cut_off_anywhere_is_refused),
        cmocka_unit_test(test_any_flipped_bit_is_found),
        cmocka_unit_test(test_a_message_says_what_is_wrong),
        cmocka_unit_test(test_saving_replaces_the_file_and_leaves_no_other),
        cmocka_unit_test(test_a_new_file_is_its_owners_alone),
        cmocka_unit_test(test_who_could_read_the_old_file_can_read_the_new_one),
        cmocka_unit_test(test_no_other_group_gets_the_rights_of_one),
        cmocka_unit_test(test_a_link_stays_and_what_it_names_is_replaced),
        cmocka_unit_test(test_what_cannot_be_saved_leaves_the_old_file),
    };
    draw_seed();
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
