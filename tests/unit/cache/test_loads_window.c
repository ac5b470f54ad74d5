/* How many loads are at the database while others wait: as many as make none of them slower. */
#include "cache/loads_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CONNECTIONS = 4, BUDGET = 200, MS = 1000000 };

/* A database of so many connections, each of which takes `service` for a query and has a way of
 * `way` to it: how long a query takes when `load` of them are under way. */
static uint64_t time_of(uint64_t service, uint64_t way, double load)
{
    double rounds = load / CONNECTIONS;
    double busy = (double)service * (rounds < 1 ? 1 : rounds);
    double alone = (double)(service + way);
    return (uint64_t)(busy > alone ? busy : alone);
}

/* The window after some seconds of demand. */
static double settle(struct load_window *window, uint64_t service, uint64_t way, uint64_t *now)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t took = time_of(service, way, window->size);
        *now += took / (uint64_t)window->size + 1;
        load_window_answered(window, *now, took, true);
    }
    return window->size;
}

static struct load_window window_of(size_t connections, size_t most)
{
    struct load_window window = {0};
    load_window_limit(&window, connections, most);
    return window;
}

static void a_near_database_gets_little_more_than_its_connections_serve(void **state)
{
    struct load_window window = window_of(CONNECTIONS, BUDGET);
    uint64_t now = 0;
    (void)state;
    assert_in_range(settle(&window, 20 * MS, 0, &now), CONNECTIONS, 2 * CONNECTIONS);
}

static void a_distant_one_gets_what_fills_the_way(void **state)
{
    struct load_window window = window_of(CONNECTIONS, BUDGET);
    uint64_t now = 0;
    (void)state;
    assert_in_range(settle(&window, MS / 10, 2 * MS, &now), 80, 140);
}

static void the_budget_is_the_bound(void **state)
{
    struct load_window window = window_of(CONNECTIONS, 10);
    uint64_t now = 0;
    (void)state;
    assert_in_range(settle(&window, MS / 10, 2 * MS, &now), 9, 10);
    assert_true(load_window_has_room(&window, 8));
    assert_false(load_window_has_room(&window, 10));
    load_window_limit(&window, CONNECTIONS, 1);
    assert_true(load_window_has_room(&window, 0));
    assert_false(load_window_has_room(&window, 1));
}

static void without_demand_it_does_not_grow(void **state)
{
    struct load_window window = window_of(CONNECTIONS, BUDGET);
    (void)state;
    for (uint64_t now = 0; now < 10000; now++)
        load_window_answered(&window, now, MS, false);
    assert_in_range(window.size, CONNECTIONS, CONNECTIONS);
}

/* What was quick once may have become slower for good. */
static void a_database_that_has_become_slower_is_looked_at_anew(void **state)
{
    struct load_window window = window_of(CONNECTIONS, BUDGET);
    uint64_t now = 0;
    (void)state;
    settle(&window, MS / 100, MS / 10, &now);
    for (int i = 0; i < 20; i++)
        settle(&window, MS / 10, 3 * MS, &now);
    assert_true(window.size > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_near_database_gets_little_more_than_its_connections_serve),
        cmocka_unit_test(a_distant_one_gets_what_fills_the_way),
        cmocka_unit_test(the_budget_is_the_bound),
        cmocka_unit_test(without_demand_it_does_not_grow),
        cmocka_unit_test(a_database_that_has_become_slower_is_looked_at_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
