/* Which values are kept out of the cache, and when: with a cache that answers when the test says
 * so. */
#include "keeper/parts/purging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "fakes/redis.h"

#include <stdio.h>
#include <string.h>

enum { ITEMS, ORDERS, KEYSPACES, MAX_KEYS = 2 };

struct bench {
    uv_loop_t loop;
    struct keyspace keyspaces[KEYSPACES];
    struct config config;
    struct load_counters counters[KEYSPACES];
    struct changes changes;
    struct replication replication;
    struct purging purging;
    struct vouched *vouched;
    unsigned told[CAUSES]; /* to loads or to the cache */
    unsigned deleted;
};

static void on_change(void *arg, const struct key_change *change)
{
    struct bench *bench = arg;
    bench->told[change->cause]++;
}

/* Loads hear of a change before the cache does. */
static void on_purge(void *arg, const struct key_change *change)
{
    struct bench *bench = arg;
    if (change->cause == CAUSE_UNVOUCHED || change->cause == CAUSE_FILLED)
        bench->told[change->cause]++; /* which loads do not hear */
    purging_hear(&bench->purging, change);
}

static void on_deleted(void *arg, const struct redis_answer *answer)
{
    struct bench *bench = arg;
    (void)answer;
    bench->deleted++;
}

static void bench_open(struct bench *bench, enum sync_mode sync)
{
    static const char *const templates[] = {"item:{id}", "order:{id}"};
    static char *const names[] = {(char *)"items", (char *)"orders"};
    static char prober;
    const char *error;
    memset(bench, 0, sizeof *bench);
    bench->config = (struct config){.sync = sync,
                                    .max_hints = MAX_KEYS,
                                    .keyspace_count = KEYSPACES,
                                    .keyspaces = bench->keyspaces};
    for (int i = 0; i < KEYSPACES; i++) {
        bench->keyspaces[i].name = names[i];
        assert_int_equal(key_template_parse(&bench->keyspaces[i].key, templates[i], &error), 0);
    }
    if (sync == SYNC_REPLICATION) /* one that has not followed yet */
        bench->replication.wal_probe = (struct wal_probe *)&prober;
    uv_loop_init(&bench->loop);
    bench->vouched = vouched_create();
    fake_redis_reset();
    changes_subscribe(&bench->changes, SUBSCRIBER_LOADS, on_change, bench);
    changes_subscribe(&bench->changes, SUBSCRIBER_CACHE, on_purge, bench);
    purging_open(&bench->purging,
                 &(struct purging_options){.loop = &bench->loop,
                                           .config = &bench->config,
                                           .counters = bench->counters,
                                           .vouched = bench->vouched,
                                           .changes = changes_sink(&bench->changes),
                                           .replication = &bench->replication});
    purgers_cache_is(&bench->purging.purgers, 0, true);
}

/* Whatever was sent ends. */
static void bench_close(struct bench *bench)
{
    fake_redis.up = false;
    purgers_cache_is(&bench->purging.purgers, 0, false);
    while (fake_redis.count)
        fake_redis_ends(REDIS_DOWN);
    purging_close(&bench->purging);
    vouched_destroy(bench->vouched);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    for (int i = 0; i < KEYSPACES; i++)
        key_template_finish(&bench->keyspaces[i].key);
}

static struct key item(const char *text)
{
    return key_make(ITEMS, span_of(text));
}

/* The cache is asked to delete this key, and nothing else. */
static void must_delete(struct bench *bench, const char *key)
{
    for (int i = 0; i < 10 && !fake_redis.count; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(fake_redis.count, 1);
    assert_null(fake_redis.calls[0].cursor);
    assert_int_equal(fake_redis.calls[0].count, 1);
    assert_string_equal(fake_redis.calls[0].keys[0], key);
    fake_redis_ends(REDIS_DONE);
}

static void must_delete_nothing(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(fake_redis.count, 0);
    assert_false(purging_owes(&bench->purging));
}

/* ---- tests ---- */

static void a_changed_key_is_deleted(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    struct key_change change = change_of_key(CAUSE_UPDATED, item("item:1"));
    changes_tell(&bench.changes, &change);
    assert_true(purging_owes(&bench.purging));
    must_delete(&bench, "item:1");
    assert_false(purging_owes(&bench.purging));
    bench_close(&bench);
}

static void what_was_filled_before_a_log_told_is_deleted_when_one_does(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_filling(&bench.purging, item("item:1"));
    must_delete_nothing(&bench);
    purging_give_unvouched(&bench.purging);
    assert_int_equal(bench.told[CAUSE_ASKED], KEYSPACES);
    assert_int_equal(bench.told[CAUSE_UNVOUCHED], 1);
    must_delete(&bench, "item:1");
    purging_give_unvouched(&bench.purging); /* once is enough */
    assert_int_equal(bench.told[CAUSE_UNVOUCHED], 1);
    bench_close(&bench);
}

static void what_is_filled_while_a_log_tells_stays(void **state)
{
    struct bench bench;
    static char tracker;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    bench.replication.serving = (struct tracker *)&tracker;
    purging_filling(&bench.purging, item("item:1"));
    purging_give_unvouched(&bench.purging);
    assert_int_equal(bench.told[CAUSE_UNVOUCHED], 0);
    must_delete_nothing(&bench);
    bench_close(&bench);
}

static void more_keys_than_are_remembered_are_their_keyspace(void **state)
{
    struct bench bench;
    char key[20];
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    for (int i = 0; i <= MAX_KEYS; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        purging_filling(&bench.purging, item(key));
    }
    purging_give_unvouched(&bench.purging);
    assert_int_equal(bench.told[CAUSE_FILLED], 1);
    assert_true(purging_owes(&bench.purging));
    bench_close(&bench);
}

/* Without a log what values are made of vouches for them, from the first answer on. */
static void without_a_log_the_first_answer_vouches(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_NONE);
    assert_false(purging_knows_values(&bench.purging));
    purging_filling(&bench.purging, item("item:1"));
    purging_learn_values(&bench.purging, "a,b");
    assert_true(purging_knows_values(&bench.purging));
    must_delete(&bench, "item:1");
    purging_filling(&bench.purging, item("item:2"));
    purging_learn_values(&bench.purging, "a,b");
    must_delete_nothing(&bench);
    bench_close(&bench);
}

static void another_answer_makes_a_keyspace_old_and_no_other(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_NONE);
    purging_learn_values(&bench.purging, "a,b");
    purging_learn_values(&bench.purging, "a,c");
    assert_int_equal(bench.told[CAUSE_ALTERED], 1);
    purging_check_time(&bench.purging, UINT64_MAX / 2); /* it has settled: once more */
    assert_int_equal(bench.told[CAUSE_ALTERED], 2);
    purging_check_time(&bench.purging, UINT64_MAX / 2);
    assert_int_equal(bench.told[CAUSE_ALTERED], 2);
    bench_close(&bench);
}

static void what_no_log_told_of_makes_every_keyspace_old(void **state)
{
    struct bench bench;
    struct report report = {0};
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_missed(&bench.purging);
    assert_int_equal(bench.told[CAUSE_MISSED], KEYSPACES);
    purging_report(&bench.purging, &report);
    assert_true(report.purges_owed == SIZE_MAX);
    free(report.cache);
    bench_close(&bench);
}

static void a_deletion_counts_when_it_is_done(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_delete(&bench.purging, item("item:1"), on_deleted, &bench);
    fake_redis_ends(REDIS_DOWN);
    assert_int_equal(bench.deleted, 1);
    assert_int_equal(counter_read(&bench.counters[ITEMS].purges), 0);
    purging_delete(&bench.purging, item("item:1"), on_deleted, &bench);
    fake_redis_ends(REDIS_DONE);
    assert_int_equal(bench.deleted, 2);
    assert_int_equal(counter_read(&bench.counters[ITEMS].purges), 1);
    bench_close(&bench);
}

static void the_report_says_what_is_owed_while_the_cache_is_down(void **state)
{
    struct bench bench;
    struct report report = {0};
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_report(&bench.purging, &report);
    assert_int_equal(report.cache_nodes, 1);
    assert_true(report.cache[0].up);
    free(report.cache);
    fake_redis.up = false;
    purgers_cache_is(&bench.purging.purgers, 0, false);
    struct key_change change = change_of_key(CAUSE_DELETED, item("item:1"));
    changes_tell(&bench.changes, &change);
    purging_report(&bench.purging, &report);
    assert_false(report.cache[0].up);
    free(report.cache);
    assert_int_equal(report.purges_owed, 1);
    bench_close(&bench);
}

/* ---- two caches ---- */

static void go_on(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

/* So many calls wait, and so many of them are the other one's. */
static void must_wait(struct bench *bench, size_t count, size_t others)
{
    size_t found = 0;
    go_on(bench);
    assert_int_equal(fake_redis.count, count);
    for (size_t i = 0; i < count; i++)
        found += fake_redis.calls[i].redis == fake_other_redis();
    assert_int_equal(found, others);
}

static void tell_update(struct bench *bench, const char *key)
{
    struct key_change change = change_of_key(CAUSE_UPDATED, item(key));
    changes_tell(&bench->changes, &change);
}

static void of_two_caches_each_is_told_of_every_change(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_open_other(&bench.purging, fake_other_redis());
    assert_true(purging_other_is_swept(&bench.purging));
    tell_update(&bench, "item:1");
    must_wait(&bench, 2, 1);
    assert_true(purging_owes(&bench.purging) && purging_owes_other(&bench.purging));
    fake_redis_ends(REDIS_DONE);
    fake_redis_ends(REDIS_DONE);
    assert_false(purging_owes(&bench.purging) || purging_owes_other(&bench.purging));
    purging_close_other(&bench.purging);
    tell_update(&bench, "item:2");
    must_wait(&bench, 1, 0);
    bench_close(&bench);
}

/* Changes are deleted there meanwhile, too. */
static void one_that_is_to_come_is_swept_and_the_other_is_not(void **state)
{
    static const struct redis_answer over = {
        .outcome = REDIS_DONE, .error = "", .page.cursor = "0"};
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_open_other(&bench.purging, fake_other_redis());
    purging_sweep_other(&bench.purging);
    for (int i = 0; i < KEYSPACES; i++) {
        must_wait(&bench, 1, 1);
        assert_non_null(fake_redis.calls[0].cursor);
        assert_false(purging_other_is_swept(&bench.purging));
        fake_redis_answer(&over);
    }
    go_on(&bench);
    assert_true(purging_other_is_swept(&bench.purging));
    bench_close(&bench);
}

/* The oldest of the other one's calls. */
static void answer_other(const struct redis_answer *answer)
{
    while (fake_redis.calls[0].redis != fake_other_redis()) {
        struct fake_call call = fake_redis_take();
        fake_redis.calls[fake_redis.count++] = call;
    }
    fake_redis_answer(answer);
}

/* Nor is one by who is connected to it before the keeper is. */
static void while_all_is_doubted_no_server_is_believed(void **state)
{
    static const struct redis_answer over = {
        .outcome = REDIS_DONE, .error = "", .page.cursor = "0"};
    static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";
    static const char stranger[] = "76543210fedcba9876543210fedcba9876543210";
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    fake_redis.run_id = run_id;
    assert_true(vouched_believes(bench.vouched, stranger, 0));
    assert_false(purging_doubts(&bench.purging));
    purging_doubt(&bench.purging, "nobody knows what it holds");
    assert_false(vouched_believes(bench.vouched, stranger, 0));
    for (int i = 0; i < KEYSPACES; i++) {
        must_wait(&bench, 1, 0);
        assert_true(purging_doubts(&bench.purging));
        assert_false(vouched_believes(bench.vouched, run_id, 0));
        fake_redis_answer(&over);
    }
    assert_false(purging_doubts(&bench.purging));
    assert_true(vouched_believes(bench.vouched, run_id, 0));
    assert_false(vouched_believes(bench.vouched, stranger, 0));
    bench_close(&bench);
}

/* As when its password has changed: who doubts it may not come to it any more. */
static void a_server_that_the_first_doubts_is_swept_by_the_second_for_both(void **state)
{
    static const struct redis_answer over = {
        .outcome = REDIS_DONE, .error = "", .page.cursor = "0"};
    static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    fake_redis.run_id = run_id;
    fake_redis.doubt = "it was started anew";
    purgers_cache_is(&bench.purging.purgers, 0, true);
    must_wait(&bench, 1, 0); /* its sweep, which does not get on */
    fake_redis.doubt = NULL;
    purging_open_other(&bench.purging, fake_other_redis());
    purging_doubt_other(&bench.purging);
    purging_sweep_other(&bench.purging);
    for (int i = 0; i < KEYSPACES; i++) {
        must_wait(&bench, 2, 1);
        assert_false(vouched_believes(bench.vouched, run_id, 0));
        answer_other(&over);
    }
    must_wait(&bench, 1, 0);
    assert_true(purging_other_is_swept(&bench.purging));
    assert_true(vouched_believes(bench.vouched, run_id, 0));
    bench_close(&bench);
}

/* What was found is still there until the cache has confirmed its deletion, however often it
 * refuses that; what changes later does not count. */
static void what_a_sweep_found_is_deleted_before_it_counts(void **state)
{
    static const struct redis_bytes key = {"item:1", 6};
    static const struct redis_answer over = {
        .outcome = REDIS_DONE, .error = "", .page.cursor = "0"};
    struct redis_answer found = over;
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_open_other(&bench.purging, fake_other_redis());
    purging_sweep_other(&bench.purging);
    must_wait(&bench, 1, 1);
    fake_redis_answer(&over);
    must_wait(&bench, 1, 1);
    found.page.keys = &key;
    found.page.count = 1;
    fake_redis_answer(&found);
    must_wait(&bench, 1, 1);
    assert_null(fake_redis.calls[0].cursor);
    assert_false(purging_other_is_swept(&bench.purging));
    fake_redis_ends(REDIS_REFUSED);
    assert_false(purging_other_is_swept(&bench.purging));
    for (int i = 0; i < 1000 && !fake_redis.count; i++)
        uv_run(&bench.loop, UV_RUN_ONCE);
    fake_redis_ends(REDIS_DONE);
    assert_true(purging_other_is_swept(&bench.purging));
    tell_update(&bench, "item:2");
    assert_true(purging_other_is_swept(&bench.purging));
    bench_close(&bench);
}

static void behind_the_change_what_is_deleted_by_hand_is_deleted_from_both(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, SYNC_REPLICATION);
    purging_open_other(&bench.purging, fake_other_redis());
    purging_swap(&bench.purging);
    purging_delete(&bench.purging, item("item:1"), on_deleted, &bench);
    assert_ptr_equal(fake_redis.calls[0].redis, fake_other_redis());
    must_wait(&bench, 2, 1);
    fake_redis_ends(REDIS_DONE);
    assert_int_equal(bench.deleted, 1);
    purging_ask(&bench.purging, item("item:1"), on_deleted, &bench);
    must_wait(&bench, 2, 1);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_key_is_deleted),
        cmocka_unit_test(what_was_filled_before_a_log_told_is_deleted_when_one_does),
        cmocka_unit_test(what_is_filled_while_a_log_tells_stays),
        cmocka_unit_test(more_keys_than_are_remembered_are_their_keyspace),
        cmocka_unit_test(without_a_log_the_first_answer_vouches),
        cmocka_unit_test(another_answer_makes_a_keyspace_old_and_no_other),
        cmocka_unit_test(what_no_log_told_of_makes_every_keyspace_old),
        cmocka_unit_test(while_all_is_doubted_no_server_is_believed),
        cmocka_unit_test(a_deletion_counts_when_it_is_done),
        cmocka_unit_test(the_report_says_what_is_owed_while_the_cache_is_down),
        cmocka_unit_test(of_two_caches_each_is_told_of_every_change),
        cmocka_unit_test(one_that_is_to_come_is_swept_and_the_other_is_not),
        cmocka_unit_test(a_server_that_the_first_doubts_is_swept_by_the_second_for_both),
        cmocka_unit_test(what_a_sweep_found_is_deleted_before_it_counts),
        cmocka_unit_test(behind_the_change_what_is_deleted_by_hand_is_deleted_from_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
