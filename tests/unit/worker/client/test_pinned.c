/* A client's own connection to the cache: how it comes to one and gives it back, and what the cache
 * sends on it that answers no command. */
#include "worker/client/pinned.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/client.h"
#include "fakes/clock.h"
#include "fakes/upstream.h"

#define MESSAGE "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
#define PUSHED ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
#define CONFIRMED(mark, kind, name, count) mark "3\r\n" kind "\r\n$1\r\n" name "\r\n:" count "\r\n"
#define SUBSCRIBED(name, count) CONFIRMED("*", "$9\r\nsubscribe", name, count)
#define UNSUBSCRIBED(name, count) CONFIRMED("*", "$11\r\nunsubscribe", name, count)
#define PSUBSCRIBED(name, count) CONFIRMED("*", "$10\r\npsubscribe", name, count)
#define INVALIDATED ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"

static struct fake_clients clients;
static struct client *client;
static struct pinned *pinned;

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(reply_slot_output(slot), reply.at, reply.length);
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(reply_slot_output(slot), "%s", why);
}

static const struct reply_slot_kind plain = {.on_cache = take_reply,
                                             .on_cache_failure = take_failure};

/* One command goes where the client's commands go. */
static struct reply_slot *ask(void)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    upstream_send(client->upstream, slot, 0, span_of("?"));
    reply_slot_answered(slot);
    return slot;
}

static void begin(unsigned states)
{
    assert_int_equal(pinned_begin(client), 0);
    pinned->states |= states;
}

/* As SUBSCRIBE does, with so many names. */
static void subscribe(size_t names)
{
    begin(0);
    pinned->awaited = names;
    pinned->subscribing = ask();
}

static unsigned own_connections(void)
{
    return clients.clients.serving->own_connections;
}

static void open_with(const char *settings)
{
    now_ms = 1000;
    fake_clients_init(&clients, settings, NULL, NULL);
    client = client_add(&clients);
    pinned = &client->pinned;
}

static int open_client(void **state)
{
    (void)state;
    open_with("own_connections: 2\nmax_output: 1kb\n");
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    fake_clients_finish(&clients);
    return 0;
}

/* ---- there and back ---- */

static void a_client_gets_one_connection_of_its_own(void **state)
{
    struct upstream *shared = client->upstream;
    (void)state;
    client->self.name = xstrdup("me");
    client_speak(client, true);
    begin(PINNED_WATCH);
    assert_ptr_not_equal(pinned->own, shared);
    assert_ptr_equal(client->upstream, pinned->own);
    assert_true(pinned->own->options.resp3);
    assert_string_equal(pinned->own->options.name, "me");
    assert_ptr_equal(pinned->own->options.client, client);
    begin(PINNED_WATCH); /* the same */
    assert_ptr_equal(last_upstream, pinned->own);
    assert_int_equal(own_connections(), 1);
}

static void it_waits_until_all_that_was_sent_before_has_its_reply(void **state)
{
    struct upstream *shared = client->upstream;
    (void)state;
    ask();
    ask();
    begin(PINNED_MULTI);
    ask();
    assert_true(pinned->own->held);
    cache_says(shared, ":1\r\n");
    must_reply(client, ":1\r\n");
    assert_true(pinned->own->held);
    cache_says(shared, ":2\r\n");
    must_reply(client, ":2\r\n");
    assert_false(pinned->own->held);
    cache_says(pinned->own, ":3\r\n");
    must_reply(client, ":3\r\n");
}

static void it_waits_for_nothing_when_nothing_is_under_way(void **state)
{
    (void)state;
    begin(PINNED_MULTI);
    assert_false(pinned->own->held);
    assert_null(pinned->fence);
}

static void who_needs_none_any_more_gives_it_back_after_a_while(void **state)
{
    struct upstream *shared = client->upstream;
    (void)state;
    begin(PINNED_WATCH);
    struct upstream *own = pinned->own;
    now_ms += 5000;
    pinned_check(client, now_ms); /* it is needed */
    assert_ptr_equal(pinned->own, own);
    pinned->states = PINNED_SKIP; /* holds none */
    begin(0);
    now_ms += 1000;
    pinned_check(client, now_ms); /* needed just now */
    assert_ptr_equal(pinned->own, own);
    now_ms++;
    pinned_check(client, now_ms);
    assert_null(pinned->own);
    assert_true(own->closed);
    assert_ptr_equal(client->upstream, shared);
    assert_int_equal(own_connections(), 0);
}

static void it_is_kept_while_a_reply_is_to_come_and_a_second_longer(void **state)
{
    (void)state;
    begin(0);
    ask();
    now_ms += 5000;
    pinned_check(client, now_ms);
    assert_non_null(pinned->own);
    cache_says(pinned->own, ":1\r\n");
    now_ms += 1000;
    pinned_check(client, now_ms);
    assert_non_null(pinned->own);
    now_ms++;
    pinned_check(client, now_ms);
    assert_null(pinned->own);
    must_reply(client, ":1\r\n");
}

static void when_all_are_used_up_an_idle_one_makes_room(void **state)
{
    struct client *other = client_add(&clients), *third = client_add(&clients);
    (void)state;
    begin(PINNED_MULTI);
    assert_int_equal(pinned_begin(other), 0); /* and needs it no more */
    assert_int_equal(pinned_begin(third), 0);
    assert_null(other->pinned.own);
    assert_non_null(pinned->own);
    assert_int_equal(own_connections(), 2);
    third->pinned.states = PINNED_WATCH;
    assert_int_equal(pinned_begin(other), -EBUSY);
    must_reply(other, "-NESTGUARD busy: own_connections are used up\r\n");
    assert_int_equal(own_connections(), 2);
}

static void no_idle_one_is_looked_for_before_there_is_one(void **state)
{
    struct client *other = client_add(&clients), *third = client_add(&clients);
    (void)state;
    begin(PINNED_MULTI);
    assert_int_equal(pinned_begin(other), 0);
    other->pinned.states = PINNED_WATCH;
    assert_false(pinned_make_room(third, 1));
    other->pinned.states = 0;
    assert_false(pinned_make_room(third, 1));
    clients.clients.serving->turn.number++;
    assert_false(pinned_make_room(third, 1));
    pinned_flush(other);
    assert_true(pinned_make_room(third, 1));
}

/* As strangers.c holds one back, which the cache has answered. */
static struct reply_slot *hold_refusal_of(struct client *guesser)
{
    struct reply_slot *slot = reply_slot_open(&guesser->replies, &plain);
    guesser->acquaintance.refused = slot;
    return slot;
}

static void a_refusal_that_is_held_back_holds_no_connection(void **state)
{
    struct client *guesser = client_add(&clients), *third = client_add(&clients);
    (void)state;
    begin(PINNED_MULTI);
    assert_int_equal(pinned_begin_login(guesser), 0);
    struct reply_slot *slot = hold_refusal_of(guesser);
    assert_int_equal(pinned_begin(third), 0);
    assert_null(guesser->pinned.own);
    assert_int_equal(clients.clients.logins, 0);
    reply_slot_answered(slot);
}

static void half_of_the_connections_are_left_by_strangers(void **state)
{
    struct client *first = client_add(&clients), *second = client_add(&clients);
    (void)state;
    assert_int_equal(pinned_begin_login(first), 0);
    first->replies.first = reply_slot_open(&first->replies, &plain); /* the cache is to answer */
    assert_int_equal(pinned_begin_login(second), -EBUSY);
    must_reply(second, "-NESTGUARD busy: own_connections are used up\r\n");
    begin(PINNED_MULTI);
    assert_int_equal(own_connections(), 2);
    reply_slot_answered(first->replies.first);
    must_reply(first, "");
    assert_int_equal(pinned_begin_login(second), 0); /* in the first one's place */
    assert_null(first->pinned.own);
    assert_int_equal(clients.clients.logins, 1);
    assert_int_equal(pinned_begin_login(second), 0);
    assert_int_equal(clients.clients.logins, 1);
    assert_int_equal(pinned_begin(second), 0); /* for something else */
    assert_int_equal(clients.clients.logins, 0);
}

static void a_slow_one_gets_its_own_but_not_behind_a_multi_that_has_no_node(void **state)
{
    (void)state;
    client->replies.slow = true;
    pinned->states = PINNED_MULTI; /* in a cluster: it is not sent yet */
    pinned_check(client, now_ms);
    assert_null(pinned->own);
    pinned->states = 0;
    pinned_check(client, now_ms);
    assert_non_null(pinned->own);
}

/* The rest of them would wait for a reply that waits for them. */
static void a_slow_one_gets_its_own_but_not_while_it_is_asked_for_in_pieces(void **state)
{
    (void)state;
    struct upstream *shared = client->upstream;
    ask();
    client_settle(client);
    client->replies.slow = true;
    pinned_check(client, now_ms);
    assert_null(pinned->own);
    cache_says(shared, ":1\r\n");
    must_reply(client, ":1\r\n");
    pinned_check(client, now_ms);
    assert_non_null(pinned->own);
}

static void a_slow_one_is_like_others_again_when_it_has_read_all(void **state)
{
    (void)state;
    client->replies.slow = true;
    pinned_check(client, now_ms);
    assert_non_null(pinned->own);
    ask();
    pinned_check(client, now_ms += 2000);
    cache_says(pinned->own, ":1\r\n");
    pinned_check(client, now_ms += 2000);
    assert_non_null(pinned->own); /* there is something to read */
    must_reply(client, ":1\r\n");
    pinned_check(client, now_ms += 500);
    assert_non_null(pinned->own);
    assert_true(client->replies.slow);
    pinned_check(client, now_ms += 2000);
    assert_null(pinned->own);
    assert_false(client->replies.slow);
}

static void a_slow_one_that_has_asked_for_nothing_moves_on_to_another_cache(void **state)
{
    (void)state;
    struct cache_route elsewhere = *client->serving->route;
    client->replies.slow = true;
    pinned_check(client, now_ms);
    client->serving->route = &elsewhere;
    pinned_follow(client, false);
    assert_null(pinned->own);
}

static void reset_leaves_a_client_as_it_came(void **state)
{
    (void)state;
    struct upstream *shared = client->upstream;
    client->self.name = xstrdup("me");
    client->replies.muted = client->replies.no_fallback = true;
    client_speak(client, true);
    begin(PINNED_MULTI | PINNED_SUBSCRIBED | PINNED_USER);
    pinned->channels = 3;
    pinned_reset(client);
    assert_null(client->self.name);
    assert_int_equal(pinned->states, 0);
    assert_int_equal(pinned->channels, 0);
    assert_false(client->replies.muted || client->replies.no_fallback || client->replies.resp3);
    assert_ptr_equal(client->upstream, shared);
    assert_int_equal(own_connections(), 0);
}

/* ---- whether anybody is there ---- */

static bool may_ping(void)
{
    return pinned->own->options.owner->may_ping(client, pinned->own);
}

static void who_waits_for_what_comes_may_be_pinged(void **state)
{
    (void)state;
    begin(PINNED_WATCH);
    assert_false(may_ping());
    begin(PINNED_TRACKING);
    assert_true(may_ping());
    begin(PINNED_MULTI);
    assert_false(may_ping());
}

/* Neither into a transaction whose EXEC is yet to be sent, nor where it would use up what was said
 * of the next command. */
static void a_ping_comes_between_nothing_that_belongs_together(void **state)
{
    (void)state;
    begin(PINNED_SUBSCRIBED);
    assert_true(may_ping());
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    assert_false(may_ping());
    resp_write_status(reply_slot_output(slot), "OK");
    reply_slot_answered(slot);
    must_reply(client, "+OK\r\n");
    assert_true(may_ping());
    pinned->caching = true;
    assert_false(may_ping());
}

/* ---- losing it ---- */

static void with_its_state_lost_a_client_goes(void **state)
{
    (void)state;
    begin(PINNED_WATCH);
    ask();
    cache_is_lost(pinned->own);
    assert_int_equal(client->state, CLIENT_LEAVING);
    must_reply(client, "-NESTGUARD cache down\r\n");
}

static void without_a_state_only_what_was_under_way_is_lost(void **state)
{
    struct upstream *shared = client->upstream;
    (void)state;
    ask();
    begin(0);
    ask();
    cache_is_lost(pinned->own); /* before it was its turn */
    assert_int_equal(client->state, CLIENT_OPEN);
    assert_ptr_equal(client->upstream, shared);
    assert_null(pinned->fence);
    cache_says(shared, ":1\r\n");
    must_reply(client, ":1\r\n-NESTGUARD cache down\r\n");
    assert_int_equal(own_connections(), 0);
}

static void a_client_that_goes_takes_it_along(void **state)
{
    (void)state;
    ask();
    begin(PINNED_SUBSCRIBED);
    struct upstream *own = pinned->own;
    client_close(client);
    must_reply(client, "");
    assert_true(own->closed);
    assert_int_equal(own_connections(), 0);
}

/* ---- what comes unasked ---- */

/* What came between two replies stands between the same two. */
static void a_message_keeps_its_place_between_replies(void **state)
{
    struct upstream *shared = client->upstream;
    (void)state;
    ask();
    begin(PINNED_SUBSCRIBED);
    cache_says(shared, ":0\r\n");
    must_reply(client, ":0\r\n");
    struct reply_slot *first = reply_slot_open(&client->replies, &plain); /* waits for the keeper */
    ask();
    ask();
    cache_says(pinned->own, ":1\r\n");
    cache_says(pinned->own, MESSAGE);
    cache_says(pinned->own, ":2\r\n");
    must_reply(client, "");
    reply_slot_answered(first);
    must_reply(client, ":1\r\n" MESSAGE ":2\r\n");
}

static void a_message_comes_at_once_when_nothing_is_under_way(void **state)
{
    (void)state;
    begin(PINNED_SUBSCRIBED);
    cache_says(pinned->own, MESSAGE);
    must_reply(client, MESSAGE);
}

/* The last confirmation is the command's reply. */
static void each_name_of_a_subscription_is_confirmed(void **state)
{
    (void)state;
    subscribe(2);
    cache_says(pinned->own, SUBSCRIBED("a", "1"));
    assert_int_equal(pinned->own->count, 1);
    assert_int_equal(pinned->states, PINNED_SUBSCRIBED);
    cache_says(pinned->own, SUBSCRIBED("b", "2"));
    assert_int_equal(pinned->own->count, 0);
    must_reply(client, SUBSCRIBED("a", "1") SUBSCRIBED("b", "2"));
    assert_int_equal(pinned->channels, 2);
    assert_int_equal(pinned_subscriptions(pinned, "UNSUBSCRIBE"), 2);
    assert_int_equal(pinned_subscriptions(pinned, "PUNSUBSCRIBE"), 0);
}

/* The number in a message is that of both together. */
static void channels_and_patterns_are_counted_apart(void **state)
{
    (void)state;
    subscribe(1);
    cache_says(pinned->own, SUBSCRIBED("a", "1"));
    subscribe(1);
    cache_says(pinned->own, PSUBSCRIBED("p", "2"));
    assert_int_equal(pinned->channels, 1);
    assert_int_equal(pinned->patterns, 1);
    subscribe(1);
    cache_says(pinned->own, UNSUBSCRIBED("a", "1"));
    assert_int_equal(pinned->channels, 0);
    assert_int_equal(pinned->states, PINNED_SUBSCRIBED);
    must_reply(client, SUBSCRIBED("a", "1") PSUBSCRIBED("p", "2") UNSUBSCRIBED("a", "1"));
}

static void a_message_does_not_answer_a_subscription(void **state)
{
    (void)state;
    subscribe(1);
    cache_says(pinned->own, SUBSCRIBED("a", "1"));
    subscribe(1);
    cache_says(pinned->own, MESSAGE);
    assert_int_equal(pinned->own->count, 1);
    cache_says(pinned->own, SUBSCRIBED("b", "2"));
    must_reply(client, SUBSCRIBED("a", "1") MESSAGE SUBSCRIBED("b", "2"));
}

static void a_refused_subscription_is_confirmed_no_further(void **state)
{
    (void)state;
    subscribe(3);
    cache_says(pinned->own, "-NOPERM no\r\n");
    must_reply(client, "-NOPERM no\r\n");
    assert_int_equal(pinned->awaited, 0);
    ask();
    cache_says(pinned->own, SUBSCRIBED("a", "1")); /* looks like one, and is a reply */
    must_reply(client, SUBSCRIBED("a", "1"));
    assert_int_equal(pinned->states, 0);
}

/* A reply may look like a message when the client has subscribed to nothing. */
static void without_a_subscription_an_array_is_a_reply(void **state)
{
    (void)state;
    begin(PINNED_WATCH);
    ask();
    cache_says(pinned->own, MESSAGE);
    assert_int_equal(pinned->own->count, 0);
    must_reply(client, MESSAGE);
}

static void in_resp3_only_a_push_is_a_message(void **state)
{
    (void)state;
    client_speak(client, true);
    begin(PINNED_SUBSCRIBED);
    ask();
    cache_says(pinned->own, PUSHED);
    assert_int_equal(pinned->own->count, 1);
    cache_says(pinned->own, INVALIDATED);
    cache_says(pinned->own, MESSAGE); /* what a command was answered */
    assert_int_equal(pinned->own->count, 0);
    must_reply(client, PUSHED INVALIDATED MESSAGE);
}

static void a_monitors_lines_are_no_replies(void **state)
{
    static const char line[] = "+1700000000.1 [0 1:1] \"PING\"\r\n";
    (void)state;
    begin(PINNED_MONITOR);
    ask();
    cache_says(pinned->own, line);
    assert_int_equal(pinned->own->count, 1);
    cache_says(pinned->own, "+OK\r\n");
    must_reply(client, "+1700000000.1 [0 1:1] \"PING\"\r\n+OK\r\n");
}

static void who_does_not_read_its_messages_is_dropped(void **state)
{
    (void)state;
    begin(PINNED_SUBSCRIBED);
    for (int i = 0; i < 40 && client->state == CLIENT_OPEN; i++)
        cache_says(pinned->own, MESSAGE);
    assert_int_equal(client->state, CLIENT_CLOSING);
    assert_int_equal(counter_read(&clients.clients.serving->counters.clients_dropped), 1);
    size_t waiting = replies_waiting(&client->replies);
    cache_says(pinned->own, MESSAGE); /* was already on its way */
    assert_int_equal(replies_waiting(&client->replies), waiting);
    buffer_clear(&client->replies.out);
}

static void a_slow_reader_makes_its_own_connection_wait(void **state)
{
    char *large = xcalloc(1, 1024 * 1024);
    (void)state;
    begin(PINNED_SUBSCRIBED);
    pinned_pace(client);
    assert_false(pinned->own->unread);
    buffer_append(&client->replies.out, large, 1024 * 1024);
    pinned_pace(client);
    assert_true(pinned->own->unread);
    buffer_clear(&client->replies.out);
    pinned_pace(client);
    assert_false(pinned->own->unread);
    free(large);
}

static void what_waits_behind_an_awaited_reply_keeps_none_from_being_read(void **state)
{
    char *large = xcalloc(1, 1024 * 1024);
    (void)state;
    begin(PINNED_SUBSCRIBED);
    ask();
    buffer_append(replies_ready(&client->replies), large, 1024 * 1024);
    pinned_pace(client);
    assert_false(pinned->own->unread);
    buffer_clear(&client->replies.last->reply);
    cache_says(pinned->own, ":1\r\n");
    must_reply(client, ":1\r\n");
    free(large);
}

/* ---- what may never come ---- */

static void a_client_that_only_listens_waits_for_ever(void **state)
{
    static const unsigned listening[] = {PINNED_SUBSCRIBED, PINNED_MONITOR, PINNED_RELAY,
                                         PINNED_UPLOAD};
    (void)state;
    assert_false(pinned_waits(client));
    begin(0);
    for (size_t i = 0; i < sizeof listening / sizeof *listening; i++) {
        pinned->states = listening[i];
        assert_true(pinned_waits(client));
    }
    pinned->states = PINNED_MULTI | PINNED_WATCH;
    assert_false(pinned_waits(client));
    ask();
    upstream_be_patient(pinned->own, true); /* BLPOP */
    assert_true(pinned_waits(client));
    pinned->states = 0;
    cache_says(pinned->own, ":1\r\n");
    must_reply(client, ":1\r\n");
}

static void of_a_relay_all_bytes_go_to_the_client(void **state)
{
    (void)state;
    begin(PINNED_RELAY);
    upstream_relay(pinned->own, span_of("a word"));
    must_send(pinned->own, "a word");
    cache_says(pinned->own, "+any others");
    must_reply(client, "+any others");
}

int main(void)
{
#define PINNED_TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        PINNED_TEST(a_client_gets_one_connection_of_its_own),
        PINNED_TEST(it_waits_until_all_that_was_sent_before_has_its_reply),
        PINNED_TEST(it_waits_for_nothing_when_nothing_is_under_way),
        PINNED_TEST(who_needs_none_any_more_gives_it_back_after_a_while),
        PINNED_TEST(it_is_kept_while_a_reply_is_to_come_and_a_second_longer),
        PINNED_TEST(when_all_are_used_up_an_idle_one_makes_room),
        PINNED_TEST(no_idle_one_is_looked_for_before_there_is_one),
        PINNED_TEST(a_refusal_that_is_held_back_holds_no_connection),
        PINNED_TEST(half_of_the_connections_are_left_by_strangers),
        PINNED_TEST(a_slow_one_gets_its_own_but_not_behind_a_multi_that_has_no_node),
        PINNED_TEST(a_slow_one_gets_its_own_but_not_while_it_is_asked_for_in_pieces),
        PINNED_TEST(a_slow_one_is_like_others_again_when_it_has_read_all),
        PINNED_TEST(a_slow_one_that_has_asked_for_nothing_moves_on_to_another_cache),
        PINNED_TEST(reset_leaves_a_client_as_it_came),
        PINNED_TEST(with_its_state_lost_a_client_goes),
        PINNED_TEST(without_a_state_only_what_was_under_way_is_lost),
        PINNED_TEST(a_client_that_goes_takes_it_along),
        PINNED_TEST(a_message_keeps_its_place_between_replies),
        PINNED_TEST(a_message_comes_at_once_when_nothing_is_under_way),
        PINNED_TEST(each_name_of_a_subscription_is_confirmed),
        PINNED_TEST(channels_and_patterns_are_counted_apart),
        PINNED_TEST(a_message_does_not_answer_a_subscription),
        PINNED_TEST(a_refused_subscription_is_confirmed_no_further),
        PINNED_TEST(without_a_subscription_an_array_is_a_reply),
        PINNED_TEST(in_resp3_only_a_push_is_a_message),
        PINNED_TEST(a_monitors_lines_are_no_replies),
        PINNED_TEST(who_does_not_read_its_messages_is_dropped),
        PINNED_TEST(a_slow_reader_makes_its_own_connection_wait),
        PINNED_TEST(what_waits_behind_an_awaited_reply_keeps_none_from_being_read),
        PINNED_TEST(a_client_that_only_listens_waits_for_ever),
        PINNED_TEST(of_a_relay_all_bytes_go_to_the_client),
        PINNED_TEST(who_waits_for_what_comes_may_be_pinged),
        PINNED_TEST(a_ping_comes_between_nothing_that_belongs_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
