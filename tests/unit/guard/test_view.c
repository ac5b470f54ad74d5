/* Who keeps what alive: views, their generation and their configuration. What is freed too early
 * or never, AddressSanitizer finds. */
#include "guard/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fakes/config_file.h"

static const char text[] = "cache: redis://127.0.0.1\n"
                           "database: postgresql://app@db/shop\n"
                           "sync: none\n"
                           "keyspaces:\n"
                           "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
                           "  - {name: others, key: \"other:{id}\", table: others, value: v}\n";

static const enum keyspace_state states[] = {KEYSPACE_GUARDING, KEYSPACE_PASSING};

static struct generation *built(uint64_t number)
{
    struct filter_options options = {.capacity = 100, .false_positive_rate = 0.001};
    struct generation *generation = generation_create(number, 2);
    const char *error;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(filter_create(&generation->filters[i], &options, &error), 0);
    return generation;
}

static void a_view_says_what_it_was_made_of(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct generation *generation = built(7);
    struct view *view = view_create(shared, generation, states, 1);
    (void)state;
    assert_ptr_equal(view->config, shared->config);
    assert_ptr_equal(view->generation, generation);
    assert_int_equal(view->generation->number, 7);
    assert_int_equal(view->states[0], KEYSPACE_GUARDING);
    assert_int_equal(view->states[1], KEYSPACE_PASSING);
    view_release(view);
    generation_release(generation);
    shared_config_release(shared);
}

static void a_view_goes_when_its_last_holder_gives_it_back(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct generation *generation = built(1);
    struct view *view = view_create(shared, generation, states, 3);
    (void)state;
    assert_int_equal(generation->references, 2);
    assert_int_equal(shared->references, 2);
    view_release(view);
    view_release(view);
    assert_int_equal(view->holders, 1);
    assert_int_equal(generation->references, 2);
    assert_int_equal(shared->references, 2);
    view_release(view);
    assert_int_equal(generation->references, 1);
    assert_int_equal(shared->references, 1);
    generation_release(generation);
    shared_config_release(shared);
}

/* A swap: the keeper lets go of the old generation while a worker still decides by it. */
static void a_generation_lives_as_long_as_a_view_shows_it(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct generation *old = built(1), *fresh = built(2);
    struct view *before = view_create(shared, old, states, 2);
    struct view *also = view_create(shared, old, states, 1);
    struct view *after = view_create(shared, fresh, states, 2);
    (void)state;
    generation_release(old);
    assert_int_equal(old->references, 2);
    assert_false(filter_contains(before->generation->filters[0], 1));
    view_release(before);
    view_release(also);
    assert_int_equal(old->references, 1);
    assert_false(filter_contains(before->generation->filters[1], 1));
    view_release(before); /* the last: view, generation and filters go */
    generation_release(fresh);
    shared_config_release(shared);
    assert_int_equal(after->generation->number, 2);
    view_release(after);
    view_release(after);
}

static void a_configuration_lives_as_long_as_a_view_shows_it(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct view *view = view_create(shared, NULL, states, 2);
    (void)state;
    shared_config_release(shared);
    view_release(view);
    assert_string_equal(view->config->keyspaces[1].name, "others");
    view_release(view);
}

static void without_a_generation_there_is_nothing_to_release(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct view *view = view_create(shared, NULL, states, 1);
    (void)state;
    assert_null(view->generation);
    view_release(view);
    shared_config_release(shared);
    view_release(NULL);
    generation_release(NULL);
    shared_config_release(NULL);
}

static bool holds(struct permission *permission)
{
    return permission_holds(permission, 0);
}

/* What was known when the lookups began: a filter that was asked before the lease was extended may
 * have been asked without permission. The same the other way round. */
static void a_permission_is_that_of_its_beginning(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct generation *generation = built(1);
    struct view *view = view_create(shared, generation, states, 1);
    (void)state;
    struct permission without_end = permission_begin(view);
    atomic_store(&generation->lease, clock_ms() + 60000);
    struct permission extended = permission_begin(view);
    atomic_store(&generation->lease, 0);
    struct permission ended = permission_begin(view);
    atomic_store(&generation->lease, UINT64_MAX);
    assert_true(holds(&without_end));
    assert_true(holds(&extended));
    assert_false(holds(&ended));
    assert_true(view_may_reject(view, 0));
    assert_false(permission_holds(&without_end, 1)); /* not guarding */
    view_release(view);
    generation_release(generation);
    shared_config_release(shared);
}

/* Whatever is known of rows, and of keys that are a source's. */
static void nothing_is_rejected_by_a_process_that_does_not_stand(void **state)
{
    struct filter_options options = {.capacity = 100, .false_positive_rate = 0.001};
    struct shared_config *shared = shared_config_create(config_from_text(text));
    static const enum keyspace_state both[] = {KEYSPACE_GUARDING, KEYSPACE_GUARDING};
    _Atomic uint64_t standing = UINT64_MAX;
    (void)state;
    for (int has_rows = 0; has_rows < 2; has_rows++) {
        struct generation *generation = has_rows ? built(1) : NULL;
        struct view *view = view_create(shared, generation, both, 1);
        struct filter *filter;
        const char *error;
        assert_int_equal(filter_create(&filter, &options, &error), 0);
        struct key_set *set = key_set_create(filter, (struct filter_seed){1, 2});
        view_give_set(view, 1, set);
        view->standing = &standing;
        atomic_store(&standing, UINT64_MAX);
        assert_int_equal(view_may_reject(view, 0), has_rows);
        assert_true(view_may_reject(view, 1));
        atomic_store(&standing, clock_ms() + 60000);
        assert_int_equal(view_may_reject(view, 0), has_rows);
        assert_true(view_may_reject(view, 1));
        if (has_rows) /* a source's keys do not end with what is known of rows */
            atomic_store(&generation->lease, 0);
        assert_false(view_may_reject(view, 0));
        assert_true(view_may_reject(view, 1));
        atomic_store(&standing, clock_ms());
        if (has_rows)
            atomic_store(&generation->lease, UINT64_MAX);
        assert_false(view_may_reject(view, 0));
        assert_false(view_may_reject(view, 1));
        view_release(view);
        key_set_release(set);
        generation_release(generation);
    }
    shared_config_release(shared);
}

static void one_look_at_the_clock_serves_all_decisions(void **state)
{
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct generation *generation = built(1);
    struct view *view = view_create(shared, generation, states, 1);
    (void)state;
    atomic_store(&generation->lease, clock_ms() + 3);
    struct permission early = permission_begin(view), late = early;
    bool held = holds(&early);
    while (clock_ms() < early.until)
        continue;
    assert_int_equal(holds(&early), held);
    assert_false(holds(&late)); /* its first look */
    view_release(view);
    generation_release(generation);
    shared_config_release(shared);
}

/* A building that fails half way leaves some filters out. */
static void a_generation_may_end_with_filters_missing(void **state)
{
    struct filter_options options = {.capacity = 100, .false_positive_rate = 0.001};
    struct generation *generation = generation_create(1, 2);
    const char *error;
    (void)state;
    assert_int_equal(filter_create(&generation->filters[1], &options, &error), 0);
    generation_release(generation);
}

static void its_size_is_that_of_its_filters(void **state)
{
    struct generation *generation = built(1);
    (void)state;
    assert_int_equal(generation_bytes(generation), filter_stats(generation->filters[0]).bytes +
                                                       filter_stats(generation->filters[1]).bytes);
    assert_true(generation_bytes(generation) > 0);
    generation_release(generation);
}

static void each_generation_has_a_seed_of_its_own(void **state)
{
    struct generation *a = generation_create(1, 0), *b = generation_create(2, 0);
    (void)state;
    assert_true(a->seed.k0 != b->seed.k0 || a->seed.k1 != b->seed.k1);
    assert_int_equal(generation_bytes(a), 0);
    generation_release(a);
    generation_release(b);
}

static void every_state_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(keyspace_state_name(KEYSPACE_LOADING), "loading");
    assert_string_equal(keyspace_state_name(KEYSPACE_GUARDING), "guarding");
    assert_string_equal(keyspace_state_name(KEYSPACE_PASSING), "passing");
}

/* Whatever the generation has, and also where there is none or its lease has ended. */
static void the_keys_of_a_source_reject_without_a_generation(void **state)
{
    struct filter_options options = {.capacity = 10, .false_positive_rate = 1e-6};
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct filter_seed seed;
    struct filter *filter;
    const char *why;
    (void)state;
    assert_int_equal(filter_seed_random(&seed), 0);
    assert_int_equal(filter_create(&filter, &options, &why), 0);
    struct key_set *set = key_set_create(filter, seed);
    struct view *view = view_create(shared, NULL, states, 1);
    assert_false(view_may_reject(view, 0));
    view_give_set(view, 0, set);
    assert_true(view_may_reject(view, 0));
    assert_ptr_equal(view->asked[0].filter, filter);
    assert_int_equal(set->references, 2);
    view_release(view);
    assert_int_equal(set->references, 1);
    key_set_release(set);
    shared_config_release(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_says_what_it_was_made_of),
        cmocka_unit_test(a_view_goes_when_its_last_holder_gives_it_back),
        cmocka_unit_test(a_generation_lives_as_long_as_a_view_shows_it),
        cmocka_unit_test(a_configuration_lives_as_long_as_a_view_shows_it),
        cmocka_unit_test(without_a_generation_there_is_nothing_to_release),
        cmocka_unit_test(a_permission_is_that_of_its_beginning),
        cmocka_unit_test(nothing_is_rejected_by_a_process_that_does_not_stand),
        cmocka_unit_test(one_look_at_the_clock_serves_all_decisions),
        cmocka_unit_test(a_generation_may_end_with_filters_missing),
        cmocka_unit_test(its_size_is_that_of_its_filters),
        cmocka_unit_test(each_generation_has_a_seed_of_its_own),
        cmocka_unit_test(the_keys_of_a_source_reject_without_a_generation),
        cmocka_unit_test(every_state_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
