/* A connection to the cache, whose other end the test holds: in which order requests go and replies
 * come, and that a lost connection fails what was under way, once. */
#include "upstream_bench.h"

#include "fakes/allocator.h"
#include "fakes/log.h"

/* ---- requests and replies ---- */

static void replies_go_to_requests_in_order(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    ask(upstream, 2);
    must_arrive("1\r\n2\r\n");
    ask(upstream, 3);
    must_arrive("3\r\n");
    say(cache, ":10\r\n:20\r\n:3");
    must_come("1::10|2::20|");
    say(cache, "0\r\n");
    must_come("3::30|");
}

/* ---- a large reply ---- */

enum { LARGE_REPLY = 8 * 1024 * 1024, ONE_READ = 64 * 1024 };

static size_t passed;

static void take_part(struct reply_slot *slot, struct span bytes)
{
    (void)slot;
    passed += bytes.length;
}

static void take_rest(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    take_part(slot, reply);
}

static const struct reply_slot_kind streamed = {
    .on_cache = take_rest, .on_part = take_part, .on_cache_failure = take_failure};

/* As much as the kernel has room for. */
static size_t send_zeroes(size_t most)
{
    static const char zeroes[ONE_READ];
    size_t sent = 0;
    ssize_t count;
    do {
        size_t left = most - sent;
        count = send(cache, zeroes, left < ONE_READ ? left : ONE_READ, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += count > 0 ? (size_t)count : 0;
    } while (count > 0 && sent < most);
    return sent;
}

/* Else whoever waits behind it would wait for one turn more with each 64 KiB, and turns are long
 * when others keep the worker busy. */
static void of_a_large_reply_a_turn_takes_more_than_one_read(void **state)
{
    struct upstream *upstream = begin(&shared);
    const char header[] = "$8388608\r\n";
    size_t sent = 0, turns = 0;
    (void)state;
    greet_it();
    passed = 0;
    struct reply_slot *slot = reply_slot_open(&replies, &streamed);
    upstream_send(upstream, slot, 1, span_of("1\r\n"));
    reply_slot_answered(slot);
    must_arrive("1\r\n");
    say(cache, header);
    while (sent < LARGE_REPLY) {
        sent += send_zeroes(LARGE_REPLY - sent);
        uv_run(&serving->loop, UV_RUN_NOWAIT);
        turns++;
    }
    say(cache, "\r\n");
    for (size_t whole = sizeof header - 1 + LARGE_REPLY + 2; passed < whole;)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_in_range(turns, 1, LARGE_REPLY / ONE_READ / 2);
}

/* More as it is found that they are not large. */
static void over_one_for_large_replies_few_commands_are_sent_ahead(void **state)
{
    static const struct upstream_options large = {.large = true};
    struct upstream *upstream = begin(&large);
    (void)state;
    is_shared = true;
    greet_it();
    for (int i = 0; i < 50; i++) {
        assert_false(upstream_is_congested(upstream));
        ask(upstream, 1);
        must_arrive("1\r\n");
        say(cache, ":10\r\n");
        must_come("1::10|");
    }
    assert_in_range(upstream_window(upstream), 100, 256);
    for (size_t left = upstream_window(upstream); left; left--) {
        assert_false(upstream_is_congested(upstream));
        ask(upstream, 1);
    }
    assert_true(upstream_is_congested(upstream));
}

/* Behind a refused SELECT they would run in the wrong database. */
static void requests_wait_for_the_greeting(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT LIMITS);
    must_not_arrive();
    say(cache, OK PRIMARY);
    must_not_arrive(); /* nor before it knows how much the cache takes */
    say(cache, NO_LIMITS);
    must_arrive("1\r\n");
    say(cache, ":10\r\n");
    must_come("1::10|");
}

static void a_refused_greeting_fails_what_waited_for_it(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, "-NOAUTH no\r\n");
    must_come("1 failed " DOWN "|");
    ask(upstream, 2); /* there is no connection: it does not wait for the next attempt */
    assert_string_equal(heard, "");
    must_come("2 failed " DOWN "|");
}

static void a_server_that_is_no_primary_is_as_good_as_none(void **state)
{
    static const char *const others[] = {REPLICA, "*2\r\n$8\r\nsentinel\r\n*0\r\n"};
    struct upstream *upstream = begin(&shared);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ask(upstream, 1);
        accept_it();
        must_arrive(SELECT LIMITS);
        say(cache, OK);
        say(cache, others[i]);
        must_come("1 failed " DOWN "|");
        assert_int_equal(counter_read(&serving->counters.shared_connections), 0);
    }
}

/* Whoever may not ask for it may still use it. */
static void a_server_that_does_not_tell_its_role_is_believed(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, OK "-NOPERM no\r\n" NO_LIMITS);
    must_arrive("1\r\n");
}

static void a_write_that_a_replica_refuses_has_the_server_asked(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    say(cache, "-READONLY by a script\r\n");
    must_come("1:-READONLY by a script|");
    must_arrive(ROLE);
    say(cache, PRIMARY);
    ask(upstream, 2);
    must_arrive("2\r\n");
    say(cache, "-READONLY by the server\r\n");
    must_come("2:-READONLY by the server|");
    must_arrive(ROLE);
    ask(upstream, 3);
    must_arrive("3\r\n");
    say(cache, REPLICA);
    must_come("3 failed " DOWN "|");
    assert_int_equal(serving->route->demotions, 1);
}

/* Its requests are not run before SELECT was: the database would be another. */
static void a_busy_cache_is_greeted_again_and_answers_in_its_own_words(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, "-BUSY a script\r\n-BUSY a script\r\n" NOT_SAID NOT_SAID
               "-BUSY a script\r\n-BUSY a script\r\n");
    must_come("1 failed BUSY a script|");
    must_arrive(SELECT LIMITS);
    ask(upstream, 2);
    must_come("2 failed BUSY a script|");
    say(cache, WELCOME);
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (!is_up() && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    ask(upstream, 3);
    must_arrive("3\r\n");
}

static void a_busy_cache_answers_only_what_ends_its_script(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    upstream_set_urgent(upstream);
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT CLIENT_ID);
    say(cache, "-BUSY a script\r\n-BUSY a script\r\n-BUSY a script\r\n-BUSY a script\r\n");
    must_arrive("1\r\n");
    say(cache, "+OK\r\n");
    must_come("1:+OK|");
}

static void a_lost_connection_fails_each_request_once_and_comes_back(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    ask(upstream, 2);
    must_arrive("1\r\n2\r\n");
    say(cache, ":10\r\n$100\r\nab"); /* what comes on the next connection is no part of it */
    must_come("1::10|");
    vanish(cache);
    must_come("2 failed " DOWN "|");
    assert_int_equal(counter_read(&serving->counters.shared_connections), 0);
    greet_it(); /* after a while */
    ask(upstream, 3);
    must_arrive("3\r\n");
    say(cache, ":30\r\n");
    must_come("3::30|");
    assert_int_equal(counter_read(&serving->counters.upstream_failures), 1);
}

/* Bytes that belong to no request: which reply would be whose? */
static void a_connection_out_of_step_is_given_up(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    say(cache, ":10\r\n:11\r\n");
    must_come("1::10|");
    turn_until_readable(cache); /* its end */
    char byte;
    assert_true(recv(cache, &byte, 1, MSG_DONTWAIT) <= 0);
}

static void what_is_no_reply_gives_the_connection_up(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    say(cache, "HTTP/1.1 400\r\n");
    must_come("1 failed " DOWN "|");
}

static void a_cache_that_falls_silent_is_given_up(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    upstream_check_progress(upstream);
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (!heard[0] && uv_hrtime() < until) {
        uv_run(&serving->loop, UV_RUN_NOWAIT);
        upstream_check_progress(upstream);
    }
    assert_string_equal(heard, "1 failed " DOWN "|");
}

static void a_request_may_take_as_long_as_it_likes(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    greet_it();
    ask(upstream, 1);
    upstream_be_patient(upstream, true);
    assert_true(upstream_is_waiting(upstream));
    must_arrive("1\r\n");
    for (uint64_t until = uv_hrtime() + UINT64_C(1000000) * 300; uv_hrtime() < until;) {
        uv_run(&serving->loop, UV_RUN_NOWAIT); /* longer than cache_timeout */
        upstream_check_progress(upstream);
    }
    assert_string_equal(heard, "");
    say(cache, ":10\r\n");
    must_come("1::10|");
    assert_false(upstream_is_waiting(upstream));
}

/* Whichever part of it finds no memory to be read into: what was asked fails, and what comes later
 * is no part of another's reply. */
static void a_reply_that_finds_no_memory_fails_its_request(void **state)
{
    enum { LARGE = 60000, VALUE = 200000 };
    static char reply[VALUE + 20];
    unsigned nth = 1;
    (void)state;
    int head = snprintf(reply, sizeof reply, "*1\r\n$%d\r\n", VALUE);
    memset(reply + head, 'v', VALUE);
    memcpy(reply + head + VALUE, "\r\n", 3);
    for (;; nth++) {
        struct upstream *upstream = begin(&shared);
        greet_it();
        ask(upstream, 1);
        must_arrive("1\r\n");
        allocator_fail(LARGE, nth);
        uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
        size_t sent = 0;
        while (!heard[0] && uv_hrtime() < until) {
            ssize_t count = sent < strlen(reply) ? send(cache, reply + sent, strlen(reply) - sent,
                                                        MSG_DONTWAIT | MSG_NOSIGNAL)
                                                 : 0;
            sent += count > 0 ? (size_t)count : 0;
            uv_run(&serving->loop, UV_RUN_NOWAIT);
        }
        allocator_fail(LARGE, 0);
        if (!allocator_failed())
            break;
        assert_string_equal(heard, "1 failed " DOWN "|");
        heard[0] = '\0';
        end();
        close(cache);
    }
    assert_true(nth > 1);
    assert_non_null(strstr(heard, "vvv"));
}

static void closing_fails_what_is_under_way(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    end();
    assert_string_equal(heard, ""); /* whoever closes it is in the middle of something */
    must_come("1 failed " DOWN "|");
}

static void it_can_be_closed_while_it_connects(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    end();
    must_come("1 failed " DOWN "|");
}

/* ---- an owner's ---- */

static void nothing_is_written_while_it_is_held(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    upstream_hold(upstream, true);
    greet_it();
    ask(upstream, 1);
    must_not_arrive();
    upstream_hold(upstream, false);
    must_arrive("1\r\n");
    say(cache, ":10\r\n");
    must_come("1::10|");
}

static void what_the_owner_takes_answers_no_request(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    greet_it();
    ask(upstream, 1);
    must_arrive("1\r\n");
    say(cache, "*0\r\n:10\r\n*0\r\n");
    must_come("owner *0\r\n|1::10|owner *0\r\n|");
}

static void the_owner_hears_of_the_loss_after_its_requests(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    greet_it();
    ask(upstream, 1);
    ask(upstream, 2);
    must_arrive("1\r\n2\r\n");
    vanish(cache);
    cache = -1;
    must_come("1 failed " DOWN "|2 failed " DOWN "|lost|");
    upstream_append(upstream, span_of("more of nothing"));
    end();
    must_come(""); /* it is told once */
}

/* One over which nothing is asked, and of which no request tells that it is dead. */
static bool may_ping(const struct client *client, const struct upstream *upstream)
{
    (void)client;
    (void)upstream;
    return true;
}

static const struct upstream_owner hearer = {.takes = takes, .lost = lost, .may_ping = may_ping};
static const struct upstream_options hearing = {.owner = &hearer};

static void watch_until_readable(struct upstream *upstream)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    char byte;
    while (recv(cache, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && uv_hrtime() < until) {
        uv_run(&serving->loop, UV_RUN_NOWAIT);
        upstream_check_progress(upstream);
    }
}

static void who_only_hears_knows_whether_anybody_is_there(void **state)
{
    static const char *const answers[] = {"*2\r\n$4\r\npong\r\n$0\r\n\r\n*3\r\n:1\r\n:2\r\n:3\r\n",
                                          "*3\r\n:1\r\n:2\r\n:3\r\n+PONG\r\n"};
    struct upstream *upstream = begin(&hearing);
    (void)state;
    greet_it();
    for (size_t i = 0; i < 2; i++) {
        watch_until_readable(upstream);
        must_arrive("*1\r\n$4\r\nPING\r\n");
        say(cache, answers[i]);
        must_come("owner *3\r\n:1\r\n:2\r\n:3\r\n|");
    }
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (!heard[0] && uv_hrtime() < until) {
        uv_run(&serving->loop, UV_RUN_NOWAIT);
        upstream_check_progress(upstream);
    }
    assert_string_equal(heard, "lost|");
}

static void bytes_are_relayed_once_the_replies_before_are_there(void **state)
{
    struct upstream *upstream = begin(&owned);
    (void)state;
    greet_it();
    ask(upstream, 1);
    upstream_relay(upstream, span_of("raw"));
    must_arrive("1\r\nraw");
    say(cache, ":10\r\nr\xff");
    must_come("1::10|owner r\xff|");
}

int main(void)
{
#define UPSTREAM_TEST(name) cmocka_unit_test_setup_teardown(name, open_serving, close_serving)
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(replies_go_to_requests_in_order),
        UPSTREAM_TEST(of_a_large_reply_a_turn_takes_more_than_one_read),
        UPSTREAM_TEST(over_one_for_large_replies_few_commands_are_sent_ahead),
        UPSTREAM_TEST(requests_wait_for_the_greeting),
        UPSTREAM_TEST(a_refused_greeting_fails_what_waited_for_it),
        UPSTREAM_TEST(a_server_that_is_no_primary_is_as_good_as_none),
        UPSTREAM_TEST(a_server_that_does_not_tell_its_role_is_believed),
        UPSTREAM_TEST(a_write_that_a_replica_refuses_has_the_server_asked),
        UPSTREAM_TEST(a_busy_cache_is_greeted_again_and_answers_in_its_own_words),
        UPSTREAM_TEST(a_busy_cache_answers_only_what_ends_its_script),
        UPSTREAM_TEST(a_lost_connection_fails_each_request_once_and_comes_back),
        UPSTREAM_TEST(a_connection_out_of_step_is_given_up),
        UPSTREAM_TEST(what_is_no_reply_gives_the_connection_up),
        UPSTREAM_TEST(a_cache_that_falls_silent_is_given_up),
        UPSTREAM_TEST(a_request_may_take_as_long_as_it_likes),
        UPSTREAM_TEST(a_reply_that_finds_no_memory_fails_its_request),
        UPSTREAM_TEST(closing_fails_what_is_under_way),
        UPSTREAM_TEST(it_can_be_closed_while_it_connects),
        UPSTREAM_TEST(nothing_is_written_while_it_is_held),
        UPSTREAM_TEST(what_the_owner_takes_answers_no_request),
        UPSTREAM_TEST(the_owner_hears_of_the_loss_after_its_requests),
        UPSTREAM_TEST(who_only_hears_knows_whether_anybody_is_there),
        UPSTREAM_TEST(bytes_are_relayed_once_the_replies_before_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
