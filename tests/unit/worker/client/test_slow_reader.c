/* A slow reader in a cluster: where it is led, and for how long. */
#include "worker/client/pinned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/client.h"
#include "fakes/clock.h"
#include "fakes/cluster.h"
#include "fakes/upstream.h"
#include "worker/upstream/pool.h"

static struct fake_clients fake;
static struct redis_cluster cluster;
static atomic_uint total;
static struct client *client;

static int open_client(void **state)
{
    (void)state;
    now_ms = 1000;
    fake_clients_init(&fake, "", NULL, NULL);
    struct serving *serving = fake.serving.serving;
    pool_close_idle(serving->pool); /* it led to one server */
    fake_cluster_init(&cluster);
    serving->route->cluster = &cluster;
    pool_follow(serving->pool);
    client = client_add(&fake);
    atomic_store(&total, client->host->clients + 1); /* of another host, at another worker */
    fake.clients.total = &total;
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    fake_clients_finish(&fake);
    fake_cluster_finish(&cluster);
    return 0;
}

static void look(uint64_t ms)
{
    now_ms += ms;
    client_follow_host(client);
    pinned_check(client, now_ms);
}

static void it_shares_with_those_who_take_much_until_it_has_read_all(void **state)
{
    (void)state;
    look(100);
    assert_false(client->upstream->options.large);
    client->replies.slow = true;
    look(100);
    assert_null(client->pinned.own);
    assert_true(client->upstream->options.large);
    client_go_to(client, 1);
    assert_true(client->upstream->options.large);
    buffer_append(&client->replies.out, "x", 1);
    look(5000);
    assert_true(client->takes_much);
    buffer_clear(&client->replies.out);
    look(900);
    assert_true(client->replies.slow);
    look(200);
    assert_false(client->replies.slow);
    look(100);
    assert_false(client->takes_much);
    assert_false(client->upstream->options.large);
}

static void who_is_alone_stays_where_it_is(void **state)
{
    (void)state;
    atomic_store(&total, client->host->clients);
    client->replies.slow = true;
    for (int i = 0; i < 100; i++)
        look(100);
    assert_false(client->takes_much);
    assert_true(client->replies.slow); /* somebody may come */
    assert_int_equal(client->state, CLIENT_OPEN);
}

int main(void)
{
#define READER_TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        READER_TEST(it_shares_with_those_who_take_much_until_it_has_read_all),
        READER_TEST(who_is_alone_stays_where_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
