/* A connection to the cache, whose other end the test holds: in which order requests go and replies
 * come, and that a lost connection fails what was under way, once. */
#include "worker/upstream/upstream.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/vouched.h"
#include "fakes/allocator.h"
#include "fakes/log.h"
#include "fakes/peer.h"
#include "fakes/serving.h"

#define ROLE "*1\r\n$4\r\nROLE\r\n"
#define SELECT "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n" ROLE
#define PRIMARY "*3\r\n$6\r\nmaster\r\n:3\r\n*0\r\n"
#define REPLICA "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$4\r\nsync\r\n:-1\r\n"
#define SERVER "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define LIMITS                                                                                     \
    SERVER "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$18\r\nproto-max-bulk-len\r\n"                      \
           "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxclients\r\n"
#define CLIENT_ID SERVER "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"
#define OK "+OK\r\n"
#define NOT_SAID "-NOPERM no\r\n"
#define NO_LIMITS NOT_SAID NOT_SAID NOT_SAID /* INFO and CONFIG are not for everybody */
#define WELCOME OK PRIMARY NO_LIMITS
#define DOWN "NESTGUARD cache down"

/* What came of the requests and for the owner, in order. */
static char heard[1000];
static struct fake_serving fake;
static struct serving *serving;
static struct replies replies;
static struct turn_task task;
static int listener, cache;
static struct upstream *under_test;
static bool is_shared;

static void hear(const char *what, struct span bytes)
{
    size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s%.*s|", what, (int)bytes.length, bytes.at);
}

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char what[20];
    (void)slot;
    snprintf(what, sizeof what, "%u:", index);
    hear(what, (struct span){reply.at, reply.length - 2});
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    char what[20];
    (void)slot;
    snprintf(what, sizeof what, "%u failed ", index);
    hear(what, span_of(why));
}

static const struct reply_slot_kind plain = {.on_cache = take_reply,
                                             .on_cache_failure = take_failure};

static bool takes(struct client *client, struct upstream *upstream, struct span frame)
{
    (void)client;
    (void)upstream;
    if (frame.at[0] != '*' && frame.at[0] != 'r')
        return false;
    hear("owner ", frame);
    return true;
}

static void lost(struct client *client, struct upstream *upstream)
{
    (void)client;
    (void)upstream;
    hear("lost", span_of(""));
}

static const struct upstream_owner owner = {.takes = takes, .lost = lost};
static const struct upstream_options shared = {.resp3 = false};
static const struct upstream_options owned = {.owner = &owner};

static struct upstream *begin(const struct upstream_options *options)
{
    is_shared = options == &shared;
    return under_test = upstream_create(serving, options);
}

static void end(void)
{
    if (under_test)
        upstream_close(under_test);
    under_test = NULL;
}

static void no_task(struct turn_task *task_)
{
    (void)task_;
}

/* Turns the loop until that has been heard. */
static void must_come(const char *wanted)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (strlen(heard) < strlen(wanted) && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_string_equal(heard, wanted);
    heard[0] = '\0';
}

/* Turns the loop until the other end can be read, or accepted. */
static void turn_until_readable(int fd)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    char byte;
    while (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
}

static void must_arrive(const char *bytes)
{
    char got[2000];
    size_t have = 0, wanted = strlen(bytes);
    while (have < wanted) {
        turn_until_readable(cache);
        ssize_t count = recv(cache, got + have, wanted - have, MSG_DONTWAIT);
        assert_true(count > 0);
        have += (size_t)count;
    }
    assert_memory_equal(got, bytes, wanted);
}

static void must_not_arrive(void)
{
    char byte;
    for (int i = 0; i < 20; i++)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(recv(cache, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
}

static void accept_it(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while ((cache = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0 && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(cache >= 0);
}

static bool is_up(void)
{
    const struct worker_counters *counters = &serving->counters;
    return counter_read(&counters->shared_connections) + counter_read(&counters->own_connections);
}

static void greet_it(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    accept_it();
    must_arrive(is_shared ? SELECT LIMITS : SELECT CLIENT_ID);
    say(cache, is_shared ? WELCOME : OK PRIMARY NOT_SAID ":7\r\n");
    while (!is_up() && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(is_up());
    assert_int_equal(upstream_cache_id(under_test), is_shared ? 0 : 7);
}

/* Request number `index`, whose bytes are its number. */
static void ask_as(struct upstream *upstream, unsigned index, const struct reply_slot_kind *kind)
{
    char bytes[20];
    struct reply_slot *slot = reply_slot_open(&replies, kind);
    snprintf(bytes, sizeof bytes, "%u\r\n", index);
    upstream_send(upstream, slot, index, span_of(bytes));
    reply_slot_answered(slot);
}

static void ask(struct upstream *upstream, unsigned index)
{
    ask_as(upstream, index, &plain);
}

static int open_serving(void **state)
{
    uint16_t port;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    listener = listen_somewhere(&port, SOCK_NONBLOCK);
    assert_int_equal(listen(listener, 10), 0);
    fake_serving_init(&fake, port, "cache_timeout: 200ms\n", NULL, NULL);
    serving = fake.serving;
    task = (struct turn_task){.run = no_task, .phase = TURN_WRITE};
    replies = (struct replies){.serving = serving, .task = &task};
    heard[0] = '\0';
    cache = -1;
    return 0;
}

static int close_serving(void **state)
{
    (void)state;
    end();
    replies_abandon(&replies);
    buffer_finish(&replies.out);
    fake_serving_finish(&fake); /* an upstream that is closed leaves nothing in the loop */
    close(listener);
    if (cache >= 0)
        close(cache);
    return 0;
}

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
    say(cache,
        "-BUSY a script\r\n-BUSY a script\r\n" NOT_SAID "-BUSY a script\r\n-BUSY a script\r\n");
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

/* ---- a server that may have forgotten what was deleted ---- */

static void take_row(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    (void)lookup;
    (void)outcome;
    (void)value;
}

static const struct reply_slot_kind of_rows = {
    .on_cache = take_reply, .on_cache_failure = take_failure, .on_loaded = take_row};

/* The same as ask(), of a row. */
static void look_up(struct upstream *upstream, unsigned index)
{
    char bytes[20];
    struct reply_slot *slot = reply_slot_open(&replies, &of_rows);
    reply_slot_set_lookup(slot, span_of("item:1"), ITEMS);
    snprintf(bytes, sizeof bytes, "%u\r\n", index);
    upstream_send(upstream, slot, index, span_of(bytes));
    reply_slot_answered(slot);
}

/* What the cache alone can tell of a row's key. */
static const struct reply_slot_kind of_row = {
    .on_cache = take_reply, .on_cache_failure = take_failure, .reads_row = true};

#define DOUBTED                                                                                    \
    " failed NESTGUARD cache started anew: what it may have forgotten to delete is being "         \
    "deleted, try again|"
#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define SAID "$73\r\n# Server\r\nredis_mode:a\r\nrun_id:" RUN_ID "\r\n\r\n"
#define DOUBTFUL OK PRIMARY SAID NOT_SAID NOT_SAID

static struct vouched *doubt_all(void)
{
    serving->vouched = vouched_create();
    vouched_settle(serving->vouched);
    return serving->vouched;
}

static void trust_all(struct vouched *vouched)
{
    serving->vouched = NULL;
    vouched_destroy(vouched);
}

static void a_server_that_nobody_vouches_for_is_not_asked_for_rows(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    ask(upstream, 1);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    must_arrive("1\r\n");
    assert_true(upstream_is_doubted(upstream));
    look_up(upstream, 2);
    ask(upstream, 3);
    ask_as(upstream, 4, &of_row);
    must_come("2" DOUBTED "4" DOUBTED);
    must_arrive("3\r\n");
    vouched_set(vouched, &upstream, RUN_ID);
    upstream_check_progress(upstream);
    assert_false(upstream_is_doubted(upstream));
    look_up(upstream, 5);
    ask_as(upstream, 6, &of_row);
    must_arrive("5\r\n6\r\n");
    trust_all(vouched);
}

/* They were sent before anybody knew which server it would be. */
static void lookups_that_waited_for_such_a_server_fail(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    look_up(upstream, 1);
    ask(upstream, 2);
    ask_as(upstream, 3, &of_row);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    must_come("1" DOUBTED "3" DOUBTED);
    must_arrive("1\r\n2\r\n3\r\n");
    say(cache, ":10\r\n:20\r\n:30\r\n");
    must_come("2::20|");
    ask(upstream, 4);
    must_arrive("4\r\n");
    say(cache, ":40\r\n");
    must_come("4::40|");
    trust_all(vouched);
}

static const struct reply_slot_kind of_each = {.on_cache = take_reply,
                                               .on_cache_failure = take_failure,
                                               .on_loaded = take_row,
                                               .asks_each = true};

static void a_key_of_no_row_is_asked_for_beside_one_of_a_row(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    const struct span keys[] = {span_of("item:1"), span_of("plain")};
    (void)state;
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    while (!is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    struct reply_slot *slot = reply_slot_open(&replies, &of_each);
    reply_slot_set_lookups(slot, keys, 2);
    slot->lookups[0].keyspace = ITEMS;
    slot->asks_for_rows = true;
    upstream_send(upstream, slot, 0, span_of("0\r\n"));
    upstream_send(upstream, slot, 1, span_of("1\r\n"));
    reply_slot_answered(slot);
    must_come("0" DOUBTED);
    must_arrive("1\r\n");
    say(cache, ":10\r\n");
    must_come("1::10|");
    trust_all(vouched);
}

/* What was sent before is answered. */
static void a_server_may_be_doubted_while_it_is_connected_to(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    vouched_set(vouched, &upstream, RUN_ID);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    while (!is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    look_up(upstream, 1);
    must_arrive("1\r\n");
    vouched_set(vouched, &upstream, NULL);
    upstream_check_progress(upstream);
    assert_true(upstream_is_doubted(upstream));
    look_up(upstream, 2);
    must_come("2" DOUBTED);
    say(cache, ":10\r\n");
    must_come("1::10|");
    vouched_set(vouched, &upstream, RUN_ID);
    upstream_check_progress(upstream);
    assert_false(upstream_is_doubted(upstream));
    trust_all(vouched);
}

static void the_next_connection_is_doubted_for_itself(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    while (!is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(upstream_is_doubted(upstream));
    vanish(cache);
    while (is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_false(upstream_is_doubted(upstream));
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, WELCOME); /* it does not say who it is any more */
    while (!is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_false(upstream_is_doubted(upstream));
    trust_all(vouched);
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
        UPSTREAM_TEST(requests_wait_for_the_greeting),
        UPSTREAM_TEST(a_server_that_nobody_vouches_for_is_not_asked_for_rows),
        UPSTREAM_TEST(lookups_that_waited_for_such_a_server_fail),
        UPSTREAM_TEST(a_key_of_no_row_is_asked_for_beside_one_of_a_row),
        UPSTREAM_TEST(a_server_may_be_doubted_while_it_is_connected_to),
        UPSTREAM_TEST(the_next_connection_is_doubted_for_itself),
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
        UPSTREAM_TEST(bytes_are_relayed_once_the_replies_before_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
