/* Views on their way to workers that the test plays: two mailboxes, and what each decides by. */
#include "keeper/parts/publishing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>

enum { WORKERS = 2 };

struct bench;

struct played_worker {
    struct mailbox mailbox;
    struct bench *bench;
    struct view *view;
};

struct bench {
    uv_loop_t loop;
    struct mailbox keeper;
    struct played_worker workers[WORKERS];
    struct mailbox *to[WORKERS];
    struct outlet outlet;
    struct publishing publishing;
    const struct view *adopted;
    unsigned everywhere; /* how often every worker had the newest */
};

/* A worker takes up the view, and gives the one before back. */
static void on_order(void *arg, struct message *message)
{
    struct played_worker *worker = arg;
    struct view_message *order = (struct view_message *)(void *)message;
    struct view *replaced = worker->view;
    worker->view = order->view;
    order->view = replaced;
    mailbox_return(message);
}

static void on_receipt(void *arg, struct message *message)
{
    struct bench *bench = arg;
    bench->everywhere +=
        publishing_take_back(&bench->publishing, (struct view_message *)(void *)message);
}

static void on_adopted(void *arg, const struct view *view)
{
    ((struct bench *)arg)->adopted = view;
}

static void run(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static struct config *two_keyspaces(void)
{
    struct config *config = xcalloc(1, sizeof *config);
    config->keyspace_count = 2;
    config->keyspaces = xcalloc(2, sizeof *config->keyspaces);
    config->keyspaces[0].name = xstrdup("items");
    config->keyspaces[1].name = xstrdup("orders");
    return config;
}

/* With a filter for each. */
static struct generation *generation_of_both(uint64_t number)
{
    const char *error;
    struct generation *generation = generation_create(number, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(filter_create(&generation->filters[i],
                                       &(struct filter_options){.kind = FILTER_CUCKOO,
                                                                .capacity = 10,
                                                                .false_positive_rate = 0.01},
                                       &error),
                         0);
    return generation;
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.adopted = NULL};
    uv_loop_init(&bench->loop);
    mailbox_init(&bench->keeper, &bench->loop, on_receipt, bench);
    bench->outlet = (struct outlet){.sender = &bench->keeper, .to = bench->to};
    publishing_init(&bench->publishing, &(struct publishing_options){.config = two_keyspaces(),
                                                                     .outlet = &bench->outlet,
                                                                     .adopted = on_adopted,
                                                                     .arg = bench});
    for (unsigned i = 0; i < WORKERS; i++) {
        mailbox_init(&bench->workers[i].mailbox, &bench->loop, on_order, &bench->workers[i]);
        bench->workers[i].view = bench->publishing.view;
        bench->publishing.view->holders++;
        bench->to[bench->outlet.count++] = &bench->workers[i].mailbox;
    }
}

static void bench_finish(struct bench *bench)
{
    run(bench);
    for (unsigned i = 0; i < WORKERS; i++) {
        view_release(bench->workers[i].view);
        mailbox_close(&bench->workers[i].mailbox);
    }
    mailbox_close(&bench->keeper);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    publishing_finish(&bench->publishing);
}

static enum keyspace_state state_of(const struct bench *bench)
{
    return bench->publishing.keyspaces[0].state;
}

static void assert_passes_for(const struct bench *bench, const char *reason)
{
    assert_int_equal(state_of(bench), KEYSPACE_PASSING);
    assert_string_equal(bench->publishing.keyspaces[1].reason, reason);
}

static struct generation *generation_of_items(uint64_t number)
{
    struct generation *generation = generation_of_both(number);
    filter_destroy(generation->filters[1]);
    generation->filters[1] = NULL;
    return generation;
}

static void what_could_not_be_built_passes_with_its_reason(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_lacks(&bench.publishing, 1, "no grant");
    publishing_now(&bench.publishing, NULL);
    assert_int_equal(bench.publishing.keyspaces[1].state, KEYSPACE_LOADING);
    assert_string_equal(bench.publishing.keyspaces[1].reason, "no grant");
    publishing_now(&bench.publishing, generation_of_items(1));
    assert_int_equal(state_of(&bench), KEYSPACE_GUARDING);
    assert_int_equal(bench.publishing.keyspaces[1].state, KEYSPACE_PASSING);
    assert_string_equal(publishing_left_out(&bench.publishing), "no grant");
    assert_true(publishing_covers(&bench.publishing, 0));
    assert_false(publishing_covers(&bench.publishing, 1));
    publishing_lacks(&bench.publishing, 1, "no table");
    assert_string_equal(bench.publishing.keyspaces[1].reason, "no table");
    publishing_now(&bench.publishing, generation_of_both(2));
    assert_null(publishing_left_out(&bench.publishing));
    assert_true(publishing_guards(&bench.publishing));
    bench_finish(&bench);
}

static void it_guards_what_it_can_when_the_rest_was_left_out_for_long(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_lacks(&bench.publishing, 1, "no grant");
    publishing_now(&bench.publishing, NULL);
    assert_false(publishing_guards_what_it_can(&bench.publishing, 0));
    publishing_now(&bench.publishing, generation_of_items(1));
    assert_false(publishing_guards_what_it_can(&bench.publishing, 1000000));
    assert_true(publishing_guards_what_it_can(&bench.publishing, 0));
    publishing_obstruct(&bench.publishing, OBSTACLE_UNFOLLOWED, "lost");
    publishing_now(&bench.publishing, NULL);
    assert_false(publishing_guards_what_it_can(&bench.publishing, 0));
    assert_false(publishing_covers(&bench.publishing, 0));
    bench_finish(&bench);
}

static void a_view_replaces_the_one_before_in_every_worker(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_true(publishing_is_everywhere(&bench.publishing));
    publishing_now(&bench.publishing, generation_of_both(1));
    assert_false(publishing_is_everywhere(&bench.publishing));
    assert_int_equal(bench.everywhere, 0);
    run(&bench);
    assert_int_equal(bench.everywhere, 1);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_ptr_equal(bench.workers[i].view, bench.publishing.view);
    bench_finish(&bench);
}

static uint64_t generation_told(const struct bench *bench)
{
    struct report report = {.count = 0};
    publishing_report(&bench->publishing, &report);
    free(report.keyspaces);
    return report.generation.number;
}

struct asker {
    struct publishing_wait wait;
    const struct bench *bench;
    unsigned told;
    uint64_t generation; /* that he has then */
};

static void on_told(struct publishing_wait *wait)
{
    struct asker *asker = container_of(wait, struct asker, wait);
    asker->told++;
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(asker->bench->workers[i].view->generation->number, asker->generation);
}

/* Who is told of it may ask any worker, and would get a wrong answer from one that has it not. */
static void what_is_in_force_is_told_when_every_worker_has_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_int_equal(generation_told(&bench), 0);
    for (uint64_t number = 1; number < 4; number++) {
        struct asker asker = {.wait.done = on_told, .bench = &bench, .generation = number};
        struct asker other = asker;
        publishing_now(&bench.publishing, generation_of_both(number));
        publishing_await(&bench.publishing, &asker.wait);
        publishing_await(&bench.publishing, &other.wait);
        assert_int_equal(generation_told(&bench), number - 1);
        assert_int_equal(asker.told, 0);
        run(&bench);
        assert_int_equal(generation_told(&bench), number);
        assert_int_equal(asker.told, 1);
        assert_int_equal(other.told, 1);
        publishing_await(&bench.publishing, &asker.wait);
        assert_int_equal(asker.told, 2);
    }
    bench_finish(&bench);
}

static void of_two_views_on_their_way_the_newest_counts(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_now(&bench.publishing, generation_of_both(1));
    publishing_now(&bench.publishing, generation_of_both(2));
    run(&bench);
    assert_int_equal(bench.everywhere, 1);
    assert_int_equal(bench.workers[1].view->generation->number, 2);
    bench_finish(&bench);
}

static void it_guards_with_a_generation_and_a_lease(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_int_equal(state_of(&bench), KEYSPACE_LOADING);
    publishing_now(&bench.publishing, generation_of_both(1));
    assert_true(publishing_guards(&bench.publishing));
    assert_false(publishing_is_due(&bench.publishing));
    atomic_store(&bench.publishing.generation->lease, 0);
    assert_true(publishing_is_due(&bench.publishing));
    publishing_now(&bench.publishing, NULL);
    assert_passes_for(&bench, "further behind the database than max_lag");
    assert_int_equal(bench.adopted->states[1], KEYSPACE_PASSING);
    bench_finish(&bench);
}

static void an_obstacle_is_the_reason_until_it_is_cleared(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_obstruct(&bench.publishing, OBSTACLE_UNFOLLOWED, "the stream was lost");
    assert_false(publishing_is_due(&bench.publishing)); /* there is no generation to reject by */
    publishing_now(&bench.publishing, generation_of_both(1));
    assert_passes_for(&bench, "the stream was lost");
    publishing_clear(&bench.publishing, OBSTACLE_UNFOLLOWED);
    assert_true(publishing_is_due(&bench.publishing));
    publishing_now(&bench.publishing, NULL);
    assert_true(publishing_guards(&bench.publishing));
    bench_finish(&bench);
}

static void only_a_change_of_state_sets_its_time(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_now(&bench.publishing, generation_of_both(1));
    bench.publishing.keyspaces[0].since = 5;
    publishing_now(&bench.publishing, generation_of_both(2));
    assert_int_equal(bench.publishing.keyspaces[0].since, 5);
    atomic_store(&bench.publishing.generation->lease, 0);
    publishing_now(&bench.publishing, NULL);
    assert_true(bench.publishing.keyspaces[0].since > 5);
    bench_finish(&bench);
}

static void views_say_what_is_being_built(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    publishing_now(&bench.publishing, generation_of_both(1));
    publishing_builds(&bench.publishing, 2, true);
    publishing_now(&bench.publishing, NULL);
    assert_int_equal(bench.adopted->newest, 2);
    assert_true(bench.adopted->building);
    assert_int_equal(bench.adopted->generation->number, 1);
    bench_finish(&bench);
}

static void a_configuration_comes_with_the_next_view(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    const struct config *first = publishing_config(&bench.publishing);
    publishing_configure(&bench.publishing, shared_config_create(two_keyspaces()));
    assert_ptr_not_equal(publishing_config(&bench.publishing), first);
    assert_ptr_equal(bench.adopted->config, first);
    publishing_now(&bench.publishing, NULL);
    assert_ptr_equal(bench.adopted->config, publishing_config(&bench.publishing));
    assert_ptr_equal(publishing_first_config(&bench.publishing), first);
    bench_finish(&bench);
}

/* ---- one keyspace ---- */

static void what_one_keyspace_lacks_the_other_guards_without(void **state)
{
    struct bench bench;
    struct generation *generation = generation_of_both(1);
    (void)state;
    bench_init(&bench);
    publishing_now(&bench.publishing, generation);
    generation_give_up(generation, 0, "its filter is full");
    assert_true(publishing_is_due(&bench.publishing));
    publishing_now(&bench.publishing, NULL);
    assert_int_equal(state_of(&bench), KEYSPACE_PASSING);
    assert_string_equal(bench.publishing.keyspaces[0].reason, "its filter is full");
    assert_int_equal(bench.adopted->states[1], KEYSPACE_GUARDING);
    assert_false(publishing_guards(&bench.publishing));
    assert_false(publishing_is_due(&bench.publishing));
    bench_finish(&bench);
}

static void a_keyspace_without_a_filter_is_loading(void **state)
{
    struct bench bench;
    struct generation *generation = generation_of_both(1);
    (void)state;
    filter_destroy(generation->filters[1]);
    generation->filters[1] = NULL;
    bench_init(&bench);
    publishing_now(&bench.publishing, generation);
    assert_int_equal(bench.adopted->states[0], KEYSPACE_GUARDING);
    assert_int_equal(bench.adopted->states[1], KEYSPACE_LOADING);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_could_not_be_built_passes_with_its_reason),
        cmocka_unit_test(it_guards_what_it_can_when_the_rest_was_left_out_for_long),
        cmocka_unit_test(a_view_replaces_the_one_before_in_every_worker),
        cmocka_unit_test(what_is_in_force_is_told_when_every_worker_has_it),
        cmocka_unit_test(of_two_views_on_their_way_the_newest_counts),
        cmocka_unit_test(it_guards_with_a_generation_and_a_lease),
        cmocka_unit_test(an_obstacle_is_the_reason_until_it_is_cleared),
        cmocka_unit_test(only_a_change_of_state_sets_its_time),
        cmocka_unit_test(views_say_what_is_being_built),
        cmocka_unit_test(a_configuration_comes_with_the_next_view),
        cmocka_unit_test(what_one_keyspace_lacks_the_other_guards_without),
        cmocka_unit_test(a_keyspace_without_a_filter_is_loading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
