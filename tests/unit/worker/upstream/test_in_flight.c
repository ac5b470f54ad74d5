/* Only order ties a reply to its request: the queue must keep it, however it grows and wraps. */
#include "worker/upstream/in_flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void push(struct in_flight_queue *queue, unsigned index)
{
    in_flight_push(queue, (struct in_flight){.index = index, .since = 1000 + index});
}

static void must_pop(struct in_flight_queue *queue, unsigned index)
{
    assert_int_equal(in_flight_first(queue)->index, index);
    assert_int_equal(in_flight_oldest(queue), 1000 + index);
    struct in_flight request = in_flight_pop(queue);
    assert_int_equal(request.index, index);
    assert_int_equal(request.since, 1000 + index);
}

static void requests_come_out_in_the_order_in_which_they_went_in(void **state)
{
    struct in_flight_queue queue = {0};
    unsigned in = 0, out = 0;
    (void)state;
    for (unsigned round = 1; round < 60; round++) { /* it grows, and its start is anywhere */
        for (unsigned i = 0; i < 37 * round; i++)
            push(&queue, in++);
        for (unsigned i = 0; i < 31 * round; i++)
            must_pop(&queue, out++);
        assert_int_equal(queue.count, in - out);
    }
    while (queue.count)
        must_pop(&queue, out++);
    assert_int_equal(in, out);
    in_flight_finish(&queue);
}

static void an_empty_queue_has_no_oldest_request(void **state)
{
    struct in_flight_queue queue = {0};
    (void)state;
    assert_null(in_flight_first(&queue));
    assert_int_equal(in_flight_oldest(&queue), 0);
    push(&queue, 1);
    must_pop(&queue, 1);
    assert_null(in_flight_first(&queue));
    assert_int_equal(in_flight_oldest(&queue), 0);
    in_flight_finish(&queue);
}

/* Those that waited for a connection go behind its greeting. */
static void the_first_ones_can_go_behind_the_others(void **state)
{
    struct in_flight_queue queue = {0};
    (void)state;
    for (unsigned i = 0; i < 200;
         i++) /* the ring is nearly full, and does not begin at its start */
        push(&queue, i);
    for (unsigned i = 0; i < 200; i++)
        must_pop(&queue, i);
    for (unsigned i = 0; i < 256; i++)
        push(&queue, i);
    in_flight_rotate(&queue, 250);
    for (unsigned i = 250; i < 256; i++)
        must_pop(&queue, i);
    for (unsigned i = 0; i < 250; i++)
        must_pop(&queue, i);
    assert_int_equal(queue.count, 0);
    in_flight_finish(&queue);
}

static void rotating_none_or_all_changes_nothing(void **state)
{
    struct in_flight_queue queue = {0};
    (void)state;
    in_flight_rotate(&queue, 0);
    for (unsigned i = 0; i < 3; i++)
        push(&queue, i);
    in_flight_rotate(&queue, 0);
    in_flight_rotate(&queue, 3);
    for (unsigned i = 0; i < 3; i++)
        must_pop(&queue, i);
    in_flight_finish(&queue);
}

static void only_the_last_request_gets_another_time(void **state)
{
    struct in_flight_queue queue = {0};
    (void)state;
    push(&queue, 1);
    push(&queue, 2);
    in_flight_set_time(&queue, 0);
    assert_int_equal(in_flight_oldest(&queue), 1001);
    must_pop(&queue, 1);
    assert_int_equal(in_flight_oldest(&queue), 0);
    in_flight_set_time(&queue, 7);
    assert_int_equal(in_flight_oldest(&queue), 7);
    in_flight_finish(&queue);
}

static void a_finished_queue_can_be_used_again(void **state)
{
    struct in_flight_queue queue = {0};
    (void)state;
    in_flight_finish(&queue); /* nothing was in it */
    push(&queue, 1);
    in_flight_finish(&queue);
    assert_int_equal(queue.count, 0);
    push(&queue, 2);
    must_pop(&queue, 2);
    in_flight_finish(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_out_in_the_order_in_which_they_went_in),
        cmocka_unit_test(an_empty_queue_has_no_oldest_request),
        cmocka_unit_test(the_first_ones_can_go_behind_the_others),
        cmocka_unit_test(rotating_none_or_all_changes_nothing),
        cmocka_unit_test(only_the_last_request_gets_another_time),
        cmocka_unit_test(a_finished_queue_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
