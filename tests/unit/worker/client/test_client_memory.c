/* One ceiling for all clients of all workers: who takes most goes, and only he. */
#include "worker/client/client_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/client.h"

enum { MEGABYTE = 1024 * 1024, CEILING = 16 * MEGABYTE };

static struct fake_clients fake;
static struct client_memory memory;

static int open_clients(void **state)
{
    (void)state;
    memory = (struct client_memory){0};
    fake_clients_init(&fake, "max_client_memory: 16mb\nworkers: 2\n", NULL, NULL);
    fake.clients.memory = &memory;
    return 0;
}

static int close_clients(void **state)
{
    (void)state;
    fake_clients_finish(&fake);
    return 0;
}

/* One that has sent so much of a command that is not all there. */
static struct client *client_of_megabytes(size_t count)
{
    struct client *client = client_add(&fake);
    buffer_try_reserve(&client->in, count * MEGABYTE);
    return client;
}

/* A client of the same host as that one. */
static struct client *neighbour_of_megabytes(const struct client *other, size_t count)
{
    struct client *client = client_of_megabytes(count);
    host_leave(&fake.clients.hosts, client->serving, client->host);
    client->replies.origin = other->replies.origin;
    client->host = host_enter(&fake.clients.hosts, client->serving, client->replies.origin);
    return client;
}

static uint64_t clients_cut(void)
{
    return counter_read(&fake.clients.serving->counters.clients_cut);
}

static void below_the_ceiling_nobody_is_cut_off(void **state)
{
    struct client *heavy = client_of_megabytes(8), *light = client_of_megabytes(2);
    (void)state;
    client_memory_check(&fake.clients);
    assert_int_equal(heavy->state, CLIENT_OPEN);
    assert_int_equal(light->state, CLIENT_OPEN);
    assert_in_range(atomic_load(&memory.total), 10 * MEGABYTE, CEILING);
    assert_in_range(atomic_load(&memory.heaviest[0].bytes), 8 * MEGABYTE, 9 * MEGABYTE);
    assert_int_equal(clients_cut(), 0);
}

static void above_it_those_who_take_most_go_until_it_is_enough(void **state)
{
    struct client *light = client_of_megabytes(1), *heaviest = client_of_megabytes(12),
                  *heavy = client_of_megabytes(9), *third = client_of_megabytes(7);
    (void)state;
    client_memory_check(&fake.clients);
    assert_int_equal(heaviest->state, CLIENT_CLOSING);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_int_equal(third->state, CLIENT_OPEN);
    assert_int_equal(light->state, CLIENT_OPEN);
    assert_int_equal(clients_cut(), 2);
    assert_in_range(atomic_load(&memory.total), 8 * MEGABYTE, CEILING);
}

/* Many connections take no more than one. */
static void
who_takes_most_over_many_connections_goes_before_one_that_takes_more_by_itself(void **state)
{
    struct client *alone = client_of_megabytes(6), *few[3] = {client_of_megabytes(5)};
    (void)state;
    few[1] = neighbour_of_megabytes(few[0], 3);
    few[2] = neighbour_of_megabytes(few[0], 4);
    client_memory_check(&fake.clients);
    assert_int_equal(alone->state, CLIENT_OPEN);
    assert_int_equal(few[0]->state, CLIENT_CLOSING);
    assert_int_equal(few[1]->state, CLIENT_OPEN);
    assert_int_equal(few[2]->state, CLIENT_OPEN);
}

static void a_host_is_cut_down_to_what_the_next_one_takes(void **state)
{
    struct client *first = client_of_megabytes(3), *heavy = client_of_megabytes(20);
    (void)state;
    for (int i = 0; i < 9; i++)
        neighbour_of_megabytes(first, 3);
    client_memory_check(&fake.clients); /* 30 and 20 of 16: three of the many, then the one */
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_in_range(atomic_load(&memory.total), 12 * MEGABYTE, CEILING);
    assert_in_range(clients_cut(), 6, 7);
}

static void of_a_host_with_many_clients_no_more_go_than_must(void **state)
{
    struct client *first = client_of_megabytes(1);
    (void)state;
    for (int i = 0; i < 199; i++)
        neighbour_of_megabytes(first, 1);
    client_memory_check(&fake.clients);
    assert_in_range(clients_cut(), 184, 186);
    assert_in_range(atomic_load(&memory.total), 14 * MEGABYTE, CEILING);
}

static void what_is_held_back_of_a_transaction_counts(void **state)
{
    struct client *client = client_add(&fake);
    (void)state;
    buffer_try_reserve(&client->pinned.late, 9 * MEGABYTE);
    client_memory_check(&fake.clients);
    assert_in_range(atomic_load(&memory.total), 9 * MEGABYTE, 10 * MEGABYTE);
    buffer_finish(&client->pinned.late);
}

static void what_was_not_to_be_heard_counts_as_long_as_it_is_there(void **state)
{
    struct client *client = client_add(&fake);
    (void)state;
    buffer_try_reserve(&client->replies.unheard, 9 * MEGABYTE);
    client_memory_check(&fake.clients);
    assert_in_range(atomic_load(&memory.total), 9 * MEGABYTE, 10 * MEGABYTE);
    replies_drop_unheard(&client->replies);
    client_memory_check(&fake.clients);
    assert_in_range(atomic_load(&memory.total), 0, MEGABYTE);
}

static void who_takes_less_than_another_workers_client_stays(void **state)
{
    struct client *heavy = client_of_megabytes(10);
    (void)state;
    atomic_store(&memory.total, 20 * (size_t)MEGABYTE); /* of the other worker */
    atomic_store(&memory.heaviest[1].bytes, 20 * (size_t)MEGABYTE);
    client_memory_check(&fake.clients);
    assert_int_equal(heavy->state, CLIENT_OPEN);
    atomic_store(&memory.heaviest[1].bytes, 5 * (size_t)MEGABYTE); /* it has gone; four are left */
    client_memory_check(&fake.clients);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_int_equal(atomic_load(&memory.total), 20 * MEGABYTE);
}

/* A host's clients are at all workers: which has more of them says nothing of who takes much. */
static void of_one_host_the_largest_client_of_any_worker_goes(void **state)
{
    struct client *small = client_of_megabytes(3);
    struct heaviest_host *there = &memory.heaviest[1];
    (void)state;
    neighbour_of_megabytes(small, 3);
    neighbour_of_megabytes(small, 3);
    atomic_store(&memory.total, 8 * (size_t)MEGABYTE); /* of the other worker */
    atomic_store(&there->origin, small->host->origin);
    atomic_store(&there->bytes, 8 * (size_t)MEGABYTE);
    atomic_store(&there->largest, 8 * (size_t)MEGABYTE);
    client_memory_check(&fake.clients);
    assert_int_equal(clients_cut(), 0);
    atomic_store(&there->largest, 2 * (size_t)MEGABYTE); /* it was many small ones */
    client_memory_check(&fake.clients);
    assert_int_equal(clients_cut(), 1);
}

/* Each worker sees a part of what it takes. */
static void what_a_host_takes_at_all_workers_counts(void **state)
{
    struct client *own = client_of_megabytes(5), *many = client_of_megabytes(4);
    struct heaviest_host *there = &memory.heaviest[1];
    (void)state;
    atomic_store(&memory.total, 8 * (size_t)MEGABYTE);
    atomic_store(&there->origin, many->host->origin);
    atomic_store(&there->bytes, 8 * (size_t)MEGABYTE);
    atomic_store(&there->largest, 1 * (size_t)MEGABYTE);
    client_memory_check(&fake.clients);
    assert_int_equal(own->state, CLIENT_OPEN); /* 5 are less than 12 */
}

/* Here it takes less than another, and as much again elsewhere. */
static void a_host_is_weighed_with_what_it_takes_at_other_workers(void **state)
{
    struct client *alone = client_of_megabytes(7), *spread = client_of_megabytes(6);
    struct heaviest_host *there = &memory.heaviest[1];
    (void)state;
    atomic_store(&memory.total, 6 * (size_t)MEGABYTE);
    atomic_store(&there->origin, spread->host->origin);
    atomic_store(&there->bytes, 6 * (size_t)MEGABYTE);
    atomic_store(&there->largest, 6 * (size_t)MEGABYTE);
    client_memory_check(&fake.clients);
    assert_int_equal(alone->state, CLIENT_OPEN);
    assert_int_equal(spread->state, CLIENT_CLOSING);
}

/* Else any client could take the whole machine by saying so. */
static void no_evict_is_no_way_around_the_ceiling(void **state)
{
    struct client *heavy = client_of_megabytes(12), *light = client_of_megabytes(6);
    (void)state;
    heavy->no_evict = true;
    client_memory_check(&fake.clients);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_int_equal(light->state, CLIENT_OPEN);
}

static void what_came_is_looked_at_when_it_is_much(void **state)
{
    struct client *heavy = client_of_megabytes(20);
    (void)state;
    client_memory_came(&fake.clients, MEGABYTE);
    assert_int_equal(heavy->state, CLIENT_OPEN);
    client_memory_came(&fake.clients, 7 * MEGABYTE);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
}

/* ---- in pieces ---- */

/* So many, from this one on to newer ones. */
static void look_at(struct client *client, unsigned count)
{
    for (; client && count; count--, client = client->previous)
        client_memory_look(client);
}

static void look_at_all(void)
{
    client_memory_begin(&fake.clients);
    look_at(fake.clients.last, UINT_MAX);
    client_memory_settle(&fake.clients);
}

static void looked_at_one_by_one_they_take_what_they_take(void **state)
{
    struct client *first = client_of_megabytes(3);
    (void)state;
    client_of_megabytes(5);
    neighbour_of_megabytes(first, 4);
    look_at_all();
    assert_in_range(atomic_load(&memory.total), 12 * MEGABYTE, 13 * MEGABYTE);
    assert_int_equal(atomic_load(&memory.heaviest[0].origin), first->replies.origin);
    assert_in_range(atomic_load(&memory.heaviest[0].bytes), 7 * MEGABYTE, 8 * MEGABYTE);
    assert_in_range(atomic_load(&memory.heaviest[0].largest), 4 * MEGABYTE, 5 * MEGABYTE);
}

static void who_takes_too_much_is_cut_off_by_a_look_in_pieces(void **state)
{
    struct client *light = client_of_megabytes(2), *heavy = client_of_megabytes(20);
    (void)state;
    look_at_all();
    assert_int_equal(light->state, CLIENT_OPEN);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_in_range(atomic_load(&memory.total), 2 * MEGABYTE, 3 * MEGABYTE);
}

/* It was seen at the one, and then at the other. */
static void nobody_is_cut_off_for_what_was_freed_meanwhile(void **state)
{
    struct client *first = client_of_megabytes(12), *second = client_add(&fake);
    (void)state;
    client_memory_begin(&fake.clients);
    look_at(first, 1);
    buffer_finish(&first->in);
    buffer_try_reserve(&second->in, 12 * MEGABYTE);
    look_at(second, 1);
    client_memory_settle(&fake.clients);
    assert_int_equal(clients_cut(), 0);
    assert_in_range(atomic_load(&memory.total), 12 * MEGABYTE, 13 * MEGABYTE);
}

/* Their host is forgotten, too, as soon as others come. */
static void who_is_heaviest_may_go_while_others_are_looked_at(void **state)
{
    struct client *heavy = client_of_megabytes(9), *light = client_of_megabytes(2);
    uint64_t origin = heavy->replies.origin;
    (void)state;
    client_memory_begin(&fake.clients);
    look_at(heavy, 1);
    client_remove(heavy);
    for (int i = 0; i < 8; i++)
        client_add(&fake);
    look_at(light, UINT_MAX);
    client_memory_settle(&fake.clients);
    assert_int_equal(atomic_load(&memory.heaviest[0].origin), origin);
    look_at_all();
    assert_in_range(atomic_load(&memory.total), 2 * MEGABYTE, 3 * MEGABYTE);
    assert_int_equal(atomic_load(&memory.heaviest[0].origin), light->replies.origin);
}

/* That one is later. */
static void a_look_at_all_at_once_ends_the_one_in_pieces(void **state)
{
    struct client *first = client_of_megabytes(4), *second = client_of_megabytes(5);
    (void)state;
    client_memory_begin(&fake.clients);
    look_at(first, 1);
    buffer_finish(&first->in);
    client_memory_check(&fake.clients);
    look_at(second, 1);
    client_memory_settle(&fake.clients);
    assert_in_range(atomic_load(&memory.total), 5 * MEGABYTE, 6 * MEGABYTE);
    assert_in_range(atomic_load(&memory.heaviest[0].bytes), 5 * MEGABYTE, 6 * MEGABYTE);
}

/* Whose it is may have been looked at before. */
static void what_comes_during_a_look_counts_beyond_it(void **state)
{
    struct client *heavy = client_add(&fake);
    (void)state;
    client_memory_came(&fake.clients, 5 * MEGABYTE);
    client_memory_begin(&fake.clients);
    look_at(heavy, 1);
    buffer_try_reserve(&heavy->in, 20 * MEGABYTE);
    client_memory_came(&fake.clients, 2 * MEGABYTE);
    client_memory_settle(&fake.clients);
    assert_int_equal(heavy->state, CLIENT_OPEN);
    client_memory_came(&fake.clients, 6 * MEGABYTE);
    assert_int_equal(heavy->state, CLIENT_CLOSING);
}

/* They come and are cut off before anybody looks at what may be given back; and they are freed only
 * after that. */
static void what_cut_clients_took_is_given_back_when_they_are_freed(void **state)
{
    struct client *heavy[100];
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        heavy[i] = client_add(&fake);
        buffer_try_reserve(&heavy[i]->in, 700 * 1024);
    }
    client_memory_came(&fake.clients, 8 * MEGABYTE);
    assert_in_range(clients_cut(), 76, 99);
    assert_in_range(fake.clients.memory_peak.bytes, 60 * MEGABYTE, 80 * MEGABYTE);
    look_at_all();
    assert_true(fake.clients.memory_peak.bytes >= 60 * MEGABYTE);
    for (size_t i = 0; i < 100; i++)
        buffer_finish(&heavy[i]->in);
    look_at_all();
    assert_true(fake.clients.memory_peak.bytes < MEGABYTE);
}

static void what_is_not_mallocs_is_no_peak_that_it_keeps(void **state)
{
    struct client *heavy = client_of_megabytes(40);
    (void)state;
    look_at_all();
    assert_int_equal(heavy->state, CLIENT_CLOSING);
    assert_true(fake.clients.memory_peak.bytes < MEGABYTE);
}

static void without_a_bound_nobody_is_looked_at(void **state)
{
    struct client *heavy = client_of_megabytes(40);
    (void)state;
    fake.clients.memory = NULL;
    look_at_all();
    assert_int_equal(heavy->state, CLIENT_OPEN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_clients, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(below_the_ceiling_nobody_is_cut_off),
        TEST(above_it_those_who_take_most_go_until_it_is_enough),
        TEST(who_takes_most_over_many_connections_goes_before_one_that_takes_more_by_itself),
        TEST(a_host_is_cut_down_to_what_the_next_one_takes),
        TEST(of_a_host_with_many_clients_no_more_go_than_must),
        TEST(what_is_held_back_of_a_transaction_counts),
        TEST(what_was_not_to_be_heard_counts_as_long_as_it_is_there),
        TEST(who_takes_less_than_another_workers_client_stays),
        TEST(of_one_host_the_largest_client_of_any_worker_goes),
        TEST(what_a_host_takes_at_all_workers_counts),
        TEST(a_host_is_weighed_with_what_it_takes_at_other_workers),
        TEST(no_evict_is_no_way_around_the_ceiling),
        TEST(what_came_is_looked_at_when_it_is_much),
        TEST(looked_at_one_by_one_they_take_what_they_take),
        TEST(who_takes_too_much_is_cut_off_by_a_look_in_pieces),
        TEST(nobody_is_cut_off_for_what_was_freed_meanwhile),
        TEST(who_is_heaviest_may_go_while_others_are_looked_at),
        TEST(a_look_at_all_at_once_ends_the_one_in_pieces),
        TEST(what_comes_during_a_look_counts_beyond_it),
        TEST(what_cut_clients_took_is_given_back_when_they_are_freed),
        TEST(what_is_not_mallocs_is_no_peak_that_it_keeps),
        TEST(without_a_bound_nobody_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
