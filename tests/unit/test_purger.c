/* Purges against a cache that answers when the test says so; test_purger_redis.c has a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "purger.h"

enum { ITEMS, ORDERS, ODD, KEYSPACES };
enum { CALLS = 1024, KEYS = 64, WINDOW = 8192 };

/* ---- the cache ---- */

/* A DEL, or with a cursor a SCAN, without an answer. */
struct call {
    char *keys[KEYS];
    size_t lengths[KEYS];
    size_t count;
    char *cursor, *pattern;
    redis_answer_cb done;
    void *arg;
};

static struct {
    bool up;
    struct call calls[CALLS]; /* oldest first */
    size_t count;
} fake;

bool redis_is_up(const struct redis *redis)
{
    assert_null(redis);
    return fake.up;
}

static struct call *add_call(redis_answer_cb done, void *arg)
{
    assert_true(fake.up);
    assert_true(fake.count < CALLS);
    struct call *call = &fake.calls[fake.count++];
    *call = (struct call){.done = done, .arg = arg};
    return call;
}

void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg)
{
    struct call *call = add_call(done, arg);
    assert_null(redis);
    assert_in_range(count, 1, KEYS);
    for (size_t i = 0; i < count; i++) {
        call->keys[i] = xstrndup(keys[i].at, keys[i].length);
        call->lengths[i] = keys[i].length;
    }
    call->count = count;
}

void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg)
{
    struct call *call = add_call(done, arg);
    assert_null(redis);
    assert_int_equal(count, 1000);
    call->cursor = xstrdup(cursor);
    call->pattern = xstrndup(pattern.at, pattern.length);
}

/* Takes the oldest call out; forget() ends its life. */
static struct call take_call(void)
{
    assert_true(fake.count > 0);
    struct call call = fake.calls[0];
    fake.count--;
    memmove(fake.calls, fake.calls + 1, fake.count * sizeof call);
    return call;
}

static void forget(struct call *call)
{
    for (size_t i = 0; i < call->count; i++)
        free(call->keys[i]);
    free(call->cursor);
    free(call->pattern);
}

static void answer(const struct redis_answer *answer)
{
    struct call call = take_call();
    call.done(call.arg, answer);
    forget(&call);
}

static void end(enum redis_outcome outcome)
{
    answer(&(struct redis_answer){.outcome = outcome, .error = "LOADING"});
}

/* The oldest call is a SCAN from this cursor; it finds keys, separated by spaces. */
static void find(const char *from, const char *cursor, const char *keys)
{
    struct redis_bytes found[KEYS];
    struct redis_answer page = {.outcome = REDIS_DONE, .error = "", .page.cursor = cursor};
    char *text = xstrdup(keys), *rest = text, *key;
    assert_non_null(fake.calls[0].cursor);
    assert_string_equal(fake.calls[0].cursor, from);
    while ((key = strtok_r(rest, " ", &rest)))
        found[page.page.count++] = (struct redis_bytes){key, strlen(key)};
    page.page.keys = found;
    answer(&page);
    free(text);
}

/* ---- one test's purger ---- */

struct bench {
    uv_loop_t loop;
    struct keyspace keyspaces[KEYSPACES];
    struct config config;
    struct load_counters counters[KEYSPACES];
    struct purger *purger;
    int reliefs;
};

static void on_relief(void *arg)
{
    struct bench *bench = arg;
    assert_false(purger_is_congested(bench->purger));
    bench->reliefs++;
}

static void bench_init(struct bench *bench, size_t max_owed)
{
    static const char *const templates[] = {"item:{id}", "order:{a}:{b}", "*[a-b]^?\\{{{id}}}-{n}"};
    static char *const names[] = {(char *)"items", (char *)"orders", (char *)"odd"};
    const char *error;
    *bench = (struct bench){.config = {.keyspace_count = KEYSPACES}};
    bench->config.keyspaces = bench->keyspaces;
    for (int i = 0; i < KEYSPACES; i++) {
        bench->keyspaces[i].name = names[i];
        assert_int_equal(key_template_parse(&bench->keyspaces[i].key, templates[i], &error), 0);
    }
    uv_loop_init(&bench->loop);
    fake.up = true;
    fake.count = 0; /* what a failed test left */
    struct purger_options options = {.loop = &bench->loop,
                                     .config = &bench->config,
                                     .counters = bench->counters,
                                     .max_owed = max_owed,
                                     .on_relief = on_relief,
                                     .arg = bench};
    bench->purger = purger_create(&options);
}

static void bench_finish(struct bench *bench)
{
    fake.up = false;
    while (fake.count)
        end(REDIS_DOWN);
    purger_destroy(bench->purger);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    for (int i = 0; i < KEYSPACES; i++)
        key_template_finish(&bench->keyspaces[i].key);
}

#define COUNTED(bench, keyspace, name) ((int)counter_read(&(bench)->counters[keyspace].name))

static void purge(struct bench *bench, const char *key)
{
    purger_key(bench->purger, *key == 'i' ? ITEMS : *key == 'o' ? ORDERS : ODD, span_of(key));
}

static void purge_numbers(struct bench *bench, int from, int to)
{
    char key[20];
    for (int i = from; i < to; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        purge(bench, key);
    }
}

static void turn(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static void cache_is(struct bench *bench, bool up)
{
    fake.up = up;
    purger_cache_is(bench->purger, up);
}

/* The call deletes exactly these, separated by spaces. */
static void must_delete(size_t call, const char *keys)
{
    char text[1000] = "";
    assert_true(call < fake.count);
    assert_null(fake.calls[call].cursor);
    for (size_t i = 0; i < fake.calls[call].count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 fake.calls[call].keys[i]);
    assert_string_equal(text, keys);
}

static void must_owe(struct bench *bench, size_t count)
{
    assert_int_equal(purger_owed(bench->purger), count);
}

static void must_owe_nothing(struct bench *bench)
{
    turn(bench);
    must_owe(bench, 0);
    assert_int_equal(fake.count, 0);
}

/* ---- while all is well ---- */

static void keys_of_one_turn_go_together(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    purge(&bench, "item:2");
    purge(&bench, "item:3");
    assert_int_equal(fake.count, 0);
    must_owe(&bench, 3);
    turn(&bench);
    assert_int_equal(fake.count, 1);
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
    assert_int_equal(fake.count, 2);
    assert_int_equal(fake.calls[0].count, 64);
    assert_int_equal(fake.calls[1].count, 64);
    turn(&bench);
    assert_int_equal(fake.count, 3);
    assert_int_equal(fake.calls[2].count, 22);
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
    assert_int_equal(fake.count, 2);
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
    purger_key(bench.purger, ITEMS, (struct span){odd, sizeof odd - 1});
    purger_key(bench.purger, ITEMS, (struct span){odd, sizeof odd - 2});
    turn(&bench);
    assert_int_equal(fake.calls[0].count, 2);
    assert_int_equal(fake.calls[0].lengths[0], sizeof odd - 1);
    assert_memory_equal(fake.calls[0].keys[0], odd, 5);
    bench_finish(&bench);
}

static void past_the_window_is_congestion_until_half_of_it_is_answered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 100000);
    purge_numbers(&bench, 0, WINDOW - 1);
    assert_false(purger_is_congested(bench.purger));
    purge_numbers(&bench, WINDOW - 1, WINDOW + 500);
    assert_true(purger_is_congested(bench.purger));
    assert_int_equal(fake.count, WINDOW / KEYS);
    turn(&bench);
    assert_int_equal(fake.count, WINDOW / KEYS); /* 500 wait */
    must_owe(&bench, WINDOW + 500);
    for (int i = 0; i < WINDOW / KEYS / 2 - 1; i++)
        end(REDIS_DONE);
    turn(&bench);
    assert_true(purger_is_congested(bench.purger));
    assert_int_equal(bench.reliefs, 0);
    while (fake.count) {
        end(REDIS_DONE);
        turn(&bench);
    }
    assert_int_equal(bench.reliefs, 1);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), WINDOW + 500);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

static void who_does_not_heed_congestion_makes_the_keyspace_owed_whole(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 20000);
    purge_numbers(&bench, 0, 1000000);
    assert_int_equal(fake.count, WINDOW / KEYS);
    must_owe(&bench, SIZE_MAX);
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
    assert_int_equal(fake.count, 0);
    must_owe(&bench, 2);
    cache_is(&bench, true);
    assert_int_equal(fake.count, 1); /* before anybody else has a chance */
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

static void a_cache_that_is_down_is_no_congestion(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 100000);
    purge_numbers(&bench, 0, WINDOW);
    assert_true(purger_is_congested(bench.purger));
    cache_is(&bench, false);
    assert_false(purger_is_congested(bench.purger));
    while (fake.count)
        end(REDIS_DOWN);
    turn(&bench);
    assert_int_equal(bench.reliefs, 1);
    purge_numbers(&bench, 0, 3 * WINDOW);
    assert_false(purger_is_congested(bench.purger));
    must_owe(&bench, 3 * WINDOW);
    cache_is(&bench, true);
    assert_true(purger_is_congested(bench.purger));
    assert_int_equal(fake.count, WINDOW / KEYS);
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
    assert_int_equal(fake.count, 1);
    must_delete(0, "order:1:1 order:1:2");
    turn(&bench);
    assert_int_equal(fake.count, 2);
    assert_string_equal(fake.calls[1].pattern, "item:*");
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
    assert_int_equal(fake.count, 1);
    find("0", "0", "item:1 item:2");
    turn(&bench);
    must_delete(0, "item:1 item:2");
    end(REDIS_DONE);
    must_owe_nothing(&bench);
    bench_finish(&bench);
}

/* ---- refusals ---- */

/* Turns until there is a call; how long that took. */
static uint64_t wait_for_call(struct bench *bench)
{
    uint64_t start = uv_hrtime();
    while (!fake.count)
        uv_run(&bench->loop, UV_RUN_ONCE);
    return (uv_hrtime() - start) / 1000000;
}

static void a_refused_purge_is_repeated_ever_more_patiently(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purge(&bench, "item:1");
    turn(&bench);
    end(REDIS_REFUSED);
    turn(&bench);
    assert_int_equal(fake.count, 0);
    must_owe(&bench, 1);
    assert_int_equal(COUNTED(&bench, ITEMS, purges_refused), 1);
    assert_in_range(wait_for_call(&bench), 50, 2000);
    end(REDIS_REFUSED);
    assert_in_range(wait_for_call(&bench), 150, 4000);
    must_delete(0, "item:1");
    end(REDIS_REFUSED);
    assert_in_range(wait_for_call(&bench), 350, 8000);
    end(REDIS_DONE);
    assert_int_equal(COUNTED(&bench, ITEMS, purges_refused), 3);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 1);
    must_owe_nothing(&bench);
    purge(&bench, "item:1");
    turn(&bench);
    end(REDIS_REFUSED);
    assert_in_range(wait_for_call(&bench), 50, 300); /* patience begins anew */
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
    assert_in_range(wait_for_call(&bench), 50, 2000);
    assert_int_equal(fake.count, 10);
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
    assert_false(purger_is_congested(bench.purger));
    assert_int_equal(fake.count, 1);
    assert_string_equal(fake.calls[0].keys[0], "order:2:0");
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

/* ---- sweeps ---- */

static void a_sweep_deletes_what_matches_and_nothing_else(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1000);
    purger_keyspace(bench.purger, ORDERS);
    must_owe(&bench, SIZE_MAX);
    turn(&bench);
    assert_int_equal(fake.count, 1);
    assert_string_equal(fake.calls[0].pattern, "order:*:*");
    find("0", "17", "order:1:2 order:1 item:7 order::");
    must_owe(&bench, SIZE_MAX);
    turn(&bench);
    assert_int_equal(fake.count, 2);
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
    assert_string_equal(fake.calls[0].pattern, "\\*\\[a\\-b\\]\\^\\?\\\\{*}\\-*");
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
    assert_int_equal(fake.count, 0); /* the keyspace waits after its refusal */
    wait_for_call(&bench);
    must_delete(0, "item:1 item:2 item:3");
    assert_string_equal(fake.calls[1].cursor, "2");
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
    assert_int_equal(fake.count, 0);
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
    assert_int_equal(fake.count, 1); /* one step at a time */
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
    assert_string_equal(fake.calls[0].pattern, "order:*:*"); /* in turn */
    find("0", "0", "");
    turn(&bench);
    assert_string_equal(fake.calls[0].pattern, "item:*");
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
    end(REDIS_REFUSED);
    purge(&bench, "item:1");
    turn(&bench);
    assert_int_equal(fake.count, 1);
    must_delete(0, "item:1");
    end(REDIS_DONE);
    must_owe(&bench, SIZE_MAX);
    assert_in_range(wait_for_call(&bench), 50, 2000);
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

/* ---- storms ---- */

enum { MODEL_KEYS = 300, PAGE = 10 };

/* Of a key: whether the cache holds a value that must go. */
static bool stale[MODEL_KEYS];

static void model_delete(const struct call *call)
{
    for (size_t i = 0; i < call->count; i++)
        stale[atoi(strchr(call->keys[i], ':') + 1)] = false;
}

/* A cursor is the number of keys passed. */
static void model_scan(const struct call *call)
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
    struct call call = take_call();
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
    forget(&call);
}

static void model_lose(struct bench *bench)
{
    cache_is(bench, false);
    while (fake.count)
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

static void model_step(struct bench *bench)
{
    int dice = rand() % 1000;
    if (dice < 600)
        model_change(bench);
    else if (dice < 603)
        model_truncate(bench);
    else if (dice < 620 && fake.up)
        model_lose(bench);
    else if (dice < 660 && !fake.up)
        cache_is(bench, true);
    else if (dice < 800)
        turn(bench);
    else if (fake.count)
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
        if (!fake.up)
            cache_is(&bench, true);
        while (purger_owed(bench.purger)) {
            uv_run(&bench.loop, fake.count ? UV_RUN_NOWAIT : UV_RUN_ONCE);
            while (fake.count)
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
        cmocka_unit_test(keys_of_one_turn_go_together),
        cmocka_unit_test(a_full_batch_does_not_wait_for_the_turns_end),
        cmocka_unit_test(a_key_goes_once_a_batch_and_again_after_it_was_sent),
        cmocka_unit_test(each_keyspace_has_batches_of_its_own),
        cmocka_unit_test(keys_may_hold_any_byte),
        cmocka_unit_test(past_the_window_is_congestion_until_half_of_it_is_answered),
        cmocka_unit_test(who_does_not_heed_congestion_makes_the_keyspace_owed_whole),
        cmocka_unit_test(what_is_owed_goes_out_as_soon_as_the_cache_is_back),
        cmocka_unit_test(a_purge_of_unknown_fate_is_repeated),
        cmocka_unit_test(a_cache_that_is_down_is_no_congestion),
        cmocka_unit_test(past_the_limit_the_fullest_keyspace_is_owed_whole),
        cmocka_unit_test(what_comes_back_of_a_keyspace_owed_whole_is_dropped),
        cmocka_unit_test(a_refused_purge_is_repeated_ever_more_patiently),
        cmocka_unit_test(batches_refused_together_wait_once),
        cmocka_unit_test(what_fails_counts_towards_the_limit),
        cmocka_unit_test(one_keyspaces_refusal_does_not_hold_up_another),
        cmocka_unit_test(a_new_connection_is_asked_at_once),
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
        cmocka_unit_test(no_stale_value_outlives_any_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
