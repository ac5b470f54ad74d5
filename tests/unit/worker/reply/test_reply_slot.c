/* The queue of a client's replies: their order, what is counted, and who frees what. */
#include "worker/reply/reply_slot.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "fakes/replies.h"

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(reply_slot_output(slot), reply.at, reply.length);
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    buffer_append(reply_slot_output(slot), why, strlen(why));
}

static const struct reply_slot_kind plain = {.on_cache = take_reply,
                                             .on_cache_failure = take_failure};

/* A slot that waits for one reply of the cache. */
static struct reply_slot *ask(struct bench *bench)
{
    return reply_slot_open(&bench->replies, &plain);
}

static void reply(struct reply_slot *slot, const char *text)
{
    reply_slot_cache_reply(slot, 0, span_of(text));
}

static void ready(struct bench *bench, const char *text)
{
    buffer_append(replies_ready(&bench->replies), text, strlen(text));
}

/* ---- order ---- */

static void a_ready_reply_leaves_at_once_when_nothing_waits(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    ready(&bench, "a");
    ready(&bench, "b");
    must_leave(&bench, "ab");
    bench_finish(&bench);
}

static void replies_leave_in_the_order_of_the_queue(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *a = ask(&bench), *b = ask(&bench);
    ready(&bench, "1");
    ready(&bench, "2");
    struct reply_slot *c = ask(&bench);
    ready(&bench, "3");
    assert_int_equal(bench.replies.commands, 6);
    reply(b, "b");
    reply(c, "c");
    must_leave(&bench, "");
    reply(a, "a");
    must_leave(&bench, "ab12c3");
    bench_finish(&bench);
}

static void a_large_reply_that_was_held_leaves_without_a_copy(void **state)
{
    enum { MUCH = 4 * 1024 * 1024 };
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *a = ask(&bench), *b = ask(&bench);
    char *large = xmalloc(MUCH);
    memset(large, 'b', MUCH);
    reply_slot_cache_reply(b, 0, (struct span){large, MUCH});
    const char *held = b->reply.bytes;
    reply(a, "");
    assert_ptr_equal(bench.replies.out.bytes, held);
    assert_int_equal(buffer_length(&bench.replies.out), MUCH);
    assert_int_equal(bench.replies.held, 0);
    free(large);
    bench_finish(&bench);
}

static void each_step_frees_what_stands_behind_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *a = ask(&bench);
    ready(&bench, "1");
    struct reply_slot *b = ask(&bench);
    ready(&bench, "2");
    reply(a, "a");
    must_leave(&bench, "a1");
    assert_int_equal(bench.replies.commands, 2);
    ready(&bench, "3");
    reply(b, "b");
    must_leave(&bench, "b23");
    bench_finish(&bench);
}

static void write_x(struct reply_slot *slot)
{
    buffer_append(reply_slot_output(slot), "x", 1);
}

static void a_slot_is_finished_by_its_last_answer(void **state)
{
    static const struct reply_slot_kind kind = {.on_cache = take_reply, .finish = write_x};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *slot = reply_slot_open(&bench.replies, &kind);
    slot->waiting += 2;
    reply(slot, "");
    reply_slot_answered(slot);
    must_leave(&bench, "");
    reply(slot, "");
    must_leave(&bench, "x");
    bench_finish(&bench);
}

/* ---- what waits ---- */

static void all_that_waits_is_counted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *a = ask(&bench);
    ready(&bench, "12345");
    assert_int_equal(replies_waiting(&bench.replies), 5);
    ready(&bench, "67");
    assert_int_equal(replies_waiting(&bench.replies), 7);
    struct reply_slot *b = ask(&bench);
    ready(&bench, "8");
    assert_int_equal(replies_waiting(&bench.replies), 8);
    reply(b, "bbbb");
    assert_int_equal(replies_waiting(&bench.replies), 12);
    reply(a, "aaa");
    assert_int_equal(replies_waiting(&bench.replies), 15);
    bench.replies.sending = 100;
    assert_int_equal(replies_waiting(&bench.replies), 115);
    bench.replies.sending = 0;
    must_leave(&bench, "aaa1234567bbbb8");
    assert_int_equal(replies_waiting(&bench.replies), 0);
    bench_finish(&bench);
}

/* The first to pass the bound may be as large as it is. */
static void past_the_bound_the_client_goes(void **state)
{
    char kilobyte[1100];
    struct bench bench;
    (void)state;
    memset(kilobyte, 'k', sizeof kilobyte);
    bench_init(&bench);
    struct reply_slot *a = ask(&bench), *b = ask(&bench);
    reply_slot_cache_reply(a, 0, (struct span){kilobyte, sizeof kilobyte});
    assert_int_equal(bench.replies.end, REPLIES_OPEN);
    reply(b, "b");
    assert_int_equal(bench.replies.end, REPLIES_OVERFLOWN);
    buffer_clear(&bench.replies.out);
    bench_finish(&bench);
}

/* It is late, not the client: what is under way leaves behind it, however much that is. */
static void much_behind_a_late_one_is_no_fault_of_the_client(void **state)
{
    char kilobyte[1100];
    struct bench bench;
    (void)state;
    memset(kilobyte, 'k', sizeof kilobyte);
    struct span much = {kilobyte, sizeof kilobyte};
    bench_init(&bench);
    struct reply_slot *late = ask(&bench), *behind[5];
    for (size_t i = 0; i < 5; i++)
        behind[i] = ask(&bench);
    reply_slot_cache_reply(behind[0], 0, much);
    assert_int_equal(bench.replies.end, REPLIES_OPEN);
    reply_slot_cache_reply(behind[1], 0, much);
    assert_int_equal(bench.replies.end, REPLIES_PACED);
    assert_true(bench.task.queued);
    reply_slot_cache_reply(behind[2], 0, much);
    reply(late, "late");
    assert_int_equal(buffer_length(&bench.replies.out), 4 + 3 * sizeof kilobyte);
    reply_slot_cache_reply(behind[3], 0, much);
    reply_slot_cache_reply(behind[4], 0, much);
    assert_int_equal(bench.replies.end, REPLIES_PACED);
    assert_int_equal(buffer_length(&bench.replies.out), 4 + 5 * sizeof kilobyte);
    buffer_clear(&bench.replies.out);
    bench_finish(&bench);
}

/* Who has not taken what could leave is none of these. */
static void what_could_leave_is_the_clients_fault_beside_what_is_held(void **state)
{
    char kilobyte[1100];
    struct bench bench;
    (void)state;
    memset(kilobyte, 'k', sizeof kilobyte);
    bench_init(&bench);
    assert_int_equal(bench.serving->held_limit, 512);
    bench.replies.sending = sizeof kilobyte;
    struct reply_slot *late = ask(&bench), *behind = ask(&bench);
    reply_slot_cache_reply(behind, 0, (struct span){kilobyte, sizeof kilobyte});
    assert_int_equal(bench.replies.end, REPLIES_OVERFLOWN);
    reply(late, "late");
    bench.replies.sending = 0;
    bench_finish(&bench);
}

/* ---- a client that goes ---- */

static void what_is_owed_to_a_client_that_went_is_taken_by_nobody(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *a = ask(&bench), *b = ask(&bench), *c = ask(&bench);
    ready(&bench, "1");
    reply(b, "b");
    replies_abandon(&bench.replies);
    assert_int_equal(replies_waiting(&bench.replies), 0);
    struct reply_slot *fresh = ask(&bench); /* may be the memory of one that was done */
    assert_ptr_not_equal(fresh, a);
    assert_ptr_not_equal(fresh, c);
    reply(a, "a");
    reply_slot_cache_failure(c, 0, "c");
    must_leave(&bench, "");
    reply(fresh, "fresh");
    must_leave(&bench, "fresh");
    bench_finish(&bench);
}

static void leave_in_the_middle(struct reply_slot *slot, unsigned index, struct span reply_of_cache)
{
    (void)index;
    (void)reply_of_cache;
    replies_abandon(slot->replies);
}

static void a_client_may_go_while_its_slot_takes_a_reply(void **state)
{
    static const struct reply_slot_kind kind = {.on_cache = leave_in_the_middle};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *slot = reply_slot_open(&bench.replies, &kind);
    ready(&bench, "1");
    reply(slot, "");
    must_leave(&bench, "");
    bench_finish(&bench);
}

/* ---- lookups ---- */

static void lookups_have_their_own_copies_of_the_keys(void **state)
{
    char first[] = "item:1", second[] = "";
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *slot = ask(&bench);
    reply_slot_set_lookups(slot, (struct span[]){span_of(first), span_of(second), {"a\0b", 3}}, 3);
    first[5] = '2';
    assert_int_equal(slot->lookup_count, 3);
    assert_memory_equal(slot->lookups[0].key.at, "item:1", 6);
    assert_int_equal(slot->lookups[1].key.length, 0);
    assert_memory_equal(slot->lookups[2].key.at, "a\0b", 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(slot->lookups[i].keyspace, NOT_GUARDED);
        assert_int_equal(lookup_answer(&slot->lookups[i], &slot->reply).length, 0);
    }
    reply(slot, "");
    bench_finish(&bench);
}

/* On both sides of what fits into the slot; one after the other in the same slot. */
static void a_lookup_of_one_key_has_a_copy_of_any_length(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    const size_t lengths[] = {0, 1, SHORT_KEY, SHORT_KEY + 1, 3, 10000, SHORT_KEY + 2};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *key = xmalloc(lengths[i]), *same = xmalloc(lengths[i]);
        memset(key, 'a' + (int)i, lengths[i]);
        memset(same, 'a' + (int)i, lengths[i]);
        struct reply_slot *slot = ask(&bench);
        reply_slot_set_lookup(slot, (struct span){key, lengths[i]}, 7);
        free(key);
        assert_int_equal(slot->lookup_count, 1);
        assert_ptr_equal(slot->lookups->slot, slot);
        assert_int_equal(slot->lookups->keyspace, 7);
        assert_int_equal(slot->lookups->key.length, lengths[i]);
        assert_memory_equal(slot->lookups->key.at, same, lengths[i]);
        free(same);
        reply(slot, "");
    }
    bench_finish(&bench);
}

static void a_slot_that_is_used_again_remembers_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *slot = ask(&bench);
    reply_slot_set_lookups(slot, (struct span[]){span_of("item:1")}, 1);
    size_t begun = lookup_begin(slot->lookups);
    buffer_append(&slot->reply, "x", 1);
    lookup_end(slot->lookups, begun);
    assert_memory_equal(lookup_answer(slot->lookups, &slot->reply).at, "x", 1);
    assert_true(bench.replies.gathered > 0);
    buffer_clear(&slot->reply);
    reply(slot, "a");
    struct reply_slot *again = ask(&bench);
    assert_ptr_equal(again, slot);
    assert_int_equal(again->lookup_count, 0);
    assert_int_equal(buffer_length(&again->reply), 0);
    reply_slot_set_lookups(again, (struct span[]){span_of("item:22")}, 1);
    assert_int_equal(lookup_answer(again->lookups, &again->reply).length, 0);
    assert_int_equal(again->lookups->key.length, 7);
    reply(again, "b");
    must_leave(&bench, "ab");
    bench_finish(&bench);
}

/* ---- parts ---- */

static void join(struct reply_slot *whole, struct span reply)
{
    buffer_append(&whole->reply, reply.at, reply.length);
}

static const struct reply_slot_kind joined = {.on_part_of = join};

static struct reply_slot *ask_part(struct bench *bench, struct reply_slot *whole)
{
    bench->replies.whole = whole;
    struct reply_slot *part = ask(bench);
    bench->replies.whole = NULL;
    return part;
}

/* What comes unasked is queued between them, and is the last one whenever they are given back. */
static void what_stands_between_parts_is_counted_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *whole = reply_slot_open(&bench.replies, &joined);
    struct reply_slot *part = ask_part(&bench, whole);
    ready(&bench, "message");
    for (int i = 0; i < 3; i++) {
        struct reply_slot *other = ask_part(&bench, whole);
        if (i == 0)
            reply(part, "a");
        reply(other, "b");
        reply_slot_drop_parts(whole);
        assert_int_equal(bench.replies.held, buffer_length(&whole->reply));
    }
    reply_slot_answered(whole);
    must_leave(&bench, "abbbmessage");
    assert_int_equal(bench.replies.held, 0);
    assert_false(replies_waiting(&bench.replies));
    bench_finish(&bench);
}

/* However many: what is there takes what comes, wherever in the queue that is. */
static void what_comes_behind_a_reply_takes_one_slot(void **state)
{
    enum { MANY = 100 };
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct reply_slot *first = ask(&bench), *last = ask(&bench);
    for (int i = 0; i < MANY; i++) {
        replies_push_behind(&bench.replies, first, span_of("x"));
        replies_push_behind(&bench.replies, last, span_of("y"));
    }
    assert_int_equal(first->next->commands, 1);
    assert_ptr_equal(first->next->next, last);
    assert_int_equal(bench.replies.held, MANY);
    assert_int_equal(replies_waiting(&bench.replies), 2 * MANY);
    replies_push_behind(&bench.replies, first, span_of("1"));
    ready(&bench, "2");
    reply(first, "first");
    assert_int_equal(buffer_length(&bench.replies.out), 5 + MANY + 1);
    buffer_clear(&bench.replies.out);
    reply(last, "last");
    assert_int_equal(buffer_length(&bench.replies.out), 4 + MANY + 1);
    assert_int_equal(bench.replies.held, 0);
    buffer_clear(&bench.replies.out);
    bench_finish(&bench);
}

static void append(struct reply_slot *slot, struct span bytes)
{
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

static void append_last(struct reply_slot *slot, unsigned index, struct span bytes)
{
    (void)index;
    append(slot, bytes);
}

/* However long it may be until it is finished; and once, whatever becomes of it. */
static void parts_behind_an_unfinished_reply_are_held_as_they_come(void **state)
{
    static const struct reply_slot_kind parted = {.on_part = append, .on_cache = append_last};
    (void)state;
    for (int end = 0; end < 3; end++) {
        struct bench bench;
        bench_init(&bench);
        struct reply_slot *first = ask(&bench);
        struct reply_slot *slot = reply_slot_open(&bench.replies, &parted);
        reply_slot_cache_part(slot, span_of("abc"));
        reply_slot_cache_part(slot, span_of("de"));
        assert_int_equal(bench.replies.held, 5);
        assert_int_equal(bench.serving->arrived, 5);
        if (end == 0) /* all of it comes first */
            reply_slot_cache_reply(slot, 0, span_of("f"));
        assert_int_equal(bench.replies.held, end ? 5 : 6);
        if (end == 2) {
            replies_abandon(&bench.replies);
            reply_slot_answered(first);
        } else {
            reply(first, "1");
        }
        if (end > 0)
            reply_slot_cache_part(slot, span_of("f"));
        assert_int_equal(bench.replies.held, 0);
        if (end > 0)
            reply_slot_cache_reply(slot, 0, span_of(""));
        must_leave(&bench, end < 2 ? "1abcdef" : "");
        assert_int_equal(bench.replies.held, 0);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_reply_leaves_at_once_when_nothing_waits),
        cmocka_unit_test(replies_leave_in_the_order_of_the_queue),
        cmocka_unit_test(a_large_reply_that_was_held_leaves_without_a_copy),
        cmocka_unit_test(each_step_frees_what_stands_behind_it),
        cmocka_unit_test(a_slot_is_finished_by_its_last_answer),
        cmocka_unit_test(all_that_waits_is_counted),
        cmocka_unit_test(parts_behind_an_unfinished_reply_are_held_as_they_come),
        cmocka_unit_test(past_the_bound_the_client_goes),
        cmocka_unit_test(much_behind_a_late_one_is_no_fault_of_the_client),
        cmocka_unit_test(what_could_leave_is_the_clients_fault_beside_what_is_held),
        cmocka_unit_test(what_is_owed_to_a_client_that_went_is_taken_by_nobody),
        cmocka_unit_test(a_client_may_go_while_its_slot_takes_a_reply),
        cmocka_unit_test(lookups_have_their_own_copies_of_the_keys),
        cmocka_unit_test(a_lookup_of_one_key_has_a_copy_of_any_length),
        cmocka_unit_test(a_slot_that_is_used_again_remembers_nothing),
        cmocka_unit_test(what_stands_between_parts_is_counted_once),
        cmocka_unit_test(what_comes_behind_a_reply_takes_one_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
