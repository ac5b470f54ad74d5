/* What the clients of one host have together, and for how long that is remembered. */
#include "worker/reply/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/clock.h"
#include "fakes/serving.h"

enum { ONE = 1001, OTHER = 1002 };

static struct fake_serving fake;
static struct hosts hosts;

static struct host *enter(uint64_t origin)
{
    return host_enter(&hosts, fake.serving, origin);
}

static void leave(struct host *host)
{
    host_leave(&hosts, fake.serving, host);
}

static int open_hosts(void **state)
{
    (void)state;
    fake_serving_init(&fake, 1, "max_hints: 100\n", NULL, NULL);
    fake.serving->hosts = &hosts;
    return 0;
}

static int close_hosts(void **state)
{
    (void)state;
    hosts_finish(&hosts);
    hosts = (struct hosts){.all.count = 0};
    fake_serving_finish(&fake);
    return 0;
}

static void take_hint(struct host *host)
{
    struct hint_room room = hosts_hint_room(fake.serving);
    struct hint_share client = {0};
    assert_true(hint_share_take(&client, &host->hints, &room, 1));
}

static void clients_of_one_host_are_counted_together(void **state)
{
    (void)state;
    struct host *host = enter(ONE), *other = enter(OTHER);
    assert_ptr_equal(enter(ONE), host);
    assert_ptr_not_equal(other, host);
    assert_int_equal(host->clients, 2);
    leave(other);
    leave(host);
    assert_int_equal(hosts.all.count, 1);
    leave(host);
    assert_int_equal(hosts.all.count, 0);
}

static void who_comes_back_has_what_he_had(void **state)
{
    (void)state;
    struct host *host = enter(ONE);
    take_hint(host);
    leave(host);
    assert_ptr_equal(enter(ONE), host);
    assert_int_equal(host->hints.count, 1);
    leave(host);
    assert_int_equal(hosts.all.count, 1);
}

/* A look at two hosts each. */
static void come_and_go(uint64_t origin, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        leave(enter(origin));
}

static void a_host_is_forgotten_when_its_hints_have_ended(void **state)
{
    (void)state;
    struct host *host = enter(ONE), *third = enter(3);
    take_hint(host);
    take_hint(third);
    leave(host);
    leave(third);
    come_and_go(OTHER, 10);
    assert_int_equal(hosts.all.count, 2);
    fake.serving->view->generation->settled++;
    come_and_go(OTHER, 2);
    assert_int_equal(hosts.all.count, 0);
}

/* Of many that come once some may wait to be looked at, behind those that stay. */
static void those_that_could_be_forgotten_are_few(void **state)
{
    enum { STAY = 100 };
    (void)state;
    struct host *stays[STAY];
    for (unsigned i = 0; i < STAY; i++)
        stays[i] = enter(i);
    for (unsigned i = 0; i < 100 * STAY; i++) {
        come_and_go(STAY + i, 1);
        assert_true(hosts.all.count <= 2 * STAY);
    }
    for (unsigned i = 0; i < STAY; i++)
        leave(stays[i]);
    come_and_go(0, STAY);
    assert_int_equal(hosts.all.count, 0);
}

/* Then nothing is left of it to be remembered. */
static void a_host_without_clients_gets_its_places_back(void **state)
{
    (void)state;
    struct host *host = enter(ONE);
    take_hint(host);
    take_hint(host);
    leave(host);
    hosts_give_back(fake.serving, ONE, 1);
    assert_int_equal(host->hints.count, 1);
    hosts_grant(fake.serving, ONE, 1);
    assert_int_equal(host->hints.count, 2);
    hosts_give_back(fake.serving, ONE, 2);
    come_and_go(OTHER, 1);
    assert_int_equal(hosts.all.count, 0);
    hosts_give_back(fake.serving, ONE, 1);
    hosts_grant(fake.serving, ONE, 1);
    assert_int_equal(hosts.all.count, 0);
}

enum { MEGABYTE = 1024 * 1024 };

static void note(uint64_t origin, size_t bytes)
{
    hosts_note_large(fake.serving, origin, bytes);
}

static void a_host_takes_much_for_a_while(void **state)
{
    (void)state;
    struct host *host = enter(ONE), *other = enter(OTHER);
    note(ONE, 7 * MEGABYTE);
    assert_false(host_takes_much(host));
    note(ONE, 2 * MEGABYTE);
    assert_true(host_takes_much(host));
    assert_false(host_takes_much(other));
    now_ms += 9999;
    assert_true(host_takes_much(host));
    now_ms++;
    assert_false(host_takes_much(host));
    leave(other);
    leave(host);
}

/* Whether it takes them while its clients are there, or has only asked. */
static void what_a_host_took_is_remembered_without_clients(void **state)
{
    (void)state;
    come_and_go(ONE, 1);
    for (unsigned i = 0; i < 3; i++) {
        note(ONE, 3 * MEGABYTE);
        come_and_go(OTHER, 10);
    }
    struct host *host = enter(ONE);
    assert_true(host_takes_much(host));
    leave(host);
    now_ms += 9999;
    come_and_go(OTHER, 10);
    assert_int_equal(hosts.all.count, 1);
    now_ms++;
    come_and_go(OTHER, 10);
    assert_int_equal(hosts.all.count, 0);
}

static void a_little_is_soon_forgotten(void **state)
{
    (void)state;
    for (uint64_t origin = 0; origin < 10000; origin++, now_ms++) {
        note(origin, 32 * 1024);
        come_and_go(origin, 1);
        assert_true(hosts.all.count < 20);
    }
    now_ms += 4;
    come_and_go(0, 20);
    assert_int_equal(hosts.all.count, 0);
}

static void what_comes_slowly_is_not_much(void **state)
{
    (void)state;
    struct host *host = enter(ONE), *other = enter(OTHER);
    for (int i = 0; i < 1000; i++, now_ms += 100)
        note(ONE, MEGABYTE / 2);
    assert_false(host_takes_much(host));
    for (int i = 0; i < 100; i++, now_ms += 100)
        note(ONE, MEGABYTE);
    assert_true(host_takes_much(host));
    leave(other);
    leave(host);
}

int main(void)
{
#define HOSTS_TEST(name) cmocka_unit_test_setup_teardown(name, open_hosts, close_hosts)
    const struct CMUnitTest tests[] = {HOSTS_TEST(clients_of_one_host_are_counted_together),
                                       HOSTS_TEST(who_comes_back_has_what_he_had),
                                       HOSTS_TEST(a_host_is_forgotten_when_its_hints_have_ended),
                                       HOSTS_TEST(those_that_could_be_forgotten_are_few),
                                       HOSTS_TEST(a_host_without_clients_gets_its_places_back),
                                       HOSTS_TEST(a_host_takes_much_for_a_while),
                                       HOSTS_TEST(what_a_host_took_is_remembered_without_clients),
                                       HOSTS_TEST(a_little_is_soon_forgotten),
                                       HOSTS_TEST(what_comes_slowly_is_not_much)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
