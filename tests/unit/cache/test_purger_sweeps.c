/* Keyspaces that are owed whole, and caches that may have forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "purger_bench.h"

/* ---- sweeps ---- */

static void a_sweep_deletes_what_matches_and_nothing_else(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ORDERS);
    must_owe(&bench, SIZE_MAX);
    turn(&bench);
    assert_int_equal(fake_redis.count, 1);
    assert_string_equal(fake_redis.calls[0].pattern, "order:*:*");
    find("0", "17", "order:1:2 order:1 item:7 order::");
    must_owe(&bench, SIZE_MAX);
    turn(&bench);
    assert_int_equal(fake_redis.count, 2);
    must_delete(0, "order:1:2 order::");
    end(REDIS_DONE);
    find("17", "18446744073709551615", "");
    turn(&bench);
    find("18446744073709551615", "0", "order:3:4");
    turn(&bench);
    must_owe(&bench, 1);
    must_delete(0, "order:3:4");
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ORDERS, purges), 3);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void an_empty_cache_takes_one_step(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_templates_own_characters_are_no_wildcards(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ODD);
    turn(&bench);
    assert_string_equal(fake_redis.calls[0].pattern, "\\*\\[a\\-b\\]\\^\\?\\\\{*}\\-*");
    bench_finish(&bench);
}

static void a_step_waits_until_the_last_ones_keys_are_on_their_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    find("0", "1", "item:1 item:2");
    turn(&bench);
    must_delete(0, "item:1 item:2");
    end(REDIS_REFUSED);
    find("1", "2", "item:3");
    turn(&bench);
    assert_int_equal(fake_redis.count, 0); /* the keyspace waits after its refusal */
    wait_for_call(&bench);
    must_delete(0, "item:1 item:2 item:3");
    assert_string_equal(fake_redis.calls[1].cursor, "2");
    bench_finish(&bench);
}

static void a_key_that_changes_during_a_sweep_goes_by_itself(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    purge(&bench, "item:1");
    turn(&bench);
    must_delete(1, "item:1");
    find("0", "0", "item:1"); /* it was filled in between */
    end(REDIS_DONE);
    turn(&bench);
    must_delete(0, "item:1");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_sweep_whose_connection_is_lost_begins_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    find("0", "1", "");
    turn(&bench);
    cache_is(&bench, false);
    end(REDIS_DOWN);
    turn(&bench);
    must_owe(&bench, SIZE_MAX);
    cache_is(&bench, true);
    turn(&bench);
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* No step was under way when it was lost. */
static void a_sweep_between_steps_begins_again_as_well(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    find("0", "1", "item:1");
    cache_is(&bench, false);
    turn(&bench);
    assert_int_equal(fake_redis.count, 0);
    must_owe(&bench, SIZE_MAX);
    cache_is(&bench, true);
    turn(&bench);
    must_delete(0, "item:1");
    end(REDIS_DONE);
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* The answer to a step comes only when the next connection is up already. */
static void a_step_of_a_lost_connection_counts_for_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    cache_is(&bench, false);
    cache_is(&bench, true);
    turn(&bench);
    assert_int_equal(fake_redis.count, 1); /* one step at a time */
    end(REDIS_DOWN);
    turn(&bench);
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_keyspace_owed_during_its_sweep_is_swept_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    purger_keyspace(bench.purger, ITEMS);
    purger_keyspace(bench.purger, ORDERS);
    find("0", "0", "");
    turn(&bench);
    assert_string_equal(fake_redis.calls[0].pattern, "order:*:*"); /* in turn */
    find("0", "0", "");
    turn(&bench);
    assert_string_equal(fake_redis.calls[0].pattern, "item:*");
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void a_refused_sweep_is_repeated_and_holds_up_no_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    uint64_t since = uv_now(&bench.loop);
    end(REDIS_REFUSED);
    purge(&bench, "item:1");
    turn(&bench);
    assert_int_equal(fake_redis.count, 1);
    must_delete(0, "item:1");
    end(REDIS_DONE);
    must_owe(&bench, SIZE_MAX);
    must_wait(&bench, since, 50, 2000);
    end(REDIS_DONE); /* of no use: it has no cursor */
    turn(&bench);
    must_owe(&bench, SIZE_MAX);
    wait_for_call(&bench);
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* A step finds more keys than may be owed, which is no reason to sweep again. */
static void a_sweep_ends_however_few_keys_may_be_owed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    purger_keyspace(bench.purger, ITEMS);
    turn(&bench);
    find("0", "0", "item:1 item:2 item:3 item:4");
    turn(&bench);
    must_delete(0, "item:1 item:2 item:3 item:4");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* ---- a cache that may have forgotten ---- */

static void must_sweep_all(struct bench *bench)
{
    static const char *const patterns[] = {"item:*", "order:*:*",
                                           "\\*\\[a\\-b\\]\\^\\?\\\\{*}\\-*"};
    bool seen[KEYSPACES] = {false};
    for (int i = 0; i < KEYSPACES; i++) {
        turn(bench);
        assert_int_equal(fake_redis.count, 1);
        for (int k = 0; k < KEYSPACES; k++)
            seen[k] |= strcmp(fake_redis.calls[0].pattern, patterns[k]) == 0;
        find("0", "0", "");
    }
    for (int k = 0; k < KEYSPACES; k++)
        assert_true(seen[k]);
    must_owe_nothing(bench);
}

static void a_server_in_doubt_is_swept_and_one_that_is_known_is_not(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    cache_is(&bench, false);
    cache_is(&bench, true);
    must_owe_nothing(&bench);
    cache_is(&bench, false);
    fake_redis.doubt = "it is another one";
    cache_is(&bench, true);
    must_owe(&bench, SIZE_MAX);
    must_sweep_all(&bench);
    bench_finish(&bench);
}

static void a_doubt_outlasts_the_connection_on_which_it_came_up(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    fake_redis.doubt = "it is another one";
    cache_is(&bench, true);
    turn(&bench);
    find("0", "7", "");
    cache_is(&bench, false);
    fake_redis.doubt = NULL;
    cache_is(&bench, true);
    must_sweep_all(&bench);
    bench_finish(&bench);
}

static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";

static void sweep_items(struct bench *bench, struct purger *purger)
{
    purger_keyspace(purger, ITEMS);
    turn(bench);
    find("0", "0", "");
    turn(bench);
}

/* A slot's keys may be on their way for as long as its sweep takes, and its owner changes later. */
static void keys_that_went_between_two_sweeps_may_have_been_seen_by_neither(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 100);
    struct purger *giver = bench.purger, *taker = bench_purger(&bench, 100);
    cache_is(&bench, true);
    purger_cache_is(taker, true);
    turn(&bench);
    assert_false(purger_may_have_given(giver, taker));
    sweep_items(&bench, taker);
    assert_false(purger_may_have_given(giver, taker));
    purger_keyspace(giver, ITEMS);
    turn(&bench);
    assert_true(purger_may_have_given(giver, taker));
    find("0", "0", "");
    turn(&bench);
    assert_true(purger_may_have_given(giver, taker));
    sweep_items(&bench, taker);
    assert_false(purger_may_have_given(giver, taker));
    fake_redis.up = false;
    assert_true(purger_may_have_given(giver, taker));
    purger_destroy(taker);
    bench_finish(&bench);
}

/* As when a password is changed: another connection leads to it, its first one. */
static void must_be_believed_when_swept(struct bench *bench)
{
    struct purger *other = bench_purger(bench, 1000);
    assert_false(vouched_believes(bench->vouched, run_id, 0));
    must_sweep_all(bench);
    assert_true(vouched_believes(bench->vouched, run_id, 0));
    purger_destroy(other);
}

static void nobody_vouches_for_a_server_that_another_is_to_sweep(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    fake_redis.run_id = run_id;
    fake_redis.doubt = "it is another one";
    cache_is(&bench, true);
    fake_redis.doubt = NULL;
    must_be_believed_when_swept(&bench);
    bench_finish(&bench);
}

/* A node that joins late is doubted before anybody knows which server it is. */
static void a_server_that_was_doubted_before_it_was_known_is_not_vouched_for(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_doubt(bench.purger, "no node of the cluster was known before");
    fake_redis.run_id = run_id;
    cache_is(&bench, true);
    must_be_believed_when_swept(&bench);
    bench_finish(&bench);
}

/* It may be a primary again before anybody asks. */
static void who_refuses_as_a_replica_is_swept(void **state)
{
    static const struct redis_answer readonly = {
        .outcome = REDIS_REFUSED, .error = "READONLY You can't write against a read only replica."};
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    turn(&bench);
    fake_redis_answer(&readonly);
    must_owe(&bench, SIZE_MAX);
    turn(&bench);
    for (int i = 0; i < 2; i++) { /* the other keyspaces need not wait for this one's refusal */
        find("0", "0", "");
        turn(&bench);
    }
    wait_for_call(&bench);
    must_delete(0, "item:1");
    end(REDIS_DONE);
    turn(&bench);
    assert_string_equal(fake_redis.calls[0].pattern, "item:*");
    find("0", "0", "");
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* ---- storms ---- */

enum { MODEL_KEYS = 300, PAGE = 10 };

/* Of a key: whether the cache holds a value that must go. */
static bool stale[MODEL_KEYS];

static void model_delete(const struct fake_call *call)
{
    for (size_t i = 0; i < call->count; i++)
        stale[atoi(strchr(call->keys[i], ':') + 1)] = false;
}

/* A cursor is the number of keys passed. */
static void model_scan(const struct fake_call *call)
{
    char texts[PAGE][20], cursor[20];
    struct redis_bytes keys[PAGE];
    int from = atoi(call->cursor), to = from + PAGE;
    struct redis_answer page = {.outcome = REDIS_DONE, .error = ""};
    for (int i = from; i < to; i++) {
        if (!stale[i])
            continue;
        snprintf(texts[page.page.count], sizeof texts[0], "item:%d", i);
        keys[page.page.count] =
            (struct redis_bytes){texts[page.page.count], strlen(texts[page.page.count])};
        page.page.count++;
    }
    snprintf(cursor, sizeof cursor, "%d", to == MODEL_KEYS ? 0 : to);
    page.page.cursor = cursor;
    page.page.keys = keys;
    call->done(call->arg, &page);
}

/* The oldest call is run and answered, or refused; with `lost` it is run, or not, and nobody is
 * told. */
static void model_answer(bool lost, bool refuses)
{
    struct fake_call call = fake_redis_take();
    struct redis_answer failure = {.outcome = lost ? REDIS_DOWN : REDIS_REFUSED, .error = "BUSY"};
    bool runs = lost ? rand() % 2 : !refuses;
    if (runs && !call.cursor)
        model_delete(&call);
    if (runs && !lost && call.cursor)
        model_scan(&call);
    else if (runs && !lost)
        call.done(call.arg, &(struct redis_answer){.outcome = REDIS_DONE, .error = ""});
    else
        call.done(call.arg, &failure);
    fake_redis_forget(&call);
}

static void model_lose(struct bench *bench)
{
    cache_is(bench, false);
    while (fake_redis.count)
        model_answer(true, false);
}

/* Row changes: what the cache has is stale from now on. */
static void model_change(struct bench *bench)
{
    int number = rand() % MODEL_KEYS;
    stale[number] = true;
    purge_numbers(bench, number, number + 1);
}

static void model_truncate(struct bench *bench)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        stale[i] = true;
    purger_keyspace(bench->purger, ITEMS);
}

/* Now and then another server is, which has old values of every key. */
static void model_return(struct bench *bench)
{
    bool is_another = rand() % 4 == 0;
    for (int i = 0; is_another && i < MODEL_KEYS; i++)
        stale[i] = true;
    fake_redis.doubt = is_another ? "it is another one" : NULL;
    cache_is(bench, true);
}

static void model_step(struct bench *bench)
{
    int dice = rand() % 1000;
    if (dice < 600)
        model_change(bench);
    else if (dice < 603)
        model_truncate(bench);
    else if (dice < 620 && fake_redis.up)
        model_lose(bench);
    else if (dice < 660 && !fake_redis.up)
        model_return(bench);
    else if (dice < 800)
        turn(bench);
    else if (fake_redis.count)
        model_answer(false, dice < 803);
}

static bool is_any_stale(void)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        if (stale[i])
            return true;
    return false;
}

static void no_stale_value_outlives_any_storm(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct bench bench;
        memset(stale, 0, sizeof stale);
        srand(seed);
        bench_init(&bench, 1 + (size_t)rand() % 200);
        for (int i = 0; i < 3000; i++)
            model_step(&bench);
        if (!fake_redis.up)
            cache_is(&bench, true);
        while (purger_owed(bench.purger)) {
            uv_run(&bench.loop, fake_redis.count ? UV_RUN_NOWAIT : UV_RUN_ONCE);
            while (fake_redis.count)
                model_answer(false, false);
        }
        if (is_any_stale())
            fail_msg("seed %u leaves a stale value", seed);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sweep_deletes_what_matches_and_nothing_else),
        cmocka_unit_test(an_empty_cache_takes_one_step),
        cmocka_unit_test(a_templates_own_characters_are_no_wildcards),
        cmocka_unit_test(a_step_waits_until_the_last_ones_keys_are_on_their_way),
        cmocka_unit_test(a_key_that_changes_during_a_sweep_goes_by_itself),
        cmocka_unit_test(a_sweep_whose_connection_is_lost_begins_again),
        cmocka_unit_test(a_sweep_between_steps_begins_again_as_well),
        cmocka_unit_test(a_step_of_a_lost_connection_counts_for_nothing),
        cmocka_unit_test(a_keyspace_owed_during_its_sweep_is_swept_again),
        cmocka_unit_test(a_refused_sweep_is_repeated_and_holds_up_no_key),
        cmocka_unit_test(a_sweep_ends_however_few_keys_may_be_owed),
        cmocka_unit_test(a_server_in_doubt_is_swept_and_one_that_is_known_is_not),
        cmocka_unit_test(a_doubt_outlasts_the_connection_on_which_it_came_up),
        cmocka_unit_test(keys_that_went_between_two_sweeps_may_have_been_seen_by_neither),
        cmocka_unit_test(nobody_vouches_for_a_server_that_another_is_to_sweep),
        cmocka_unit_test(a_server_that_was_doubted_before_it_was_known_is_not_vouched_for),
        cmocka_unit_test(who_refuses_as_a_replica_is_swept),
        cmocka_unit_test(no_stale_value_outlives_any_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
