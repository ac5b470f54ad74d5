/* Which generation serves and which is to: with logs, probes and a confirmer that do what the test
 * says. */
#include "keeper/parts/replication.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "telling_bench.h"

#include <stdlib.h>

/* ---- a log that is followed ---- */

struct tracker {
    struct generation *generation;
    struct lag lag;
    uint64_t begin;
    unsigned holds, probes;
    struct tracker_options options;
};

static struct {
    struct tracker *last; /* that was begun */
    unsigned open, probes;
    bool confirming, fails;
    uint64_t confirmed;
    struct wal_probe_options wal_probe;
    const struct config *asked_of;
} fake;

int tracker_start(struct tracker **out, uv_loop_t *loop, struct built *built,
                  const struct tracker_options *options, struct pg_error *error)
{
    (void)loop;
    if (fake.fails) {
        snprintf(error->text, sizeof error->text, "no stream");
        return -1;
    }
    struct tracker *tracker = xcalloc(1, sizeof *tracker);
    tracker->generation = built->generation;
    built->generation = NULL;
    tracker->options = *options;
    tracker->holds = 1;
    fake.last = *out = tracker;
    fake.open++;
    return 0;
}

void tracker_probed(struct tracker *tracker, const struct probe *probe)
{
    (void)probe;
    tracker->probes++;
}

void tracker_confirm(struct tracker *tracker)
{
    assert_false(tracker == NULL);
}

void tracker_hold(struct tracker *tracker)
{
    tracker->holds++;
}

void tracker_release(struct tracker *tracker)
{
    tracker->holds--;
}

struct generation *tracker_generation(const struct tracker *tracker)
{
    return tracker->generation;
}

const struct lag *tracker_lag(const struct tracker *tracker)
{
    return &tracker->lag;
}

uint64_t tracker_begin(const struct tracker *tracker)
{
    return tracker->begin;
}

struct follower_counts tracker_counts(const struct tracker *tracker)
{
    (void)tracker;
    return (struct follower_counts){.changes = 3};
}

size_t tracker_removals(const struct tracker *tracker, int keyspace)
{
    (void)tracker;
    (void)keyspace;
    return 0;
}

void tracker_close(struct tracker *tracker)
{
    if (!tracker)
        return;
    fake.open--;
    generation_release(tracker->generation);
    free(tracker);
}

/* ---- probes, and the confirmer ---- */

int wal_probe_create(struct wal_probe **out, uv_loop_t *loop,
                     const struct wal_probe_options *options, const char **error)
{
    (void)loop;
    (void)error;
    fake.wal_probe = *options;
    *out = (struct wal_probe *)&fake;
    return 0;
}

void wal_probe_now(struct wal_probe *wal_probe)
{
    assert_ptr_equal(wal_probe, &fake);
    fake.probes++;
}

void wal_probe_use_config(struct wal_probe *wal_probe, const struct config *config)
{
    assert_ptr_equal(wal_probe, &fake);
    fake.asked_of = config;
}

struct pg_pool *wal_probe_pool(struct wal_probe *wal_probe)
{
    (void)wal_probe;
    return NULL;
}

void wal_probe_close(struct wal_probe *wal_probe, void (*closed)(void *arg), void *arg)
{
    (void)wal_probe;
    closed(arg);
}

struct confirmer *confirmer_create(uv_loop_t *loop, const struct config *config)
{
    (void)loop;
    (void)config;
    return (struct confirmer *)&fake;
}

void confirmer_use_config(struct confirmer *fake_confirmer, const struct config *config)
{
    (void)fake_confirmer;
    assert_non_null(config);
}

void confirmer_begin(struct confirmer *confirmer)
{
    (void)confirmer;
    fake.confirming = true;
}

uint64_t confirmer_end(struct confirmer *confirmer)
{
    (void)confirmer;
    uint64_t confirmed = fake.confirming ? fake.confirmed : 0;
    fake.confirming = false;
    return confirmed;
}

bool confirmer_is_at_work(const struct confirmer *confirmer)
{
    (void)confirmer;
    return fake.confirming;
}

void confirmer_destroy(struct confirmer *confirmer)
{
    (void)confirmer;
}

/* ---- the rest of the keeper ---- */

enum { KEYSPACES = 2 };

struct bench {
    struct heard heard;
    struct config config;
    struct keyspace keyspaces[KEYSPACES];
    struct replication replication;
    struct generation *in_force;
};

static void on_begins(void *arg, struct built *built, bool alone)
{
    assert_non_null(built->generation);
    hear(arg, alone ? "begins-alone" : "begins");
}

static void on_begun(void *arg)
{
    hear(arg, "begun");
}

static void on_in_force(void *arg, struct generation *generation)
{
    struct bench *bench = arg;
    generation_release(bench->in_force);
    bench->in_force = generation;
    hear(bench, "in-force");
}

static void on_lost(void *arg, const char *why)
{
    hear(arg, "lost:");
    hear(arg, why);
}

static void on_gave_up(void *arg, int keyspace, const char *why)
{
    hear(arg, keyspace ? "gave-up-1" : "gave-up-0");
    hear(arg, why);
}

static void on_settled(void *arg, const char *error)
{
    hear(arg, error ? error : "settled");
}

static void on_wanted(void *arg)
{
    hear(arg, "wanted");
}

static void on_known(void *arg)
{
    hear(arg, "known");
}

static void on_missed(void *arg)
{
    hear(arg, "missed");
}

static void on_missed_of(void *arg, int keyspace)
{
    hear(arg, keyspace ? "missed-1" : "missed-0");
}

static void on_probed(void *arg, const struct probe *probe)
{
    hear(arg, probe ? "probed" : "unanswered");
}

static void on_reached(void *arg, uint64_t position)
{
    char text[30];
    snprintf(text, sizeof text, position == UINT64_MAX ? "reached:any" : "reached:%llu",
             (unsigned long long)position);
    hear(arg, text);
}

static void on_closed(void *arg)
{
    hear(arg, "closed");
}

static void open_with(struct bench *bench, bool purge_at_start)
{
    static const struct replication_events events = {.begins = on_begins,
                                                     .begun = on_begun,
                                                     .in_force = on_in_force,
                                                     .lost = on_lost,
                                                     .gave_up = on_gave_up,
                                                     .settled = on_settled,
                                                     .wanted = on_wanted,
                                                     .known = on_known,
                                                     .missed = on_missed,
                                                     .missed_of = on_missed_of,
                                                     .reached = on_reached,
                                                     .probed = on_probed};
    memset(&fake, 0, sizeof fake);
    *bench = (struct bench){.keyspaces = {{.name = "items"}, {.name = "others"}}};
    bench->config = (struct config){.sync = SYNC_REPLICATION,
                                    .purge_at_start = purge_at_start,
                                    .max_lag_ms = 1000,
                                    .keyspace_count = KEYSPACES,
                                    .keyspaces = bench->keyspaces};
    assert_int_equal(replication_open(&bench->replication,
                                      &(struct replication_options){.config = &bench->config,
                                                                    .events = &events,
                                                                    .arg = bench}),
                     0);
}

static void close_bench(struct bench *bench)
{
    forget(bench);
    replication_close(&bench->replication, 0, on_closed, bench);
    assert_int_equal(fake.open, 0);
    generation_release(bench->in_force);
}

static void add_filter(struct generation *generation, size_t keyspace)
{
    const char *error;
    assert_int_equal(filter_create(&generation->filters[keyspace],
                                   &(struct filter_options){.kind = FILTER_CUCKOO,
                                                            .capacity = 100,
                                                            .false_positive_rate = 0.01},
                                   &error),
                     0);
}

/* With filters of these keyspaces, each a bit. */
static struct tracker *follow_some(struct bench *bench, uint64_t number, unsigned keyspaces)
{
    struct built built = {.generation = generation_create(number, KEYSPACES),
                          .fingerprint = (char[]){"server 1"}};
    atomic_store(&built.generation->lease, 0);
    for (size_t i = 0; i < KEYSPACES; i++)
        if (keyspaces & 1u << i)
            add_filter(built.generation, i);
    replication_follow(&bench->replication, &built);
    generation_release(built.generation);
    return fake.last;
}

static struct tracker *follow(struct bench *bench, uint64_t number)
{
    return follow_some(bench, number, 3);
}

static bool ready(struct tracker *tracker)
{
    return tracker->options.events->ready(tracker->options.arg, tracker);
}

static void fault(struct tracker *tracker, const char *why)
{
    tracker->options.events->fault(tracker->options.arg, tracker, why);
}

static bool gives_up(struct tracker *tracker, int keyspace)
{
    return tracker->options.events->gives_up(tracker->options.arg, tracker, keyspace, "altered");
}

static uint64_t lease_of(const struct generation *generation)
{
    return atomic_load(&generation->lease);
}

/* A generation serves. */
static struct tracker *serve(struct bench *bench, uint64_t number)
{
    struct tracker *tracker = follow(bench, number);
    tracker->lag.known = clock_ms();
    assert_true(ready(tracker));
    replication_views_are_in(&bench->replication);
    forget(bench);
    return tracker;
}

/* ---- tests ---- */

static void a_candidate_serves_when_it_is_ready(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = follow(&bench, 1);
    must_hear(&bench, "begins-alone begun");
    assert_false(replication_serves(&bench.replication, tracker->generation));
    tracker->lag.known = 5000;
    assert_true(ready(tracker));
    must_hear(&bench, "in-force settled");
    assert_true(replication_serves(&bench.replication, bench.in_force));
    close_bench(&bench);
}

static void nothing_is_confirmed_until_every_worker_has_the_view(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = follow(&bench, 1);
    assert_true(ready(tracker));
    assert_int_equal(tracker->holds, 1);
    replication_views_are_in(&bench.replication);
    assert_int_equal(tracker->holds, 0);
    replication_views_are_in(&bench.replication);
    assert_int_equal(tracker->holds, 0);
    close_bench(&bench);
}

static void what_is_known_extends_the_lease_of_who_serves_alone(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    struct tracker *candidate = follow(&bench, 2);
    atomic_store(&candidate->generation->lease, 0);
    atomic_store(&tracker->generation->lease, 0);
    must_hear(&bench, "begins begun");
    tracker->options.events->known(tracker->options.arg, tracker, 7000);
    candidate->options.events->known(candidate->options.arg, candidate, 9000);
    must_hear(&bench, "known");
    assert_int_equal(lease_of(tracker->generation), 8000);
    assert_int_equal(lease_of(candidate->generation), 0);
    close_bench(&bench);
}

/* Its rows are missed only once no other log tells of them. */
static void a_lost_log_ends_the_lease_first(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    fault(tracker, "cut");
    must_hear(&bench, "lost: cut");
    assert_int_equal(lease_of(bench.in_force), 0);
    assert_false(replication_is_blind(&bench.replication)); /* all will be purged */
    replication_views_are_in(&bench.replication);
    assert_true(replication_lets_go(&bench.replication));
    follow(&bench, 2);
    must_hear(&bench, "begins-alone missed begun");
    close_bench(&bench);
}

static void a_lost_log_is_missed_at_once_where_a_candidate_follows(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    follow(&bench, 2);
    must_hear(&bench, "begins begun");
    fault(tracker, "cut");
    must_hear(&bench, "missed lost: cut");
    close_bench(&bench);
}

/* Commits have returned because the guard's name has confirmed them: who serves must have them. */
static void who_takes_over_knows_what_was_confirmed(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    replication_views_are_in(&bench.replication);
    assert_true(fake.confirming);
    fake.confirmed = 500;
    struct tracker *tracker = follow(&bench, 1);
    tracker->lag.position = 499;
    assert_false(ready(tracker));
    assert_false(fake.confirming);
    tracker->lag.position = 500;
    assert_true(ready(tracker));
    close_bench(&bench);
}

static void a_successor_is_as_far_as_who_serves(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    tracker->lag.position = 900;
    struct tracker *next = follow(&bench, 2);
    next->lag.position = 800;
    assert_false(ready(next));
    next->begin = 950; /* what lies between was told by neither */
    next->lag.position = 1000;
    forget(&bench);
    assert_true(ready(next));
    must_hear(&bench, "in-force missed settled");
    assert_int_equal(fake.open, 1);
    close_bench(&bench);
}

static void a_candidate_that_fails_leaves_the_one_that_serves(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    fault(follow(&bench, 2), "altered");
    must_hear(&bench, "begins begun altered");
    assert_true(replication_serves(&bench.replication, tracker->generation));
    fake.fails = true;
    follow(&bench, 3);
    must_hear(&bench, "begins no stream");
    close_bench(&bench);
}

static void a_hold_is_of_one_generation(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    struct tracker *candidate = follow(&bench, 2);
    assert_true(replication_hold(&bench.replication, 2));
    assert_false(replication_hold(&bench.replication, 3));
    assert_int_equal(tracker->holds, 0);
    assert_int_equal(candidate->holds, 2);
    replication_release(&bench.replication, 2);
    replication_release(&bench.replication, 3);
    assert_int_equal(candidate->holds, 1);
    close_bench(&bench);
}

static void probes_reach_the_keeper_before_the_logs(void **state)
{
    struct bench bench;
    struct probe probe = {.fingerprint = "server 1", .snapshot = "", .values = ""};
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    fake.wal_probe.probed(fake.wal_probe.arg, &probe);
    must_hear(&bench, "probed");
    assert_int_equal(tracker->probes, 1);
    fake.wal_probe.failed(fake.wal_probe.arg, "down", false);
    must_hear(&bench, "unanswered");
    assert_int_equal(tracker->probes, 1);
    close_bench(&bench);
}

static void what_the_end_has_not_heard_of_is_missed(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    replication_end(&bench.replication);
    struct tracker *candidate = follow(&bench, 2);
    candidate->lag.position = tracker->lag.position;
    assert_false(ready(candidate));
    forget(&bench);
    assert_true(replication_has_followed(&bench.replication, tracker->lag.known));
    assert_false(replication_has_followed(&bench.replication, tracker->lag.known + 1));
    replication_close(&bench.replication, tracker->lag.known + 1, on_closed, &bench);
    must_hear(&bench, "missed closed");
    generation_release(bench.in_force);
}

static void blind_is_who_fills_before_a_log_is_followed(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, true);
    assert_false(replication_is_blind(&bench.replication)); /* all is purged then */
    close_bench(&bench);
    open_with(&bench, false);
    assert_true(replication_is_blind(&bench.replication));
    follow(&bench, 1);
    assert_false(replication_is_blind(&bench.replication));
    close_bench(&bench);
}

/* ---- one keyspace ---- */

static void a_keyspace_that_is_given_up_leaves_the_others_guarding(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    (void)state;
    assert_true(gives_up(tracker, 0));
    must_hear(&bench, "gave-up-0 altered");
    assert_false(generation_covers(tracker->generation, 0));
    assert_true(generation_covers(tracker->generation, 1));
    assert_true(lease_of(tracker->generation) > clock_ms());
    close_bench(&bench);
}

/* A worker may still reject by its filter, which does not know what the log has told by now. */
static void until_every_worker_knows_nothing_more_is_known_or_confirmed(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    (void)state;
    assert_int_equal(tracker->holds, 0);
    assert_true(gives_up(tracker, 0));
    uint64_t lease = lease_of(tracker->generation);
    assert_int_equal(tracker->holds, 1);
    tracker->options.events->known(tracker->options.arg, tracker, clock_ms() + 100000);
    assert_int_equal(lease_of(tracker->generation), lease);
    replication_views_are_in(&bench.replication);
    assert_int_equal(tracker->holds, 0);
    tracker->options.events->known(tracker->options.arg, tracker, clock_ms() + 100000);
    assert_true(lease_of(tracker->generation) > lease);
    close_bench(&bench);
}

static void the_last_one_takes_the_generation_with_it(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    struct tracker *tracker = serve(&bench, 1);
    (void)state;
    assert_true(gives_up(tracker, 0));
    assert_false(gives_up(tracker, 1));
    close_bench(&bench);
}

static void a_candidate_does_not_lose_what_guards(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    struct tracker *serving = serve(&bench, 1), *candidate = follow(&bench, 2);
    (void)state;
    assert_false(gives_up(candidate, 0));
    forget(&bench);
    assert_true(gives_up(serving, 0));
    must_hear(&bench, "missed-0 gave-up-0 altered"); /* the candidate tells of it from now on */
    assert_true(gives_up(candidate, 0));
    must_hear(&bench, "");
    close_bench(&bench);
}

static void what_only_the_candidate_has_was_told_by_nobody_before(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    serve(&bench, 1);
    (void)state;
    assert_true(gives_up(bench.replication.serving, 1));
    forget(&bench);
    follow(&bench, 2);
    must_hear(&bench, "begins missed-1 begun");
    close_bench(&bench);
}

static void a_retired_keyspace_is_given_up_without_a_word(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    struct tracker *serving = serve(&bench, 1), *candidate = follow(&bench, 2);
    (void)state;
    forget(&bench);
    bench.keyspaces[1].retired = true;
    replication_use_keyspaces(&bench.replication);
    must_hear(&bench, "");
    assert_ptr_equal(fake.asked_of, &bench.config);
    assert_false(generation_covers(serving->generation, 1));
    assert_false(generation_covers(candidate->generation, 1));
    assert_true(generation_covers(serving->generation, 0));
    close_bench(&bench);
}

static void a_candidate_of_nothing_that_is_left_is_none(void **state)
{
    static const char none[] = "the configuration has none of its keyspaces any more";
    struct bench bench;
    char wanted[200];
    open_with(&bench, false);
    serve(&bench, 1);
    follow_some(&bench, 2, 2);
    (void)state;
    forget(&bench);
    bench.keyspaces[1].retired = true;
    replication_use_keyspaces(&bench.replication);
    must_hear(&bench, none);
    assert_null(bench.replication.candidate);
    follow_some(&bench, 3, 2); /* it was being built meanwhile */
    snprintf(wanted, sizeof wanted, "begins %s", none);
    must_hear(&bench, wanted);
    assert_null(bench.replication.candidate);
    close_bench(&bench);
}

/* They were filled without a log that tells of changes; those of what is retired were seen to. */
static void the_end_misses_the_changes_of_what_is_not_guarded(void **state)
{
    struct bench bench;
    open_with(&bench, false);
    (void)state;
    struct tracker *tracker = serve(&bench, 1);
    assert_true(gives_up(tracker, 1));
    follow(&bench, 2);
    forget(&bench);
    replication_close(&bench.replication, 0, on_closed, &bench);
    must_hear(&bench, "missed-1 closed");
    generation_release(bench.in_force);
    open_with(&bench, false);
    follow_some(&bench, 1, 1); /* and no other before it */
    forget(&bench);
    replication_close(&bench.replication, 0, on_closed, &bench);
    must_hear(&bench, "missed-1 closed");
    generation_release(bench.in_force);
    open_with(&bench, false);
    assert_true(gives_up(serve(&bench, 1), 1));
    bench.keyspaces[1].retired = true;
    replication_close(&bench.replication, 0, on_closed, &bench);
    must_hear(&bench, "gave-up-1 altered closed");
    generation_release(bench.in_force);
}

/* ---- two processes of one name ---- */

static void reach(struct tracker *tracker, uint64_t position)
{
    tracker->lag.position = position;
    tracker->options.events->reached(tracker->options.arg, tracker, position);
}

static void who_is_silent_confirms_nothing_and_says_how_far_he_is(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    replication_keep_silent(&bench.replication);
    replication_views_are_in(&bench.replication);
    assert_false(fake.confirming);
    struct tracker *tracker = serve(&bench, 1);
    assert_int_equal(tracker->holds, 1);
    reach(tracker, 500);
    must_hear(&bench, "reached:500");
    replication_share(&bench.replication);
    must_hear(&bench, "reached:500");
    replication_speak(&bench.replication);
    assert_int_equal(tracker->holds, 0);
    reach(tracker, 600);
    must_hear(&bench, "");
    close_bench(&bench);
}

/* While the other confirms everything, since nothing can be rejected here. */
static void none_takes_over_from_one_that_was_lost_while_both_guard(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    replication_keep_silent(&bench.replication);
    struct tracker *tracker = serve(&bench, 1);
    replication_share(&bench.replication);
    must_hear(&bench, "reached:0");
    fault(tracker, "cut");
    must_hear(&bench, "reached:any lost: cut");
    replication_views_are_in(&bench.replication);
    assert_false(fake.confirming);
    struct tracker *next = follow(&bench, 2);
    next->lag.known = clock_ms() + 5000;
    assert_false(ready(next));
    replication_speak(&bench.replication);
    assert_true(ready(next));
    close_bench(&bench);
}

static void nothing_is_confirmed_behind_the_limit(void **state)
{
    struct bench bench;
    (void)state;
    open_with(&bench, false);
    replication_views_are_in(&bench.replication);
    assert_true(fake.confirming);
    replication_limit(&bench.replication, 500);
    assert_false(fake.confirming);
    replication_views_are_in(&bench.replication);
    assert_false(fake.confirming);
    struct tracker *tracker = follow(&bench, 1);
    assert_int_equal(*tracker->options.limit, 500);
    replication_limit(&bench.replication, UINT64_MAX);
    assert_int_equal(*tracker->options.limit, UINT64_MAX);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_silent_confirms_nothing_and_says_how_far_he_is),
        cmocka_unit_test(none_takes_over_from_one_that_was_lost_while_both_guard),
        cmocka_unit_test(nothing_is_confirmed_behind_the_limit),
        cmocka_unit_test(a_candidate_serves_when_it_is_ready),
        cmocka_unit_test(nothing_is_confirmed_until_every_worker_has_the_view),
        cmocka_unit_test(what_is_known_extends_the_lease_of_who_serves_alone),
        cmocka_unit_test(a_lost_log_ends_the_lease_first),
        cmocka_unit_test(a_lost_log_is_missed_at_once_where_a_candidate_follows),
        cmocka_unit_test(who_takes_over_knows_what_was_confirmed),
        cmocka_unit_test(a_successor_is_as_far_as_who_serves),
        cmocka_unit_test(a_candidate_that_fails_leaves_the_one_that_serves),
        cmocka_unit_test(a_hold_is_of_one_generation),
        cmocka_unit_test(probes_reach_the_keeper_before_the_logs),
        cmocka_unit_test(what_the_end_has_not_heard_of_is_missed),
        cmocka_unit_test(blind_is_who_fills_before_a_log_is_followed),
        cmocka_unit_test(a_keyspace_that_is_given_up_leaves_the_others_guarding),
        cmocka_unit_test(until_every_worker_knows_nothing_more_is_known_or_confirmed),
        cmocka_unit_test(the_last_one_takes_the_generation_with_it),
        cmocka_unit_test(a_candidate_does_not_lose_what_guards),
        cmocka_unit_test(what_only_the_candidate_has_was_told_by_nobody_before),
        cmocka_unit_test(the_end_misses_the_changes_of_what_is_not_guarded),
        cmocka_unit_test(a_retired_keyspace_is_given_up_without_a_word),
        cmocka_unit_test(a_candidate_of_nothing_that_is_left_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
