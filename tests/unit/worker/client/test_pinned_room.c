/* How many connections of their own the clients of one host may have beside those of others. */
#include "worker/client/pinned.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/client.h"
#include "fakes/clock.h"
#include "fakes/upstream.h"

static const char used_up[] = "-NESTGUARD busy: own_connections are used up\r\n";
static const char used_up_by_host[] =
    "-NESTGUARD busy: own_connections are used up, but for hosts that have fewer\r\n";

static struct fake_clients clients;
static struct client *client;

static void open_with(const char *settings)
{
    now_ms = 1000;
    fake_clients_init(&clients, settings, NULL, NULL);
    client = client_add(&clients);
}

static int open_eight(void **state)
{
    (void)state;
    open_with("own_connections: 8\n");
    return 0;
}

static int open_two(void **state)
{
    (void)state;
    open_with("own_connections: 2\n");
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    fake_clients_finish(&clients);
    return 0;
}

/* Of the client's host. */
static struct client *add_neighbour(void)
{
    struct hosts *hosts = &clients.clients.hosts;
    struct client *neighbour = client_add(&clients);
    host_leave(hosts, neighbour->serving, neighbour->host);
    neighbour->host = host_enter(hosts, neighbour->serving, client->host->origin);
    return neighbour;
}

static void must_take(struct client *taker)
{
    assert_int_equal(pinned_begin(taker), 0);
    taker->pinned.states = PINNED_WATCH;
}

static void take_by_neighbours(unsigned count)
{
    while (count--)
        must_take(add_neighbour());
}

static void must_be_refused(struct client *taker, const char *error)
{
    assert_int_equal(pinned_begin(taker), -EBUSY);
    must_reply(taker, error);
}

static void the_last_quarter_is_for_hosts_that_have_few(void **state)
{
    const struct worker_counters *counters = &client->serving->counters;
    (void)state;
    take_by_neighbours(6);
    must_be_refused(client, used_up_by_host);
    must_take(client_add(&clients));
    must_take(client_add(&clients));
    must_be_refused(client_add(&clients), used_up);
    assert_int_equal(counter_read(&counters->own_refused_host), 1);
    assert_int_equal(counter_read(&counters->own_refused), 1);
}

static void of_very_few_none_is_kept_for_others(void **state)
{
    (void)state;
    take_by_neighbours(2);
    must_be_refused(client, used_up);
}

static void a_host_has_again_what_its_clients_have_given_back(void **state)
{
    (void)state;
    take_by_neighbours(6);
    must_be_refused(client, used_up_by_host);
    client_close(clients.clients.first);
    must_reply(client, "");
    assert_int_equal(client->host->own_connections, 5);
    must_take(client);
}

static void one_that_is_kept_just_in_case_makes_room_for_its_host(void **state)
{
    struct client *idle = add_neighbour();
    (void)state;
    assert_int_equal(pinned_begin(idle), 0);
    take_by_neighbours(5);
    must_take(client);
    assert_null(idle->pinned.own);
    assert_int_equal(client->host->own_connections, 6);
}

/* What is kept just in case counts as theirs until places are lacking. */
static void who_has_used_up_his_hosts_share_takes_none_that_others_keep(void **state)
{
    struct client *stranger = client_add(&clients), *other = client_add(&clients);
    (void)state;
    assert_int_equal(pinned_begin(other), 0);
    assert_int_equal(pinned_begin_login(stranger), 0);
    take_by_neighbours(5);
    must_be_refused(client, used_up_by_host);
    assert_non_null(other->pinned.own);
    assert_non_null(stranger->pinned.own);
    must_take(client_add(&clients)); /* the last place */
    must_take(client_add(&clients)); /* it has few: now one of these two is needed */
    assert_true(!other->pinned.own != !stranger->pinned.own);
}

/* Who asks in vain, again and again, has nobody looked at for that. */
static void one_that_was_busy_is_looked_at_again_when_it_has_come_to_an_end(void **state)
{
    (void)state;
    take_by_neighbours(6);
    struct client *neighbour = clients.clients.first;
    must_be_refused(client, used_up_by_host);
    neighbour->pinned.states = 0; /* and nothing has told of that yet */
    client->serving->turn.number++;
    must_be_refused(client, used_up_by_host);
    assert_non_null(neighbour->pinned.own);
    pinned_flush(neighbour);
    must_take(client);
    assert_null(neighbour->pinned.own);
}

static void who_looks_in_on_all_once_in_a_while_finds_it_too(void **state)
{
    (void)state;
    take_by_neighbours(6);
    struct client *neighbour = clients.clients.first;
    must_be_refused(client, used_up_by_host);
    neighbour->pinned.states = 0;
    pinned_check(neighbour, now_ms);
    must_take(client);
}

static void of_what_strangers_may_have_the_same_holds(void **state)
{
    struct client *guesser = client;
    (void)state;
    for (int i = 0; i < 3; i++, guesser = add_neighbour()) {
        assert_int_equal(pinned_begin_login(guesser), 0);
        guesser->pinned.states = PINNED_WATCH; /* it is not idle */
    }
    assert_int_equal(pinned_begin_login(guesser), -EBUSY);
    must_reply(guesser, used_up);
    assert_int_equal(pinned_begin_login(client_add(&clients)), 0);
}

int main(void)
{
#define ROOM_TEST(name) cmocka_unit_test_setup_teardown(name, open_eight, close_client)
    const struct CMUnitTest tests[] = {
        ROOM_TEST(the_last_quarter_is_for_hosts_that_have_few),
        cmocka_unit_test_setup_teardown(of_very_few_none_is_kept_for_others, open_two,
                                        close_client),
        ROOM_TEST(a_host_has_again_what_its_clients_have_given_back),
        ROOM_TEST(one_that_is_kept_just_in_case_makes_room_for_its_host),
        ROOM_TEST(who_has_used_up_his_hosts_share_takes_none_that_others_keep),
        ROOM_TEST(one_that_was_busy_is_looked_at_again_when_it_has_come_to_an_end),
        ROOM_TEST(who_looks_in_on_all_once_in_a_while_finds_it_too),
        ROOM_TEST(of_what_strangers_may_have_the_same_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
