/* What the clients of one host have together, and for how long that is remembered. */
#include "worker/reply/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/client.h"

enum { ONE = 1001, OTHER = 1002 };

static struct fake_clients clients;
static struct hosts hosts;

static struct host *enter(uint64_t origin)
{
    return host_enter(&hosts, clients.clients.serving, origin);
}

static void leave(struct host *host)
{
    host_leave(&hosts, clients.clients.serving, host);
}

static int open_hosts(void **state)
{
    (void)state;
    fake_clients_init(&clients, "max_hints: 100\n", NULL, NULL);
    clients.clients.serving->hosts = &hosts;
    return 0;
}

static int close_hosts(void **state)
{
    (void)state;
    hosts_finish(&hosts);
    hosts = (struct hosts){.first_left = NULL};
    fake_clients_finish(&clients);
    return 0;
}

static void take_hint(struct host *host)
{
    struct hint_room room = hosts_hint_room(clients.clients.serving);
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
    clients.clients.serving->view->generation->settled++;
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
    hosts_give_back(clients.clients.serving, ONE, 1);
    assert_int_equal(host->hints.count, 1);
    hosts_grant(clients.clients.serving, ONE, 1);
    assert_int_equal(host->hints.count, 2);
    hosts_give_back(clients.clients.serving, ONE, 2);
    assert_int_equal(hosts.all.count, 0);
    hosts_give_back(clients.clients.serving, ONE, 1);
    hosts_grant(clients.clients.serving, ONE, 1);
    assert_int_equal(hosts.all.count, 0);
}

int main(void)
{
#define HOSTS_TEST(name) cmocka_unit_test_setup_teardown(name, open_hosts, close_hosts)
    const struct CMUnitTest tests[] = {HOSTS_TEST(clients_of_one_host_are_counted_together),
                                       HOSTS_TEST(who_comes_back_has_what_he_had),
                                       HOSTS_TEST(a_host_is_forgotten_when_its_hints_have_ended),
                                       HOSTS_TEST(a_host_without_clients_gets_its_places_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
