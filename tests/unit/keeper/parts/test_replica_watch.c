/* What workers say of replicas: asked once a second, one at a time, and told until it is old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fakes/clock.h"
#include "keeper/parts/replica_watch.h"

struct bench {
    uv_loop_t loop;
    struct mailbox keeper, worker;
    struct mailbox *to[1];
    struct outlet outlet;
    struct replica_watch watch;
    unsigned asked;
    size_t answers;  /* so many words are the worker's */
    const char *why; /* of the last of them; NULL: it is read from, too */
};

static void on_keeper(void *arg, struct message *message)
{
    replica_watch_take_back(&((struct bench *)arg)->watch, (struct replicas_message *)message);
}

static void on_worker(void *arg, struct message *message)
{
    struct bench *bench = arg;
    struct replicas_message *replicas = (struct replicas_message *)message;
    bench->asked++;
    assert_true(replicas->room >= bench->answers);
    replicas->count = bench->answers;
    for (size_t i = 0; i < bench->answers; i++)
        replicas->words[i] = (struct replica_word){.address = "10.1.0.7:6379", .is_read = true};
    if (bench->answers && bench->why) {
        struct replica_word *last = &replicas->words[bench->answers - 1];
        *last = (struct replica_word){.address = "10.1.0.9:6379", .why = bench->why};
    }
    mailbox_return(message);
}

static void begin(struct bench *bench)
{
    *bench = (struct bench){.answers = 2};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    mailbox_init(&bench->keeper, &bench->loop, on_keeper, bench);
    mailbox_init(&bench->worker, &bench->loop, on_worker, bench);
    bench->to[0] = &bench->worker;
    bench->outlet = (struct outlet){.sender = &bench->keeper, .to = bench->to, .count = 1};
    bench->watch.outlet = &bench->outlet;
}

static void turn(struct bench *bench)
{
    for (int i = 0; i < 4; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static void end(struct bench *bench)
{
    turn(bench);
    replica_watch_finish(&bench->watch);
    mailbox_close(&bench->keeper);
    mailbox_close(&bench->worker);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void one_worker_is_asked_once_a_second(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench);
    replica_watch_check_time(&bench.watch, true, 5000);
    replica_watch_check_time(&bench.watch, true, 7000); /* the answer has not come yet */
    turn(&bench);
    assert_int_equal(bench.asked, 1);
    assert_int_equal(bench.watch.count, 2);
    assert_string_equal(bench.watch.words[1].address, "10.1.0.7:6379");
    replica_watch_check_time(&bench.watch, true, 5500);
    turn(&bench);
    assert_int_equal(bench.asked, 1);
    bench.answers = 1;
    replica_watch_check_time(&bench.watch, true, 6000);
    turn(&bench);
    assert_int_equal(bench.asked, 2);
    assert_int_equal(bench.watch.count, 1);
    end(&bench);
}

static void nobody_is_asked_and_nothing_told_when_none_are_read_from(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench);
    replica_watch_check_time(&bench.watch, true, 5000);
    turn(&bench);
    replica_watch_check_time(&bench.watch, false, 9000);
    turn(&bench);
    assert_int_equal(bench.asked, 1);
    assert_int_equal(bench.watch.count, 0);
    assert_null(bench.watch.words);
    end(&bench);
}

static void ask_at(struct bench *bench, uint64_t now)
{
    now_ms = now;
    replica_watch_check_time(&bench->watch, true, now);
    turn(bench);
}

static void one_that_is_not_read_from_is_named_in_the_log_and_since_when(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench);
    bench.why = "there is no connection to it";
    ask_at(&bench, 5000);
    assert_int_equal(bench.watch.words[0].since, 0);
    assert_int_equal(bench.watch.words[1].since, 5000);
    assert_false(bench.watch.log.is_bad); /* it may be back in a moment */
    ask_at(&bench, 7000);
    assert_int_equal(bench.watch.words[1].since, 5000);
    assert_true(bench.watch.log.is_bad);
    assert_string_equal(bench.watch.log.text, "10.1.0.9:6379: there is no connection to it");
    bench.why = NULL;
    ask_at(&bench, 9000);
    assert_false(bench.watch.log.is_bad);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_is_asked_once_a_second),
        cmocka_unit_test(nobody_is_asked_and_nothing_told_when_none_are_read_from),
        cmocka_unit_test(one_that_is_not_read_from_is_named_in_the_log_and_since_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
