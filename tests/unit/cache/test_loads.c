/* The course of a load: one query for all who wait, the answer, the fill. What must not be kept of
 * it is in test_loads_races.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

/* ---- one load ---- */

static void a_row_answers_and_fills_the_cache(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(loads_count(bench.loads), 1);
    assert_true(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:2"))));
    row_is("payload");
    must_get_value(&bench, &one, "payload");
    assert_int_equal(loads_count(bench.loads), 0);
    must_fill("item:1", "payload");
    assert_true(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    fill_ends(REDIS_DONE);
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    assert_int_equal(COUNTED(&bench, loads_row), 1);
    assert_int_equal(COUNTED(&bench, fills), 1);
    bench_finish(&bench);
}

static void a_row_may_be_cached_as_a_hash_that_everybody_gets(void **state)
{
    static const char hash[] = "*4\r\n$2\r\nid\r\n$1\r\n1\r\n$4\r\nname\r\n$1\r\nx\r\n";
    struct bench bench;
    struct asked one, late;
    (void)state;
    bench_init(&bench, ", fill: hash");
    ask(&bench, &one, "item:1");
    row_is("{\"id\":1,\"name\":\"x\",\"gone\":null}");
    must_get_value(&bench, &one, hash);
    assert_int_equal(fake_redis.count, 1);
    assert_string_equal(fake_redis.calls[0].keys[0], "item:1");
    assert_string_equal(fake_redis.calls[0].hash, "id 1 name x ");
    assert_in_range(fake_redis.calls[0].ttl_ms, 9000, 10000);
    ask(&bench, &late, "item:1");
    must_get_value(&bench, &late, hash);
    fill_ends(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, fills), 1);
    bench_finish(&bench);
}

static void a_hash_without_fields_is_not_cached(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, ", fill: hash");
    ask(&bench, &one, "item:1");
    row_is("{\"gone\":null}");
    must_get_value(&bench, &one, "*0\r\n");
    assert_int_equal(fake_redis.count, 0);
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    bench_finish(&bench);
}

static void a_row_that_makes_no_hash_is_an_error(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, ", fill: hash");
    ask(&bench, &one, "item:1");
    row_is("[1]");
    must_get(&bench, &one, LOAD_REFUSED);
    assert_int_equal(fake_redis.count, 0);
    assert_int_equal(COUNTED(&bench, loads_refused), 1);
    bench_finish(&bench);
}

static void a_hash_whose_row_has_changed_meanwhile_is_not_cached(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, ", fill: hash");
    ask(&bench, &one, "item:1");
    loads_changed(bench.loads, key_make(0, span_of("item:1")));
    row_is("{\"id\":1}");
    must_get_value(&bench, &one, "*2\r\n$2\r\nid\r\n$1\r\n1\r\n");
    assert_int_equal(fake_redis.count, 0);
    bench_finish(&bench);
}

static void a_load_that_finds_no_row_fills_nothing(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    fake_no_row();
    must_get(&bench, &one, LOAD_ABSENT);
    assert_int_equal(fake_redis.count, 0);
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    assert_int_equal(COUNTED(&bench, loads_absent), 1);
    bench_finish(&bench);
}

static void a_row_of_another_spelling_is_absent_and_counted(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:01");
    row_is("payload");
    fake_no_row();
    must_get(&bench, &one, LOAD_ABSENT);
    assert_int_equal(fake_redis.count, 0);
    assert_int_equal(COUNTED(&bench, loads_absent), 1);
    assert_int_equal(COUNTED(&bench, other_spellings), 1);
    assert_string_equal(spellings_latest(bench.spellings, ITEMS)->asked, "item:01");
    assert_string_equal(spellings_latest(bench.spellings, ITEMS)->own, "item:1");
    bench_finish(&bench);
}

static void failures_are_told_and_forgotten(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    fake_outcome(PG_DOWN);
    must_get(&bench, &one, LOAD_DOWN);
    ask(&bench, &one, "item:1");
    fake_outcome(PG_TIMEOUT);
    must_get(&bench, &one, LOAD_TIMEOUT);
    ask(&bench, &one, "item:1");
    fake_refusal("42501");
    must_get(&bench, &one, LOAD_REFUSED);
    assert_false(loads_knows_absent(bench.loads, key_make(0, span_of("item:1"))));
    assert_int_equal(COUNTED(&bench, loads_down), 1);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    assert_int_equal(COUNTED(&bench, loads_refused), 1);
    bench_finish(&bench);
}

static void a_refusal_is_told_until_a_row_was_loaded(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    assert_int_equal(loads_refusal(bench.loads, ITEMS)->count, 0);
    ask(&bench, &one, "item:1");
    fake_refusal("42501");
    must_get(&bench, &one, LOAD_REFUSED);
    assert_int_equal(loads_refusal(bench.loads, ITEMS)->count, 1);
    assert_int_equal(loads_refusal(bench.loads, ORDERS)->count, 0);
    ask(&bench, &one, "item:2");
    fake_no_row();
    must_get(&bench, &one, LOAD_ABSENT);
    assert_int_equal(loads_refusal(bench.loads, ITEMS)->count, 1);
    ask(&bench, &one, "item:1");
    row_is("payload");
    must_get_value(&bench, &one, "payload");
    assert_int_equal(loads_refusal(bench.loads, ITEMS)->count, 0);
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void keys_that_no_row_can_have_are_answered_without_a_query(void **state)
{
    struct bench bench;
    struct asked one, two;
    (void)state;
    bench_init(&bench, "");
    ask_keyspace(&bench, &one, ITEMS, (struct span){"item:1\0", 7});
    ask_keyspace(&bench, &two, ORDERS, span_of("order::::::::::::::::::::::::"));
    assert_int_equal(fake_pool.count, 0);
    must_get(&bench, &one, LOAD_ABSENT);
    must_get(&bench, &two, LOAD_AMBIGUOUS);
    bench_finish(&bench);
}

/* ---- coalescing ---- */

static void all_who_wait_for_a_key_share_one_query(void **state)
{
    struct bench bench;
    struct asked all[20], other;
    (void)state;
    bench_init(&bench, "");
    for (int i = 0; i < 20; i++)
        ask(&bench, &all[i], "item:1");
    ask(&bench, &other, "item:2");
    assert_int_equal(fake_pool.count, 2);
    assert_int_equal(COUNTED(&bench, coalesced), 19);
    row_is("payload");
    for (int i = 0; i < 20; i++)
        must_get_value(&bench, &all[i], "payload");
    must_wait(&bench, &other);
    must_fill("item:1", "payload");
    fill_ends(REDIS_DONE);
    fake_no_row();
    must_get(&bench, &other, LOAD_ABSENT);
    bench_finish(&bench);
}

static void a_failure_is_told_to_all_who_wait(void **state)
{
    struct bench bench;
    struct asked first, second;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &second, "item:1");
    fake_outcome(PG_DOWN);
    must_get(&bench, &first, LOAD_DOWN);
    must_get(&bench, &second, LOAD_DOWN);
    bench_finish(&bench);
}

static void who_asks_during_the_fill_gets_its_value(void **state)
{
    struct bench bench;
    struct asked first, second;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    row_is("payload");
    ask(&bench, &second, "item:1");
    must_get_value(&bench, &second, "payload");
    assert_int_equal(fake_pool.count, 0);
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void after_the_fill_a_new_query_is_asked(void **state)
{
    struct bench bench;
    struct asked first, second;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    row_is("old");
    fill_ends(REDIS_DOWN);
    assert_int_equal(COUNTED(&bench, fills_failed_down), 1);
    ask(&bench, &second, "item:1");
    must_wait(&bench, &second);
    row_is("new");
    must_get_value(&bench, &second, "new");
    fill_ends(REDIS_REFUSED);
    assert_int_equal(COUNTED(&bench, fills_failed_refused), 1);
    bench_finish(&bench);
}

/* ---- budget ---- */

static void past_the_budget_a_load_waits_for_its_turn(void **state)
{
    struct bench bench;
    struct asked waiting[3], joined, behind;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &waiting[0], "item:1");
    ask(&bench, &waiting[1], "item:2");
    ask(&bench, &waiting[2], "item:3");
    ask(&bench, &behind, "item:4");
    must_wait(&bench, &behind);
    assert_int_equal(fake_pool.count, 3);
    assert_int_equal(loads_waits(bench.loads).now, 1);
    ask(&bench, &joined, "item:2"); /* takes no query of its own */
    must_wait(&bench, &joined);
    assert_int_equal(loads_waits(bench.loads).now, 1);
    fake_no_row();
    must_get(&bench, &waiting[0], LOAD_ABSENT);
    assert_int_equal(fake_pool.count, 3);
    assert_int_equal(loads_waits(bench.loads).now, 0);
    for (int i = 0; i < 3; i++)
        fake_outcome(PG_DOWN);
    must_get(&bench, &behind, LOAD_DOWN);
    must_get(&bench, &joined, LOAD_DOWN);
    assert_int_equal(COUNTED(&bench, loads_busy), 0);
    bench_finish(&bench);
}

static void clients_have_turns(void **state)
{
    static const int one, other;
    struct bench bench;
    struct asked waiting[3], many[3], single;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    bench.client = &one;
    ask(&bench, &many[0], "item:1");
    ask(&bench, &many[1], "item:2");
    ask(&bench, &many[2], "item:3");
    bench.client = &other;
    ask(&bench, &single, "item:4");
    end_queries(2);
    assert_int_equal(fake_pool.count, 3);
    assert_string_equal(fake_pool.queries[1].values[0], "1");
    assert_string_equal(fake_pool.queries[2].values[0], "4");
    end_queries(5);
    must_get(&bench, &single, LOAD_DOWN);
    must_get(&bench, &many[2], LOAD_DOWN);
    bench_finish(&bench);
}

/* Whoever's turn comes first asks for all. */
static void who_waits_for_the_same_key_shares_one_query(void **state)
{
    static const int one, other;
    struct bench bench;
    struct asked waiting[3], many[3], single;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    bench.client = &one;
    ask(&bench, &many[0], "item:1");
    ask(&bench, &many[1], "item:2");
    ask(&bench, &many[2], "item:3");
    bench.client = &other;
    ask(&bench, &single, "item:3");
    assert_int_equal(COUNTED(&bench, coalesced), 1);
    end_queries(3);
    assert_int_equal(fake_pool.count, 3);
    assert_string_equal(fake_pool.queries[1].values[0], "3");
    assert_int_equal(loads_waits(bench.loads).now, 0);
    fake_outcome(PG_DOWN);
    fake_outcome(PG_DOWN);
    must_get(&bench, &single, LOAD_DOWN);
    must_get(&bench, &many[2], LOAD_DOWN);
    must_wait(&bench, &many[1]);
    fake_outcome(PG_DOWN);
    must_get(&bench, &many[1], LOAD_DOWN);
    struct durations turns = loads_waits(bench.loads).turns;
    assert_int_equal(durations_count(&turns), 3 + 4);
    bench_finish(&bench);
}

static void who_gets_no_turn_in_time_is_told(void **state)
{
    struct bench bench;
    struct asked waiting[3], behind, same;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    ask(&bench, &behind, "item:1");
    ask(&bench, &same, "item:1");
    loads_check_time(bench.loads, clock_ms() + 1900);
    must_wait(&bench, &behind);
    loads_check_time(bench.loads, clock_ms() + 2010);
    must_get(&bench, &behind, LOAD_BUSY);
    must_get(&bench, &same, LOAD_BUSY);
    must_wait(&bench, &waiting[0]);
    assert_int_equal(COUNTED(&bench, loads_busy), 2);
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    end_queries(3);
    bench_finish(&bench);
}

static void who_has_gone_takes_his_loads_along(void **state)
{
    static _Atomic bool gone;
    struct bench bench;
    struct asked waiting[3], left, too, stays;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    bench.gone = &gone;
    ask(&bench, &left, "item:1");
    ask(&bench, &too, "item:2");
    bench.gone = NULL;
    ask(&bench, &stays, "item:2");
    gone = true;
    end_queries(1);
    assert_int_equal(fake_pool.count, 3);
    assert_string_equal(fake_pool.queries[2].values[0], "2");
    must_get(&bench, &left, LOAD_BUSY);
    must_get(&bench, &too, LOAD_BUSY);
    assert_int_equal(COUNTED(&bench, loads_busy), 0);
    must_wait(&bench, &stays);
    end_queries(3);
    must_get(&bench, &stays, LOAD_DOWN);
    bench_finish(&bench);
}

static void when_too_much_waits_the_longest_line_is_cut(void **state)
{
    enum { MANY = 40, BYTES = 1024 * 1024 };
    static const int one, other;
    static struct asked many[MANY];
    static char key[BYTES];
    struct bench bench;
    struct asked waiting[3], single;
    int cut = 0;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    bench.client = &other;
    ask(&bench, &single, "item:4");
    bench.client = &one;
    memset(key, '1', sizeof key);
    memcpy(key, "item:", 5);
    for (int i = 0; i < MANY; i++) {
        memset(key + 5, '1', 1);
        key[6 + i] = '2';
        ask_keyspace(&bench, &many[i], ITEMS, (struct span){key, sizeof key});
    }
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    for (int i = 0; i < MANY; i++)
        cut += many[i].answers && many[i].outcome == LOAD_CUT;
    assert_in_range(cut, 9, 24);
    assert_int_equal(COUNTED(&bench, loads_cut), cut);
    must_wait(&bench, &single);
    assert_int_equal(many[0].answers, 0);
    assert_in_range(loads_waits(bench.loads).bytes, BYTES, LOADS_QUEUE_BYTES);
    loads_give_up(bench.loads);
    must_get(&bench, &single, LOAD_TIMEOUT);
    end_queries(3);
    bench_finish(&bench);
}

/* Each has one: a look at every line is worth it only if it makes room for many more. */
static void a_cut_makes_room_for_many(void **state)
{
    enum { BYTES = 64 * 1024, MANY = LOADS_QUEUE_BYTES / BYTES + 1 }; /* the last is too much */
    static const char askers[MANY];
    static struct asked many[MANY];
    static char key[BYTES - sizeof(struct load_request)];
    struct bench bench;
    struct asked waiting[3];
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    memset(key, '1', sizeof key);
    memcpy(key, "item:", 5);
    for (int i = 0; i < MANY; i++) {
        bench.client = &askers[i];
        key[5 + i] = '2';
        ask_keyspace(&bench, &many[i], ITEMS, (struct span){key, sizeof key});
    }
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_in_range(loads_waits(bench.loads).bytes, LOADS_QUEUE_BYTES / 4 * 3,
                    LOADS_QUEUE_BYTES / 8 * 7);
    loads_give_up(bench.loads);
    end_queries(3);
    bench_finish(&bench);
}

static void a_fill_takes_no_part_of_the_budget(void **state)
{
    struct bench bench;
    struct asked one[6];
    char key[20];
    (void)state;
    bench_init(&bench, "");
    for (int i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        ask(&bench, &one[i], key);
        fake_row(FAKE_TEXT, (const char *[]){"payload", key + 5}, 2);
        must_get_value(&bench, &one[i], "payload");
    }
    for (int i = 0; i < 6; i++)
        fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* ---- time ---- */

enum { PAST_TIMEOUT_MS = 2000 + 1000 };

static void who_waits_for_too_long_is_told(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    loads_check_time(bench.loads, clock_ms() + 1900);
    must_wait(&bench, &one);
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &one, LOAD_TIMEOUT);
    loads_check_time(bench.loads, clock_ms() + 2 * PAST_TIMEOUT_MS);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    fake_outcome(PG_TIMEOUT);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    bench_finish(&bench);
}

/* The query still runs: asking it again would only add to what the database cannot do. */
static void a_query_past_its_time_is_not_asked_again_while_it_runs(void **state)
{
    struct bench bench;
    struct asked first, second, third;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &first, LOAD_TIMEOUT);
    ask(&bench, &second, "item:1");
    must_wait(&bench, &second);
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(loads_count(bench.loads), 1);
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &second, LOAD_TIMEOUT);
    fake_outcome(PG_TIMEOUT);
    ask(&bench, &third, "item:1");
    must_wait(&bench, &third);
    fake_no_row();
    must_get(&bench, &third, LOAD_ABSENT);
    bench_finish(&bench);
}

static void a_row_that_comes_too_late_still_fills_the_cache(void **state)
{
    struct bench bench;
    struct asked one, during;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &one, LOAD_TIMEOUT);
    row_is("payload");
    must_fill("item:1", "payload");
    ask(&bench, &during, "item:1");
    must_get_value(&bench, &during, "payload");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void a_young_load_behind_an_old_one_goes_on_waiting(void **state)
{
    struct bench bench;
    struct asked old, young;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &old, "item:1");
    uint64_t between = clock_ms() + 20;
    while (clock_ms() <= between)
        uv_sleep(1);
    ask(&bench, &young, "item:2");
    loads_check_time(bench.loads, between + 2250 - 10);
    must_get(&bench, &old, LOAD_TIMEOUT);
    must_wait(&bench, &young);
    fake_outcome(PG_TIMEOUT);
    fake_no_row();
    must_get(&bench, &young, LOAD_ABSENT);
    bench_finish(&bench);
}

/* The end of the guard: nobody is left waiting, and what the queries bring then does no harm. */
static void giving_up_answers_all_who_wait(void **state)
{
    struct bench bench;
    struct asked first, joined, other;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &joined, "item:1");
    ask(&bench, &other, "item:2");
    loads_give_up(bench.loads);
    loads_give_up(bench.loads);
    must_get(&bench, &first, LOAD_TIMEOUT);
    must_get(&bench, &joined, LOAD_TIMEOUT);
    must_get(&bench, &other, LOAD_TIMEOUT);
    fake_outcome(PG_DOWN);
    fake_no_row();
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    bench_finish(&bench);
}

/* The database was quick, the cache hangs: whoever asks has the value, and is not made to wait. */
static void a_fill_that_hangs_holds_nobody_up(void **state)
{
    struct bench bench;
    struct asked one, during;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    row_is("payload");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    ask(&bench, &during, "item:1");
    must_get_value(&bench, &during, "payload");
    assert_int_equal(COUNTED(&bench, loads_timeout), 0);
    fill_ends(REDIS_DOWN);
    bench_finish(&bench);
}

static void a_row_that_changes_while_its_fill_hangs_can_still_be_read(void **state)
{
    struct bench bench;
    struct asked one, after;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    row_is("old");
    loads_changed(bench.loads, key_make(0, span_of("item:1")));
    ask(&bench, &after, "item:1");
    assert_int_equal(fake_pool.count, 1);
    row_is("new");
    must_get_value(&bench, &after, "new");
    fill_ends(REDIS_DOWN); /* the old one's */
    must_fill("item:1", "new");
    assert_true(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    fill_ends(REDIS_DONE);
    assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
    bench_finish(&bench);
}

/* ---- time to live ---- */

static uint64_t ttl_of_a_fill(struct bench *bench)
{
    struct asked one;
    ask(bench, &one, "item:1");
    row_is("payload");
    must_get_value(bench, &one, "payload");
    uint64_t ttl_ms = fake_redis.calls[0].ttl_ms;
    fill_ends(REDIS_DONE);
    return ttl_ms;
}

static void jitter_takes_off_up_to_its_share(void **state)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct bench bench;
    (void)state;
    bench_init(&bench, ", ttl_jitter: 20%");
    for (int i = 0; i < 300; i++) {
        uint64_t ttl_ms = ttl_of_a_fill(&bench);
        least = ttl_ms < least ? ttl_ms : least;
        most = ttl_ms > most ? ttl_ms : most;
    }
    assert_in_range(least, 8000, 8500);
    assert_in_range(most, 9500, 10000);
    bench_finish(&bench);
}

static void without_jitter_the_ttl_is_exact(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, ", ttl_jitter: 0%");
    assert_int_equal(ttl_of_a_fill(&bench), 10000);
    bench.shared->config->keyspaces[ITEMS].ttl_ms = 0; /* for ever */
    assert_int_equal(ttl_of_a_fill(&bench), 0);
    bench_finish(&bench);
}

static void a_row_with_a_ttl_of_its_own(struct bench *bench, struct asked *one, const char *ttl)
{
    ask(bench, one, "item:1");
    fake_row(FAKE_TEXT, (const char *[]){"payload", "1", NULL, ttl}, 4);
    must_get_value(bench, one, "payload");
}

static void a_rows_own_ttl_is_in_place_of_the_keyspaces(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, ", ttl_jitter: 0%");
    a_row_with_a_ttl_of_its_own(&bench, &one, "2.5");
    assert_int_equal(fake_redis.calls[0].ttl_ms, 2500);
    fill_ends(REDIS_DONE);
    bench.shared->config->keyspaces[ITEMS].ttl_jitter = 1;
    a_row_with_a_ttl_of_its_own(&bench, &one, "0.001");
    assert_int_equal(fake_redis.calls[0].ttl_ms, 1);
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void a_value_that_is_over_or_without_a_number_is_answered_and_not_cached(void **state)
{
    static const char *const ttls[] = {"0", "-7", "NaN", "soon"};
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        a_row_with_a_ttl_of_its_own(&bench, &one, ttls[i]);
        assert_int_equal(fake_redis.count, 0);
        assert_false(loads_in_flight(bench.loads, key_make(0, span_of("item:1"))));
        assert_int_equal(counter_read(&bench.counters[ITEMS].fills_forgone), i + 1);
    }
    bench_finish(&bench);
}

/* To the cache a ttl of 0 would mean "for ever". */
static void the_greatest_jitter_leaves_a_ttl(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, ", ttl_jitter: 100%");
    bench.shared->config->keyspaces[ITEMS].ttl_ms = 2;
    for (int i = 0; i < 100; i++)
        assert_in_range(ttl_of_a_fill(&bench), 1, 2);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_answers_and_fills_the_cache),
        cmocka_unit_test(a_row_may_be_cached_as_a_hash_that_everybody_gets),
        cmocka_unit_test(a_hash_without_fields_is_not_cached),
        cmocka_unit_test(a_row_that_makes_no_hash_is_an_error),
        cmocka_unit_test(a_hash_whose_row_has_changed_meanwhile_is_not_cached),
        cmocka_unit_test(a_load_that_finds_no_row_fills_nothing),
        cmocka_unit_test(a_row_of_another_spelling_is_absent_and_counted),
        cmocka_unit_test(failures_are_told_and_forgotten),
        cmocka_unit_test(a_refusal_is_told_until_a_row_was_loaded),
        cmocka_unit_test(keys_that_no_row_can_have_are_answered_without_a_query),
        cmocka_unit_test(all_who_wait_for_a_key_share_one_query),
        cmocka_unit_test(a_failure_is_told_to_all_who_wait),
        cmocka_unit_test(who_asks_during_the_fill_gets_its_value),
        cmocka_unit_test(after_the_fill_a_new_query_is_asked),
        cmocka_unit_test(past_the_budget_a_load_waits_for_its_turn),
        cmocka_unit_test(clients_have_turns),
        cmocka_unit_test(who_waits_for_the_same_key_shares_one_query),
        cmocka_unit_test(who_gets_no_turn_in_time_is_told),
        cmocka_unit_test(who_has_gone_takes_his_loads_along),
        cmocka_unit_test(when_too_much_waits_the_longest_line_is_cut),
        cmocka_unit_test(a_cut_makes_room_for_many),
        cmocka_unit_test(a_fill_takes_no_part_of_the_budget),
        cmocka_unit_test(who_waits_for_too_long_is_told),
        cmocka_unit_test(a_query_past_its_time_is_not_asked_again_while_it_runs),
        cmocka_unit_test(a_row_that_comes_too_late_still_fills_the_cache),
        cmocka_unit_test(a_young_load_behind_an_old_one_goes_on_waiting),
        cmocka_unit_test(giving_up_answers_all_who_wait),
        cmocka_unit_test(a_fill_that_hangs_holds_nobody_up),
        cmocka_unit_test(a_row_that_changes_while_its_fill_hangs_can_still_be_read),
        cmocka_unit_test(jitter_takes_off_up_to_its_share),
        cmocka_unit_test(without_jitter_the_ttl_is_exact),
        cmocka_unit_test(a_rows_own_ttl_is_in_place_of_the_keyspaces),
        cmocka_unit_test(a_value_that_is_over_or_without_a_number_is_answered_and_not_cached),
        cmocka_unit_test(the_greatest_jitter_leaves_a_ttl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
