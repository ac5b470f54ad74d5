/* Who is met on a tour, by how many visits of the line, whoever comes and goes meanwhile. */
#include "worker/client/tour.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/client.h"
#include "fakes/clock.h"

enum { AT_ONCE = 128, LONGEST_MS = 500, MOST = 100 * 1000 };

static struct fake_clients fake;
static struct tour tour;
static bool owed[MOST]; /* by id: it is there, and has not been met since that was asked for */
static uint64_t last_met;
static unsigned met, ends, others;

/* In the order of their coming, and of those who are there. */
static void meet(struct tour *which, struct client *client)
{
    assert_ptr_equal(which, &tour);
    assert_ptr_equal(roster_find(&fake.clients, client->id), client);
    assert_true(client->id > last_met);
    last_met = client->id;
    owed[client->id] = false;
    met++;
}

static void end(struct tour *which)
{
    assert_false(tour_is_under_way(which));
    last_met = 0;
    ends++;
}

static int open_clients(void **state)
{
    (void)state;
    fake_clients_init(&fake, "", NULL, NULL);
    fake.serving.serving->turn.work = 0; /* one visit in a turn */
    tour = (struct tour){.clients = &fake.clients, .meet = meet, .end = end};
    memset(owed, 0, sizeof owed);
    last_met = 0;
    met = ends = others = 0;
    return 0;
}

static int close_clients(void **state)
{
    (void)state;
    fake_clients_finish(&fake);
    return 0;
}

static void add_clients(unsigned count)
{
    while (count--)
        client_add(&fake);
}

static void meet_turns(unsigned turns, unsigned wanted)
{
    met = 0;
    while (turns--)
        turn_loop(&fake.serving);
    assert_int_equal(met, wanted);
}

static void a_few_are_met_at_once(void **state)
{
    (void)state;
    tour_begin(&tour);
    assert_int_equal(ends, 1);
    add_clients(AT_ONCE - 1);
    tour_begin(&tour);
    assert_int_equal(ends, 2);
    assert_int_equal(met, AT_ONCE - 1);
    assert_false(turn_has_line(&fake.serving.serving->turn));
}

static void many_are_met_some_at_a_time(void **state)
{
    (void)state;
    add_clients(2 * AT_ONCE + 10);
    tour_begin(&tour);
    assert_int_equal(met, AT_ONCE);
    meet_turns(1, AT_ONCE);
    assert_int_equal(ends, 0);
    meet_turns(1, 10);
    assert_int_equal(ends, 1);
    assert_false(tour_is_under_way(&tour));
    assert_false(turn_has_line(&fake.serving.serving->turn));
}

static void count_other(struct turn_task *task)
{
    (void)task;
    others++;
}

static void others_have_their_turn_between(void **state)
{
    struct turn_task other = {.run = count_other, .phase = TURN_READ};
    (void)state;
    add_clients(3 * AT_ONCE);
    tour_begin(&tour);
    turn_line_up(&fake.serving.serving->turn, &other);
    meet_turns(1, AT_ONCE);
    meet_turns(1, 0);
    assert_int_equal(others, 1);
    meet_turns(1, AT_ONCE);
    turn_loop(&fake.serving);
    assert_int_equal(ends, 1);
}

static void who_comes_meanwhile_is_not_met(void **state)
{
    (void)state;
    add_clients(AT_ONCE + 10);
    tour_begin(&tour);
    add_clients(100);
    meet_turns(3, 10);
    assert_int_equal(ends, 1);
}

static void what_is_asked_for_again_is_done_once_more(void **state)
{
    (void)state;
    add_clients(AT_ONCE + 10);
    tour_repeat(&tour);
    add_clients(100);
    tour_repeat(&tour);
    tour_repeat(&tour);
    meet_turns(1, 10);
    assert_int_equal(ends, 1);
    assert_true(tour_is_under_way(&tour));
    meet_turns(5, AT_ONCE + 110);
    assert_int_equal(ends, 2);
    assert_false(tour_is_under_way(&tour));
}

/* The line was long. */
static void who_is_behind_the_time_meets_more(void **state)
{
    enum { CLIENTS = 10 * AT_ONCE };
    (void)state;
    add_clients(CLIENTS);
    tour_begin(&tour);
    now_ms += LONGEST_MS / 2;
    meet_turns(1, CLIENTS / 2 - AT_ONCE);
    meet_turns(1, AT_ONCE);
    now_ms += LONGEST_MS / 2;
    meet_turns(1, CLIENTS - CLIENTS / 2 - AT_ONCE);
    turn_loop(&fake.serving);
    assert_int_equal(ends, 1);
}

/* ---- a model, at random ---- */

static void ask(void)
{
    for (struct client *client = fake.clients.first; client; client = client->following)
        owed[client->id] = true;
    tour_repeat(&tour);
}

static void must_owe_nothing(void)
{
    for (struct client *client = fake.clients.first; client; client = client->following)
        assert_false(owed[client->id]);
}

/* Often one where the walk would go on, or at an end of the list. */
static struct client *choose(void)
{
    struct client *client = rand() % 2 ? fake.clients.first : fake.clients.last;
    if (rand() % 2 && tour_is_under_way(&tour))
        client = tour.walk.next;
    for (int skip = rand() % 4 ? 0 : rand() % 300; client && skip; skip--)
        client = client->previous;
    return client;
}

static void remove_some(unsigned count)
{
    struct client *client;
    while (count-- && (client = choose()))
        client_remove(client);
}

static void step(void)
{
    unsigned before = met;
    switch (rand() % 8) {
    case 0:
        add_clients((unsigned)rand() % 200);
        break;
    case 1:
        remove_some((unsigned)rand() % 150);
        break;
    case 2:
        ask();
        break;
    default:
        turn_loop(&fake.serving);
    }
    assert_true(met - before <= AT_ONCE);
    if (!tour_is_under_way(&tour))
        must_owe_nothing();
}

static void finish_tour(void)
{
    while (tour_is_under_way(&tour))
        turn_loop(&fake.serving);
    must_owe_nothing();
}

static void all_who_stay_are_met_whoever_comes_and_goes(void **state)
{
    const char *seed = getenv("SEED");
    for (unsigned i = 1; i <= (seed ? 1 : 20); i++) {
        unsigned chosen = seed ? (unsigned)atoi(seed) : i;
        srand(chosen);
        printf("seed %u\n", chosen);
        open_clients(state);
        for (int steps = 0; steps < 1000; steps++)
            step();
        ask();
        finish_tour();
        assert_true(ends > 10);
        close_clients(state);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_clients, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_few_are_met_at_once),
        TEST(many_are_met_some_at_a_time),
        TEST(others_have_their_turn_between),
        TEST(who_comes_meanwhile_is_not_met),
        TEST(what_is_asked_for_again_is_done_once_more),
        TEST(who_is_behind_the_time_meets_more),
        cmocka_unit_test(all_who_stay_are_met_whoever_comes_and_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
