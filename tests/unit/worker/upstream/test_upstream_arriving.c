/* A large reply that is wanted whole: whose memory it is while it arrives, and that it is kept for
 * nobody. A line is one, too, though its length stands nowhere. */
#include "upstream_bench.h"

enum { ELEMENTS = 16, ELEMENT = 1024 * 1024, HALF_COUNTED = 2 * ELEMENTS / 2 * ELEMENT };

static size_t most_memory; /* of the connection, while that is sent */

static void send_times(struct span bytes, size_t count)
{
    most_memory = 0;
    for (size_t sent = 0; sent < count * bytes.length;) {
        size_t at = sent % bytes.length;
        ssize_t taken = send(cache, bytes.at + at, bytes.length - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += taken > 0 ? (size_t)taken : 0;
        uv_run(&serving->loop, UV_RUN_NOWAIT);
        size_t memory = upstream_memory(under_test);
        most_memory = memory > most_memory ? memory : most_memory;
    }
}

/* So many of an array's ELEMENTS. */
static void send_elements(size_t count)
{
    static char element[ELEMENT + 16];
    int head = snprintf(element, sizeof element, "$%d\r\n", ELEMENT);
    memset(element + head, 'v', ELEMENT);
    memcpy(element + head + ELEMENT, "\r\n", 2);
    send_times((struct span){element, (size_t)head + ELEMENT + 2}, count);
}

/* As many bytes of a line, which goes on. */
static void send_line(size_t count)
{
    static char line[ELEMENT];
    memset(line, 'v', ELEMENT);
    send_times((struct span){line, ELEMENT}, count);
}

static size_t length_heard;

static void take_length(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)slot;
    (void)index;
    length_heard = reply.length;
}

static void take_unheard(struct reply_slot *slot, struct span reply)
{
    (void)slot;
    hear(reply.length ? "unheard, all of it" : "unheard", span_of(""));
}

static const struct reply_slot_kind wanted_whole = {
    .on_cache = take_length, .on_cache_failure = take_failure, .on_unheard = take_unheard};

static void begin_large(struct upstream *upstream)
{
    length_heard = 0;
    ask_as(upstream, 1, &wanted_whole);
    must_arrive("1\r\n");
    say(cache, "*16\r\n");
    send_elements(ELEMENTS / 2);
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (replies.gathered < HALF_COUNTED && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
}

/* Twice: it will be copied. */
static void what_is_there_of_a_reply_counts_for_who_waits_for_it(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    begin_large(upstream);
    assert_in_range(replies.gathered, HALF_COUNTED - ELEMENT, HALF_COUNTED + ELEMENT);
    assert_int_equal(serving->arrived, replies.gathered);
    send_elements(ELEMENTS / 2);
    while (!length_heard)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(length_heard > ELEMENTS * ELEMENT);
    assert_int_equal(replies.gathered, 0);
    ask(upstream, 2);
    must_arrive("2\r\n");
    say(cache, ":20\r\n");
    must_come("2::20|");
}

static void what_was_there_counts_no_more_when_the_connection_is_lost(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    begin_large(upstream);
    assert_true(replies.gathered > 0);
    vanish(cache);
    cache = -1;
    must_come("1 failed " DOWN "|");
    assert_int_equal(replies.gathered, 0);
}

/* Whoever waited for it is gone; the replies behind it are others'. */
static void what_nobody_waits_for_is_skipped_and_the_next_reply_is_the_nexts(void **state)
{
    struct replies others = {.serving = serving, .task = &task};
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    begin_large(upstream);
    struct reply_slot *slot = reply_slot_open(&others, &plain);
    upstream_send(upstream, slot, 2, span_of("2\r\n"));
    reply_slot_answered(slot);
    must_arrive("2\r\n");
    replies_abandon(&replies);
    send_elements(ELEMENTS / 2);
    must_come("unheard|");
    assert_int_equal(length_heard, 0);
    say(cache, ":20\r\n");
    must_come("2::20|");
}

static size_t length_passed;

static void pass(struct reply_slot *slot, struct span bytes)
{
    (void)slot;
    length_passed += bytes.length;
}

static void pass_last(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    pass(slot, reply);
    hear("passed", span_of(""));
}

static const struct reply_slot_kind passed_on = {
    .on_cache = pass_last, .on_part = pass, .on_cache_failure = take_failure};

static void a_line_is_passed_on_as_it_comes(void **state)
{
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    length_passed = 0;
    ask_as(upstream, 1, &passed_on);
    ask(upstream, 2);
    must_arrive("1\r\n2\r\n");
    say(cache, "-");
    send_line(ELEMENTS);
    say(cache, "\r\n:20\r\n");
    must_come("passed|2::20|");
    assert_int_equal(length_passed, 1 + ELEMENTS * ELEMENT + 2);
    assert_in_range(most_memory, 1, ELEMENT);
}

static void a_line_that_nobody_waits_for_is_let_go_as_it_comes(void **state)
{
    struct replies others = {.serving = serving, .task = &task};
    struct upstream *upstream = begin(&shared);
    (void)state;
    greet_it();
    ask_as(upstream, 1, &wanted_whole);
    struct reply_slot *slot = reply_slot_open(&others, &plain);
    upstream_send(upstream, slot, 2, span_of("2\r\n"));
    reply_slot_answered(slot);
    must_arrive("1\r\n2\r\n");
    say(cache, "+");
    replies_abandon(&replies);
    send_line(ELEMENTS);
    say(cache, "\r\n:20\r\n");
    must_come("unheard|2::20|");
    assert_in_range(most_memory, 1, ELEMENT);
}

int main(void)
{
#define UPSTREAM_TEST(name) cmocka_unit_test_setup_teardown(name, open_serving, close_serving)
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(what_is_there_of_a_reply_counts_for_who_waits_for_it),
        UPSTREAM_TEST(what_was_there_counts_no_more_when_the_connection_is_lost),
        UPSTREAM_TEST(what_nobody_waits_for_is_skipped_and_the_next_reply_is_the_nexts),
        UPSTREAM_TEST(a_line_is_passed_on_as_it_comes),
        UPSTREAM_TEST(a_line_that_nobody_waits_for_is_let_go_as_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
