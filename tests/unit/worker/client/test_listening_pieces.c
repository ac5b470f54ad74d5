/* Commands in a cluster with more names than are looked at in one visit: however many there are,
 * others have their turn between few of them, and what the client gets is what few would get. */
#include "worker/client/listening.h"
#include "worker/client/listening_commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/client.h"
#include "fakes/clock.h"
#include "fakes/cluster.h"
#include "fakes/upstream.h"
#include "worker/client/listening_pace.h"
#include "worker/upstream/pool.h"

enum { NAMES = 3000, NAME_SIZE = 8, TICK_MS = 500, SHARE = 2 * NAMES_AT_ONCE };

#define MESSAGE "*3\r\n$7\r\nmessage\r\n$5\r\nc2999\r\n$1\r\nx\r\n"
#define REFUSED "-NOPERM no\r\n"

static struct fake_clients fake;
static struct redis_cluster cluster;
static struct client *client;
static char texts[NAMES][NAME_SIZE];
static struct span names[NAMES];

static int open_client(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(texts[i], NAME_SIZE, "c%zu", i);
        names[i] = span_of(texts[i]);
    }
    fake_clients_init(&fake, "", NULL, NULL);
    struct serving *serving = fake.serving.serving;
    pool_close_idle(serving->pool); /* it led to one server */
    fake_cluster_init(&cluster);
    serving->route->cluster = &cluster;
    pool_follow(serving->pool);
    serving->turn.work = 1; /* one visit in each turn */
    client = client_add(&fake);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    client_close(client);
    turn_run(&fake.serving.serving->turn, TURN_WRITE);
    turn_empty_line(&fake.serving.serving->turn);
    fake_clients_finish(&fake);
    fake_cluster_finish(&cluster);
    return 0;
}

static void begin(size_t count)
{
    listening_begin(client, PUBSUB_CHANNEL, &(struct listening_words){names, count, NULL});
}

static void end(size_t count)
{
    listening_end(client, PUBSUB_CHANNEL, &(struct listening_words){names, count, NULL});
}

/* All are heard at one node. NULL: not yet. */
static struct upstream *post(void)
{
    return client->pinned.hears;
}

static size_t asked(void)
{
    return post() ? post()->count : 0;
}

/* A node says the same to each; it is asked in order. */
static void write_confirmation(struct buffer *out, bool ends, size_t number, size_t count)
{
    buffer_printf(out, "*3\r\n");
    resp_write_bulk(out, pubsub_word(PUBSUB_CHANNEL, ends), ends ? 11 : 9);
    resp_write_bulk(out, texts[number], strlen(texts[number]));
    resp_write_integer(out, (int64_t)count);
}

static void node_confirms(bool ends, size_t number)
{
    struct buffer reply = {0};
    write_confirmation(&reply, ends, number, 1);
    buffer_append(&reply, "", 1);
    buffer_clear(&post()->out); /* it has got what it answers */
    cache_says(post(), buffer_span(&reply).at);
    buffer_finish(&reply);
}

/* What it was asked so far; returns how many names have been confirmed by then. */
static size_t node_confirms_asked(bool ends, size_t first)
{
    for (; asked(); first++)
        node_confirms(ends, first);
    return first;
}

/* Until the command is done. */
static void serve_all(bool ends, size_t first)
{
    do {
        turn_loop(&fake.serving);
        first = node_confirms_asked(ends, first);
    } while (client->replies.first);
    buffer_clear(&post()->out);
}

static void must_confirm(bool ends, const char *before)
{
    struct buffer wanted = {0};
    buffer_append(&wanted, before, strlen(before));
    for (size_t i = 0; i < NAMES; i++)
        write_confirmation(&wanted, ends, i, ends ? NAMES - 1 - i : i + 1);
    buffer_append(&wanted, "", 1);
    must_reply(client, buffer_span(&wanted).at);
    buffer_finish(&wanted);
}

static void subscribe_all(void)
{
    begin(NAMES);
    serve_all(false, 0);
    must_confirm(false, "");
}

static void a_turn_asks_for_few_names_and_no_more_than_are_answered(void **state)
{
    (void)state;
    begin(NAMES);
    size_t before = asked(), turns = 0;
    assert_in_range(before, 0, SHARE);
    for (; asked() < MOST_ASKED; turns++) {
        turn_loop(&fake.serving);
        assert_in_range(asked() - before, 0, SHARE);
        before = asked();
    }
    assert_in_range(turns, MOST_ASKED / SHARE, NAMES);
    for (int i = 0; i < 10; i++)
        turn_loop(&fake.serving);
    assert_in_range(asked(), 0, MOST_ASKED + SHARE);
    assert_int_equal(buffer_length(&client->replies.out), 0);
    serve_all(false, 0);
    must_confirm(false, "");
}

static void confirmations_have_their_order_and_counts(void **state)
{
    (void)state;
    for (size_t named = 0; named <= NAMES; named += NAMES) {
        subscribe_all();
        assert_int_equal(client->pinned.channels, NAMES);
        end(named);
        assert_in_range(asked(), 0, SHARE);
        serve_all(true, 0);
        must_confirm(true, "");
        assert_int_equal(client->pinned.channels, 0);
    }
}

static void of_names_of_which_one_is_refused_none_is_left(void **state)
{
    (void)state;
    begin(NAMES);
    while (asked() < MOST_ASKED)
        turn_loop(&fake.serving);
    for (size_t i = 0; i < 100; i++)
        node_confirms(false, i);
    cache_says(post(), REFUSED);
    node_confirms_asked(false, 101);
    for (; client->replies.first; turn_loop(&fake.serving))
        while (client->pinned.listening->asked) /* to end what has begun */
            post()->options.owner->takes(client, post(), span_of("-ERR whatever\r\n"));
    must_reply(client, REFUSED);
    assert_int_equal(client->pinned.channels, 0);
    assert_int_equal(client->state, CLIENT_OPEN);
}

/* It is of a name that the node has not been asked to end yet. */
static void a_message_between_pieces_comes_before_the_end_of_its_name(void **state)
{
    (void)state;
    subscribe_all();
    end(0);
    turn_loop(&fake.serving);
    size_t first = node_confirms_asked(true, 0);
    assert_in_range(first, 1, NAMES - 1);
    assert_true(post()->options.owner->takes(client, post(), span_of(MESSAGE)));
    serve_all(true, first);
    must_confirm(true, MESSAGE);
}

/* Told, without a slot: what is sent counts. */
static size_t sent_since(size_t *before)
{
    size_t length = post() ? buffer_length(&post()->out) : 0, sent = length - *before;
    *before = length;
    return sent;
}

static void what_is_lost_is_asked_for_again_in_pieces(void **state)
{
    enum { MOST = 2 * SHARE * (sizeof "*2\r\n$9\r\nsubscribe\r\n$5\r\nc2999\r\n") };
    size_t length = 0, answered = 0;
    (void)state;
    subscribe_all();
    cache_is_lost(post());
    now_ms += TICK_MS;
    listening_check(client, now_ms);
    for (bool grows = true; answered < NAMES; grows = turn_has_line(&fake.serving.serving->turn)) {
        assert_in_range(sent_since(&length), 0, MOST);
        if (grows) {
            turn_loop(&fake.serving);
            continue;
        }
        for (size_t i = 0; i < MOST_ASKED && answered < NAMES; i++, answered++) {
            struct buffer reply = {0};
            write_confirmation(&reply, false, answered, 1);
            post()->options.owner->takes(client, post(), buffer_span(&reply));
            buffer_finish(&reply);
        }
    }
    const struct upstream *before = post();
    now_ms += TICK_MS;
    listening_check(client, now_ms);
    turn_empty_line(&fake.serving.serving->turn);
    assert_ptr_equal(post(), before);
    assert_int_equal(client->pinned.channels, NAMES);
    assert_int_equal(client->state, CLIENT_OPEN);
}

/* The memory of some outlives it; of what is under way nothing more is asked. */
static void a_client_goes_in_pieces_whatever_is_under_way(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        client = client_add(&fake);
        begin(NAMES);
        if (round > 1)
            serve_all(false, 0);
        for (int turn = 0; turn < round % 2 * 5; turn++)
            turn_loop(&fake.serving);
        if (round == 3) {
            cache_is_lost(post());
            now_ms += TICK_MS;
            listening_check(client, now_ms);
        }
        client_close(client);
        turn_run(&fake.serving.serving->turn, TURN_WRITE);
        assert_null(client->pinned.listening);
        assert_true(turn_has_line(&fake.serving.serving->turn) == (round > 1));
        turn_empty_line(&fake.serving.serving->turn);
    }
}

int main(void)
{
#define PIECES_TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        PIECES_TEST(a_turn_asks_for_few_names_and_no_more_than_are_answered),
        PIECES_TEST(confirmations_have_their_order_and_counts),
        PIECES_TEST(of_names_of_which_one_is_refused_none_is_left),
        PIECES_TEST(a_message_between_pieces_comes_before_the_end_of_its_name),
        PIECES_TEST(what_is_lost_is_asked_for_again_in_pieces),
        PIECES_TEST(a_client_goes_in_pieces_whatever_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
