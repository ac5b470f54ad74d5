/* A worker whose cache is to be elsewhere: what goes over which connection, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker_bench.h"

struct moving {
    struct bench bench; /* its `cache` is the new one, once it was accepted */
    struct shared_config *elsewhere;
    int listener, old_listener, old, client;
};

static void begin(struct moving *moving)
{
    uint16_t port;
    struct bench *bench = &moving->bench;
    bench_init(bench);
    moving->old = bench->cache;
    moving->old_listener = bench->cache_listener;
    moving->listener = bench->cache_listener = listen_somewhere(&port, 0);
    assert_int_equal(listen(moving->listener, 10), 0);
    moving->elsewhere = keyspaces_config(port, "drain_timeout: 300ms\n");
    moving->client = connect_client(bench);
}

static void order_move(struct moving *moving)
{
    struct move_order *order = xcalloc(1, sizeof *order);
    order->message =
        (struct message){.kind = MESSAGE_MOVE, .sender = &moving->bench.keeper.mailbox};
    order->config = moving->elsewhere->config;
    mailbox_post(&moving->bench.worker->serving.mailbox, &order->message);
}

static void wait_for_state(struct moving *moving, enum move_state state)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (atomic_load(&moving->bench.worker->move.state) != state) {
        assert_true(clock_ms() < until);
        uv_sleep(1);
    }
}

static void must_have_moved(struct moving *moving)
{
    free(next_message(&moving->bench.keeper, MESSAGE_MOVE));
}

static void end(struct moving *moving)
{
    close(moving->client);
    if (moving->old >= 0)
        close(moving->old);
    bench_finish(&moving->bench);
    shared_config_release(moving->elsewhere);
    close(moving->old_listener);
}

static void what_is_under_way_is_answered_before_the_new_one_is_sent_anything(void **state)
{
    struct moving moving;
    (void)state;
    begin(&moving);
    say(moving.client, GET_ITEM_1);
    must_hear(moving.old, GET_ITEM_1);
    order_move(&moving);
    serve_cache(&moving.bench);
    wait_for_state(&moving, MOVE_HELD);
    say(moving.client, GET_ITEM_2);
    must_be_silent(moving.bench.cache);
    cache_says(moving.old, "$1\r\n1\r\n");
    must_hear(moving.client, "$1\r\n1\r\n");
    must_hear(moving.bench.cache, GET_ITEM_2);
    cache_says(moving.bench.cache, "$1\r\n2\r\n");
    must_hear(moving.client, "$1\r\n2\r\n");
    must_have_moved(&moving);
    must_end(moving.old, "");
    end(&moving);
}

static void while_the_new_one_does_not_answer_the_old_one_serves(void **state)
{
    struct moving moving;
    (void)state;
    begin(&moving);
    order_move(&moving);
    int fresh = accept_cache(&moving.bench);
    moving.bench.cache = moving.old;
    must_serve(&moving.bench, moving.client);
    moving.bench.cache = fresh;
    cache_says(fresh, WELCOME);
    must_have_moved(&moving);
    must_serve(&moving.bench, moving.client);
    end(&moving);
}

static void an_old_one_that_never_answers_holds_the_new_one_up_for_a_moment_only(void **state)
{
    struct moving moving;
    (void)state;
    begin(&moving);
    say(moving.client, GET_PASSED);
    must_hear(moving.old, GET_PASSED);
    order_move(&moving);
    serve_cache(&moving.bench);
    wait_for_state(&moving, MOVE_LEAVING);
    int other = connect_client(&moving.bench);
    say(other, PING);
    must_hear(moving.bench.cache, PING);
    cache_says(moving.bench.cache, "+PONG\r\n");
    must_hear(other, "+PONG\r\n");
    fake_cache_close(moving.old);
    must_hear(moving.client, CACHE_DOWN);
    must_have_moved(&moving);
    moving.old = -1;
    close(other);
    end(&moving);
}

static void a_transaction_ends_where_it_began(void **state)
{
    struct moving moving;
    (void)state;
    begin(&moving);
    say(moving.client, "*1\r\n$5\r\nMULTI\r\n");
    struct bench old = moving.bench;
    old.cache_listener = moving.old_listener;
    int own = accept_own(&old);
    must_hear(own, "*1\r\n$5\r\nMULTI\r\n");
    cache_says(own, "+OK\r\n");
    must_hear(moving.client, "+OK\r\n");
    order_move(&moving);
    serve_cache(&moving.bench);
    say(moving.client, "*1\r\n$4\r\nEXEC\r\n");
    must_hear(own, "*1\r\n$4\r\nEXEC\r\n");
    cache_says(own, "*0\r\n");
    must_hear(moving.client, "*0\r\n");
    must_have_moved(&moving);
    must_end(own, "");
    must_serve(&moving.bench, moving.client);
    close(own);
    end(&moving);
}

static void the_worker_may_end_in_the_middle_of_it(void **state)
{
    struct moving moving;
    (void)state;
    begin(&moving);
    order_move(&moving);
    int fresh = accept_cache(&moving.bench);
    close(moving.client);
    send_drain(&moving.bench);
    must_have_moved(&moving);
    close(moving.old);
    moving.bench.cache = fresh;
    bench_free(&moving.bench);
    shared_config_release(moving.elsewhere);
    close(moving.old_listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_under_way_is_answered_before_the_new_one_is_sent_anything),
        cmocka_unit_test(while_the_new_one_does_not_answer_the_old_one_serves),
        cmocka_unit_test(an_old_one_that_never_answers_holds_the_new_one_up_for_a_moment_only),
        cmocka_unit_test(a_transaction_ends_where_it_began),
        cmocka_unit_test(the_worker_may_end_in_the_middle_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
