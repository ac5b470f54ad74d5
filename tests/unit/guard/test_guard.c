/* Every row of the guard's decision: state x override x filter's verdict x enforce. */
#include "guard/guard.h"

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
                           "  - {name: shadows, key: \"shadow:{id}\", table: items, value: v,\n"
                           "     enforce: false}\n"
                           "  - {name: orders, key: \"order:{a}:{b}\", table: orders, value: v}\n";

enum { ITEMS, SHADOWS, ORDERS, KEYSPACES };

static const struct span held = {"item:1", 6};

/* A view over real filters, that of items holding `held`, and a table of overrides. */
struct bench {
    struct shared_config *shared;
    struct generation *generation;
    struct view *view;
    struct overrides overrides;
    char absent[40]; /* a key that the filter of items rules out */
};

static void use_states(struct bench *bench, enum keyspace_state state, bool has_generation)
{
    enum keyspace_state states[KEYSPACES] = {state, state, state};
    view_release(bench->view);
    bench->view = view_create(bench->shared, has_generation ? bench->generation : NULL, states, 1);
}

static uint64_t hash_of(const struct bench *bench, struct span key)
{
    return filter_hash(&bench->generation->seed, key.at, key.length);
}

static void hold(struct bench *bench, int keyspace, const char *key)
{
    uint64_t hash = hash_of(bench, span_of(key));
    assert_int_equal(filter_insert(bench->generation->filters[keyspace], hash), 0);
}

static void bench_init(struct bench *bench)
{
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 0.0001};
    const char *error;
    *bench = (struct bench){.shared = shared_config_create(config_from_text(text)),
                            .generation = generation_create(1, KEYSPACES)};
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&bench->generation->filters[i], &options, &error), 0);
    hold(bench, ITEMS, held.at);
    hold(bench, SHADOWS, "shadow:1");
    overrides_init(&bench->overrides);
    use_states(bench, KEYSPACE_GUARDING, true);
    for (int i = 0; i == 0 || filter_contains(bench->generation->filters[ITEMS],
                                              hash_of(bench, span_of(bench->absent)));
         i++)
        snprintf(bench->absent, sizeof bench->absent, "item:absent-%d", i);
}

static void bench_finish(struct bench *bench)
{
    overrides_finish(&bench->overrides);
    view_release(bench->view);
    generation_release(bench->generation);
    shared_config_release(bench->shared);
}

/* Stands for a block in the tables below. */
enum { BLOCKED = OVERRIDE_TOMBSTONE + 1 };

static void enter(struct bench *bench, const char *key, int kind)
{
    uint64_t end = clock_ms() + 60000;
    struct override entry = {.blocked_until = end};
    if (kind != BLOCKED)
        entry = (struct override){.kind = (enum override_kind)kind,
                                  .sticky = kind == OVERRIDE_HINT,
                                  .until = end,
                                  .epoch = bench->view->newest};
    overrides_set(&bench->overrides, key_make(0, span_of(key)), entry);
}

static struct ruling decide(const struct bench *bench, int keyspace, const char *key)
{
    struct permission permission = permission_begin(bench->view);
    bool is_held = guard_holds(bench->view, key_make(keyspace, span_of(key)));
    return guard_decide(&permission, &bench->overrides, keyspace, span_of(key), is_held);
}

static void must_decide(const struct bench *bench, int keyspace, const char *key,
                        enum decision decision, enum reason reason)
{
    struct ruling ruling = decide(bench, keyspace, key);
    if (ruling.decision != decision || ruling.reason != reason)
        fail_msg("%s: decision %d because of \"%s\", not %d because of \"%s\"", key,
                 (int)ruling.decision, reason_text(ruling.reason), (int)decision,
                 reason_text(reason));
}

/* ---- matching ---- */

static void a_key_belongs_to_the_keyspace_whose_template_it_matches(void **state)
{
    struct config *config = config_from_text(text);
    (void)state;
    assert_int_equal(guard_match(config, span_of("item:1")), ITEMS);
    assert_int_equal(guard_match(config, span_of("item:")), ITEMS);
    assert_int_equal(guard_match(config, (struct span){"item:\0\xff", 7}), ITEMS);
    assert_int_equal(guard_match(config, span_of("shadow:x")), SHADOWS);
    assert_int_equal(guard_match(config, span_of("order:1:2")), ORDERS);
    assert_int_equal(guard_match(config, span_of("order:1")), NOT_GUARDED);
    assert_int_equal(guard_match(config, span_of("item")), NOT_GUARDED);
    assert_int_equal(guard_match(config, span_of("Item:1")), NOT_GUARDED);
    assert_int_equal(guard_match(config, span_of("xitem:1")), NOT_GUARDED);
    assert_int_equal(guard_match(config, span_of("")), NOT_GUARDED);
    config_destroy(config);
}

/* ---- deciding ---- */

/* With permission: what counts for a key in the filter and for one that it rules out. */
static const struct row {
    int entry;
    bool is_held, rejects;
    enum reason reason;
} rows[] = {
    {OVERRIDE_NONE, true, false, REASON_POSSIBLE},
    {OVERRIDE_NONE, false, true, REASON_ABSENT},
    {OVERRIDE_HINT, true, false, REASON_HINT},
    {OVERRIDE_HINT, false, false, REASON_HINT},
    {OVERRIDE_TOMBSTONE, true, true, REASON_TOMBSTONE},
    {OVERRIDE_TOMBSTONE, false, true, REASON_ABSENT},
    {BLOCKED, true, true, REASON_BLOCK},
    {BLOCKED, false, true, REASON_BLOCK},
};

enum { ROWS = sizeof rows / sizeof *rows };

static void with_permission_entry_and_filter_decide(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < ROWS; i++) {
        const char *key = rows[i].is_held ? held.at : bench.absent;
        enter(&bench, key, rows[i].entry);
        must_decide(&bench, ITEMS, key, rows[i].rejects ? DECISION_REJECT : DECISION_PASS,
                    rows[i].reason);
    }
    bench_finish(&bench);
}

/* A block is the admin's order about a key, not a verdict: it holds also there. */
static void a_shadow_keyspace_rejects_nothing_but_blocked_keys(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < ROWS; i++) {
        const char *key = rows[i].is_held ? "shadow:1" : "shadow:absent";
        enum decision rejection = rows[i].entry == BLOCKED ? DECISION_REJECT : DECISION_SHADOW;
        enter(&bench, key, rows[i].entry);
        must_decide(&bench, SHADOWS, key, rows[i].rejects ? rejection : DECISION_PASS,
                    rows[i].reason);
    }
    bench_finish(&bench);
}

static void must_only_block(struct bench *bench, int keyspace, const char *key)
{
    for (size_t i = 0; i < ROWS; i++) {
        bool blocked = rows[i].entry == BLOCKED;
        enter(bench, key, rows[i].entry);
        must_decide(bench, keyspace, key, blocked ? DECISION_REJECT : DECISION_PASS,
                    blocked ? REASON_BLOCK : REASON_NO_PERMISSION);
    }
}

static void without_permission_nothing_is_rejected_but_blocked_keys(void **state)
{
    static const enum keyspace_state without[] = {KEYSPACE_LOADING, KEYSPACE_PASSING};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t s = 0; s < 2; s++) {
        use_states(&bench, without[s], true);
        must_only_block(&bench, ITEMS, held.at);
        must_only_block(&bench, ITEMS, bench.absent);
        must_only_block(&bench, SHADOWS, "shadow:absent");
    }
    use_states(&bench, KEYSPACE_LOADING, false);
    must_only_block(&bench, ITEMS, bench.absent);
    bench_finish(&bench);
}

static void permission_is_each_keyspaces_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    enum keyspace_state states[] = {KEYSPACE_GUARDING, KEYSPACE_GUARDING, KEYSPACE_PASSING};
    view_release(bench.view);
    bench.view = view_create(bench.shared, bench.generation, states, 1);
    must_decide(&bench, ITEMS, bench.absent, DECISION_REJECT, REASON_ABSENT);
    must_decide(&bench, ORDERS, "order:1:2", DECISION_PASS, REASON_NO_PERMISSION);
    bench_finish(&bench);
}

/* The same bytes under another keyspace's filter are another key. */
static void each_keyspace_asks_its_own_filter(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    must_decide(&bench, ITEMS, held.at, DECISION_PASS, REASON_POSSIBLE);
    must_decide(&bench, ORDERS, held.at, DECISION_REJECT, REASON_ABSENT);
    bench_finish(&bench);
}

static void an_entry_that_has_ended_decides_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    overrides_set(&bench.overrides, key_make(0, span_of(bench.absent)),
                  (struct override){.kind = OVERRIDE_HINT, .until = clock_ms()});
    overrides_set(&bench.overrides, key_make(ITEMS, held),
                  (struct override){.blocked_until = clock_ms()});
    must_decide(&bench, ITEMS, bench.absent, DECISION_REJECT, REASON_ABSENT);
    must_decide(&bench, ITEMS, held.at, DECISION_PASS, REASON_POSSIBLE);
    bench_finish(&bench);
}

/* ---- many keys ---- */

static void asks_of_several_keyspaces_are_answered_each_by_its_filter(void **state)
{
    static const char *const keys[] = {"item:1", "shadow:1", "item:2", "shadow:2", "order:1:2"};
    static const int keyspaces[] = {ITEMS, SHADOWS, ITEMS, SHADOWS, ORDERS};
    struct key_asks asks = {.count = 0};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < KEY_ASKS_MAX; i++)
        key_asks_add(&asks, bench.view, keyspaces[i % 5], span_of(keys[i % 5]));
    key_asks_end(&asks);
    for (size_t i = 0; i < KEY_ASKS_MAX; i++)
        assert_int_equal(asks.at[i].held,
                         guard_holds(bench.view, key_make(keyspaces[i % 5], span_of(keys[i % 5]))));
    assert_true(asks.at[0].held && asks.at[1].held && !asks.at[2].held);
    use_states(&bench, KEYSPACE_LOADING, false);
    asks.count = 0;
    key_asks_add(&asks, bench.view, ITEMS, held);
    key_asks_end(&asks);
    assert_false(asks.at[0].held);
    bench_finish(&bench);
}

/* ---- hints ---- */

static enum write_needs needs(const struct bench *bench, const char *key, enum worth worth)
{
    return guard_write_needs(bench->view, &bench->overrides, key_make(ITEMS, span_of(key)), worth);
}

static bool wants_hint(const struct bench *bench, const char *key)
{
    return needs(bench, key, LACKED) == WRITE_NEEDS_HINT;
}

static void must_want(struct bench *bench, int entry, bool if_held, bool if_absent)
{
    enter(bench, held.at, entry);
    enter(bench, bench->absent, entry);
    assert_int_equal(wants_hint(bench, held.at), if_held);
    assert_int_equal(wants_hint(bench, bench->absent), if_absent);
}

static void check_hints(struct bench *bench)
{
    must_want(bench, OVERRIDE_NONE, false, true);
    must_want(bench, OVERRIDE_HINT, false, false);
    must_want(bench, OVERRIDE_TOMBSTONE, true, true);
    must_want(bench, BLOCKED, false, true);
}

static bool remembers(const struct bench *bench, const char *key)
{
    return needs(bench, key, ALSO_HELD) == WRITE_NEEDS_HINT;
}

/* Who follows a log is told of every row; without one a quarter of the places is for them. */
static void a_key_that_is_held_finds_a_place_while_few_are_taken(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct config *config = (struct config *)bench.view->config;
    config->max_hints = 4;
    config->sync = SYNC_REPLICATION;
    assert_false(remembers(&bench, held.at));
    config->sync = SYNC_POLL;
    assert_true(remembers(&bench, held.at));
    enter(&bench, bench.absent, OVERRIDE_HINT);
    assert_false(remembers(&bench, held.at));
    bench_finish(&bench);
}

/* What was deleted since nobody has told, and the next filter lacks it. */
static void a_key_of_a_filter_that_lost_its_log_finds_a_place_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    ((struct config *)bench.view->config)->sync = SYNC_REPLICATION;
    assert_false(remembers(&bench, held.at));
    bench.view->states[ITEMS] = KEYSPACE_PASSING;
    assert_true(remembers(&bench, held.at));
    bench_finish(&bench);
}

/* The filter has it for a moment more. */
static void a_key_whose_row_the_log_says_is_gone_finds_a_place_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct config *config = (struct config *)bench.view->config;
    struct departing *departing = &bench.generation->departing;
    config->max_hints = 4;
    config->sync = SYNC_REPLICATION;
    departing_add(departing, hash_of(&bench, held));
    departing_add(departing, hash_of(&bench, held));
    assert_true(remembers(&bench, held.at));
    departing_drop(departing, hash_of(&bench, held));
    assert_true(remembers(&bench, held.at));
    enter(&bench, bench.absent, OVERRIDE_HINT);
    assert_false(remembers(&bench, held.at));
    enter(&bench, bench.absent, OVERRIDE_NONE);
    departing_drop(departing, hash_of(&bench, held));
    assert_false(remembers(&bench, held.at));
    departing_add_whole(departing, ORDERS);
    assert_false(remembers(&bench, held.at));
    departing_add_whole(departing, ITEMS);
    assert_true(remembers(&bench, held.at));
    bench_finish(&bench);
}

static bool is_renewed(struct bench *bench, const char *name, uint64_t left)
{
    struct key key = key_make(ITEMS, span_of(name));
    struct override hint = {.kind = OVERRIDE_HINT,
                            .sticky = true,
                            .until = clock_ms() + left,
                            .epoch = bench->view->newest};
    overrides_set(&bench->overrides, key, hint);
    return needs(bench, name, ALSO_HELD) == WRITE_NEEDS_HINT;
}

static void a_write_renews_a_hint_that_is_over_soon(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct config *config = (struct config *)bench.view->config;
    config->sync = SYNC_REPLICATION;
    config->hint_ttl_ms = 100000;
    assert_false(is_renewed(&bench, bench.absent, 90000));
    assert_true(is_renewed(&bench, bench.absent, 40000));
    assert_false(is_renewed(&bench, held.at, 40000));
    config->sync = SYNC_POLL;
    assert_false(is_renewed(&bench, bench.absent, 40000));
    bench_finish(&bench);
}

/* And others may not have it yet: whoever writes the key meanwhile is not answered before they do.
 */
static void a_hint_is_new_for_some_seconds(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct key key = key_make(ITEMS, span_of(bench.absent));
    uint64_t now = clock_ms();
    struct override entry = {.kind = OVERRIDE_HINT,
                             .sticky = true,
                             .since = now,
                             .until = now + 60000,
                             .epoch = bench.view->newest};
    assert_false(needs(&bench, bench.absent, LACKED) == WRITE_NEEDS_WORD);
    overrides_set(&bench.overrides, key, entry);
    assert_true(needs(&bench, bench.absent, LACKED) == WRITE_NEEDS_WORD);
    assert_false(wants_hint(&bench, bench.absent));
    struct override later = {.kind = OVERRIDE_HINT, .until = now + 70000, .since = now + 10};
    assert_true(override_admit(entry, later).since == now);
    entry.since -= 6000;
    overrides_set(&bench.overrides, key, entry);
    assert_false(needs(&bench, bench.absent, LACKED) == WRITE_NEEDS_WORD);
    overrides_set(&bench.overrides, key, (struct override){.blocked_until = now + 60000});
    assert_false(needs(&bench, bench.absent, LACKED) == WRITE_NEEDS_WORD);
    bench_finish(&bench);
}

/* The next file may have been made before the write, and the hint of an earlier write ends first.
 */
static void each_write_of_a_sources_key_is_news_though_a_log_tells_of_rows(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    struct config *config = (struct config *)bench.view->config;
    char source[] = "file:/keys";
    config->max_hints = 100;
    config->sync = SYNC_REPLICATION;
    struct override hint = {.kind = OVERRIDE_HINT, .until = clock_ms() + 60000};
    overrides_set(&bench.overrides, key_make(ITEMS, held), hint);
    assert_false(wants_hint(&bench, held.at));
    config->keyspaces[ITEMS].source = source;
    assert_true(wants_hint(&bench, held.at));
    assert_true(remembers(&bench, held.at));
    hold(&bench, ORDERS, "order:1:2");
    assert_int_equal(guard_write_needs(bench.view, &bench.overrides,
                                       key_make(ORDERS, span_of("order:1:2")), ALSO_HELD),
                     WRITE_NEEDS_NOTHING);
    config->keyspaces[ITEMS].source = NULL;
    assert_false(remembers(&bench, held.at));
    bench_finish(&bench);
}

/* No generation would ever give its places back. */
static void hints_end_by_time_where_a_log_or_a_source_is(void **state)
{
    struct config *config = config_from_text(text);
    char source[] = "file:/keys";
    (void)state;
    assert_false(config_ends_hints(config));
    config->keyspaces[ITEMS].source = source;
    assert_true(config_ends_hints(config));
    config->keyspaces[ITEMS].source = NULL;
    config->sync = SYNC_REPLICATION;
    assert_true(config_ends_hints(config));
    config_destroy(config);
}

/* Also while passing: the key must be admitted when the guard rejects again. */
static void a_write_is_news_when_nothing_admits_the_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    check_hints(&bench);
    use_states(&bench, KEYSPACE_PASSING, true);
    check_hints(&bench);
    bench_finish(&bench);
}

/* By the same transaction as before, or by a later one, which a generation may not have seen. */
static void a_write_is_news_again_once_another_generation_was_begun(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    enter(&bench, bench.absent, OVERRIDE_HINT);
    assert_false(wants_hint(&bench, bench.absent));
    bench.view->newest++;
    assert_true(wants_hint(&bench, bench.absent));
    bench_finish(&bench);
}

static void before_the_first_generation_every_written_key_is_news(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    use_states(&bench, KEYSPACE_LOADING, false);
    assert_false(guard_holds(bench.view, key_make(ITEMS, held)));
    assert_true(wants_hint(&bench, held.at));
    enter(&bench, held.at, OVERRIDE_HINT);
    assert_false(wants_hint(&bench, held.at));
    bench_finish(&bench);
}

static void every_reason_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (int i = REASON_POSSIBLE; i <= REASON_NO_PERMISSION; i++) {
        assert_true(strlen(reason_text((enum reason)i)) > 10);
        for (int j = REASON_POSSIBLE; j < i; j++)
            assert_string_not_equal(reason_text((enum reason)i), reason_text((enum reason)j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_belongs_to_the_keyspace_whose_template_it_matches),
        cmocka_unit_test(with_permission_entry_and_filter_decide),
        cmocka_unit_test(a_shadow_keyspace_rejects_nothing_but_blocked_keys),
        cmocka_unit_test(without_permission_nothing_is_rejected_but_blocked_keys),
        cmocka_unit_test(permission_is_each_keyspaces_own),
        cmocka_unit_test(each_keyspace_asks_its_own_filter),
        cmocka_unit_test(an_entry_that_has_ended_decides_nothing),
        cmocka_unit_test(asks_of_several_keyspaces_are_answered_each_by_its_filter),
        cmocka_unit_test(a_write_is_news_when_nothing_admits_the_key),
        cmocka_unit_test(a_key_that_is_held_finds_a_place_while_few_are_taken),
        cmocka_unit_test(a_key_whose_row_the_log_says_is_gone_finds_a_place_too),
        cmocka_unit_test(a_key_of_a_filter_that_lost_its_log_finds_a_place_too),
        cmocka_unit_test(a_write_renews_a_hint_that_is_over_soon),
        cmocka_unit_test(a_hint_is_new_for_some_seconds),
        cmocka_unit_test(each_write_of_a_sources_key_is_news_though_a_log_tells_of_rows),
        cmocka_unit_test(hints_end_by_time_where_a_log_or_a_source_is),
        cmocka_unit_test(a_write_is_news_again_once_another_generation_was_begun),
        cmocka_unit_test(before_the_first_generation_every_written_key_is_news),
        cmocka_unit_test(every_reason_has_a_text_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
