/* When generations are built, with a builder that is done, and a timer that fires, when the test
 * says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "build/renewal.h"
#include "fakes/config_file.h"

#include <stdio.h>
#include <stdlib.h>

static const char replication[] = "cache: redis://127.0.0.1\n"
                                  "database: postgresql://app@db/shop\n"
                                  "keyspaces:\n"
                                  "  - {name: items, key: \"item:{id}\", table: items, value: v}\n";
static const char listed[] = "cache: redis://127.0.0.1\n"
                             "keyspaces:\n"
                             "  - {name: items, key: \"item:{id}\", source: \"file:/ids\",\n"
                             "     on_miss: pass}\n";
static const char polling[] = "cache: redis://127.0.0.1\n"
                              "database: postgresql://app@db/shop\n"
                              "sync: poll\n"
                              "poll_interval: 60s\n"
                              "keyspaces:\n"
                              "  - {name: items, key: \"item:{id}\", table: items, value: v}\n";

/* ---- what the module stands on ---- */

struct builder {
    bool stopped, hurried;
};

static struct {
    uint64_t now_ms;
    uv_timer_cb timer; /* NULL: it does not run */
    uint64_t due_ms;
    bool no_thread;
    struct builder builder;
    uint64_t built_for; /* number of the generation that the builder is at; 0: at none */
    builder_done done;
    void *arg;
} fake;

uint64_t clock_ms(void)
{
    return fake.now_ms;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    (void)loop;
    (void)timer;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
    (void)timer;
    assert_int_equal(repeat, 0);
    fake.timer = callback;
    fake.due_ms = fake.now_ms + timeout;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    (void)timer;
    fake.timer = NULL;
    return 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    (void)handle;
    assert_null(closed);
    fake.timer = NULL;
}

struct builder *builder_start(uv_loop_t *loop, const struct builder_options *options)
{
    (void)loop;
    assert_int_equal(fake.built_for, 0); /* two would need twice the memory */
    assert_non_null(options->config);
    assert_int_equal(options->replaced[0], 0); /* as nothing is in force */
    free(options->replaced);
    free(options->guarded);
    if (fake.no_thread)
        return NULL;
    fake.builder.hurried = options->hurried;
    fake.built_for = options->number;
    fake.done = options->done;
    fake.arg = options->arg;
    return &fake.builder;
}

void builder_stop(struct builder *builder)
{
    builder->stopped = true;
}

void builder_hurry(struct builder *builder, bool hurried)
{
    builder->hurried = hurried;
}

struct build_progress builder_progress(struct builder *builder)
{
    (void)builder;
    return (struct build_progress){.phase = BUILD_CONNECTING};
}

const char *build_phase_text(enum build_phase phase)
{
    (void)phase;
    return "connecting";
}

void log_line(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

/* ---- whose generations they are ---- */

struct bench {
    const struct generation *in_force; /* NULL: none is */
    const char *lacks;
    struct renewal renewal;
    struct shared_config *shared;
    int announced, completed, idle;
    bool follows; /* complete() leaves it to the test to settle */
};

static struct shared_config *config_of_bench(void *arg)
{
    return ((struct bench *)arg)->shared;
}

static const struct generation *in_force_of_bench(void *arg)
{
    return ((struct bench *)arg)->in_force;
}

static void on_announce(void *arg)
{
    ((struct bench *)arg)->announced++;
}

static void on_complete(void *arg, struct built *built)
{
    struct bench *bench = arg;
    assert_non_null(built->generation);
    bench->completed++;
    if (!bench->follows)
        renewal_settle(&bench->renewal, NULL);
}

static bool none_guards(void *arg, size_t keyspace)
{
    (void)arg;
    (void)keyspace;
    return false;
}

static void on_lacks(void *arg, size_t keyspace, const char *why)
{
    struct bench *bench = arg;
    assert_int_equal(keyspace, 0);
    bench->lacks = why;
}

static void on_idle(void *arg)
{
    struct bench *bench = arg;
    assert_int_equal(bench->renewal.phase, RENEWAL_IDLE);
    bench->idle++;
}

static void bench_init(struct bench *bench, const char *text)
{
    memset(&fake, 0, sizeof fake);
    fake.now_ms = 100000;
    *bench = (struct bench){.shared = shared_config_create(config_from_text(text)),
                            .follows = text == replication};
    renewal_init(&bench->renewal, NULL,
                 &(struct renewal_options){.config = config_of_bench,
                                           .in_force = in_force_of_bench,
                                           .guards = none_guards,
                                           .lacks = on_lacks,
                                           .announce = on_announce,
                                           .complete = on_complete,
                                           .idle = on_idle,
                                           .arg = bench});
}

/* Nothing holds the configuration any more. */
static void bench_finish(struct bench *bench)
{
    assert_int_equal(bench->shared->references, 1);
    shared_config_release(bench->shared);
}

static void builder_ends(const char *error)
{
    struct generation *generation = generation_create(fake.built_for, 0);
    struct built built = {.generation = generation};
    struct pg_error why = {.text = ""};
    assert_int_not_equal(fake.built_for, 0);
    fake.built_for = 0;
    snprintf(why.text, sizeof why.text, "%s", error ? error : "");
    fake.done(fake.arg, &built, error ? &why : NULL);
    generation_release(generation);
    shared_config_release(built.config);
}

/* A part of a wait after a failure is drawn. */
static void timer_fires(struct bench *bench, uint64_t after_ms)
{
    uv_timer_cb callback = fake.timer;
    assert_non_null(callback);
    assert_in_range(fake.due_ms - fake.now_ms, after_ms * 3 / 4, after_ms);
    fake.now_ms = fake.due_ms;
    fake.timer = NULL;
    callback(&bench->renewal.timer);
}

/* From its announcement to its being in force. */
static void one_comes_into_force(struct bench *bench)
{
    renewal_announced(&bench->renewal);
    builder_ends(NULL);
    if (bench->follows)
        renewal_settle(&bench->renewal, NULL);
    assert_int_equal(bench->renewal.phase, RENEWAL_IDLE);
    assert_string_equal(bench->renewal.error, "");
}

/* ---- tests ---- */

static void a_snapshot_is_taken_when_all_know_of_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    assert_int_equal(renewal_begin(&bench.renewal), 1);
    assert_int_equal(bench.announced, 1);
    assert_int_equal(fake.built_for, 0);
    renewal_announced(&bench.renewal);
    assert_int_equal(fake.built_for, 1);
    renewal_announced(&bench.renewal); /* of a view that says something else */
    builder_ends(NULL);
    assert_int_equal(bench.completed, 1);
    assert_int_equal(bench.idle, 0);
    renewal_settle(&bench.renewal, NULL);
    assert_int_equal(bench.idle, 1);
    assert_null(fake.timer);
    bench_finish(&bench);
}

static void what_is_wanted_meanwhile_comes_behind_and_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    assert_int_equal(renewal_begin(&bench.renewal), 2);
    renewal_announced(&bench.renewal);
    assert_int_equal(renewal_begin(&bench.renewal), 2);
    builder_ends(NULL);
    assert_int_equal(renewal_begin(&bench.renewal), 2);
    assert_int_equal(bench.announced, 1);
    renewal_settle(&bench.renewal, NULL);
    assert_int_equal(bench.announced, 2);
    one_comes_into_force(&bench);
    assert_int_equal(bench.announced, 2);
    assert_int_equal(bench.renewal.newest, 2);
    bench_finish(&bench);
}

static void failures_are_tried_again_later_and_later(void **state)
{
    static const uint64_t waits[] = {500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        renewal_announced(&bench.renewal);
        builder_ends("no slot is free");
        assert_int_equal(bench.renewal.failures, i + 1);
        assert_string_equal(bench.renewal.error, "no slot is free");
        timer_fires(&bench, waits[i]);
    }
    one_comes_into_force(&bench);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    builder_ends("again");
    timer_fires(&bench, waits[0]);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

/* What was lost has a reason, too, but no build has failed. */
static void what_is_to_be_replaced_has_not_failed_to_be_built(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    renewal_replace(&bench.renewal, "the stream was lost");
    assert_string_equal(renewal_report(&bench.renewal).error, "the stream was lost");
    assert_false(renewal_report(&bench.renewal).failing);
    timer_fires(&bench, 500);
    renewal_announced(&bench.renewal);
    builder_ends("no slot is free");
    assert_true(renewal_report(&bench.renewal).failing);
    timer_fires(&bench, 1000);
    one_comes_into_force(&bench);
    assert_false(renewal_report(&bench.renewal).failing);
    bench_finish(&bench);
}

/* A reload has taken away the last table. */
static void what_needs_no_build_any_more_does_not_fail(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    builder_ends("no slot is free");
    shared_config_release(bench.shared);
    bench.shared = shared_config_create(config_from_text(listed));
    timer_fires(&bench, 500);
    assert_int_equal(bench.renewal.phase, RENEWAL_IDLE);
    assert_false(renewal_report(&bench.renewal).failing);
    assert_string_equal(renewal_report(&bench.renewal).error, "");
    assert_true(renewal_takes_wishes(&bench.renewal));
    bench_finish(&bench);
}

static void one_that_cannot_be_followed_has_failed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    builder_ends(NULL);
    renewal_settle(&bench.renewal, "the self-check failed");
    assert_string_equal(bench.renewal.error, "the self-check failed");
    assert_int_equal(bench.renewal.failures, 1);
    timer_fires(&bench, 500);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

static void haste_is_told_to_the_one_at_work_and_the_next(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    assert_true(fake.builder.hurried); /* the first of all: none guards */
    builder_ends(NULL);
    renewal_settle(&bench.renewal, NULL);
    renewal_hurry(&bench.renewal, false);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    assert_false(fake.builder.hurried);
    renewal_hurry(&bench.renewal, true);
    assert_true(fake.builder.hurried);
    builder_ends(NULL);
    renewal_settle(&bench.renewal, NULL);
    bench_finish(&bench);
}

static void without_a_thread_it_is_tried_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    fake.no_thread = true;
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    assert_int_equal(bench.renewal.failures, 1);
    fake.no_thread = false;
    timer_fires(&bench, 500);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

/* ---- a generation in force that is lost ---- */

static void one_that_lasted_is_replaced_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    fake.now_ms += 30001;
    renewal_replace(&bench.renewal, "the stream was lost");
    assert_int_equal(bench.renewal.phase, RENEWAL_ANNOUNCING);
    assert_string_equal(bench.renewal.error, "the stream was lost");
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

/* Or a table that is altered in a loop would have all its rows read in a loop. */
static void those_that_do_not_last_are_replaced_later_and_later(void **state)
{
    static const uint64_t waits[] = {500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        one_comes_into_force(&bench);
        fake.now_ms += 100;
        renewal_replace(&bench.renewal, "altered");
        assert_int_equal(bench.renewal.phase, RENEWAL_IDLE);
        timer_fires(&bench, waits[i]);
    }
    one_comes_into_force(&bench);
    fake.now_ms += 30001;
    renewal_replace(&bench.renewal, "altered");
    one_comes_into_force(&bench);
    renewal_replace(&bench.renewal, "altered");
    timer_fires(&bench, 500);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

static void one_that_is_lost_while_the_next_is_built_has_its_successor(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    renewal_replace(&bench.renewal, "the stream was lost");
    assert_null(fake.timer);
    builder_ends(NULL);
    renewal_replace(&bench.renewal, "once more");
    renewal_settle(&bench.renewal, NULL);
    assert_int_equal(bench.announced, 2);
    assert_null(fake.timer);
    bench_finish(&bench);
}

static void a_call_does_not_wait_for_the_next_try(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    renewal_replace(&bench.renewal, "altered");
    assert_int_equal(renewal_begin(&bench.renewal), 2);
    assert_null(fake.timer);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

/* A filter that is nearly full is so at every look, also while what fails is to be tried again. */
static void what_the_guard_wants_itself_waits_for_the_next_try(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_wish(&bench.renewal);
    renewal_announced(&bench.renewal);
    builder_ends("max_filter_memory is used up");
    assert_false(renewal_takes_wishes(&bench.renewal));
    renewal_wish(&bench.renewal);
    assert_int_equal(bench.renewal.newest, 1);
    timer_fires(&bench, 500);
    assert_int_equal(bench.renewal.newest, 2);
    one_comes_into_force(&bench);
    assert_true(renewal_takes_wishes(&bench.renewal));
    bench_finish(&bench);
}

/* A try for what does not guard does for the others, too, when something is wanted of them. */
static void a_try_takes_on_what_is_wanted_meanwhile(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    renewal_replace(&bench.renewal, "altered");
    assert_false(bench.renewal.for_itself);
    assert_true(renewal_takes_wishes(&bench.renewal));
    renewal_wish(&bench.renewal);
    assert_int_equal(bench.renewal.newest, 1);
    assert_false(renewal_takes_wishes(&bench.renewal));
    timer_fires(&bench, 500);
    assert_true(bench.renewal.for_itself);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

static void what_may_be_wanted_again_rests_for_ten_builds(void **state)
{
    struct generation slow = {.build_seconds = 60};
    struct bench bench;
    (void)state;
    bench_init(&bench, polling);
    renewal_begin(&bench.renewal);
    one_comes_into_force(&bench);
    assert_true(renewal_has_rested(&bench.renewal, fake.now_ms + 1000));
    bench.in_force = &slow;
    assert_false(renewal_has_rested(&bench.renewal, fake.now_ms + 600000));
    assert_true(renewal_has_rested(&bench.renewal, fake.now_ms + 601000));
    bench_finish(&bench);
}

/* ---- sync: poll ---- */

static void it_is_built_again_after_the_interval(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, polling);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    fake.now_ms += 7000; /* it takes as long; the interval is from beginning to beginning */
    builder_ends(NULL);
    timer_fires(&bench, 53000);
    renewal_announced(&bench.renewal);
    builder_ends("the database is down");
    renewal_reschedule(&bench.renewal); /* another interval puts no try off */
    timer_fires(&bench, 500);
    renewal_announced(&bench.renewal);
    fake.now_ms += 90000;
    builder_ends(NULL);
    timer_fires(&bench, 0);
    one_comes_into_force(&bench);
    bench_finish(&bench);
}

/* ---- the end ---- */

static void nothing_begins_behind_the_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    renewal_announced(&bench.renewal);
    renewal_begin(&bench.renewal);
    renewal_stop(&bench.renewal);
    assert_true(fake.builder.stopped);
    builder_ends(NULL);
    assert_int_equal(bench.completed, 0);
    assert_int_equal(bench.announced, 1);
    assert_null(fake.timer);
    bench_finish(&bench);
}

static void an_announcement_that_comes_behind_the_end_begins_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, replication);
    renewal_begin(&bench.renewal);
    renewal_stop(&bench.renewal);
    renewal_announced(&bench.renewal);
    assert_int_equal(fake.built_for, 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_taken_when_all_know_of_it),
        cmocka_unit_test(what_is_wanted_meanwhile_comes_behind_and_once),
        cmocka_unit_test(failures_are_tried_again_later_and_later),
        cmocka_unit_test(what_is_to_be_replaced_has_not_failed_to_be_built),
        cmocka_unit_test(what_needs_no_build_any_more_does_not_fail),
        cmocka_unit_test(one_that_cannot_be_followed_has_failed),
        cmocka_unit_test(haste_is_told_to_the_one_at_work_and_the_next),
        cmocka_unit_test(without_a_thread_it_is_tried_again),
        cmocka_unit_test(one_that_lasted_is_replaced_at_once),
        cmocka_unit_test(those_that_do_not_last_are_replaced_later_and_later),
        cmocka_unit_test(one_that_is_lost_while_the_next_is_built_has_its_successor),
        cmocka_unit_test(a_call_does_not_wait_for_the_next_try),
        cmocka_unit_test(what_the_guard_wants_itself_waits_for_the_next_try),
        cmocka_unit_test(a_try_takes_on_what_is_wanted_meanwhile),
        cmocka_unit_test(what_may_be_wanted_again_rests_for_ten_builds),
        cmocka_unit_test(it_is_built_again_after_the_interval),
        cmocka_unit_test(nothing_begins_behind_the_end),
        cmocka_unit_test(an_announcement_that_comes_behind_the_end_begins_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
