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
    hosts = (struct hosts){.first_left = NULL};
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
    assert_null(hosts.first_left);
    leave(host);
}

static void a_host_is_forgotten_when_its_hints_have_ended(void **state)
{
    (void)state;
    struct host *host = enter(ONE), *third = enter(3);
    take_hint(host);
    take_hint(third);
    leave(host);
    leave(third);
    struct host *other = enter(OTHER);
    assert_int_equal(hosts.all.count, 3);
    fake.serving->view->generation->settled++;
    leave(other);
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
    note(3, 100 * MEGABYTE); /* whose clients have gone */
    leave(other);
    leave(host);
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
                                       HOSTS_TEST(a_host_without_clients_gets_its_places_back),
                                       HOSTS_TEST(a_host_takes_much_for_a_while),
                                       HOSTS_TEST(what_comes_slowly_is_not_much)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
