/* Which server connections are kept to: with pools that are told, and lead where the test says. */
#include "keeper/parts/server_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/pg_pool.h"

#include <stdio.h>
#include <string.h>

static const struct pg_server first = {.history = "7/1", .started = "100"},
                              second = {.history = "8/1", .started = "200"},
                              restarted = {.history = "7/1", .started = "300"},
                              standby = {.history = "7/standby", .started = "100", .standby = true},
                              other_standby = {
                                  .history = "7/standby", .started = "400", .standby = true};

static unsigned left;

static void on_left(void *arg, const char *why)
{
    assert_ptr_equal(arg, &left);
    assert_non_null(strstr(why, "another server"));
    left++;
}

/* Loads and checks have pools, and probes where a log is followed. */
static struct server_watch watch_of(bool follows)
{
    static char loads, checks, probes;
    struct server_watch watch;
    memset(&fake_pool, 0, sizeof fake_pool);
    left = 0;
    server_watch_open(&watch, &(struct server_watch_options){
                                  .follows = follows,
                                  .pools = {(struct pg_pool *)&loads, (struct pg_pool *)&checks,
                                            follows ? (struct pg_pool *)&probes : NULL},
                                  .left = on_left,
                                  .arg = &left});
    return watch;
}

/* The pools were told where the watch was made. */
static void finds(struct server_watch *watch, const struct pg_server *server)
{
    fake_pool.rule.on_stranger(watch, server);
}

static bool does(const struct pg_server *server)
{
    struct pg_error error;
    return pg_server_fits(server, &fake_pool.rule.server, &error);
}

static void any_primary_will_do_until_a_generation_is_built(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    assert_true(does(&first) && does(&second) && !does(&standby));
    assert_true(server_watch_keep_to(&watch, &first));
    assert_true(does(&first) && !does(&second) && !does(&standby));
    assert_int_equal(left + fake_pool.renewed, 0);
}

static void a_log_holds_only_until_its_server_is_restarted(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    assert_false(does(&restarted));
    watch = watch_of(false);
    server_watch_keep_to(&watch, &first);
    assert_true(does(&restarted));
}

static void a_connection_to_another_primary_gives_the_first_up(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    finds(&watch, &second);
    assert_int_equal(left, 1);
    assert_int_equal(fake_pool.renewed, 3);
    assert_true(does(&first) && does(&second));
    finds(&watch, &first); /* the pools' next event: nothing is known that could be left */
    assert_int_equal(left, 1);
}

/* One event, one line, one time that connections are opened anew. */
static void its_probes_are_no_news_then(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    finds(&watch, &second);
    server_watch_heard(&watch, second.started);
    assert_true(server_watch_keep_to(&watch, &second));
    server_watch_heard(&watch, second.started);
    assert_int_equal(left, 1);
    assert_int_equal(fake_pool.renewed, 3);
}

static void a_standby_is_no_reason_to_leave_a_log(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    finds(&watch, &standby);
    assert_false(server_watch_keep_to(&watch, &standby));
    assert_int_equal(left + fake_pool.renewed, 0);
    assert_true(does(&first));
}

static void without_a_log_another_standby_may_take_a_standbys_place(void **state)
{
    struct server_watch watch = watch_of(false);
    (void)state;
    assert_true(server_watch_keep_to(&watch, &standby));
    fake_pool.live = 1;
    finds(&watch, &other_standby);
    assert_int_equal(left, 0);
    fake_pool.live = 0;
    finds(&watch, &other_standby);
    assert_int_equal(left, 1);
    assert_int_equal(fake_pool.renewed, 2);
}

static void one_that_has_gone_back_is_waited_for(void **state)
{
    struct server_watch watch = watch_of(false);
    struct pg_server built = standby, back = standby, again = standby;
    (void)state;
    built.position = again.position = 200;
    back.position = 100;
    built.moment = 1;
    back.moment = again.moment = 2;
    assert_true(server_watch_keep_to(&watch, &built));
    assert_false(does(&back));
    finds(&watch, &back);
    assert_false(server_watch_keep_to(&watch, &back));
    assert_int_equal(left + fake_pool.renewed, 0);
    assert_true(server_watch_keep_to(&watch, &again));
    assert_true(does(&again));
}

static void but_not_a_primarys(void **state)
{
    struct server_watch watch = watch_of(false);
    (void)state;
    server_watch_keep_to(&watch, &first);
    assert_false(server_watch_keep_to(&watch, &standby));
    assert_true(does(&first));
}

/* Nothing is known yet, so any server would do: but loads must not stay with the one before. */
static void probes_that_two_servers_answer_open_connections_anew(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_heard(&watch, first.started);
    server_watch_heard(&watch, first.started);
    assert_int_equal(fake_pool.renewed, 0);
    server_watch_heard(&watch, second.started);
    assert_int_equal(fake_pool.renewed, 3);
    assert_int_equal(left, 0);
}

static void a_generation_of_another_server_takes_the_ones_place(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    assert_true(server_watch_keep_to(&watch, &second));
    assert_int_equal(left, 1);
    assert_true(does(&second) && !does(&first));
}

static void nothing_is_left_at_the_end(void **state)
{
    struct server_watch watch = watch_of(true);
    (void)state;
    server_watch_keep_to(&watch, &first);
    server_watch_end(&watch);
    finds(&watch, &second);
    assert_int_equal(left + fake_pool.renewed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_primary_will_do_until_a_generation_is_built),
        cmocka_unit_test(a_log_holds_only_until_its_server_is_restarted),
        cmocka_unit_test(a_connection_to_another_primary_gives_the_first_up),
        cmocka_unit_test(its_probes_are_no_news_then),
        cmocka_unit_test(a_standby_is_no_reason_to_leave_a_log),
        cmocka_unit_test(without_a_log_another_standby_may_take_a_standbys_place),
        cmocka_unit_test(one_that_has_gone_back_is_waited_for),
        cmocka_unit_test(but_not_a_primarys),
        cmocka_unit_test(probes_that_two_servers_answer_open_connections_anew),
        cmocka_unit_test(a_generation_of_another_server_takes_the_ones_place),
        cmocka_unit_test(nothing_is_left_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
