/* A large reply that is wanted whole: whose memory it is while it arrives, and that it is kept for
 * nobody. */
#include "upstream_bench.h"

enum { ELEMENTS = 16, ELEMENT = 1024 * 1024, HALF_COUNTED = 2 * ELEMENTS / 2 * ELEMENT };

/* So many of an array's ELEMENTS. */
static void send_elements(size_t count)
{
    static char element[ELEMENT + 16];
    int head = snprintf(element, sizeof element, "$%d\r\n", ELEMENT);
    memset(element + head, 'v', ELEMENT);
    memcpy(element + head + ELEMENT, "\r\n", 2);
    for (size_t length = (size_t)head + ELEMENT + 2, sent = 0; sent < count * length;) {
        size_t at = sent % length;
        ssize_t taken = send(cache, element + at, length - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += taken > 0 ? (size_t)taken : 0;
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    }
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

int main(void)
{
#define UPSTREAM_TEST(name) cmocka_unit_test_setup_teardown(name, open_serving, close_serving)
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(what_is_there_of_a_reply_counts_for_who_waits_for_it),
        UPSTREAM_TEST(what_was_there_counts_no_more_when_the_connection_is_lost),
        UPSTREAM_TEST(what_nobody_waits_for_is_skipped_and_the_next_reply_is_the_nexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
