/* Where what the nodes of a cluster tell a client that tracks stands among its replies. */
#include "worker/client/tracking.h"

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
#include "worker/client/pinned.h"
#include "worker/upstream/pool.h"

#define TRACK "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n"
#define TOLD(name) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n" name "\r\n"
#define ASKED "*1\r\n$4\r\nPING\r\n"

static struct fake_clients fake;
static struct redis_cluster cluster;
static struct client *client;
static struct upstream *nodes[2]; /* the client's own connection to each */

static void join(struct reply_slot *whole, struct span reply)
{
    buffer_clear(&whole->reply);
    buffer_append(&whole->reply, reply.at, reply.length);
}

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(reply_slot_output(slot), reply.at, reply.length);
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    take_reply(slot, index, span_of(why));
}

static const struct reply_slot_kind joined = {.on_part_of = join};
static const struct reply_slot_kind plain = {.on_cache = take_reply,
                                             .on_cache_failure = take_failure};

static int open_tracker(void **state)
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
    client->replies.resp3 = true;
    assert_int_equal(pinned_begin(client), 0);
    pinned_begin_at(client, 0);
    nodes[0] = client->pinned.own;
    struct pinned_tracking_words *asked = &client->pinned.tracking.asked;
    buffer_append(&asked->bytes, TRACK, strlen(TRACK));
    asked->commands = 1;
    tracking_begin(client, NULL);
    assert_int_equal(tracking_open(client, 1), 0);
    nodes[1] = last_upstream;
    return 0;
}

static int close_tracker(void **state)
{
    (void)state;
    fake_clients_finish(&fake);
    fake_cluster_finish(&cluster);
    return 0;
}

static struct reply_slot *ask(struct upstream *node)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    upstream_send(node, slot, 0, span_of(ASKED));
    reply_slot_answered(slot);
    return slot;
}

/* A command of as many keys, of one node and the other by turns. */
static struct reply_slot *ask_whole(size_t parts)
{
    struct reply_slot *whole = reply_slot_open(&client->replies, &joined);
    client->replies.whole = whole;
    client->replies.muted = true;
    for (size_t i = 0; i < parts; i++)
        ask(nodes[i % 2]);
    client->replies.whole = NULL;
    client->replies.muted = false;
    reply_slot_answered(whole);
    return whole;
}

/* Each push has one place, behind the whole's slot, and a step gets there: it goes past no part. */
static void of_a_command_of_many_keys_all_stands_in_one_place(void **state)
{
    enum { PARTS = 1000 };
    (void)state;
    struct reply_slot *whole = ask_whole(PARTS);
    for (size_t i = 0; i < PARTS - 2; i++) {
        cache_says(nodes[i % 2], ":1\r\n");
        cache_says(nodes[i % 2], TOLD("k"));
    }
    assert_int_equal(client->replies.commands, 1 + PARTS + 1);
    assert_int_equal(buffer_length(&whole->next->reply), (PARTS - 2) * strlen(TOLD("k")));
    cache_says(nodes[0], ":1\r\n");
    cache_says(nodes[1], ":1\r\n");
    assert_null(client->replies.first);
    buffer_clear(&client->replies.out);
}

/* Of the first key a node has said what it was, and that it has changed: it will not say so again,
 * and the client is yet to hear of the first. */
static void what_a_part_has_read_is_told_of_behind_the_reply(void **state)
{
    (void)state;
    ask(nodes[1]);
    ask_whole(4);
    ask(nodes[0]);
    cache_says(nodes[0], ":1\r\n");
    cache_says(nodes[0], TOLD("b"));
    cache_says(nodes[0], TOLD("c"));
    cache_says(nodes[1], "+before\r\n");
    must_reply(client, "+before\r\n");
    cache_says(nodes[1], TOLD("a"));
    cache_says(nodes[0], ":2\r\n");
    cache_says(nodes[0], "+behind\r\n");
    cache_says(nodes[1], ":3\r\n");
    must_reply(client, "");
    cache_says(nodes[1], ":4\r\n");
    must_reply(client, ":4\r\n" TOLD("b") TOLD("c") TOLD("a") "+behind\r\n");
}

/* Of these the one slot may have answers. */
static void what_an_mget_has_read_is_told_of_behind_it_in_order(void **state)
{
    const struct span keys[] = {span_of("b"), span_of("a")};
    (void)state;
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    reply_slot_set_lookups(slot, keys, 2);
    upstream_send(nodes[0], slot, 0, span_of(ASKED));
    upstream_send(nodes[0], slot, 1, span_of(ASKED));
    reply_slot_answered(slot);
    ask(nodes[1]);
    cache_says(nodes[0], "+b");
    cache_says(nodes[0], TOLD("1"));
    cache_says(nodes[0], TOLD("2"));
    cache_says(nodes[1], "+other\r\n");
    cache_says(nodes[0], "a\r\n");
    must_reply(client, "+ba\r\n" TOLD("1") TOLD("2") "+other\r\n");
}

/* What stands before it was read over the same connection, and is not forgotten too early. */
static void what_is_told_before_an_answer_leaves_before_it(void **state)
{
    (void)state;
    ask(nodes[0]);
    ask(nodes[1]);
    cache_says(nodes[1], TOLD("a"));
    cache_says(nodes[1], "+2\r\n");
    cache_says(nodes[1], TOLD("d"));
    must_reply(client, "");
    cache_says(nodes[0], TOLD("b"));
    must_reply(client, TOLD("b"));
    cache_says(nodes[0], "+1\r\n");
    must_reply(client, "+1\r\n" TOLD("a") "+2\r\n" TOLD("d"));
}

int main(void)
{
#define TRACKING_TEST(name) cmocka_unit_test_setup_teardown(name, open_tracker, close_tracker)
    const struct CMUnitTest tests[] = {
        TRACKING_TEST(of_a_command_of_many_keys_all_stands_in_one_place),
        TRACKING_TEST(what_a_part_has_read_is_told_of_behind_the_reply),
        TRACKING_TEST(what_an_mget_has_read_is_told_of_behind_it_in_order),
        TRACKING_TEST(what_is_told_before_an_answer_leaves_before_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
