/* Purges against a real Redis that is paused, killed, loads and refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/purger.h"
#include "fakes/redis_bench.h"

enum { ITEMS, ORDERS, KEYSPACES };

/* A purger over the connection of a struct bench. */
struct purge_bench {
    struct bench cache;
    struct keyspace keyspaces[KEYSPACES];
    struct config config;
    struct load_counters counters[KEYSPACES];
    struct purger *purger;
};

static void on_cache_state(void *arg, bool up, const char *error)
{
    struct purge_bench *bench = arg;
    on_state(&bench->cache, up, error);
    purger_cache_is(bench->purger, up);
}

static void open_purger(struct purge_bench *bench, const struct redis_options *options,
                        size_t max_owed)
{
    static const char *const templates[] = {"item:{id}", "order:{a}:{b}"};
    static char *const names[] = {(char *)"items", (char *)"orders"};
    const char *error;
    memset(bench, 0, sizeof *bench);
    uv_loop_t *loop = &bench->cache.loop;
    bench_init(&bench->cache);
    assert_int_equal(redis_create(&bench->cache.redis, loop, options, on_cache_state, bench), 0);
    bench->config.keyspaces = bench->keyspaces;
    bench->config.keyspace_count = KEYSPACES;
    for (int i = 0; i < KEYSPACES; i++) {
        bench->keyspaces[i].name = names[i];
        assert_int_equal(key_template_parse(&bench->keyspaces[i].key, templates[i], &error), 0);
    }
    struct purger_options purger = {.redis = bench->cache.redis,
                                    .loop = loop,
                                    .config = &bench->config,
                                    .counters = bench->counters,
                                    .max_owed = max_owed};
    bench->purger = purger_create(&purger);
}

static void on_redis_closed(void *arg)
{
    struct purge_bench *bench = arg;
    purger_destroy(bench->purger);
    on_closed(&bench->cache);
}

static void close_purger(struct purge_bench *bench)
{
    redis_close(bench->cache.redis, on_redis_closed, bench);
    bench_end(&bench->cache);
    for (int i = 0; i < KEYSPACES; i++)
        key_template_finish(&bench->keyspaces[i].key);
}

#define COUNTED(bench, keyspace, name) ((int)counter_read(&(bench)->counters[keyspace].name))

static void purge(struct purge_bench *bench, const char *key)
{
    purger_key(bench->purger,
               key_make(*key == 'i' ? ITEMS : ORDERS, (struct span){key, strlen(key)}));
}

static void purge_items(struct purge_bench *bench, int from, int to)
{
    char key[20];
    for (int i = from; i < to; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        purge(bench, key);
    }
}

static void run_until_owed(struct purge_bench *bench, size_t count)
{
    RUN_UNTIL(&bench->cache, purger_owed(bench->purger) == count);
}

static int keys_in_cache(void)
{
    redisReply *reply = command("DBSIZE");
    int count = (int)reply->integer;
    freeReplyObject(reply);
    return count;
}

/* item:0 up to the count, and one key that is nobody's. */
static void fill_cache(int count)
{
    char text[64];
    execute("FLUSHALL");
    snprintf(text, sizeof text, "DEBUG POPULATE %d item 10", count);
    execute(text);
    execute("SET items:1 other");
}

static void purged_keys_are_gone(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(100);
    execute("SET order:1:2 x");
    open_purger(&bench, &options, 1000);
    purge_items(&bench, 0, 90); /* before the connection is up */
    purge(&bench, "order:1:2");
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 11);
    assert_int_equal(COUNTED(&bench, ITEMS, purges), 90);
    assert_int_equal(COUNTED(&bench, ORDERS, purges), 1);
    close_purger(&bench);
}

/* All at once: most of them find no room, and are left to the sweep. */
static void a_million_purges_are_all_carried_out(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(1000000);
    open_purger(&bench, &options, 20000);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    uint64_t start = uv_hrtime();
    for (int i = 0; i < 1000000; i += 1000) {
        purge_items(&bench, i, i + 1000);
        uv_run(&bench.cache.loop, UV_RUN_NOWAIT);
    }
    run_until_owed(&bench, 0);
    print_message("%.0f purges a second\n", 1e15 / (double)(uv_hrtime() - start));
    assert_int_equal(keys_in_cache(), 1);
    close_purger(&bench);
}

static void a_paused_cache_loses_nothing(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.timeout_ms = 200;
    fill_cache(5000);
    open_purger(&bench, &options, 100000);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    kill(server.pid, SIGSTOP);
    purge_items(&bench, 0, 1000); /* of these nobody knows */
    RUN_UNTIL(&bench.cache, bench.cache.downs);
    purge_items(&bench, 500, 4000);
    run_until_owed(&bench, 4000);
    kill(server.pid, SIGCONT);
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 1001);
    close_purger(&bench);
}

static void a_keyspace_owed_whole_is_swept_and_others_stay(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(20000);
    execute("SET order:1:2 x");
    execute("SET xitem:1 x");
    open_purger(&bench, &options, 100);
    purge_items(&bench, 0, 200);
    assert_true(purger_owed(bench.purger) == SIZE_MAX);
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 3);
    close_purger(&bench);
}

static void a_sweep_that_was_interrupted_begins_again(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(50000);
    open_purger(&bench, &options, 100);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    purger_keyspace(bench.purger, ITEMS);
    for (unsigned round = 1; round <= 3; round++) {
        int before = COUNTED(&bench, ITEMS, purges);
        RUN_UNTIL(&bench.cache, COUNTED(&bench, ITEMS, purges) > before + 2000);
        execute("CLIENT KILL TYPE normal");
        RUN_UNTIL(&bench.cache, bench.cache.downs == round);
        assert_true(purger_owed(bench.purger) == SIZE_MAX);
        execute("DEBUG POPULATE 5000 item 10"); /* behind it */
    }
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 1);
    close_purger(&bench);
}

static void an_empty_cache_is_soon_swept(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    execute("FLUSHALL");
    open_purger(&bench, &options, 100);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    execute("CONFIG RESETSTAT");
    purger_keyspace(bench.purger, ITEMS);
    run_until_owed(&bench, 0);
    redisReply *reply = command("INFO commandstats");
    assert_non_null(strstr(reply->str, "cmdstat_scan:calls=1,"));
    freeReplyObject(reply);
    close_purger(&bench);
}

/* The access rules change while keys of one keyspace are refused. */
static void what_was_refused_goes_once_it_is_allowed(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(100);
    execute("SET order:1:2 x");
    execute("ACL SETUSER guard on >pass ~order:* +del +scan");
    options.user = "guard";
    options.password = "pass";
    open_purger(&bench, &options, 1000);
    purge_items(&bench, 0, 100);
    purge(&bench, "order:1:2");
    RUN_UNTIL(&bench.cache, COUNTED(&bench, ITEMS, purges_refused) >= 300);
    run_until_owed(&bench, 100);
    assert_int_equal(COUNTED(&bench, ORDERS, purges), 1);
    assert_int_equal(keys_in_cache(), 101);
    execute("ACL SETUSER guard ~*");
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 1);
    close_purger(&bench);
    execute("ACL DELUSER guard");
}

static void a_replica_is_asked_until_it_is_promoted(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(10);
    execute("REPLICAOF 127.0.0.1 1");
    open_purger(&bench, &options, 1000);
    purge_items(&bench, 0, 10);
    RUN_UNTIL(&bench.cache, bench.cache.downs);
    assert_non_null(strstr(bench.cache.error, "replica"));
    execute("REPLICAOF NO ONE");
    run_until_owed(&bench, 0);
    assert_int_equal(keys_in_cache(), 1);
    close_purger(&bench);
}

static void a_primary_that_becomes_a_replica_is_lost_and_owed_everything_after(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(10);
    open_purger(&bench, &options, 1000);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    execute("REPLICAOF 127.0.0.1 1");
    RUN_UNTIL(&bench.cache, bench.cache.downs); /* though nothing was written */
    assert_non_null(strstr(bench.cache.error, "replica"));
    execute("REPLICAOF NO ONE");
    RUN_UNTIL(&bench.cache, keys_in_cache() == 1);
    close_purger(&bench);
}

static void closing_in_the_midst_of_it_leaves_nothing(void **state)
{
    struct purge_bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    fill_cache(20000);
    open_purger(&bench, &options, 100000);
    RUN_UNTIL(&bench.cache, bench.cache.ups);
    purger_keyspace(bench.purger, ITEMS);
    RUN_UNTIL(&bench.cache, COUNTED(&bench, ITEMS, purges) > 1000);
    purge_items(&bench, 0, 20000);
    close_purger(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(purged_keys_are_gone),
        cmocka_unit_test(a_million_purges_are_all_carried_out),
        cmocka_unit_test(a_paused_cache_loses_nothing),
        cmocka_unit_test(a_keyspace_owed_whole_is_swept_and_others_stay),
        cmocka_unit_test(a_sweep_that_was_interrupted_begins_again),
        cmocka_unit_test(an_empty_cache_is_soon_swept),
        cmocka_unit_test(what_was_refused_goes_once_it_is_allowed),
        cmocka_unit_test(a_replica_is_asked_until_it_is_promoted),
        cmocka_unit_test(a_primary_that_becomes_a_replica_is_lost_and_owed_everything_after),
        cmocka_unit_test(closing_in_the_midst_of_it_leaves_nothing),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
