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

/* A generation is built whose snapshot saw all transactions up to this one end. */
static struct standing *take_of(struct bench *bench, bool standby, uint64_t number,
                                const char *snapshot, uint32_t next)
{
    struct built built = {
        .generation = generation_create(number, 0), .server.standby = standby, .next_xid = next};
    atomic_store(&built.generation->lease, UINT64_MAX);
    assert_int_equal(snapshot_read(&built.snapshot, snapshot), 0);
    standings_take(&bench->standings, &built);
    return fake.last;
}

static struct standing *take(struct bench *bench, uint64_t number, const char *snapshot,
                             uint32_t next)
{
    return take_of(bench, false, number, snapshot, next);
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

/* What the primary was writing by then it may not even have heard of. */
static void a_standby_settles_a_generation_later(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take_of(&bench, true, 1, "10:10:", 12));
    assert_int_equal(bench.in_force->settled, 0);
    ready(take_of(&bench, true, 2, "13:13:", 13));
    assert_int_equal(bench.in_force->settled, 1);
    ready(take_of(&bench, true, 3, "13:13:", 14));
    assert_int_equal(bench.in_force->settled, 1);
    bench_close(&bench);
}

/* A build that failed was begun a moment before the next one: of what was being written then the
 * standby need not have heard. */
static void on_a_standby_builds_that_failed_do_not_count(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    ready(take_of(&bench, true, 1, "10:10:", 10));
    ready(take_of(&bench, true, 4, "13:13:", 13));
    assert_int_equal(bench.in_force->settled, 1);
    ready(take_of(&bench, true, 6, "13:13:", 14));
    assert_int_equal(bench.in_force->settled, 1);
    ready(take_of(&bench, true, 8, "14:14:", 15));
    assert_int_equal(bench.in_force->settled, 4);
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
        cmocka_unit_test(a_standby_settles_a_generation_later),
        cmocka_unit_test(on_a_standby_builds_that_failed_do_not_count),
        cmocka_unit_test(nothing_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
