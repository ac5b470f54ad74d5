/* Purges against a cache that answers when the test says so; test_purger_redis.c has a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/purgers.h"
#include "purger_bench.h"

/* ---- while all is well ---- */

static void keys_of_one_turn_go_together(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    purge(&bench, "item:2");
    purge(&bench, "item:3");
    assert_int_equal(fake_redis.count, 0);
    must_owe(&bench, 3);
    turn(&bench);
    assert_int_equal(fake_redis.count, 1);
    must_delete(0, "item:1 item:2 item:3");
    must_owe(&bench, 3);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 0);
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 3);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_full_batch_does_not_wait_for_the_turns_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge_numbers(&bench, 0, 150);
    assert_int_equal(fake_redis.count, 2);
    assert_int_equal(fake_redis.calls[0].count, 64);
    assert_int_equal(fake_redis.calls[1].count, 64);
    turn(&bench);
    assert_int_equal(fake_redis.count, 3);
    assert_int_equal(fake_redis.calls[2].count, 22);
    bench_finish(&bench);
}

static void a_key_goes_once_a_batch_and_again_after_it_was_sent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    purge(&bench, "item:1");
    turn(&bench);
    must_delete(0, "item:1");
    purge(&bench, "item:1"); /* something may have been filled in between */
    turn(&bench);
    must_delete(1, "item:1");
    end(REDIS_DONE);
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void each_keyspace_has_batches_of_its_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    purge(&bench, "order:1:2");
    purge(&bench, "item:2");
    turn(&bench);
    assert_int_equal(fake_redis.count, 2);
    must_delete(0, "item:1 item:2");
    must_delete(1, "order:1:2");
    end(REDIS_DONE);
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ORDERS, purges), 1);
    bench_finish(&bench);
}

static void keys_may_hold_any_byte(void **state)
{
    static const char odd[] = "item:\0\r\n\xff";
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_key(bench.purger, key_make(ITEMS, (struct span){odd, sizeof odd - 1}));
    purger_key(bench.purger, key_make(ITEMS, (struct span){odd, sizeof odd - 2}));
    turn(&bench);
    assert_int_equal(fake_redis.calls[0].count, 2);
    assert_int_equal(fake_redis.calls[0].lengths[0], sizeof odd - 1);
    assert_memory_equal(fake_redis.calls[0].keys[0], odd, 5);
    bench_finish(&bench);
}

static void past_the_window_keys_wait_for_answers(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 100000);
    purge_numbers(&bench, 0, WINDOW + 500);
    assert_int_equal(fake_redis.count, WINDOW / KEYS);
    turn(&bench);
    assert_int_equal(fake_redis.count, WINDOW / KEYS);
    must_owe(&bench, WINDOW + 500);
    while (fake_redis.count) {
        end(REDIS_DONE);
        turn(&bench);
    }
    assert_int_equal(COUNTED(&bench, ITEMS, purges), WINDOW + 500);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* Who has the oldest of so many keys answered, and lets the loop go on. */
static void answer_some(struct bench *bench, int batches)
{
    while (batches-- && fake_redis.count && !fake_redis.calls[0].cursor)
        end(REDIS_DONE);
    turn(bench);
}

/* A cache that is slower than the changes come, for as long as they come. */
static void a_flood_is_followed_by_one_sweep(void **state)
{
    enum { ROUNDS = 1000, CHANGED = 1000, LIMIT = 20000 };
    struct bench bench;
    (void)state;
    bench_init(&bench, LIMIT);
    for (int i = 0; i < ROUNDS; i++) {
        purge_numbers(&bench, i * CHANGED, (i + 1) * CHANGED);
        answer_some(&bench, 8);
        for (size_t k = 0; k < fake_redis.count; k++)
            assert_null(fake_redis.calls[k].cursor);
    }
    must_owe(&bench, SIZE_MAX);
    int purged = COUNTED(&bench, ITEMS, purges);
    while (fake_redis.count && !fake_redis.calls[0].cursor)
        answer_some(&bench, 8);
    assert_in_range(COUNTED(&bench, ITEMS, purges) - purged, LIMIT, LIMIT + WINDOW);
    find("0", "0", "item:1 item:1000000");
    turn(&bench);
    must_delete(0, "item:1 item:1000000");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_flood_in_one_keyspace_takes_no_room_from_another(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge_numbers(&bench, 0, WINDOW + 5000);
    purge(&bench, "order:1:1");
    while (fake_redis.count) {
        bool is_order = !fake_redis.calls[0].cursor && fake_redis.calls[0].keys[0][0] == 'o';
        if (fake_redis.calls[0].cursor)
            find("0", "0", "");
        else
            end(REDIS_DONE);
        turn(&bench);
        if (is_order)
            must_owe(&bench, SIZE_MAX); /* the others' sweep is still to come */
    }
    assert_int_equal(COUNTED(&bench, ORDERS, purges), 1);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), WINDOW + 1000 - 1);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* ---- while the cache is down ---- */

static void what_is_owed_goes_out_as_soon_as_the_cache_is_back(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    cache_is(&bench, false);
    purge(&bench, "item:1");
    purge(&bench, "item:2");
    purge(&bench, "item:1");
    turn(&bench);
    assert_int_equal(fake_redis.count, 0);
    must_owe(&bench, 2);
    cache_is(&bench, true);
    assert_int_equal(fake_redis.count, 1); /* before anybody else has a chance */
    must_delete(0, "item:1 item:2");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_purge_of_unknown_fate_is_repeated(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    purge(&bench, "item:2");
    turn(&bench);
    cache_is(&bench, false);
    purge(&bench, "item:2");
    end(REDIS_DOWN);
    turn(&bench);
    must_owe(&bench, 2);
    assert_int_equal(COUNTED(&bench, ITEMS, purges_refused), 0);
    cache_is(&bench, true);
    must_delete(0, "item:2 item:1");
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 2);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void past_the_limit_the_fullest_keyspace_is_owed_whole(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 10);
    cache_is(&bench, false);
    purge_numbers(&bench, 0, 9);
    purge(&bench, "order:1:1");
    must_owe(&bench, 10);
    purge(&bench, "order:1:2");
    must_owe(&bench, SIZE_MAX);
    purge_numbers(&bench, 100, 10004); /* nothing is remembered of these */
    cache_is(&bench, true);
    assert_int_equal(fake_redis.count, 1);
    must_delete(0, "order:1:1 order:1:2");
    turn(&bench);
    assert_int_equal(fake_redis.count, 2);
    assert_string_equal(fake_redis.calls[1].pattern, "item:*");
    bench_finish(&bench);
}

static void what_comes_back_of_a_keyspace_owed_whole_is_dropped(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 10);
    purge_numbers(&bench, 0, 5);
    turn(&bench);
    cache_is(&bench, false);
    purge_numbers(&bench, 10, 30);
    end(REDIS_DOWN);
    turn(&bench);
    cache_is(&bench, true);
    turn(&bench);
    assert_int_equal(fake_redis.count, 1);
    find("0", "0", "item:1 item:2");
    turn(&bench);
    must_delete(0, "item:1 item:2");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* ---- refusals ---- */

static void a_refused_purge_is_repeated_ever_more_patiently(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    turn(&bench);
    uint64_t since = uv_now(&bench.loop);
    end(REDIS_REFUSED);
    turn(&bench);
    assert_int_equal(fake_redis.count, 0);
    must_owe(&bench, 1);
    assert_int_equal(COUNTED(&bench, ITEMS, purges_refused), 1);
    must_wait(&bench, since, 50, 2000);
    end(REDIS_REFUSED);
    must_wait(&bench, uv_now(&bench.loop), 125, 4000); /* a part of each wait is drawn */
    must_delete(0, "item:1");
    end(REDIS_REFUSED);
    must_wait(&bench, uv_now(&bench.loop), 275, 8000);
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ITEMS, purges_refused), 3);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 1);
    must_owe_nothing(&bench);
    purge(&bench, "item:1");
    turn(&bench);
    end(REDIS_REFUSED);
    must_wait(&bench, uv_now(&bench.loop), 50, 300); /* patience begins anew */
    bench_finish(&bench);
}

/* Else an old value would be read for seconds after the script is over. */
static void trouble_that_passes_is_waited_out_without_more_patience(void **state)
{
    static const char *const troubles[] = {"BUSY Redis is busy", "LOADING Redis is loading",
                                           "CLUSTERDOWN The cluster is down"};
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    turn(&bench);
    for (int i = 0; i < 12; i++) {
        fake_redis_answer(
            &(struct redis_answer){.outcome = REDIS_REFUSED, .error = troubles[i % 3]});
        must_wait(&bench, uv_now(&bench.loop), 0, 300);
        must_delete(0, "item:1");
    }
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void batches_refused_together_wait_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 10000);
    purge_numbers(&bench, 0, 640);
    for (int i = 0; i < 10; i++)
        end(REDIS_REFUSED);
    must_wait(&bench, uv_now(&bench.loop), 50, 2000);
    assert_int_equal(fake_redis.count, 10);
    must_owe(&bench, 640);
    bench_finish(&bench);
}

static void what_fails_counts_towards_the_limit(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 100);
    purge_numbers(&bench, 0, 128);
    must_owe(&bench, 128);
    end(REDIS_REFUSED);
    must_owe(&bench, 128);
    end(REDIS_REFUSED);
    must_owe(&bench, SIZE_MAX);
    bench_finish(&bench);
}

static void one_keyspaces_refusal_does_not_hold_up_another(void **state)
{
    struct bench bench;
    char key[20];
    (void)state;
    bench_init(&bench, 100000);
    purge(&bench, "item:1");
    purge(&bench, "order:1:1");
    turn(&bench);
    end(REDIS_REFUSED);
    end(REDIS_DONE);
    purge_numbers(&bench, 0, 3 * WINDOW);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "order:2:%d", i);
        purge(&bench, key);
    }
    assert_int_equal(fake_redis.count, 1);
    assert_string_equal(fake_redis.calls[0].keys[0], "order:2:0");
    bench_finish(&bench);
}

static void open_purgers(struct bench *bench, struct purgers *purgers)
{
    purgers_open(purgers, &(struct purger_options){.loop = &bench->loop,
                                                   .config = &bench->config,
                                                   .counters = bench->counters,
                                                   .vouched = bench->vouched,
                                                   .max_owed = 1000});
}

/* A node that was leaving when the purgers of its cluster were opened. */
static void a_node_that_none_is_of_may_end(void **state)
{
    struct bench bench;
    struct purgers purgers;
    (void)state;
    bench_init(&bench, 1000);
    open_purgers(&bench, &purgers);
    purgers_ended(&purgers, 3);
    assert_int_equal(purgers_owed(&purgers), 0);
    purgers_close(&purgers);
    bench_finish(&bench);
}

/* Though the cache as a whole is not up: another of its nodes is down for hours. */
static void what_the_purger_of_a_node_that_has_ended_cannot_do_another_does(void **state)
{
    struct bench bench;
    struct purgers purgers;
    (void)state;
    bench_init(&bench, 1000);
    open_purgers(&bench, &purgers);
    purgers_key(&purgers, key_make(ITEMS, span_of("item:1")));
    turn(&bench);
    purgers_ended(&purgers, 0);
    fake_redis.owner = 1;
    purgers_joined(&purgers, 1, fake_redis_node(1), false);
    fake_redis.up = false;
    end(REDIS_REFUSED);
    purgers_check_time(&purgers);
    assert_int_equal(purgers.retired_count, 0);
    assert_int_equal(purger_owed(purgers.at[1]), 1);
    purgers_close(&purgers);
    bench_finish(&bench);
}

static void a_new_connection_is_asked_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    turn(&bench);
    end(REDIS_REFUSED);
    cache_is(&bench, false);
    cache_is(&bench, true);
    must_delete(0, "item:1");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_one_turn_go_together),
        cmocka_unit_test(a_full_batch_does_not_wait_for_the_turns_end),
        cmocka_unit_test(a_key_goes_once_a_batch_and_again_after_it_was_sent),
        cmocka_unit_test(each_keyspace_has_batches_of_its_own),
        cmocka_unit_test(keys_may_hold_any_byte),
        cmocka_unit_test(past_the_window_keys_wait_for_answers),
        cmocka_unit_test(a_flood_is_followed_by_one_sweep),
        cmocka_unit_test(a_flood_in_one_keyspace_takes_no_room_from_another),
        cmocka_unit_test(what_is_owed_goes_out_as_soon_as_the_cache_is_back),
        cmocka_unit_test(a_purge_of_unknown_fate_is_repeated),
        cmocka_unit_test(past_the_limit_the_fullest_keyspace_is_owed_whole),
        cmocka_unit_test(what_comes_back_of_a_keyspace_owed_whole_is_dropped),
        cmocka_unit_test(a_refused_purge_is_repeated_ever_more_patiently),
        cmocka_unit_test(trouble_that_passes_is_waited_out_without_more_patience),
        cmocka_unit_test(batches_refused_together_wait_once),
        cmocka_unit_test(what_fails_counts_towards_the_limit),
        cmocka_unit_test(one_keyspaces_refusal_does_not_hold_up_another),
        cmocka_unit_test(a_node_that_none_is_of_may_end),
        cmocka_unit_test(what_the_purger_of_a_node_that_has_ended_cannot_do_another_does),
        cmocka_unit_test(a_new_connection_is_asked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
