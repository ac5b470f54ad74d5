/* Readers beside one writer: a fixed set of keys is asked for all the time, one by one and in
 * batches, while the writer inserts and removes others around it in a table 95 % full, so that
 * the fixed ones are moved about, copied and taken as equals of others. None may ever be answered
 * "absent".
 *
 * NESTGUARD_TEST_TIMES=n makes a run n times as long.
 *
 * The table is small: it stays in the caches, and the two buckets of a key change often while a
 * reader looks at them. */
#include "filters/filter.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum {
    FIXED = 64,   /* keys that must always be found */
    OTHERS = 40,  /* more that find place in kinds with no room to spare */
    QUEUED = 512, /* at most, of the writer's */
    READERS = 2,
    OPERATIONS = 60000, /* of the writer; the readers end with it */
};

static uint64_t run_seed;
static size_t operations = OPERATIONS;

struct stage {
    struct filter *filter;
    uint64_t fixed[FIXED];
    atomic_bool over;
};

struct reader {
    pthread_t thread;
    struct stage *stage;
    size_t lookups;
    size_t lost;
};

static uint64_t hash_of(uint64_t number)
{
    struct filter_seed seed = {run_seed, ~run_seed};
    return filter_hash(&seed, &number, sizeof number);
}

static size_t read_one_by_one(const struct stage *stage)
{
    size_t lost = 0;
    for (size_t i = 0; i < FIXED; i++)
        lost += !filter_contains(stage->filter, stage->fixed[i]);
    return lost;
}

static size_t read_as_batch(const struct stage *stage)
{
    bool found[FIXED];
    size_t lost = 0;
    filter_contains_batch(stage->filter, stage->fixed, FIXED, found);
    for (size_t i = 0; i < FIXED; i++)
        lost += !found[i];
    return lost;
}

static void *read_until_over(void *argument)
{
    struct reader *reader = argument;
    while (!atomic_load(&reader->stage->over)) {
        reader->lost += read_one_by_one(reader->stage) + read_as_batch(reader->stage);
        reader->lookups += 2 * (size_t)FIXED;
        struct filter_stats stats = filter_stats(reader->stage->filter);
        reader->lost += stats.keys < FIXED;
    }
    return NULL;
}

/* The writer's keys in the order in which they went in. */
struct queue {
    uint64_t hashes[QUEUED];
    size_t first, count;
};

static void write_in(struct stage *stage, struct queue *queue, uint64_t hash)
{
    if (filter_insert(stage->filter, hash) != 0)
        return;
    queue->hashes[(queue->first + queue->count++) % QUEUED] = hash;
}

static int write_out(struct stage *stage, struct queue *queue)
{
    uint64_t hash = queue->hashes[queue->first];
    queue->first = (queue->first + 1) % QUEUED;
    queue->count--;
    return filter_remove(stage->filter, hash);
}

/* Into a kind that cannot remove: it is full soon, or grows. */
static void write_only(struct stage *stage)
{
    for (uint64_t i = 0; i < operations / 8; i++)
        (void)filter_insert(stage->filter, hash_of(FIXED + i));
}

/* Every eighth insertion is another copy of a fixed key: its removal must not take the last one.
 * (The cuckoo filter only counts most copies: its table is then a little emptier.) */
static size_t write_all(struct stage *stage, struct queue *queue)
{
    size_t failed = 0;
    size_t level = filter_stats(stage->filter).slots * 95 / 100 - FIXED;
    for (uint64_t i = 0; i < operations / 2; i++) {
        if (queue->count >= level)
            failed += write_out(stage, queue) != 0;
        uint64_t hash = i % 8 == 0 ? stage->fixed[hash_of(i) % FIXED] : hash_of(FIXED + i);
        write_in(stage, queue, hash);
    }
    while (queue->count > 0)
        failed += write_out(stage, queue) != 0;
    return failed;
}

static struct filter *make(enum filter_kind kind, double rate)
{
    struct filter_options options = {.kind = kind,
                                     .capacity = kind == FILTER_CUCKOO ? FIXED : FIXED + OTHERS,
                                     .false_positive_rate = rate};
    struct filter *filter = NULL;
    const char *error = NULL;
    assert_int_equal(filter_create(&filter, &options, &error), 0);
    return filter;
}

static void set_stage(struct stage *stage, enum filter_kind kind, double rate)
{
    stage->filter = make(kind, rate);
    atomic_init(&stage->over, false);
    for (uint64_t i = 0; i < FIXED; i++) {
        stage->fixed[i] = hash_of(i);
        assert_int_equal(filter_insert(stage->filter, stage->fixed[i]), 0);
    }
}

static void assert_nothing_is_lost(enum filter_kind kind, double rate)
{
    struct stage stage;
    struct queue queue = {.count = 0};
    struct reader readers[READERS] = {0};
    set_stage(&stage, kind, rate);
    for (size_t i = 0; i < READERS; i++) {
        readers[i].stage = &stage;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_until_over, &readers[i]), 0);
    }
    size_t failed = 0;
    if (filter_can_remove(kind))
        failed = write_all(&stage, &queue);
    else
        write_only(&stage);
    atomic_store(&stage.over, true);
    size_t lookups = 0, lost = 0;
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        lookups += readers[i].lookups;
        lost += readers[i].lost;
    }
    print_message("%s, rate %g: %zu lookups beside %zu changes, %zu lost, %zu removals failed\n",
                  filter_kind_name(kind), rate, lookups, operations, lost, failed);
    assert_int_equal(lost, 0);
    assert_int_equal(failed, 0);
    assert_true(filter_stats(stage.filter).keys == FIXED || !filter_can_remove(kind));
    filter_destroy(stage.filter);
}

static void test_readers_never_lose_a_key_that_the_writer_moves(void **state)
{
    (void)state;
    const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7}; /* each its own cuckoo layout */
    for (enum filter_kind kind = 0; filter_kind_name(kind); kind++) {
        for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
            assert_nothing_is_lost(kind, rates[i]);
    }
}

int main(void)
{
    const char *given = getenv("NESTGUARD_TEST_SEED");
    run_seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("NESTGUARD_TEST_SEED=%" PRIu64 "\n", run_seed);
    const char *times = getenv("NESTGUARD_TEST_TIMES");
    operations *= times ? strtoull(times, NULL, 10) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_never_lose_a_key_that_the_writer_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
