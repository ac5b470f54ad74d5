#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "fakes/redis_bench.h"
#include "redis/redis_survey.h"

/* Ordinary work. */

enum { LARGEST = 6000000 };

static void commands_before_the_first_connection_wait_for_it(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    assert_false(redis_is_up(bench.redis));
    fill(&bench, "key", "value", 0, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    assert_int_equal(outcome.outcome, REDIS_DONE);
    assert_true(outcome.found);
    must_exist(&bench, "key", 1);
    must_exist(&bench, "other", 0);
    assert_int_equal(bench.ups, 1);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_fill_never_overwrites(void **state)
{
    struct bench bench;
    struct outcome first, second;
    size_t length;
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    fill(&bench, "key", "first", 100000, &first);
    fill(&bench, "key", "second", 100000, &second);
    RUN_UNTIL(&bench, second.calls);
    assert_true(first.found);
    assert_int_equal(second.outcome, REDIS_DONE);
    assert_false(second.found);
    char *value = stored_value("key", &length);
    assert_string_equal(value, "first");
    free(value);
    redisReply *reply = command("PTTL key");
    assert_in_range(reply->integer, 90000, 100000);
    freeReplyObject(reply);
    bench_close(&bench);
}

/* ---- hashes ---- */

enum { HASH_WORDS = 2 * 300 };

/* Pairs of words, the last of them of `length` bytes. */
static struct outcome fill_hash(struct bench *bench, const char *key, size_t pairs, size_t length,
                                uint64_t ttl)
{
    struct outcome outcome = {.bench = bench};
    struct redis_bytes words[HASH_WORDS];
    char texts[HASH_WORDS][32], *last = calloc(1, length + 1);
    for (size_t i = 0; i < 2 * pairs; i++) {
        snprintf(texts[i], sizeof texts[i], "word %zu", i);
        words[i] = bytes_of(texts[i]);
    }
    memset(last, 'x', length);
    words[2 * pairs - 1] = (struct redis_bytes){last, length};
    redis_fill_hash(bench->redis, bytes_of(key), (struct redis_hash){words, pairs}, ttl, on_answer,
                    &outcome);
    free(last);
    RUN_UNTIL(bench, outcome.calls);
    return outcome;
}

/* How many fields it has, how long the last one is, and for how long it stays. */
static void must_hold_hash(const char *key, size_t pairs, size_t length, long long ttl)
{
    redisReply *count = command("HLEN %s", key);
    char name[32];
    snprintf(name, sizeof name, "word %zu", 2 * pairs - 2);
    redisReply *last = command("HGET %s %s", key, name);
    redisReply *left = command("PTTL %s", key);
    assert_int_equal(count->integer, pairs);
    assert_int_equal(last->type, REDIS_REPLY_STRING);
    assert_int_equal(last->len, length);
    if (ttl)
        assert_in_range(left->integer, ttl / 2, ttl);
    else
        assert_int_equal(left->integer, -1);
    freeReplyObject(count);
    freeReplyObject(last);
    freeReplyObject(left);
}

static void a_hash_is_filled_whole_whatever_its_size(void **state)
{
    static const size_t pairs[] = {1, 63, 64, 300}, lengths[] = {0, 63, 64, 16383, 16384, 100000};
    struct bench bench;
    (void)state;
    bench_open(&bench);
    for (size_t p = 0; p < 4; p++)
        for (size_t l = 0; l < 6; l++) {
            execute("FLUSHALL");
            uint64_t ttl = l % 2 ? 100000 : 0;
            struct outcome outcome = fill_hash(&bench, "key", pairs[p], lengths[l], ttl);
            assert_int_equal(outcome.outcome, REDIS_DONE);
            assert_true(outcome.found);
            must_hold_hash("key", pairs[p], lengths[l], (long long)ttl);
        }
    bench_close(&bench);
}

static void a_hash_never_overwrites(void **state)
{
    struct bench bench;
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    execute("HSET key own 1");
    struct outcome outcome = fill_hash(&bench, "key", 3, 5, 100000);
    assert_int_equal(outcome.outcome, REDIS_DONE);
    assert_false(outcome.found);
    redisReply *reply = command("HGETALL key");
    assert_int_equal(reply->elements, 2);
    freeReplyObject(reply);
    bench_close(&bench);
}

static void a_fill_without_ttl_stays(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    fill(&bench, "key", "", 0, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    redisReply *reply = command("PTTL key");
    assert_int_equal(reply->integer, -1);
    freeReplyObject(reply);
    bench_close(&bench);
}

static void keys_and_values_may_hold_any_byte(void **state)
{
    static const char key[] = "a\0b\r\n%s", value[] = "\0\r\n$5\r\n\xff%b";
    struct bench bench;
    struct outcome outcome = {0};
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    redis_fill(bench.redis, (struct redis_bytes){key, sizeof key - 1},
               (struct redis_bytes){value, sizeof value - 1}, 0, on_answer, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    redisReply *reply = command("GET %b", key, sizeof key - 1);
    assert_int_equal(reply->len, sizeof value - 1);
    assert_memory_equal(reply->str, value, sizeof value - 1);
    freeReplyObject(reply);
    bench_close(&bench);
}

static void a_purge_tells_whether_the_key_was_there(void **state)
{
    struct bench bench;
    struct outcome outcome = {0};
    (void)state;
    execute("SET key value");
    bench_open(&bench);
    for (int there = 1; there >= 0; there--) {
        outcome.calls = 0;
        redis_purge(bench.redis, bytes_of("key"), on_answer, &outcome);
        RUN_UNTIL(&bench, outcome.calls);
        assert_int_equal(outcome.outcome, REDIS_DONE);
        assert_int_equal(outcome.number, there);
    }
    redis_purge(bench.redis, bytes_of("key"), NULL, NULL);
    must_exist(&bench, "key", 0);
    bench_close(&bench);
}

static void many_keys_go_with_one_purge(void **state)
{
    static const char odd[] = "a\0b\r\n";
    struct bench bench;
    struct outcome outcome = {0};
    struct redis_bytes keys[] = {
        bytes_of("one"), bytes_of("gone"), {odd, sizeof odd - 1}, bytes_of("")};
    (void)state;
    execute("FLUSHALL");
    execute("MSET one 1 other 2");
    freeReplyObject(command("SET %b 3", odd, sizeof odd - 1));
    bench_open(&bench);
    redis_purge_many(bench.redis, keys, 4, on_answer, &outcome);
    assert_int_equal(outcome.calls, 0);
    RUN_UNTIL(&bench, outcome.calls);
    assert_int_equal(outcome.outcome, REDIS_DONE);
    assert_int_equal(outcome.number, 2);
    must_exist(&bench, "one", 0);
    must_exist(&bench, "other", 1);
    bench_close(&bench);
}

/* A walk through all keys: the sum of the numbers at their ends. */
struct walk {
    char cursor[32];
    int steps, found;
    long sum;
};

static void on_page(void *arg, const struct redis_answer *answer)
{
    struct walk *walk = arg;
    assert_int_equal(answer->outcome, REDIS_DONE);
    assert_non_null(answer->page.cursor);
    snprintf(walk->cursor, sizeof walk->cursor, "%s", answer->page.cursor);
    walk->steps++;
    for (size_t i = 0; i < answer->page.count; i++) {
        char key[40];
        int number = 0;
        snprintf(key, sizeof key, "%.*s", (int)answer->page.keys[i].length,
                 (const char *)answer->page.keys[i].at);
        assert_int_equal(sscanf(key, "key:%d", &number), 1);
        walk->sum += number;
        walk->found++;
    }
}

static struct walk walk_through(struct bench *bench, const char *pattern)
{
    struct walk walk = {.cursor = "0"};
    do {
        int steps = walk.steps;
        redis_scan(bench->redis, walk.cursor, bytes_of(pattern), 100, on_page, &walk);
        assert_int_equal(walk.steps, steps);
        RUN_UNTIL(bench, walk.steps > steps);
    } while (strcmp(walk.cursor, "0") != 0);
    return walk;
}

static void a_scan_finds_every_key_that_fits(void **state)
{
    struct bench bench;
    (void)state;
    execute("FLUSHALL");
    execute("SET other 1");
    execute("DEBUG POPULATE 1000 key 10");
    bench_open(&bench);
    struct walk walk = walk_through(&bench, "key:*");
    assert_int_equal(walk.found, 1000);
    assert_int_equal(walk.sum, 999 * 1000 / 2);
    assert_true(walk.steps > 1);
    assert_int_equal(walk_through(&bench, "nothing*").found, 0);
    execute("FLUSHALL");
    assert_int_equal(walk_through(&bench, "*").steps, 1);
    bench_close(&bench);
}

static void a_scan_that_is_refused_has_no_page(void **state)
{
    struct bench bench;
    struct outcome outcome = {0};
    (void)state;
    bench_open(&bench);
    redis_scan(bench.redis, "no cursor", bytes_of("*"), 100, on_answer, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    must_have_failed(&outcome, REDIS_REFUSED, "ERR invalid cursor");
    bench_close(&bench);
}

enum { MANY = 10000 };

struct order {
    int next;
    int at[MANY];
};

static struct order order;

static void on_ordered(void *arg, const struct redis_answer *answer)
{
    int *index = arg;
    assert_int_equal(answer->outcome, REDIS_DONE);
    assert_int_equal(*index, order.next);
    assert_int_equal(answer->number, *index % 2);
    order.next++;
}

static void ten_thousand_commands_are_answered_once_and_in_order(void **state)
{
    struct bench bench;
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    order.next = 0;
    for (int i = 0; i < MANY; i++) {
        order.at[i] = i;
        if (i % 2)
            redis_fill(bench.redis, bytes_of("key"), bytes_of("value"), 0, NULL, NULL);
        else
            redis_purge(bench.redis, bytes_of("key"), NULL, NULL);
        redis_exists(bench.redis, bytes_of("key"), on_ordered, &order.at[i]);
    }
    RUN_UNTIL(&bench, order.next == MANY);
    bench_close(&bench);
}

/* Small ones leave together, and large ones by themselves. */
static void values_of_any_size_are_filled_in_order(void **state)
{
    enum { COUNT = 8 };
    static const size_t lengths[] = {LARGEST, 5, 300000, 0, LARGEST, 300000, 1, 1, LARGEST};
    struct bench bench;
    char *value = calloc(1, LARGEST);
    (void)state;
    execute("FLUSHALL");
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    order.next = 0;
    for (int i = 0; i < MANY; i++)
        order.at[i] = i;
    for (int i = 0; i < COUNT;) {
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            value[0] = (char)j;
            redis_fill(bench.redis, bytes_of("key"), (struct redis_bytes){value, lengths[j]}, 0,
                       NULL, NULL);
            redis_purge(bench.redis, bytes_of("key"), NULL, NULL);
        }
        redis_exists(bench.redis, bytes_of("key"), on_ordered, &order.at[i++]);
        redis_fill(bench.redis, bytes_of("key"), (struct redis_bytes){value, LARGEST}, 0, NULL,
                   NULL);
        redis_exists(bench.redis, bytes_of("key"), on_ordered, &order.at[i++]);
        redis_purge(bench.redis, bytes_of("key"), NULL, NULL);
        if (i == COUNT / 2)
            RUN_UNTIL(&bench, order.next == i);
    }
    RUN_UNTIL(&bench, order.next == COUNT);
    free(value);
    bench_close(&bench);
}

static void a_large_value_that_is_being_sent_goes_with_the_connection(void **state)
{
    struct bench bench;
    char *value = calloc(1, LARGEST);
    (void)state;
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    for (int i = 0; i < 3; i++) {
        redis_fill(bench.redis, bytes_of("key"), (struct redis_bytes){value, LARGEST}, 0, NULL,
                   NULL);
        redis_purge(bench.redis, bytes_of("key"), NULL, NULL);
    }
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    free(value);
    bench_close(&bench);
}

static void the_unix_socket_serves_as_well(void **state)
{
    struct bench bench;
    char path[96];
    struct redis_options options = {.path = path, .timeout_ms = 2000, .db = 3};
    struct redis_survey survey;
    char error[256];
    (void)state;
    snprintf(path, sizeof path, "%s/redis.sock", server.dir);
    execute("FLUSHALL");
    bench_open_with(&bench, &options);
    struct outcome outcome;
    fill(&bench, "key", "value", 0, &outcome);
    must_exist(&bench, "key", 1);
    redisReply *reply = command("EXISTS key"); /* in database 0 */
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
    bench_close(&bench);
    assert_int_equal(redis_survey(&options, &survey, error), 0);
}

static void wrong_options_are_refused(void **state)
{
    struct redis *redis = NULL;
    struct redis_options nowhere = {.timeout_ms = 1}, no_time = {.host = "127.0.0.1"};
    (void)state;
    assert_int_equal(redis_create(&redis, uv_default_loop(), &nowhere, NULL, NULL), -EINVAL);
    assert_int_equal(redis_create(&redis, uv_default_loop(), &no_time, NULL, NULL), -EINVAL);
    assert_null(redis);
}

/* Refusals. */

static void an_error_reply_is_a_refusal_with_its_text(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    execute("CONFIG SET maxmemory 1");
    bench_open(&bench);
    fill(&bench, "key", "value", 0, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    must_have_failed(&outcome, REDIS_REFUSED, "OOM ");
    assert_true(redis_is_up(bench.redis));
    bench_close(&bench);
    execute("CONFIG SET maxmemory 0");
}

static void a_loading_server_is_up_and_refuses(void **state)
{
    struct bench bench;
    redisContext *busy;
    (void)state;
    execute("FLUSHALL");
    execute("CONFIG SET key-load-delay 4000");
    execute("CONFIG SET loading-process-events-interval-bytes 1024");
    execute("DEBUG POPULATE 2000 key 100");
    busy = redisConnect("127.0.0.1", server.port);
    redisAppendCommand(busy, "DEBUG RELOAD");
    int done = 0;
    redisBufferWrite(busy, &done);
    bench_open(&bench);
    struct outcome outcome = {0};
    while (outcome.outcome != REDIS_REFUSED && outcome.calls < 1)
        outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_REFUSED, "LOADING ");
    assert_true(redis_is_up(bench.redis));
    bench_close(&bench);
    server_kill(&server, SIGKILL);
    redisFree(busy);
    redis_server_start(&server);
}

static void a_missing_or_wrong_password_is_not_up(void **state)
{
    struct bench bench;
    struct outcome outcome;
    struct redis_options options = options_at(server.port);
    (void)state;
    execute("CONFIG SET requirepass secret");
    bench_open_with(&bench, &options);
    outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "NOAUTH");
    bench_close(&bench);
    options.password = "wrong";
    bench_open_with(&bench, &options);
    outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "AUTH refused: WRONGPASS");
    assert_non_null(strstr(bench.error, "WRONGPASS"));
    uint64_t start = uv_hrtime();
    RUN_UNTIL(&bench, uv_hrtime() - start > 500000000); /* several attempts later */
    assert_int_equal(bench.downs, 1);
    assert_int_equal(bench.ups, 0);
    bench_close(&bench);
    options.password = "secret";
    bench_open_with(&bench, &options);
    must_exist(&bench, "key", 0);
    struct outcome refused;
    fill(&bench, "key", "value", 0, &refused);
    must_exist(&bench, "key", 1);
    bench_close(&bench);
    server_kill(&server, SIGKILL);
    redis_server_start(&server);
}

static void a_password_that_becomes_right_needs_no_restart(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    execute("ACL SETUSER guard on >old ~* +@all");
    options.user = "guard";
    options.password = "new";
    bench_open_with(&bench, &options);
    RUN_UNTIL(&bench, bench.downs);
    execute("ACL SETUSER guard resetpass >new");
    RUN_UNTIL(&bench, bench.ups);
    must_exist(&bench, "key", 0);
    bench_close(&bench);
    execute("ACL DELUSER guard");
}

static void a_user_with_few_rights_is_up(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    execute("ACL SETUSER guard on >pass ~item:* +set +del +exists");
    options.user = "guard";
    options.password = "pass";
    bench_open_with(&bench, &options);
    must_exist(&bench, "item:1", 0);
    struct outcome outcome = exists(&bench, "secret");
    must_have_failed(&outcome, REDIS_REFUSED, "NOPERM");
    bench_close(&bench);
    execute("ACL DELUSER guard");
}

static void a_refused_database_is_not_up(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.db = 4711;
    bench_open_with(&bench, &options);
    struct outcome outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "SELECT refused: ERR");
    bench_close(&bench);
}

/* Loss. */

static void a_server_that_is_not_there_is_noticed_at_once(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(free_port());
    (void)state;
    options.timeout_ms = 30000;
    bench_open_with(&bench, &options);
    uint64_t start = uv_hrtime();
    struct outcome outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "refused");
    outcome = exists(&bench, "key"); /* in backoff */
    must_have_failed(&outcome, REDIS_DOWN, "refused");
    assert_in_range((uv_hrtime() - start) / 1000000, 0, 5000);
    bench_close(&bench);
    options = (struct redis_options){.path = "/nowhere/redis.sock", .timeout_ms = 30000};
    bench_open_with(&bench, &options);
    outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "no such file");
    bench_close(&bench);
}

static void a_killed_server_is_used_again_when_it_is_back(void **state)
{
    struct bench bench;
    struct outcome lost[50], outcome;
    (void)state;
    bench_open(&bench);
    must_exist(&bench, "key", 0);
    kill(server.pid, SIGSTOP);
    for (int i = 0; i < 50; i++)
        fill(&bench, "key", "value", 0, &lost[i]);
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    server_kill(&server, SIGKILL);
    RUN_UNTIL(&bench, lost[49].calls);
    for (int i = 0; i < 50; i++)
        must_have_failed(&lost[i], REDIS_DOWN, "");
    assert_int_equal(bench.downs, 1);
    assert_false(redis_is_up(bench.redis));
    outcome = exists(&bench, "key");
    assert_int_equal(outcome.outcome, REDIS_DOWN);
    redis_server_start(&server);
    RUN_UNTIL(&bench, bench.ups == 2);
    must_exist(&bench, "key", 0);
    bench_close(&bench);
}

static void a_silent_server_is_given_up_and_used_again(void **state)
{
    struct bench bench;
    struct outcome silent[3];
    struct redis_options options = options_at(server.port);
    (void)state;
    options.timeout_ms = 200;
    bench_open_with(&bench, &options);
    RUN_UNTIL(&bench, bench.ups);
    kill(server.pid, SIGSTOP);
    uint64_t start = uv_hrtime();
    for (int i = 0; i < 3; i++)
        fill(&bench, "key", "value", 0, &silent[i]);
    RUN_UNTIL(&bench, silent[2].calls);
    assert_in_range((uv_hrtime() - start) / 1000000, 150, 3000);
    for (int i = 0; i < 3; i++)
        must_have_failed(&silent[i], REDIS_DOWN, "no answer within 200 ms");
    assert_int_equal(bench.downs, 1);
    start = uv_hrtime();
    RUN_UNTIL(&bench, uv_hrtime() - start > 600000000); /* attempts that nobody answers */
    assert_int_equal(bench.downs, 1);
    kill(server.pid, SIGCONT);
    RUN_UNTIL(&bench, bench.ups == 2);
    struct outcome outcome = exists(&bench, "key");
    assert_int_equal(outcome.outcome, REDIS_DONE);
    bench_close(&bench);
}

static void a_server_that_is_silent_from_the_start_is_down(void **state)
{
    struct bench bench;
    int port, listener = silent_listener(&port);
    struct redis_options options = options_at(port);
    (void)state;
    options.timeout_ms = 200;
    bench_open_with(&bench, &options);
    struct outcome outcome = exists(&bench, "key");
    must_have_failed(&outcome, REDIS_DOWN, "cannot connect within 200 ms");
    bench_close(&bench);
    close(listener);
}

static void slow_traffic_outlives_the_timeout(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.timeout_ms = 500;
    bench_open_with(&bench, &options);
    uint64_t start = uv_hrtime();
    while (uv_hrtime() - start < 1600000000) { /* each answered in time, the timer firing between */
        struct outcome outcome = exists(&bench, "key");
        assert_int_equal(outcome.outcome, REDIS_DONE);
        usleep(20000);
    }
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_pause_of_the_whole_process_is_no_timeout(void **state)
{
    struct bench bench;
    struct outcome before, after;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.timeout_ms = 500;
    bench_open_with(&bench, &options);
    RUN_UNTIL(&bench, bench.ups);
    fill(&bench, "key", "value", 0, &before);
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    usleep(1000000); /* the reply lies in the socket */
    fill(&bench, "key", "value", 0, &after);
    RUN_UNTIL(&bench, after.calls);
    assert_int_equal(before.outcome, REDIS_DONE);
    assert_int_equal(after.outcome, REDIS_DONE);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

/* Closing. */

static void closing_ends_every_command_once(void **state)
{
    static struct outcome outcomes[MANY];
    struct bench bench;
    (void)state;
    bench_open(&bench);
    fill(&bench, "key", "waits", 0, &outcomes[0]);
    RUN_UNTIL(&bench, bench.ups);
    for (int i = 1; i < MANY; i++)
        fill(&bench, "key", "value", 0, &outcomes[i]);
    bench_close(&bench);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(outcomes[i].calls, 1);
    must_have_failed(&outcomes[MANY - 1], REDIS_DOWN, "closed");
}

static void a_connection_can_be_closed_before_it_ever_ran(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    bench_open(&bench);
    fill(&bench, "key", "value", 0, &outcome);
    bench_close(&bench);
    must_have_failed(&outcome, REDIS_DOWN, "closed");
    bench_open(&bench);
    uv_run(&bench.loop, UV_RUN_NOWAIT); /* in the middle of connecting */
    bench_close(&bench);
    bench_open(&bench);
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    uv_run(&bench.loop, UV_RUN_NOWAIT); /* in the middle of the greeting */
    bench_close(&bench);
}

static void close_on_answer(void *arg, const struct redis_answer *answer)
{
    struct outcome *outcome = arg;
    on_answer(arg, answer);
    redis_close(outcome->bench->redis, on_closed, outcome->bench);
}

static void a_callback_may_close_the_connection(void **state)
{
    struct bench bench;
    struct outcome closer = {.bench = &bench}, others[20];
    (void)state;
    bench_open(&bench);
    for (int i = 0; i < 10; i++)
        fill(&bench, "key", "value", 0, &others[i]);
    redis_exists(bench.redis, bytes_of("key"), close_on_answer, &closer);
    for (int i = 10; i < 20; i++)
        fill(&bench, "key", "value", 0, &others[i]);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    bench_close(&bench);
    assert_int_equal(closer.calls, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(others[i].calls, 1);
        assert_int_equal(others[i].outcome, i < 10 ? REDIS_DONE : REDIS_DOWN);
    }
}

static void the_state_callback_may_close_the_connection(void **state)
{
    struct bench bench;
    struct outcome outcome;
    struct redis_options options = options_at(server.port);
    (void)state;
    for (int way = 0; way < 2; way++) { /* refused by the kernel, and by the server */
        options.port = (uint16_t)(way ? server.port : free_port());
        options.db = 4711;
        bench_open_with(&bench, &options);
        bench.close_when_down = true;
        fill(&bench, "key", "value", 0, &outcome);
        uv_run(&bench.loop, UV_RUN_DEFAULT);
        bench_close(&bench);
        assert_int_equal(outcome.calls, 1);
        assert_int_equal(outcome.outcome, REDIS_DOWN);
    }
    bench_open(&bench);
    bench.close_when_down = true;
    RUN_UNTIL(&bench, bench.ups);
    execute("CLIENT KILL TYPE normal"); /* lost while it was up */
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    bench_close(&bench);
    assert_int_equal(bench.downs, 1);
}

static void submit_again(void *arg, const struct redis_answer *answer)
{
    struct outcome *outcome = arg;
    on_answer(arg, answer);
    if (outcome->calls < 200)
        redis_exists(outcome->bench->redis, bytes_of("key"), submit_again, outcome);
}

static void a_callback_may_submit_again(void **state)
{
    struct bench bench;
    struct outcome outcome = {.bench = &bench};
    (void)state;
    bench_open(&bench);
    redis_exists(bench.redis, bytes_of("key"), submit_again, &outcome);
    RUN_UNTIL(&bench, outcome.calls == 100);
    server_kill(&server, SIGKILL); /* goes on while it is down, and in closing */
    RUN_UNTIL(&bench, outcome.calls == 150);
    assert_int_equal(outcome.outcome, REDIS_DOWN);
    bench_close(&bench);
    assert_int_equal(outcome.calls, 200);
    redis_server_start(&server);
}

/* The survey. */

static void the_survey_reads_the_version(void **state)
{
    struct redis_survey survey;
    char error[256];
    struct redis_options options = options_at(server.port);
    int major = 0, minor = 0, patch = 0;
    (void)state;
    assert_int_equal(redis_survey(&options, &survey, error), 0);
    assert_int_equal(sscanf(survey.version, "%d.%d.%d", &major, &minor, &patch), 3);
    assert_in_range(major, 2, 99);
    assert_string_equal(error, "");
}

static void any_command_may_be_sent(void **state)
{
    struct bench bench;
    struct outcome set = {.bench = &bench}, wrong = {.bench = &bench};
    const struct redis_bytes bits[] = {bytes_of("BITFIELD"), bytes_of("bits"), bytes_of("SET"),
                                       bytes_of("u1"),       bytes_of("9"),    bytes_of("1")};
    (void)state;
    bench_open(&bench);
    redis_send(bench.redis, bits, 6, on_answer, &set);
    redis_send(bench.redis, bits, 4, on_answer, &wrong);
    RUN_UNTIL(&bench, wrong.calls);
    assert_int_equal(set.outcome, REDIS_DONE); /* its numbers are nobody's concern */
    must_have_failed(&wrong, REDIS_REFUSED, "");
    size_t length;
    unsigned char *value = stored_value("bits", &length);
    assert_int_equal(length, 2);
    assert_int_equal(value[1], 0x40);
    free(value);
    bench_close(&bench);
}

static void a_script_says_a_text_of_two_keys(void **state)
{
    struct redis_options options = options_at(server.port);
    const char *const keys[2] = {"one", "other"};
    char said[64], error[256];
    (void)state;
    assert_int_equal(redis_ask_script(&options, "return KEYS[2] .. KEYS[1]", keys, said, error), 0);
    assert_string_equal(said, "otherone");
    assert_int_equal(redis_ask_script(&options, "no script", keys, said, error), -EACCES);
    assert_non_null(strstr(error, "EVAL refused"));
}

static void the_survey_says_what_failed(void **state)
{
    struct redis_survey survey;
    char error[256];
    struct redis_options options = options_at(free_port());
    int port, listener = silent_listener(&port);
    (void)state;
    assert_int_equal(redis_survey(&options, &survey, error), -ECONNREFUSED);
    assert_non_null(strstr(error, "refused"));
    options = options_at(server.port);
    options.password = "wrong";
    options.user = "nobody";
    assert_int_equal(redis_survey(&options, &survey, error), -EACCES);
    assert_non_null(strstr(error, "AUTH refused: WRONGPASS"));
    options = options_at(server.port);
    options.db = 4711;
    assert_int_equal(redis_survey(&options, &survey, error), -EACCES);
    assert_non_null(strstr(error, "SELECT refused"));
    options = options_at(port);
    options.timeout_ms = 200;
    uint64_t start = uv_hrtime();
    assert_int_equal(redis_survey(&options, &survey, error), -ETIMEDOUT);
    assert_in_range((uv_hrtime() - start) / 1000000, 150, 2000);
    assert_non_null(strstr(error, "timed out"));
    assert_string_equal(survey.version, "");
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_before_the_first_connection_wait_for_it),
        cmocka_unit_test(a_fill_never_overwrites),
        cmocka_unit_test(a_hash_is_filled_whole_whatever_its_size),
        cmocka_unit_test(a_hash_never_overwrites),
        cmocka_unit_test(a_fill_without_ttl_stays),
        cmocka_unit_test(keys_and_values_may_hold_any_byte),
        cmocka_unit_test(a_purge_tells_whether_the_key_was_there),
        cmocka_unit_test(many_keys_go_with_one_purge),
        cmocka_unit_test(a_scan_finds_every_key_that_fits),
        cmocka_unit_test(a_scan_that_is_refused_has_no_page),
        cmocka_unit_test(ten_thousand_commands_are_answered_once_and_in_order),
        cmocka_unit_test(values_of_any_size_are_filled_in_order),
        cmocka_unit_test(a_large_value_that_is_being_sent_goes_with_the_connection),
        cmocka_unit_test(the_unix_socket_serves_as_well),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_error_reply_is_a_refusal_with_its_text),
        cmocka_unit_test(a_loading_server_is_up_and_refuses),
        cmocka_unit_test(a_missing_or_wrong_password_is_not_up),
        cmocka_unit_test(a_password_that_becomes_right_needs_no_restart),
        cmocka_unit_test(a_user_with_few_rights_is_up),
        cmocka_unit_test(a_refused_database_is_not_up),
        cmocka_unit_test(a_server_that_is_not_there_is_noticed_at_once),
        cmocka_unit_test(a_killed_server_is_used_again_when_it_is_back),
        cmocka_unit_test(a_silent_server_is_given_up_and_used_again),
        cmocka_unit_test(a_server_that_is_silent_from_the_start_is_down),
        cmocka_unit_test(slow_traffic_outlives_the_timeout),
        cmocka_unit_test(a_pause_of_the_whole_process_is_no_timeout),
        cmocka_unit_test(closing_ends_every_command_once),
        cmocka_unit_test(a_connection_can_be_closed_before_it_ever_ran),
        cmocka_unit_test(a_callback_may_close_the_connection),
        cmocka_unit_test(the_state_callback_may_close_the_connection),
        cmocka_unit_test(a_callback_may_submit_again),
        cmocka_unit_test(the_survey_reads_the_version),
        cmocka_unit_test(any_command_may_be_sent),
        cmocka_unit_test(a_script_says_a_text_of_two_keys),
        cmocka_unit_test(the_survey_says_what_failed),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
