/* Which generation is in force without a log: with self-checks that end as the test says. */
#include "keeper/parts/standings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "telling_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one that stands ---- */

struct standing {
    struct generation *generation;
    struct snapshot snapshot;
    struct standing_options options;
    unsigned ticks;
};

static struct {
    struct standing *last;
    unsigned open;
} fake;

struct standing *standing_create(struct built *built, const struct standing_options *options)
{
    struct standing *standing = xcalloc(1, sizeof *standing);
    standing->generation = built->generation;
    standing->snapshot = built->snapshot;
    standing->options = *options;
    built->generation = NULL;
    built->snapshot = (struct snapshot){0};
    fake.open++;
    return fake.last = standing;
}

void standing_tick(struct standing *standing)
{
    standing->ticks++;
}

struct generation *standing_generation(const struct standing *standing)
{
    return standing->generation;
}

void standing_close(struct standing *standing)
{
    if (!standing)
        return;
    fake.open--;
    generation_release(standing->generation);
    snapshot_finish(&standing->snapshot);
    free(standing);
}

/* ---- the rest of the keeper ---- */

struct bench {
    struct heard heard;
    struct config config;
    struct standings standings;
    struct generation *in_force;
};

static void on_in_force(void *arg, struct generation *generation)
{
    struct bench *bench = arg;
    generation_release(bench->in_force);
    bench->in_force = generation;
    hear(bench, "in-force");
}

/* Nothing may be rejected any more when anybody is told. */
static void on_lost(void *arg, const char *why)
{
    struct bench *bench = arg;
    assert_int_equal(atomic_load(&bench->in_force->lease), 0);
    hear(bench, "lost:");
    hear(bench, why);
}

static void on_settled(void *arg, const char *error)
{
    hear(arg, error ? error : "settled");
}

static void bench_open(struct bench *bench)
{
    *bench = (struct bench){.config.sync = SYNC_POLL};
    fake.open = 0;
    standings_open(&bench->standings, &(struct standings_options){.config = &bench->config,
                                                                  .in_force = on_in_force,
                                                                  .lost = on_lost,
                                                                  .settled = on_settled,
                                                                  .arg = bench});
}

static void bench_close(struct bench *bench)
{
    standings_close(&bench->standings);
    assert_int_equal(fake.open, 0);
    generation_release(bench->in_force);
}

static struct standing *take_built(struct bench *bench, struct built *built, const char *snapshot)
{
    atomic_store(&built->generation->lease, UINT64_MAX);
    assert_int_equal(snapshot_read(&built->snapshot, snapshot), 0);
    standings_take(&bench->standings, built);
    return fake.last;
}

/* A generation is built whose snapshot saw all transactions up to this one end. */
static struct standing *take(struct bench *bench, uint64_t number, const char *snapshot,
                             uint32_t next)
{
    struct built built = {.generation = generation_create(number, 0), .next_xid = next};
    return take_built(bench, &built, snapshot);
}

/* From a standby where all is over, at this time; it says that it is so far behind. */
static void stand_by(struct bench *bench, uint64_t number, uint64_t time, uint64_t says)
{
    struct built built = {.generation = generation_create(number, 0),
                          .server.standby = true,
                          .next_xid = 10,
                          .begun = time,
                          .asked = time,
                          .behind = says};
    struct standing *standing = take_built(bench, &built, "10:10:");
    standing->options.ready(standing->options.arg, standing);
}

static void ready(struct standing *standing)
{
    standing->options.ready(standing->options.arg, standing);
}

static void fault(struct standing *standing, const char *why)
{
    standing->options.fault(standing->options.arg, standing, why);
}

/* ---- tests ---- */

static void what_was_built_is_in_force_when_its_check_has_passed(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    struct standing *standing = take(&bench, 1, "10:10:", 10);
    must_hear(&bench, "");
    ready(standing);
    must_hear(&bench, "in-force settled");
    assert_int_equal(bench.in_force->number, 1);
    bench_close(&bench);
}

static void the_next_takes_its_place(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take(&bench, 1, "10:10:", 10));
    struct standing *second = take(&bench, 2, "20:20:", 20);
    standings_watch(&bench.standings);
    assert_int_equal(second->ticks, 1);
    assert_int_equal(bench.in_force->number, 1);
    ready(second);
    assert_int_equal(bench.in_force->number, 2);
    assert_int_equal(fake.open, 1);
    bench_close(&bench);
}

static void a_candidate_that_fails_leaves_the_one_before_in_force(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take(&bench, 1, "10:10:", 10));
    must_hear(&bench, "in-force settled");
    fault(take(&bench, 2, "20:20:", 20), "no row");
    must_hear(&bench, "no row");
    assert_int_equal(bench.in_force->number, 1);
    assert_true(atomic_load(&bench.in_force->lease) == UINT64_MAX);
    bench_close(&bench);
}

static void one_that_fails_later_rejects_nothing_from_then_on(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    struct standing *standing = take(&bench, 1, "10:10:", 10);
    ready(standing);
    must_hear(&bench, "in-force settled");
    fault(standing, "a row is missing");
    must_hear(&bench, "lost: a row is missing");
    assert_int_equal(fake.open, 0);
    bench_close(&bench);
}

static void both_are_given_up_for_another_server(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take(&bench, 1, "10:10:", 10));
    take(&bench, 2, "20:20:", 20);
    must_hear(&bench, "in-force settled");
    standings_leave(&bench.standings, "moved");
    must_hear(&bench, "lost: moved moved");
    assert_int_equal(fake.open, 0);
    bench_close(&bench);
}

/* Hints given by then end with it; transactions of another server are others. */
static void what_was_being_written_is_settled_by_a_later_snapshot(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take(&bench, 1, "10:10:", 12));
    assert_int_equal(bench.in_force->settled, 0);
    ready(take(&bench, 2, "12:12:", 13));
    assert_int_equal(bench.in_force->settled, 1);
    standings_leave(&bench.standings, "moved");
    ready(take(&bench, 3, "5000:5000:", 5001));
    assert_int_equal(bench.in_force->settled, 1);
    bench_close(&bench);
}

/* What the primary was writing by then it may not even have heard of: poll_interval is what it may
 * lag, whatever it says, and however many builds are begun meanwhile. */
static void a_standby_settles_what_was_begun_a_poll_ago(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    bench.config.poll_interval_ms = 1000;
    stand_by(&bench, 1, 1000, 0);
    assert_int_equal(bench.in_force->settled, 0);
    stand_by(&bench, 2, 1010, 0);
    stand_by(&bench, 3, 1020, 0);
    assert_int_equal(bench.in_force->settled, 0);
    stand_by(&bench, 4, 2000, 0);
    assert_int_equal(bench.in_force->settled, 1);
    bench_close(&bench);
}

static void
a_standby_that_says_that_it_is_behind_settles_nothing_until_it_has_caught_up(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    bench.config.poll_interval_ms = 1000;
    stand_by(&bench, 1, 1000, 500);
    stand_by(&bench, 2, 2000, 1500);
    assert_int_equal(bench.in_force->settled, 0);
    stand_by(&bench, 3, 3000, 2500);
    assert_int_equal(bench.in_force->settled, 0);
    stand_by(&bench, 4, 4000, 100);
    assert_int_equal(bench.in_force->settled, 1);
    bench_close(&bench);
}

static void nothing_is_told_at_the_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    struct standing *first = take(&bench, 1, "10:10:", 10);
    ready(first);
    struct standing *second = take(&bench, 2, "20:20:", 20);
    must_hear(&bench, "in-force settled");
    standings_end(&bench.standings);
    ready(second);
    fault(first, "the pool is closed");
    must_hear(&bench, "");
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_built_is_in_force_when_its_check_has_passed),
        cmocka_unit_test(the_next_takes_its_place),
        cmocka_unit_test(a_candidate_that_fails_leaves_the_one_before_in_force),
        cmocka_unit_test(one_that_fails_later_rejects_nothing_from_then_on),
        cmocka_unit_test(both_are_given_up_for_another_server),
        cmocka_unit_test(what_was_being_written_is_settled_by_a_later_snapshot),
        cmocka_unit_test(a_standby_settles_what_was_begun_a_poll_ago),
        cmocka_unit_test(
            a_standby_that_says_that_it_is_behind_settles_nothing_until_it_has_caught_up),
        cmocka_unit_test(nothing_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
