/* What a client listens to in a cluster: nobody is deaf for long without knowing, and names that
 * are kept count. */
#include "worker/client/listening.h"
#include "worker/client/listening_commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/client.h"
#include "fakes/clock.h"
#include "fakes/cluster.h"
#include "fakes/upstream.h"
#include "worker/client/client_memory.h"
#include "worker/upstream/pool.h"

#define ASKED "*2\r\n$10\r\nssubscribe\r\n$1\r\na\r\n"
#define CONFIRMED "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n"

#define END "*2\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n"
#define ENDED "*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n"

enum { BEGINNING = 1000, TICK_MS = 500, MINUTE_MS = 60000, MEGABYTE = 1024 * 1024 };

static struct fake_clients fake;
static struct client_memory memory;
static struct redis_cluster cluster;
static struct client *client;

static int open_client(void **state)
{
    (void)state;
    now_ms = BEGINNING;
    memory = (struct client_memory){0};
    fake_clients_init(&fake, "max_client_memory: 16mb\n", NULL, NULL);
    fake.clients.memory = &memory;
    struct serving *serving = fake.serving.serving;
    pool_close_idle(serving->pool); /* it led to one server */
    fake_cluster_init(&cluster);
    serving->route->cluster = &cluster;
    pool_follow(serving->pool);
    client = client_add(&fake);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    fake_clients_finish(&fake);
    fake_cluster_finish(&cluster);
    return 0;
}

/* The connection by which it is heard. */
static struct upstream *hear_a(void)
{
    const struct span name = span_of("a");
    listening_begin(client, PUBSUB_SHARD, &(struct listening_words){&name, 1, NULL});
    struct upstream *post = last_upstream;
    must_send(post, ASKED);
    cache_says(post, CONFIRMED);
    must_reply(client, CONFIRMED);
    return post;
}

/* At the next look it is asked for again. */
static struct upstream *ask_again(void)
{
    struct upstream *before = last_upstream;
    now_ms += TICK_MS;
    listening_check(client, now_ms);
    if (last_upstream == before)
        return NULL;
    must_send(last_upstream, ASKED);
    return last_upstream;
}

static void answer(struct upstream *post, const char *reply)
{
    post->options.owner->takes(client, post, span_of(reply));
}

static void who_cannot_be_served_for_a_minute_is_closed(void **state)
{
    (void)state;
    cache_is_lost(hear_a());
    while (now_ms <= BEGINNING + MINUTE_MS) {
        assert_int_equal(client->state, CLIENT_OPEN);
        struct upstream *post = ask_again();
        assert_non_null(post);
        cache_is_lost(post);
    }
    for (int i = 0; i < 3; i++) {
        now_ms += TICK_MS;
        listening_check(client, now_ms);
    }
    assert_int_equal(client->state, CLIENT_LEAVING);
}

static void who_is_heard_again_in_time_has_a_minute_the_next_time(void **state)
{
    (void)state;
    struct upstream *post = hear_a();
    for (int times = 0; times < 3; times++) {
        cache_is_lost(post);
        for (int i = 0; i < MINUTE_MS / 2 / TICK_MS; i++)
            cache_is_lost(ask_again());
        post = ask_again();
        answer(post, CONFIRMED);
        assert_null(ask_again());
        assert_null(ask_again());
    }
    assert_int_equal(client->state, CLIENT_OPEN);
}

static void a_refusal_on_the_way_closes_it(void **state)
{
    static const char *const refusals[] = {"-NOPERM no\r\n", "-ERR unknown command\r\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        client = client_add(&fake);
        cache_is_lost(hear_a());
        answer(ask_again(), refusals[i]);
        assert_int_equal(client->state, CLIENT_LEAVING);
    }
}

/* As said by a node that does not know yet, or has nobody to turn to. */
static void other_errors_pass(void **state)
{
    (void)state;
    cache_is_lost(hear_a());
    answer(ask_again(), "-CLUSTERDOWN The cluster is down\r\n");
    assert_int_equal(client->state, CLIENT_OPEN);
    now_ms += TICK_MS;
    listening_check(client, now_ms);
    must_send(last_upstream, ASKED);
    answer(last_upstream, CONFIRMED);
    assert_null(ask_again());
    assert_int_equal(client->state, CLIENT_OPEN);
}

/* By a node that has no part in the slot any more, before it has been asked to. */
static void an_end_that_was_not_asked_for_yet_is_no_answer(void **state)
{
    const struct span name = span_of("a");
    struct upstream *post = hear_a();
    (void)state;
    listening_end(client, PUBSUB_SHARD, &(struct listening_words){&name, 1, NULL});
    cache_says(post, ENDED);
    must_reply(client, "");
    must_send(post, END);
    cache_says(post, ENDED);
    must_reply(client, ENDED);
}

/* Nobody confirms them. */
static void begin_with_large_names(unsigned from, unsigned to)
{
    static char text[MEGABYTE];
    memset(text, 'x', sizeof text);
    for (unsigned i = from; i < to; i++) {
        struct span name = {text, sizeof text - i};
        listening_begin(client, PUBSUB_CHANNEL, &(struct listening_words){&name, 1, NULL});
    }
}

static void names_count_for_memory(void **state)
{
    size_t before = client_memory_of(client);
    (void)state;
    begin_with_large_names(0, 3);
    assert_true(client_memory_of(client) - before >= listening_bytes(client));
    assert_true(listening_bytes(client) > 2 * MEGABYTE);
    client_memory_check(&fake.clients);
    assert_int_equal(client->state, CLIENT_OPEN);
    begin_with_large_names(3, 20);
    client_memory_check(&fake.clients);
    assert_true(client->state >= CLIENT_CLOSING);
    assert_int_equal(counter_read(&fake.clients.serving->counters.clients_cut), 1);
}

int main(void)
{
#define LISTENING_TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        LISTENING_TEST(who_cannot_be_served_for_a_minute_is_closed),
        LISTENING_TEST(who_is_heard_again_in_time_has_a_minute_the_next_time),
        LISTENING_TEST(a_refusal_on_the_way_closes_it),
        LISTENING_TEST(other_errors_pass),
        LISTENING_TEST(an_end_that_was_not_asked_for_yet_is_no_answer),
        LISTENING_TEST(names_count_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
