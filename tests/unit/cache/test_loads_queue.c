/* Turns of clients whose loads wait, and of the places where they are: who asks for much waits for
 * itself. */
#include "cache/loads_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Clients are letters; those in capitals are each in a place of its own, all others in one. */
static const char clients[128];

static struct load_request *push_at(struct load_queue *queue, char client, uint64_t time)
{
    struct load_request *request = xcalloc(1, sizeof *request);
    request->client = &clients[(int)client];
    request->origin = client < 'a' ? (uint64_t)client : 0;
    request->asked = time;
    load_queue_push(queue, request);
    return request;
}

static struct load_request *push(struct load_queue *queue, char client)
{
    return push_at(queue, client, 0);
}

static void push_many(struct load_queue *queue, char client, int count)
{
    while (count--)
        push(queue, client);
}

/* Whose turns come. */
static void turns_must_be(struct load_queue *queue, const char *wanted)
{
    char got[100] = {0};
    for (size_t i = 0; wanted[i]; i++) {
        struct load_request *request = load_queue_next(queue);
        assert_non_null(request);
        assert_null(request->line);
        got[i] = (char)((const char *)request->client - clients);
        free(request);
    }
    assert_string_equal(got, wanted);
}

static void must_be_empty(struct load_queue *queue)
{
    assert_null(load_queue_next(queue));
    assert_int_equal(queue->count, 0);
    assert_int_equal(queue->bytes, 0);
    assert_int_equal(queue->by_asker.count, 0);
    assert_int_equal(queue->by_origin.count, 0);
    load_queue_finish(queue);
}

static void one_client_is_served_in_its_order(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    struct load_request *first = push(&queue, 'a'), *second = push(&queue, 'a');
    assert_ptr_equal(load_queue_next(&queue), first);
    assert_ptr_equal(load_queue_next(&queue), second);
    free(first);
    free(second);
    must_be_empty(&queue);
}

static void clients_take_turns(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 5);
    push_many(&queue, 'b', 3);
    push_many(&queue, 'c', 1);
    turns_must_be(&queue, "abcababaa");
    must_be_empty(&queue);
}

static void who_has_just_come_is_first(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 100);
    push_many(&queue, 'b', 100);
    turns_must_be(&queue, "abab");
    push(&queue, 'c');
    turns_must_be(&queue, "cab");
    for (int i = 0; i < 195; i++)
        free(load_queue_next(&queue));
    must_be_empty(&queue);
}

/* Asking one at a time, again and again, must not starve those who have many. */
static void who_comes_again_and_again_has_its_turn_like_others(void **state)
{
    struct load_queue queue;
    int others = 0;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 1000);
    for (int i = 0; i < 100; i++) {
        struct load_request *request;
        push(&queue, 'b');
        do {
            request = load_queue_next(&queue);
            others += request->client == &clients['a'];
            free(request);
        } while (queue.by_asker.count > 1 && queue.count > 1000 - (size_t)others);
    }
    assert_in_range(others, 90, 210);
    while (queue.count)
        free(load_queue_next(&queue));
    must_be_empty(&queue);
}

static struct load_request request_of(char client)
{
    return (struct load_request){.client = &clients[(int)client],
                                 .origin = client < 'a' ? (uint64_t)client : 0};
}

static void charge(struct load_queue *queue, char client, size_t bytes)
{
    struct load_request request = request_of(client);
    load_queue_charge(queue, &request, bytes);
}

static void bill(struct load_queue *queue, char client, size_t bytes)
{
    struct load_request request = request_of(client);
    load_queue_bill(queue, &request, bytes);
}

/* A client's address is another's as soon as it is gone. */
static void whoever_comes_where_another_was_has_a_line_of_his_own(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'A', 2);
    struct load_request *request = xcalloc(1, sizeof *request);
    request->client = &clients['A'];
    request->origin = 'B';
    load_queue_push(&queue, request);
    assert_int_equal(queue.by_origin.count, 2);
    assert_int_equal(queue.by_asker.count, 2);
    free(load_queue_next(&queue));
    assert_ptr_equal(load_queue_next(&queue), request);
    free(request);
    turns_must_be(&queue, "A");
    must_be_empty(&queue);
}

static void large_values_cost_turns(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 3);
    push_many(&queue, 'b', 6);
    turns_must_be(&queue, "a");
    charge(&queue, 'a', (size_t)4 * LOAD_COST);
    turns_must_be(&queue, "bbbbbaba");
    must_be_empty(&queue);
}

/* Both who are in one place and who are not. */
static void who_is_billed_pays_though_he_has_no_line_any_more(void **state)
{
    static const struct {
        char client, other;
    } cases[] = {{'a', 'b'}, {'A', 'B'}};
    struct load_queue queue;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[] = {cases[i].other, cases[i].other, cases[i].other, cases[i].other, 0};
        load_queue_init(&queue);
        bill(&queue, cases[i].client, (size_t)4 * LOAD_COST);
        push_many(&queue, cases[i].other, 5);
        push_many(&queue, cases[i].client, 1);
        turns_must_be(&queue, wanted);
        while (queue.count)
            free(load_queue_next(&queue));
        must_be_empty(&queue);
    }
}

static void who_is_billed_owes_nothing_when_nobody_has_waited(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    bill(&queue, 'A', SIZE_MAX);
    bill(&queue, 'b', SIZE_MAX);
    bill(&queue, 'c', SIZE_MAX);
    assert_int_equal(queue.by_asker.count, 3);
    assert_null(load_queue_next(&queue));
    assert_int_equal(queue.by_asker.count, 0);
    push_many(&queue, 'A', 1);
    push_many(&queue, 'B', 1);
    turns_must_be(&queue, "AB");
    must_be_empty(&queue);
}

static void a_debt_has_its_bound(void **state)
{
    struct load_queue queue;
    int turns = 0;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 1);
    push_many(&queue, 'b', 1000);
    charge(&queue, 'a', SIZE_MAX);
    charge(&queue, 'a', SIZE_MAX);
    for (bool came = false; !came; turns++) {
        struct load_request *request = load_queue_next(&queue);
        came = request->client == &clients['a'];
        free(request);
    }
    assert_in_range(turns, LOAD_DEBT / LOAD_COST - 2, LOAD_DEBT / LOAD_COST + 3);
    while (queue.count)
        free(load_queue_next(&queue));
    must_be_empty(&queue);
}

static void anybody_may_be_taken_out(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push(&queue, 'a');
    struct load_request *middle = push(&queue, 'a');
    push(&queue, 'a');
    push_many(&queue, 'b', 2);
    load_queue_remove(&queue, middle);
    free(middle);
    turns_must_be(&queue, "abab");
    must_be_empty(&queue);
}

/* ---- who has to go ---- */

enum { SMALL = sizeof(struct load_request) }; /* what one takes whose key has no bytes */

static struct {
    struct load_queue *queue;
    char clients[100]; /* of those that were taken out, in order */
    size_t count;
} taken;

static void take_out(void *arg, struct load_request *request)
{
    (void)arg;
    load_queue_remove(taken.queue, request);
    assert_in_range(taken.count, 0, sizeof taken.clients - 2);
    taken.clients[taken.count++] = (char)((const char *)request->client - clients);
    free(request);
}

static void shrinking_takes(struct load_queue *queue, size_t left, const char *wanted)
{
    memset(&taken, 0, sizeof taken);
    taken.queue = queue;
    load_queue_shrink(queue, left * SMALL, take_out, NULL);
    assert_string_equal(taken.clients, wanted);
    assert_true(queue->bytes <= left * SMALL);
}

static void the_longest_line_has_to_go_first(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    shrinking_takes(&queue, 0, "");
    push_many(&queue, 'a', 2);
    push_many(&queue, 'b', 4);
    push_many(&queue, 'c', 3);
    shrinking_takes(&queue, 9, "");
    shrinking_takes(&queue, 8, "b");
    shrinking_takes(&queue, 6, "bc");
    turns_must_be(&queue, "abcabc");
    must_be_empty(&queue);
}

static void the_youngest_of_a_line_has_to_go_first(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    struct load_request *first = push(&queue, 'a');
    push_many(&queue, 'a', 3);
    shrinking_takes(&queue, 1, "aaa");
    assert_ptr_equal(load_queue_next(&queue), first);
    free(first);
    must_be_empty(&queue);
}

/* One walk takes from all that have much, and not from one after another. */
static void lines_that_are_alike_shrink_together(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 16);
    push_many(&queue, 'b', 16);
    push_many(&queue, 'c', 8);
    shrinking_takes(&queue, 36, "aabb");
    shrinking_takes(&queue, 24, "aabbaabbaabb");
    while (queue.count)
        free(load_queue_next(&queue));
    must_be_empty(&queue);
}

static void all_may_have_to_go(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 1);
    push_many(&queue, 'A', 1);
    shrinking_takes(&queue, 0, "aA");
    must_be_empty(&queue);
}

/* ---- places ---- */

static void places_take_turns_however_many_clients_are_there(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 2);
    push_many(&queue, 'b', 2);
    push_many(&queue, 'c', 2);
    push_many(&queue, 'A', 3);
    push_many(&queue, 'B', 1);
    turns_must_be(&queue, "aABbAcAabc");
    must_be_empty(&queue);
}

static void who_comes_from_elsewhere_is_before_a_crowd(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    for (char client = 'a'; client <= 'z'; client++)
        push(&queue, client);
    turns_must_be(&queue, "ab");
    push(&queue, 'A');
    turns_must_be(&queue, "Acdefghijklmnopqrstuvwxyz");
    must_be_empty(&queue);
}

static void large_values_cost_all_who_are_there(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'a', 1);
    push_many(&queue, 'b', 2);
    push_many(&queue, 'A', 6);
    turns_must_be(&queue, "aA");
    charge(&queue, 'a', (size_t)4 * LOAD_COST);
    turns_must_be(&queue, "AAAAbAb");
    must_be_empty(&queue);
}

/* Connections that ask for one row each, and then are followed by others. */
static void beginners_without_end_starve_nobody(void **state)
{
    enum { TURNS = 50 };
    struct load_queue queue;
    static const char beginners[TURNS];
    int others = 0;
    (void)state;
    for (int elsewhere = 0; elsewhere < 2; elsewhere++, others = 0) {
        load_queue_init(&queue);
        push_many(&queue, 'A', TURNS);
        turns_must_be(&queue, "A");
        for (int i = 0; i < TURNS; i++) {
            struct load_request *request = xcalloc(1, sizeof *request);
            request->client = &beginners[i];
            request->origin = elsewhere ? 1000 + (uint64_t)i : 'A';
            load_queue_push(&queue, request);
            request = load_queue_next(&queue);
            others += request->client == &clients['A'];
            free(request);
        }
        assert_in_range(others, TURNS / 6, TURNS / 3);
        while (queue.count)
            free(load_queue_next(&queue));
        must_be_empty(&queue);
    }
}

/* Each of them has less than who is alone. */
static void a_crowd_is_cut_and_not_who_is_alone(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    push_many(&queue, 'A', 3);
    push(&queue, 'a');
    push_many(&queue, 'b', 2);
    push(&queue, 'c');
    shrinking_takes(&queue, 6, "b");
    turns_must_be(&queue, "AaAbAc");
    must_be_empty(&queue);
}

static void those_that_came_before_a_time_are_found(void **state)
{
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    for (uint64_t time = 1; time <= 6; time++)
        push_at(&queue, time % 2 ? 'a' : 'b', time);
    taken.queue = &queue;
    load_queue_each_overdue(&queue, 3, take_out, NULL);
    turns_must_be(&queue, "abb");
    must_be_empty(&queue);
}

/* Who has waited for something else meanwhile, and comes to the line behind those. */
static void a_client_is_served_in_the_order_of_asking(void **state)
{
    static const uint64_t times[] = {3, 5, 4, 1, 5};
    static const int order[] = {3, 0, 2, 1, 4};
    struct load_request *requests[5];
    struct load_queue queue;
    (void)state;
    load_queue_init(&queue);
    for (int i = 0; i < 5; i++)
        requests[i] = push_at(&queue, 'a', times[i]);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(load_queue_next(&queue), requests[order[i]]);
        free(requests[order[i]]);
    }
    must_be_empty(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_client_is_served_in_its_order),
        cmocka_unit_test(clients_take_turns),
        cmocka_unit_test(who_has_just_come_is_first),
        cmocka_unit_test(who_comes_again_and_again_has_its_turn_like_others),
        cmocka_unit_test(whoever_comes_where_another_was_has_a_line_of_his_own),
        cmocka_unit_test(large_values_cost_turns),
        cmocka_unit_test(who_is_billed_pays_though_he_has_no_line_any_more),
        cmocka_unit_test(who_is_billed_owes_nothing_when_nobody_has_waited),
        cmocka_unit_test(a_debt_has_its_bound),
        cmocka_unit_test(anybody_may_be_taken_out),
        cmocka_unit_test(the_longest_line_has_to_go_first),
        cmocka_unit_test(the_youngest_of_a_line_has_to_go_first),
        cmocka_unit_test(lines_that_are_alike_shrink_together),
        cmocka_unit_test(all_may_have_to_go),
        cmocka_unit_test(places_take_turns_however_many_clients_are_there),
        cmocka_unit_test(who_comes_from_elsewhere_is_before_a_crowd),
        cmocka_unit_test(large_values_cost_all_who_are_there),
        cmocka_unit_test(beginners_without_end_starve_nobody),
        cmocka_unit_test(a_crowd_is_cut_and_not_who_is_alone),
        cmocka_unit_test(those_that_came_before_a_time_are_found),
        cmocka_unit_test(a_client_is_served_in_the_order_of_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
