/* Lists of keys that are sent, as the threads of libuv's pool take them. */
#include "keeper/parts/pushes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "fakes/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "cache: redis://127.0.0.1\n"
                           "control: 127.0.0.1:1\n"
                           "keyspaces:\n"
                           "  - {name: items, key: \"item:{id}\", source: push, on_miss: pass}\n"
                           "  - {name: other, key: \"other:{id}\", source: push, on_miss: pass}\n";

struct bench {
    uv_loop_t loop;
    struct key_set *sets[2];
    struct publishing publishing;
    struct pushes pushes;
    unsigned taken, refused, done, readied;
    enum push_outcome outcome;
    uint64_t lines, keys;
    char why[200];
};

static void on_taken(void *arg, size_t keyspace, struct key_set *set)
{
    struct bench *bench = arg;
    key_set_release(bench->sets[keyspace]);
    bench->sets[keyspace] = set;
    bench->taken++;
}

static void on_refused(void *arg, size_t keyspace, const char *why)
{
    struct bench *bench = arg;
    (void)keyspace;
    assert_non_null(strstr(why, "what was pushed is refused"));
    bench->refused++;
}

static void on_done(void *arg, const struct push_result *result)
{
    struct bench *bench = arg;
    bench->done++;
    bench->outcome = result->outcome;
    bench->lines = result->lines;
    bench->keys = result->keys;
    snprintf(bench->why, sizeof bench->why, "%s", result->why);
}

static void on_ready(void *arg)
{
    ((struct bench *)arg)->readied++;
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.publishing.shared = shared_config_create(config_from_text(text))};
    bench->publishing.sets = bench->sets;
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    pushes_open(&bench->pushes, &(struct pushes_options){.loop = &bench->loop,
                                                         .publishing = &bench->publishing,
                                                         .taken = on_taken,
                                                         .refused = on_refused,
                                                         .arg = bench});
}

static void bench_finish(struct bench *bench)
{
    pushes_end(&bench->pushes);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_null(bench->pushes.first);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    for (int i = 0; i < 2; i++)
        key_set_release(bench->sets[i]);
    shared_config_release(bench->publishing.shared);
}

static struct push *begin(struct bench *bench)
{
    struct push *push = NULL;
    assert_int_equal(pushes_begin(&bench->pushes, 0, &push), 0);
    return push;
}

/* As a sender does who waits when told to. */
static void take(struct bench *bench, struct push *push, struct span bytes)
{
    unsigned before = bench->readied;
    if (push_take(push, bytes, on_ready, bench))
        return;
    while (bench->readied == before)
        uv_run(&bench->loop, UV_RUN_ONCE);
}

static void end(struct bench *bench, struct push *push)
{
    push_end(push, on_done, bench);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
}

/* item:FIRST to item:LAST, in pieces that end anywhere. */
static void take_keys(struct bench *bench, struct push *push, unsigned first, unsigned last)
{
    struct buffer lines = {0};
    for (unsigned i = first; i <= last; i++)
        buffer_printf(&lines, "item:%u\n", i);
    while (buffer_length(&lines)) {
        struct span left = buffer_span(&lines);
        left.length = left.length < 50001 ? left.length : 50001;
        take(bench, push, left);
        buffer_take(&lines, left.length);
    }
    buffer_finish(&lines);
}

static void push_keys(struct bench *bench, unsigned first, unsigned last)
{
    struct push *push = begin(bench);
    take_keys(bench, push, first, last);
    end(bench, push);
}

static bool knows(const struct bench *bench, const char *key)
{
    const struct key_set *set = bench->sets[0];
    return filter_contains(set->filter, filter_hash(&set->seed, key, strlen(key)));
}

static void tell(struct bench *bench, const char *key)
{
    pushes_know(&bench->pushes, key_make(0, span_of(key)));
}

static void what_is_sent_in_pieces_is_taken_as_a_whole(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    push_keys(&bench, 1, 200000);
    assert_int_equal(bench.done, 1);
    assert_int_equal(bench.outcome, PUSH_TAKEN);
    assert_int_equal(bench.lines, 200000);
    assert_true(bench.keys > 199900);
    assert_true(knows(&bench, "item:1") && knows(&bench, "item:123456") &&
                knows(&bench, "item:200000"));
    bench_finish(&bench);
}

static void a_part_of_a_list_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    push_keys(&bench, 1, 1000);
    push_keys(&bench, 1, 499);
    assert_int_equal(bench.outcome, PUSH_TOO_FEW);
    assert_non_null(strstr(bench.why, "max_shrink"));
    struct push *push = begin(&bench);
    end(&bench, push);
    assert_int_equal(bench.outcome, PUSH_TOO_FEW);
    assert_non_null(strstr(bench.why, "min_keys"));
    push = begin(&bench);
    take_keys(&bench, push, 1, 1000);
    take(&bench, push, span_of("item:10"));
    end(&bench, push);
    assert_int_equal(bench.outcome, PUSH_WRONG);
    assert_int_equal(bench.taken, 1);
    assert_int_equal(bench.refused, 3);
    assert_true(knows(&bench, "item:1000"));
    bench_finish(&bench);
}

static void a_line_that_is_no_key_is_named(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct push *push = begin(&bench);
    take_keys(&bench, push, 1, 40000);
    take(&bench, push, span_of("other:1\nitem:7\n"));
    end(&bench, push);
    assert_int_equal(bench.outcome, PUSH_WRONG);
    assert_string_equal(bench.why, "line 40001 is no key like item:{id}");
    assert_null(bench.sets[0]);
    bench_finish(&bench);
}

static void who_breaks_off_changes_nothing_and_lets_another_begin(void **state)
{
    struct bench bench;
    struct push *second, *other;
    (void)state;
    bench_init(&bench);
    struct push *push = begin(&bench);
    assert_int_equal(pushes_begin(&bench.pushes, 0, &second), -EALREADY);
    assert_int_equal(pushes_begin(&bench.pushes, 1, &other), 0);
    take_keys(&bench, push, 1, 100000); /* a thread may be writing some of it */
    push_break(push);
    assert_int_equal(bench.refused, 1);
    push_keys(&bench, 1, 10);
    assert_int_equal(bench.keys, 10);
    push_break(other);
    assert_int_equal(bench.done, 1);
    assert_int_equal(bench.taken, 1);
    bench_finish(&bench);
}

static void keys_told_one_by_one_meanwhile_are_in_it(void **state)
{
    struct bench bench;
    char key[32];
    (void)state;
    bench_init(&bench);
    tell(&bench, "item:before");
    struct push *push = begin(&bench);
    for (unsigned i = 0; i < 900; i++) {
        snprintf(key, sizeof key, "item:told%u", i);
        tell(&bench, key);
    }
    pushes_know(&bench.pushes, key_make(1, span_of("other:told")));
    take_keys(&bench, push, 1, 1000);
    push_end(push, on_done, &bench);
    tell(&bench, "item:late");
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    assert_true(knows(&bench, "item:told0") && knows(&bench, "item:told899") &&
                knows(&bench, "item:late"));
    assert_false(knows(&bench, "item:before"));
    assert_null(bench.sets[0]->lacks);
    bench_finish(&bench);
}

/* More of one kind than of another: that much is kept of those that differ. */
static void more_told_keys_than_can_be_kept_end_the_rejecting(void **state)
{
    struct bench bench;
    char key[32];
    (void)state;
    bench_init(&bench);
    struct push *push = begin(&bench);
    for (unsigned i = 0; i < 3u << 20; i++)
        tell(&bench, "item:again");
    take_keys(&bench, push, 1, 1000);
    end(&bench, push);
    assert_true(knows(&bench, "item:again"));
    assert_null(bench.sets[0]->lacks);
    push = begin(&bench);
    for (unsigned i = 0; i < (1u << 20) + 10; i++) {
        snprintf(key, sizeof key, "item:told%u", i);
        tell(&bench, key);
    }
    take_keys(&bench, push, 1, 1000);
    end(&bench, push);
    assert_int_equal(bench.outcome, PUSH_TAKEN);
    assert_non_null(bench.sets[0]->lacks);
    bench_finish(&bench);
}

static size_t bytes_of(const struct bench *bench, size_t keyspace)
{
    return bench->sets[keyspace] ? filter_stats(bench->sets[keyspace]->filter).bytes : 0;
}

static void lists_that_are_read_at_once_have_the_memory_together(void **state)
{
    struct bench bench;
    struct push *other;
    (void)state;
    bench_init(&bench);
    push_keys(&bench, 1, 1000);
    size_t bound = 2 * bytes_of(&bench, 0) - 1;
    bench.publishing.shared->config->max_filter_memory = bound;
    struct push *push = begin(&bench);
    take_keys(&bench, push, 1, 1000);
    assert_int_equal(pushes_begin(&bench.pushes, 1, &other), 0);
    take(&bench, other, span_of("other:1\nother:2\n"));
    push_end(other, on_done, &bench);
    end(&bench, push);
    assert_int_equal(bench.done, 3);
    assert_int_equal(bench.taken, 3);
    assert_true(bytes_of(&bench, 0) + bytes_of(&bench, 1) <= bound);
    bench.publishing.shared->config->max_filter_memory = bytes_of(&bench, 0) + 1;
    key_set_release(bench.sets[1]);
    bench.sets[1] = NULL;
    assert_int_equal(pushes_begin(&bench.pushes, 1, &other), 0);
    take(&bench, other, span_of("other:1\nother:2\n"));
    end(&bench, other);
    assert_int_equal(bench.outcome, PUSH_TOO_LARGE);
    assert_int_equal(bytes_of(&bench, 1), 0);
    bench_finish(&bench);
}

static void without_a_place_for_the_file_it_fails(void **state)
{
    struct bench bench;
    struct push *push;
    (void)state;
    bench_init(&bench);
    assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
    assert_int_equal(pushes_begin(&bench.pushes, 0, &push), -ENOENT);
    unsetenv("TMPDIR");
    assert_null(bench.pushes.first);
    bench_finish(&bench);
}

static void who_is_reading_when_the_guard_ends_is_told_so(void **state)
{
    struct bench bench;
    struct push *push;
    (void)state;
    bench_init(&bench);
    push = begin(&bench);
    take_keys(&bench, push, 1, 1000);
    push_end(push, on_done, &bench);
    pushes_end(&bench.pushes);
    assert_int_equal(pushes_begin(&bench.pushes, 1, &push), -ESHUTDOWN);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    assert_int_equal(bench.outcome, PUSH_FAILED);
    assert_int_equal(bench.taken + bench.refused, 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_in_pieces_is_taken_as_a_whole),
        cmocka_unit_test(a_part_of_a_list_is_refused),
        cmocka_unit_test(a_line_that_is_no_key_is_named),
        cmocka_unit_test(who_breaks_off_changes_nothing_and_lets_another_begin),
        cmocka_unit_test(keys_told_one_by_one_meanwhile_are_in_it),
        cmocka_unit_test(more_told_keys_than_can_be_kept_end_the_rejecting),
        cmocka_unit_test(lists_that_are_read_at_once_have_the_memory_together),
        cmocka_unit_test(without_a_place_for_the_file_it_fails),
        cmocka_unit_test(who_is_reading_when_the_guard_ends_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
