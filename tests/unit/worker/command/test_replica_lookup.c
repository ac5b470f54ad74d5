/* Lookups of guarded keys at a replica: which is read from, that only what lacks nothing is
 * believed, and what a client sees of what it sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"
#include "worker/upstream/pool.h"

#define DEL_ITEM_1 "*2\r\n$3\r\nDEL\r\n$6\r\nitem:1\r\n"
#define GETEX_OVER "*4\r\n$5\r\nGETEX\r\n$6\r\nitem:1\r\n$4\r\nPXAT\r\n$1\r\n1\r\n"
#define SET_OTHER "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nv\r\n"
#define ONE "$3\r\none\r\n"
#define MGET_BOTH "*3\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$6\r\nitem:2\r\n"
#define MGET_OTHER "*3\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n"
#define EXISTS_BOTH "*3\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n$6\r\nitem:2\r\n"
#define EXISTS_OTHER "*3\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n$5\r\nother\r\n"
#define EXISTS(key) "*2\r\n$6\r\nEXISTS\r\n" key
#define ITEM_1 "$6\r\nitem:1\r\n"
#define ITEM_2 "$6\r\nitem:2\r\n"
#define HGET_F "*3\r\n$4\r\nHGET\r\n" ITEM_1 "$1\r\nf\r\n"
#define HMGET_FG "*4\r\n$5\r\nHMGET\r\n" ITEM_1 "$1\r\nf\r\n$1\r\ng\r\n"
#define HGETALL "*2\r\n$7\r\nHGETALL\r\n" ITEM_1
#define HLEN "*2\r\n$4\r\nHLEN\r\n" ITEM_1
#define STRLEN "*2\r\n$6\r\nSTRLEN\r\n" ITEM_1
#define WITH_F "*4\r\n$2\r\nid\r\n$1\r\n1\r\n$1\r\nf\r\n$1\r\nv\r\n"

static const char primary_at_100[] =
    "role:master\r\nslave0:ip=10.1.0.7,port=7001,state=online,offset=100,lag=0\r\n"
    "master_replid:one\r\nmaster_repl_offset:100\r\n";
static const char replica_at_100[] =
    "role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:100\r\n"
    "master_replid:one\r\n";
static const char replica_at_99[] =
    "role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:99\r\n"
    "master_replid:one\r\n";

static struct config *config_of(struct bench *bench)
{
    return (struct config *)serving_config(bench->serving);
}

/* The primary has told of its replica, as of so long ago. */
static struct upstream *name_replica(struct bench *bench, uint64_t ago)
{
    config_of(bench)->cache_reads = CACHE_READS_REPLICA;
    config_of(bench)->cache_max_lag_ms = 10000;
    bench->shared = bench->client->upstream;
    pool_follow(bench->serving->pool);
    pool_tick(bench->serving->pool);
    cache_stands(bench->shared, primary_at_100, clock_ms() - ago);
    return last_upstream;
}

/* It has done all that the primary had. */
static struct upstream *begin(struct bench *bench)
{
    bench_init(bench, "");
    struct upstream *replica = name_replica(bench, 0);
    assert_ptr_not_equal(replica, bench->shared);
    assert_true(replica->options.replica);
    cache_stands(replica, replica_at_100, clock_ms());
    return replica;
}

static void a_value_of_a_replica_is_the_answer(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, GET_ITEM_1);
    must_send(replica, GET_ITEM_1);
    cache_says(replica, ONE);
    must_reply(bench.client, ONE);
    must_send(bench.shared, "");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 1);
    bench_finish(&bench);
}

static void of_nothing_and_of_errors_the_primary_is_asked(void **state)
{
    static const char *const answers[] = {NIL, "-LOADING Redis is loading\r\n",
                                          "-MASTERDOWN Link\r\n", "-MOVED 1 a:1\r\n"};
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        type(bench.client, GET_ITEM_1);
        must_send(replica, GET_ITEM_1);
        cache_says(replica, answers[i]);
        must_reply(bench.client, "");
        must_send(bench.shared, GET_ITEM_1);
        cache_says(bench.shared, ONE);
        must_reply(bench.client, ONE);
        must_not_ask(bench.keeper);
    }
    assert_int_equal(counter_read(&bench.serving->counters.replica_misses),
                     sizeof answers / sizeof *answers);
    bench_finish(&bench);
}

static void several_keys_are_read_from_it_when_all_are_guarded(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, MGET_BOTH EXISTS_BOTH);
    must_send(replica, MGET_BOTH EXISTS(ITEM_1) EXISTS(ITEM_2));
    cache_says(replica, "*2\r\n" ONE ONE);
    cache_says(replica, ":1\r\n");
    cache_says(replica, ":1\r\n");
    must_reply(bench.client, "*2\r\n" ONE ONE ":2\r\n");
    must_send(bench.shared, "");
    type(bench.client, MGET_OTHER EXISTS_OTHER);
    must_send(bench.shared, MGET_OTHER EXISTS("$5\r\nother\r\n"));
    must_send(replica, EXISTS(ITEM_1));
    cache_says(bench.shared, "*2\r\n" ONE NIL);
    cache_says(bench.shared, ":0\r\n");
    cache_says(replica, ":1\r\n");
    must_reply(bench.client, "*2\r\n" ONE NIL ":1\r\n");
    assert_int_equal(counter_read(&bench.serving->counters.replica_misses), 0);
    bench_finish(&bench);
}

static void of_several_keys_that_it_lacks_one_of_the_primary_is_asked(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, MGET_BOTH EXISTS_BOTH);
    must_send(replica, MGET_BOTH EXISTS(ITEM_1) EXISTS(ITEM_2));
    cache_says(replica, "*2\r\n" ONE NIL);
    cache_says(replica, ":1\r\n");
    cache_says(replica, ":0\r\n");
    must_send(bench.shared, MGET_BOTH EXISTS(ITEM_2));
    must_not_ask(bench.keeper);
    cache_says(bench.shared, "*2\r\n" ONE NIL);
    cache_says(bench.shared, ":1\r\n");
    load_row(&bench, "item:2", "one");
    must_reply(bench.client, "*2\r\n" ONE ONE ":2\r\n");
    assert_int_equal(counter_read(&bench.serving->counters.replica_misses), 2);
    bench_finish(&bench);
}

static void hashes_are_read_from_it(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    config_of(&bench)->keyspaces[ITEMS].fill = FILL_HASH;
    type(bench.client, HGET_F HMGET_FG HGETALL HLEN STRLEN);
    must_send(replica, HGET_F HMGET_FG HGETALL HLEN);
    must_send(bench.shared, STRLEN);
    cache_says(replica, "$1\r\nv\r\n");
    cache_says(replica, "*2\r\n$1\r\nv\r\n$1\r\nw\r\n");
    cache_says(replica, WITH_F);
    cache_says(replica, ":2\r\n");
    must_reply(bench.client, "$1\r\nv\r\n*2\r\n$1\r\nv\r\n$1\r\nw\r\n" WITH_F ":2\r\n");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static void of_a_hash_that_it_lacks_or_a_field_the_primary_is_asked(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    config_of(&bench)->keyspaces[ITEMS].fill = FILL_HASH;
    type(bench.client, HGET_F HMGET_FG HGETALL HLEN);
    cache_says(replica, NIL);
    cache_says(replica, "*2\r\n$1\r\nv\r\n$-1\r\n");
    cache_says(replica, "*0\r\n");
    cache_says(replica, ":0\r\n");
    must_send(bench.shared, HGET_F HMGET_FG HGETALL HLEN);
    cache_says(bench.shared, "$1\r\nv\r\n");
    cache_says(bench.shared, "*2\r\n$1\r\nv\r\n$-1\r\n");
    cache_says(bench.shared, WITH_F);
    cache_says(bench.shared, ":2\r\n");
    must_reply(bench.client, "$1\r\nv\r\n*2\r\n$1\r\nv\r\n$-1\r\n" WITH_F ":2\r\n");
    must_not_ask(bench.keeper);
    must_send(replica, HGET_F HMGET_FG HGETALL HLEN);
    bench_finish(&bench);
}

static void what_a_lost_replica_had_is_asked_of_the_primary(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, GET_ITEM_1 GET_ITEM_2 MGET_BOTH EXISTS_BOTH);
    must_send(replica, GET_ITEM_1 GET_ITEM_2 MGET_BOTH EXISTS(ITEM_1) EXISTS(ITEM_2));
    cache_is_lost(replica);
    hear_keeper(&bench);
    must_send(bench.shared, GET_ITEM_1 GET_ITEM_2 MGET_BOTH EXISTS(ITEM_1) EXISTS(ITEM_2));
    cache_says(bench.shared, ONE);
    cache_says(bench.shared, NIL);
    cache_says(bench.shared, "*2\r\n" ONE ONE);
    cache_says(bench.shared, ":1\r\n");
    cache_says(bench.shared, ":1\r\n");
    load_row(&bench, "item:2", "one");
    must_reply(bench.client, ONE ONE "*2\r\n" ONE ONE ":2\r\n");
    bench_finish(&bench);
}

static void must_go_to_the_primary(struct bench *bench, struct upstream *replica,
                                   const char *command)
{
    type(bench->client, command);
    must_send(replica, "");
    must_send(bench->shared, command);
    cache_says(bench->shared, ONE);
    must_reply(bench->client, ONE);
}

static void one_that_is_not_known_to_be_fresh_is_not_read(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct upstream *replica = name_replica(&bench, 0);
    must_go_to_the_primary(&bench, replica, GET_ITEM_1); /* it has not said anything yet */
    cache_stands(replica, replica_at_99, clock_ms());
    must_go_to_the_primary(&bench, replica, GET_ITEM_1);
    bench_finish(&bench);
}

static void what_the_primary_said_long_ago_makes_nothing_fresh(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct upstream *replica = name_replica(&bench, 10001);
    cache_stands(replica, replica_at_100, clock_ms());
    must_go_to_the_primary(&bench, replica, GET_ITEM_1);
    bench_finish(&bench);
}

static void one_that_is_not_near_is_not_even_connected_to(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    config_of(&bench)->cache_zone = xstrdup("10.2.*, 10.3.*");
    assert_ptr_equal(name_replica(&bench, 0), bench.shared);
    bench_finish(&bench);
    bench_init(&bench, "");
    config_of(&bench)->cache_zone = xstrdup("10.2.*, 10.1.*");
    assert_ptr_not_equal(name_replica(&bench, 0), bench.shared);
    bench_finish(&bench);
}

static void what_may_write_waits_for_lookups_at_replicas(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, GET_ITEM_1 DEL_ITEM_1 GET_ITEM_1);
    must_send(replica, GET_ITEM_1);
    must_send(bench.shared, "");
    cache_says(replica, NIL);
    must_send(bench.shared, GET_ITEM_1);
    cache_says(bench.shared, ONE);
    hear_keeper(&bench);
    must_reply(bench.client, ONE);
    must_send(bench.shared, DEL_ITEM_1 GET_ITEM_1);
    must_send(replica, "");
    cache_says(bench.shared, ":1\r\n");
    cache_says(bench.shared, "$1\r\nv\r\n");
    hear_keeper(&bench);
    must_reply(bench.client, ":1\r\n$1\r\nv\r\n");
    bench_finish(&bench);
}

/* By which its key is gone. */
static void what_reads_for_the_last_time_is_a_write(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, GET_ITEM_2 GETEX_OVER GET_ITEM_1);
    must_send(replica, GET_ITEM_2);
    must_send(bench.shared, "");
    cache_says(replica, ONE);
    hear_keeper(&bench);
    must_send(bench.shared, GETEX_OVER GET_ITEM_1);
    must_send(replica, "");
    cache_says(bench.shared, ONE);
    cache_says(bench.shared, "$1\r\nv\r\n");
    hear_keeper(&bench);
    must_reply(bench.client, ONE ONE "$1\r\nv\r\n");
    assert_true(bench.client->reads.wrote || bench.client->reads.primary_until > clock_ms());
    bench_finish(&bench);
}

static void whoever_wrote_reads_at_the_primary_for_the_time_of_the_lag(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, DEL_ITEM_1);
    must_send(bench.shared, DEL_ITEM_1);
    cache_says(bench.shared, ":1\r\n");
    must_reply(bench.client, ":1\r\n");
    must_go_to_the_primary(&bench, replica, GET_ITEM_1);
    assert_true(bench.client->reads.primary_until > clock_ms() + 9000);
    bench.client->reads.primary_until = clock_ms();
    type(bench.client, GET_ITEM_1);
    must_send(replica, GET_ITEM_1);
    cache_says(replica, ONE);
    bench_finish(&bench);
}

static void what_is_not_guarded_makes_no_difference(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    type(bench.client, GET_ITEM_1 SET_OTHER GET_ITEM_2);
    must_send(replica, GET_ITEM_1 GET_ITEM_2);
    must_send(bench.shared, SET_OTHER);
    cache_says(bench.shared, "+OK\r\n");
    cache_says(replica, ONE);
    cache_says(replica, ONE);
    must_reply(bench.client, ONE "+OK\r\n" ONE);
    bench_finish(&bench);
}

static void primaries_alone_are_asked_when_it_is_set_so(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *replica = begin(&bench);
    config_of(&bench)->cache_reads = CACHE_READS_PRIMARY;
    pool_follow(bench.serving->pool);
    must_go_to_the_primary(&bench, replica, GET_ITEM_1);
    pool_tick(bench.serving->pool);
    assert_true(replica->closed);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_of_a_replica_is_the_answer),
        cmocka_unit_test(of_nothing_and_of_errors_the_primary_is_asked),
        cmocka_unit_test(several_keys_are_read_from_it_when_all_are_guarded),
        cmocka_unit_test(of_several_keys_that_it_lacks_one_of_the_primary_is_asked),
        cmocka_unit_test(hashes_are_read_from_it),
        cmocka_unit_test(of_a_hash_that_it_lacks_or_a_field_the_primary_is_asked),
        cmocka_unit_test(what_a_lost_replica_had_is_asked_of_the_primary),
        cmocka_unit_test(one_that_is_not_known_to_be_fresh_is_not_read),
        cmocka_unit_test(what_the_primary_said_long_ago_makes_nothing_fresh),
        cmocka_unit_test(one_that_is_not_near_is_not_even_connected_to),
        cmocka_unit_test(what_may_write_waits_for_lookups_at_replicas),
        cmocka_unit_test(what_reads_for_the_last_time_is_a_write),
        cmocka_unit_test(whoever_wrote_reads_at_the_primary_for_the_time_of_the_lag),
        cmocka_unit_test(what_is_not_guarded_makes_no_difference),
        cmocka_unit_test(primaries_alone_are_asked_when_it_is_set_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
