/* The order of events in the life of a generation that follows the log; follower, WAL probe and
 * self-check say what the test has them say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "follow/checks/checks.h"
#include "follow/tracker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAG_MS = 1000, BEGIN = 500 };

/* ---- what the module stands on ---- */

struct follower {
    int unused;
};

struct selfcheck {
    int unused;
};

static struct {
    uint64_t now_ms;
    struct follower follower;
    struct follower_events events;
    void *follower_arg;
    int start_status, closed;
    uint64_t confirmed;
    int asked, vouched, probed_now, probed_soon;
    struct selfcheck check;
    struct selfcheck_options checking; /* done is NULL: none is under way */
    enum selfcheck_outcome outcome;    /* of the last check */
    int checks, renewed, cancelled, forgotten;
} fake;

uint64_t clock_ms(void)
{
    return fake.now_ms;
}

const char follower_altered[] = "it was altered";

int follower_start(struct follower **out, uv_loop_t *loop, const struct follower_options *options,
                   struct pg_error *error)
{
    (void)loop;
    (void)error;
    fake.events = *options->events;
    fake.follower_arg = options->arg;
    if (!fake.start_status)
        *out = &fake.follower;
    return fake.start_status;
}

void follower_confirm(struct follower *follower, uint64_t lsn)
{
    assert_ptr_equal(follower, &fake.follower);
    fake.confirmed = lsn;
}

void follower_ask(struct follower *follower)
{
    assert_ptr_equal(follower, &fake.follower);
    fake.asked++;
}

struct follower_counts follower_counts(const struct follower *follower)
{
    (void)follower;
    return (struct follower_counts){0};
}

void follower_vouch(struct follower *follower, const char *snapshot)
{
    assert_ptr_equal(follower, &fake.follower);
    assert_string_equal(snapshot, "1:1:");
    fake.vouched++;
}

size_t follower_removals(const struct follower *follower, int keyspace)
{
    (void)follower;
    (void)keyspace;
    return 0;
}

void follower_close(struct follower *follower)
{
    fake.closed += follower != NULL;
}

uint64_t pg_stream_consistent_point(const struct pg_stream *stream)
{
    (void)stream;
    return BEGIN;
}

struct pg_pool *checker_pool(struct checker *checker)
{
    (void)checker;
    return NULL;
}

void checker_renew(struct checker *checker)
{
    (void)checker;
    assert_true(fake.checks > 0); /* the first goes over the connection that is there */
    fake.renewed++;
}

void checker_note(struct checker *checker, uint64_t generation,
                  const struct selfcheck_result *result)
{
    (void)checker;
    assert_int_equal(generation, 1);
    assert_int_equal(result->outcome, fake.outcome);
}

void wal_probe_now(struct wal_probe *wal_probe)
{
    (void)wal_probe;
    fake.probed_now++;
}

void wal_probe_soon(struct wal_probe *wal_probe)
{
    (void)wal_probe;
    fake.probed_soon++;
}

struct selfcheck *selfcheck_begin(const struct selfcheck_options *options)
{
    assert_null(fake.checking.done);
    fake.checking = *options;
    fake.checks++;
    return &fake.check;
}

void selfcheck_cancel(struct selfcheck *check)
{
    if (!check)
        return;
    assert_ptr_equal(check, &fake.check);
    fake.checking.done = NULL;
    fake.cancelled++;
}

void fn_checks_changed(struct fn_checks *fn_checks, const struct generation *generation,
                       struct key key)
{
    (void)fn_checks;
    (void)generation;
    (void)key;
}

void fn_checks_known(struct fn_checks *fn_checks, const struct generation *generation,
                     uint64_t known)
{
    (void)fn_checks;
    (void)generation;
    (void)known;
}

void fn_checks_forget(struct fn_checks *fn_checks, const struct generation *generation)
{
    (void)fn_checks;
    (void)generation;
    fake.forgotten++;
}

void log_line(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

/* ---- who is told ---- */

struct bench {
    struct config config;
    struct generation *generation;
    struct tracker *tracker;
    bool takes; /* ready() says so */
    int ready;
    uint64_t known;
    char fault[200];
    int faults;
};

static bool on_ready(void *arg, struct tracker *tracker)
{
    struct bench *bench = arg;
    assert_ptr_equal(tracker, bench->tracker);
    bench->ready++;
    return bench->takes;
}

static void on_known(void *arg, struct tracker *tracker, uint64_t known)
{
    struct bench *bench = arg;
    assert_ptr_equal(tracker, bench->tracker);
    assert_true(known > bench->known);
    bench->known = known;
}

/* As the keeper does it: at once, from within. */
static void on_fault(void *arg, struct tracker *tracker, const char *why)
{
    struct bench *bench = arg;
    assert_ptr_equal(tracker, bench->tracker);
    snprintf(bench->fault, sizeof bench->fault, "%s", why);
    bench->faults++;
    bench->tracker = NULL;
    tracker_close(tracker);
}

static const struct tracker_events events = {
    .ready = on_ready, .known = on_known, .fault = on_fault};

/* Of one keyspace. */
static struct generation *generation_of_one(void)
{
    struct filter_options options = {.capacity = 10, .false_positive_rate = 0.01};
    struct generation *generation = generation_create(1, 1);
    const char *error;
    assert_int_equal(filter_create(&generation->filters[0], &options, &error), 0);
    return generation;
}

static int bench_start(struct bench *bench)
{
    struct pg_error error = {.text = ""};
    struct built built = {.generation = generation_of_one(), .fingerprint = xstrdup("abc@1")};
    fake.now_ms = 100000;
    *bench = (struct bench){.config = {.max_lag_ms = MAX_LAG_MS}, .takes = true};
    bench->generation = built.generation;
    bench->generation->references++;
    struct tracker_options options = {.config = &bench->config, .events = &events, .arg = bench};
    int status = tracker_start(&bench->tracker, NULL, &built, &options, &error);
    assert_null(built.generation);
    assert_null(built.fingerprint);
    return status;
}

static void bench_init(struct bench *bench)
{
    memset(&fake, 0, sizeof fake);
    assert_int_equal(bench_start(bench), 0);
}

/* Nothing is left behind, whoever ended it. */
static void bench_finish(struct bench *bench)
{
    tracker_close(bench->tracker);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(fake.forgotten, 1);
    assert_null(fake.checking.done);
    assert_int_equal(bench->generation->references, 1);
    generation_release(bench->generation);
}

static void probe(struct bench *bench, const char *fingerprint, uint64_t end)
{
    struct probe found = {
        .time = fake.now_ms, .fingerprint = fingerprint, .snapshot = "1:1:", .end = end};
    fake.now_ms += 10;
    tracker_probed(bench->tracker, &found);
}

static void reached(uint64_t lsn)
{
    fake.events.reached(fake.follower_arg, lsn);
}

static void check_ends(enum selfcheck_outcome outcome, const char *why)
{
    void (*done)(void *, const struct selfcheck_result *) = fake.checking.done;
    assert_non_null(done);
    fake.checking.done = NULL;
    fake.outcome = outcome;
    done(fake.checking.arg, &(struct selfcheck_result){.outcome = outcome, .why = why});
}

/* Until it is in force. */
static void come_into_force(struct bench *bench)
{
    probe(bench, "abc@1", 600);
    reached(600);
    check_ends(SELFCHECK_PASSED, "");
    assert_int_equal(bench->ready, 1);
    tracker_release(bench->tracker);
}

/* ---- tests ---- */

static void it_is_checked_when_it_has_caught_up_and_then_offered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    uint64_t asked = fake.now_ms;
    probe(&bench, "abc@1", 600);
    assert_int_equal(fake.asked, 1); /* or an idle server would not tell where it is */
    reached(599);
    assert_int_equal(bench.known, 0);
    assert_int_equal(fake.checks, 0);
    reached(600);
    assert_int_equal(bench.known, asked);
    assert_int_equal(fake.checks, 1);
    assert_int_equal(bench.ready, 0);
    check_ends(SELFCHECK_PASSED, "");
    assert_int_equal(bench.ready, 1);
    bench_finish(&bench);
}

/* What may have been told by half is not vouched for by a probe that finds something altered. */
static void removals_go_with_a_probe_that_finds_all_as_it_was(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    come_into_force(&bench);
    assert_int_equal(fake.vouched, 1);
    fake.probed_now = 0;
    fake.events.unvouched(fake.follower_arg, false);
    assert_true(fake.probed_soon == 1 && fake.probed_now == 0);
    fake.events.unvouched(fake.follower_arg, true);
    assert_true(fake.probed_soon == 1 && fake.probed_now == 1);
    probe(&bench, "abc@1", 700);
    assert_int_equal(fake.vouched, 2);
    fake.events.unvouched(fake.follower_arg, true); /* that did not help: it may be long */
    assert_true(fake.probed_soon == 2 && fake.probed_now == 1);
    fake.events.unvouched(fake.follower_arg, false);
    fake.events.unvouched(fake.follower_arg, true);
    assert_true(fake.probed_soon == 3 && fake.probed_now == 2);
    probe(&bench, "abd@1", 800);
    assert_int_equal(fake.vouched, 2);
    assert_int_equal(bench.faults, 1);
    bench_finish(&bench);
}

/* Or the stream would wait for longer than the database takes to answer. */
static void each_crowd_is_probed_for_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    come_into_force(&bench);
    fake.probed_now = 0;
    fake.events.unvouched(fake.follower_arg, true);
    assert_true(fake.probed_soon == 0 && fake.probed_now == 1);
    probe(&bench, "abc@1", 700);
    fake.events.unvouched(fake.follower_arg, true); /* they are being carried out, all of them */
    assert_true(fake.probed_soon == 1 && fake.probed_now == 1);
    reached(700);
    fake.events.unvouched(fake.follower_arg, true);
    assert_true(fake.probed_soon == 1 && fake.probed_now == 2);
    fake.events.unvouched(fake.follower_arg, true);
    assert_true(fake.probed_soon == 2 && fake.probed_now == 2);
    bench_finish(&bench);
}

static void one_that_is_still_far_behind_is_not_checked(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    probe(&bench, "abc@1", 600);
    fake.now_ms += MAX_LAG_MS + 1;
    reached(600);
    assert_int_equal(fake.checks, 0);
    probe(&bench, "abc@1", 600);
    assert_int_equal(fake.checks, 1);
    bench_finish(&bench);
}

static void one_that_is_not_taken_yet_is_offered_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.takes = false;
    probe(&bench, "abc@1", 600);
    reached(600);
    check_ends(SELFCHECK_PASSED, "");
    reached(700);
    assert_int_equal(bench.ready, 2);
    bench.takes = true;
    reached(800);
    reached(900);
    assert_int_equal(bench.ready, 3);
    assert_int_equal(fake.checks, 1);
    bench_finish(&bench);
}

/* The server tells of no new position, because there is none. */
static void nor_is_it_forgotten_on_an_idle_server(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.takes = false;
    probe(&bench, "abc@1", 600);
    reached(600);
    check_ends(SELFCHECK_PASSED, "");
    assert_int_equal(bench.ready, 1);
    bench.takes = true;
    probe(&bench, "abc@1", 600);
    assert_int_equal(bench.ready, 2);
    probe(&bench, "abc@1", 600);
    assert_int_equal(bench.ready, 2);
    bench_finish(&bench);
}

static void nothing_is_confirmed_while_it_is_held(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    reached(600);
    assert_int_equal(fake.confirmed, 0);
    tracker_hold(bench.tracker);
    tracker_release(bench.tracker);
    assert_int_equal(fake.confirmed, 0);
    tracker_release(bench.tracker);
    assert_int_equal(fake.confirmed, 600);
    tracker_hold(bench.tracker);
    reached(700);
    assert_int_equal(fake.confirmed, 600);
    tracker_release(bench.tracker);
    assert_int_equal(fake.confirmed, 700);
    bench_finish(&bench);
}

static void what_an_altered_table_is_asked_for_vouches_for_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    come_into_force(&bench);
    uint64_t known = bench.known;
    probe(&bench, "abd@1", 600);
    assert_int_equal(bench.faults, 1);
    assert_int_equal(bench.known, known);
    assert_non_null(strstr(bench.fault, "altered"));
    bench_finish(&bench);
}

static void nor_does_another_server(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    come_into_force(&bench);
    uint64_t known = bench.known;
    probe(&bench, "abc@2", 100); /* its log ends before where this stream is */
    assert_int_equal(bench.faults, 1);
    assert_int_equal(bench.known, known);
    assert_non_null(strstr(bench.fault, "another server"));
    bench_finish(&bench);
}

static void one_whose_check_fails_is_not_offered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    probe(&bench, "abc@1", 600);
    reached(600);
    check_ends(SELFCHECK_FAILED, "a row is missing");
    assert_int_equal(bench.ready, 0);
    assert_int_equal(bench.faults, 1);
    assert_string_equal(bench.fault, "a row is missing");
    bench_finish(&bench);
}

static void a_check_that_could_not_be_done_is_tried_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    probe(&bench, "abc@1", 600);
    reached(600);
    check_ends(SELFCHECK_NO_ROW, "no row");
    assert_int_equal(bench.ready, 0);
    probe(&bench, "abc@1", 600);
    assert_int_equal(fake.checks, 2);
    check_ends(SELFCHECK_PASSED, "");
    assert_int_equal(bench.ready, 1);
    bench_finish(&bench);
}

static void one_in_force_is_checked_every_minute_and_ends_when_that_fails(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    come_into_force(&bench);
    fake.now_ms += 59000;
    probe(&bench, "abc@1", 600);
    assert_int_equal(fake.checks, 1);
    fake.now_ms += 1000;
    probe(&bench, "abc@1", 600);
    assert_int_equal(fake.checks, 2);
    assert_int_equal(fake.renewed, 1);
    check_ends(SELFCHECK_PASSED, "");
    assert_int_equal(bench.ready, 1);
    fake.now_ms += 60000;
    probe(&bench, "abc@1", 600);
    check_ends(SELFCHECK_FAILED, "a row is missing");
    assert_int_equal(bench.faults, 1);
    assert_string_equal(bench.fault, "a row is missing");
    bench_finish(&bench);
}

static void one_that_has_nothing_left_is_not_checked(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    generation_give_up(bench.generation, 0, "it is not configured any more");
    probe(&bench, "abc@1", 600);
    reached(600);
    assert_int_equal(fake.checks, 0);
    assert_int_equal(bench.ready, 0);
    bench_finish(&bench);
}

static void its_end_cancels_the_check(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    probe(&bench, "abc@1", 600);
    reached(600);
    fake.events.fault(fake.follower_arg, "the stream was lost");
    assert_string_equal(bench.fault, "the stream was lost");
    assert_int_equal(fake.cancelled, 1);
    bench_finish(&bench);
}

static void one_that_cannot_begin_leaves_nothing(void **state)
{
    struct bench bench;
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.start_status = -ECONNREFUSED;
    assert_int_equal(bench_start(&bench), -ECONNREFUSED);
    assert_null(bench.tracker);
    assert_int_equal(bench.generation->references, 1);
    generation_release(bench.generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_checked_when_it_has_caught_up_and_then_offered),
        cmocka_unit_test(removals_go_with_a_probe_that_finds_all_as_it_was),
        cmocka_unit_test(each_crowd_is_probed_for_at_once),
        cmocka_unit_test(one_that_is_still_far_behind_is_not_checked),
        cmocka_unit_test(one_that_is_not_taken_yet_is_offered_again),
        cmocka_unit_test(nor_is_it_forgotten_on_an_idle_server),
        cmocka_unit_test(nothing_is_confirmed_while_it_is_held),
        cmocka_unit_test(what_an_altered_table_is_asked_for_vouches_for_nothing),
        cmocka_unit_test(nor_does_another_server),
        cmocka_unit_test(one_whose_check_fails_is_not_offered),
        cmocka_unit_test(a_check_that_could_not_be_done_is_tried_again),
        cmocka_unit_test(one_in_force_is_checked_every_minute_and_ends_when_that_fails),
        cmocka_unit_test(one_that_has_nothing_left_is_not_checked),
        cmocka_unit_test(its_end_cancels_the_check),
        cmocka_unit_test(one_that_cannot_begin_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
