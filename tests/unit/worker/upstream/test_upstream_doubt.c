/* A connection whose server may have forgotten what was deleted from it: which requests reach it.
 */
#include "upstream_bench.h"

#include "cache/vouched.h"
#include "redis/topology/redis_place.h"

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
#define DOUBTFUL OK PRIMARY SAID OK NOT_SAID NOT_SAID

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

static const struct reply_slot_kind writes_row = {
    .on_cache = take_reply, .on_cache_failure = take_failure, .reads_row = true, .may_write = true};

/* Who is told that it failed tries again. */
static void a_write_that_waited_for_such_a_server_is_not_sent(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    look_up(upstream, 1);
    ask_as(upstream, 2, &writes_row);
    ask(upstream, 3);
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    must_come("1" DOUBTED "2" DOUBTED "3" DOUBTED);
    ask(upstream, 4);
    ask_as(upstream, 5, &writes_row);
    must_come("5" DOUBTED);
    must_arrive("4\r\n");
    say(cache, ":40\r\n");
    must_come("4::40|");
    trust_all(vouched);
}

static const struct reply_slot_kind of_each = {.on_cache = take_reply,
                                               .on_cache_failure = take_failure,
                                               .on_loaded = take_row,
                                               .asks_each = true};

/* What the server is, is known as soon as it has answered the greeting. */
static void come_up(void)
{
    accept_it();
    must_arrive(SELECT LIMITS);
    say(cache, DOUBTFUL);
    while (!is_up())
        uv_run(&serving->loop, UV_RUN_NOWAIT);
}

static void a_key_of_no_row_is_asked_for_beside_one_of_a_row(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    const struct span keys[] = {span_of("item:1"), span_of("plain")};
    (void)state;
    come_up();
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
    come_up();
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

/* It may have been held for long when that is found out. */
static void what_was_gathered_before_and_is_not_written_fails(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    vouched_set(vouched, &upstream, RUN_ID);
    come_up();
    look_up(upstream, 1);
    must_arrive("1\r\n");
    upstream_hold(upstream, true);
    look_up(upstream, 2);
    ask(upstream, 3);
    ask_as(upstream, 4, &of_row);
    must_not_arrive();
    vouched_set(vouched, &upstream, NULL);
    upstream_check_progress(upstream);
    must_come("2" DOUBTED "4" DOUBTED);
    upstream_hold(upstream, false);
    must_arrive("2\r\n3\r\n4\r\n");
    say(cache, ":10\r\n:20\r\n:30\r\n:40\r\n");
    must_come("1::10|3::30|");
    trust_all(vouched);
}

/* It would be done unheard. */
static void with_a_write_that_was_gathered_before_the_connection_is_lost(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    vouched_set(vouched, &upstream, RUN_ID);
    come_up();
    upstream_hold(upstream, true);
    ask(upstream, 1);
    ask_as(upstream, 2, &writes_row);
    vouched_set(vouched, &upstream, NULL);
    upstream_check_progress(upstream);
    must_come("1" DOUBTED "2" DOUBTED);
    assert_false(is_up());
    char byte;
    assert_true(recv(cache, &byte, 1, MSG_DONTWAIT) <= 0);
    trust_all(vouched);
}

static void the_next_connection_is_doubted_for_itself(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin(&shared);
    (void)state;
    come_up();
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

/* ---- a node of a cluster ---- */

static struct redis_place here;

static struct upstream *begin_at_node(void)
{
    snprintf(here.host, sizeof here.host, "127.0.0.1");
    here.port = fake.shared->config->cache.address.port;
    struct upstream_options options = {.node = &here};
    struct upstream *upstream = begin(&options);
    come_up();
    assert_true(upstream_is_doubted(upstream));
    return upstream;
}

#define GET "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
#define EVAL "*3\r\n$4\r\neval\r\n$1\r\ns\r\n$1\r\n0\r\n"

/* One that only begins like it is the script's. */
static void an_error_that_a_script_has_worded_is_its_client_s(void **state)
{
    struct upstream_options options = {.node = &here};
    (void)state;
    snprintf(here.host, sizeof here.host, "127.0.0.1");
    here.port = fake.shared->config->cache.address.port;
    struct upstream *upstream = begin(&options);
    come_up();
    ask_in(upstream, 1, &plain, EVAL);
    must_arrive(EVAL);
    say(cache, "-MOVED by me\r\n");
    must_come("1:-MOVED by me|");
}

/* It may have given its slots away, and so be nobody's to vouch for: of that alone its word counts.
 */
static void a_doubted_node_only_tells_who_else_has_the_key(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin_at_node();
    (void)state;
    look_up(upstream, 1);
    ask_as(upstream, 2, &of_row);
    ask(upstream, 3);
    ask_in(upstream, 4, &plain, GET);
    must_arrive("1\r\n2\r\n3\r\n" GET);
    say(cache, ":10\r\n$-1\r\n:30\r\n-MOVED 1 127.0.0.1:1\r\n");
    /* that is followed; but where to, nobody knows here */
    must_come("1" DOUBTED "2" DOUBTED
              "3::30|4 failed CLUSTERDOWN the nodes send each other's keys around|");
    trust_all(vouched);
}

/* Believed by the time of its reply, it may have read the key before it was swept. */
static void what_was_asked_of_it_in_doubt_stays_doubted(void **state)
{
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin_at_node();
    (void)state;
    look_up(upstream, 1);
    must_arrive("1\r\n");
    vouched_set(vouched, &upstream, RUN_ID);
    upstream_check_progress(upstream);
    assert_false(upstream_is_doubted(upstream));
    look_up(upstream, 2);
    must_arrive("2\r\n");
    say(cache, ":10\r\n:20\r\n");
    must_come("1" DOUBTED "2::20|");
    trust_all(vouched);
}

static void take_part_of(struct reply_slot *slot, struct span bytes)
{
    (void)slot;
    hear("part ", bytes);
}

static const struct reply_slot_kind of_large_row = {.on_cache = take_reply,
                                                    .on_part = take_part_of,
                                                    .on_cache_failure = take_failure,
                                                    .reads_row = true};

static void no_part_of_its_large_replies_is_passed_on(void **state)
{
    enum { LARGE = 1024 * 1024 };
    struct vouched *vouched = doubt_all();
    struct upstream *upstream = begin_at_node();
    char *body = calloc(1, LARGE);
    size_t sent = 0;
    (void)state;
    ask_as(upstream, 1, &of_large_row);
    must_arrive("1\r\n");
    say(cache, "$1048576\r\n");
    while (sent < LARGE) {
        ssize_t count = send(cache, body + sent, LARGE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += count > 0 ? (size_t)count : 0;
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    }
    say(cache, "\r\n");
    must_come("1" DOUBTED);
    free(body);
    trust_all(vouched);
}

int main(void)
{
#define UPSTREAM_TEST(name) cmocka_unit_test_setup_teardown(name, open_serving, close_serving)
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(a_server_that_nobody_vouches_for_is_not_asked_for_rows),
        UPSTREAM_TEST(lookups_that_waited_for_such_a_server_fail),
        UPSTREAM_TEST(a_write_that_waited_for_such_a_server_is_not_sent),
        UPSTREAM_TEST(a_key_of_no_row_is_asked_for_beside_one_of_a_row),
        UPSTREAM_TEST(a_server_may_be_doubted_while_it_is_connected_to),
        UPSTREAM_TEST(what_was_gathered_before_and_is_not_written_fails),
        UPSTREAM_TEST(with_a_write_that_was_gathered_before_the_connection_is_lost),
        UPSTREAM_TEST(the_next_connection_is_doubted_for_itself),
        UPSTREAM_TEST(an_error_that_a_script_has_worded_is_its_client_s),
        UPSTREAM_TEST(a_doubted_node_only_tells_who_else_has_the_key),
        UPSTREAM_TEST(what_was_asked_of_it_in_doubt_stays_doubted),
        UPSTREAM_TEST(no_part_of_its_large_replies_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
