#include "guard/overrides.h"
#include "guard/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

static struct key key;
static unsigned trims;

/* In libc's place. */
int malloc_trim(size_t pad)
{
    (void)pad;
    trims++;
    return 1;
}

static int name_key(void **state)
{
    (void)state;
    key = key_make(0, (struct span){"item:1", 6});
    return 0;
}

static enum override_kind kind_at(const struct overrides *overrides, uint64_t now)
{
    return overrides_find(overrides, key, now).kind;
}

/* A generation is in force that knows all that was under way when it was begun. */
static void expire(struct overrides *table, uint64_t now, uint64_t number, size_t most)
{
    struct generation generation = {.number = number, .settled = number};
    overrides_use_generation(table, &generation);
    overrides_expire(table, now, most);
}

static void the_last_entry_of_a_key_counts(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    assert_int_equal(kind_at(&table, 0), OVERRIDE_NONE);
    overrides_set(&table, key, (struct override){.kind = OVERRIDE_HINT, .until = 100, .epoch = 3});
    overrides_set(&table, key,
                  (struct override){.kind = OVERRIDE_TOMBSTONE, .until = 50, .epoch = 4});
    assert_int_equal(overrides_count(&table), 1);
    struct override found = overrides_find(&table, key, 0);
    assert_int_equal(found.kind, OVERRIDE_TOMBSTONE);
    assert_int_equal(found.until, 50);
    assert_int_equal(found.epoch, 4);
    overrides_finish(&table);
}

static void long_keys_take_more_places(void **state)
{
    static const char text[600];
    struct overrides table;
    struct override hint = {.kind = OVERRIDE_HINT, .until = 100};
    (void)state;
    overrides_init(&table);
    struct key large = key_make(0, (struct span){text, sizeof text});
    overrides_set(&table, key, hint);
    assert_int_equal(overrides_places(&table), 1);
    for (int i = 0; i < 2; i++) { /* in the place of the one before */
        overrides_set(&table, large, hint);
        assert_int_equal(overrides_places(&table), 4);
    }
    overrides_begin_write(&table, large);
    overrides_set(&table, large, (struct override){.kind = OVERRIDE_NONE});
    assert_int_equal(overrides_places(&table), 4);
    overrides_end_write(&table, large);
    assert_int_equal(overrides_places(&table), 1);
    expire(&table, 50, 1, 10);
    assert_int_equal(overrides_places(&table), 1);
    expire(&table, 100, 1, 10);
    assert_int_equal(overrides_places(&table), 0);
    overrides_finish(&table);
}

static void none_drops_the_entry(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    overrides_set(&table, key, (struct override){.kind = OVERRIDE_NONE});
    assert_int_equal(overrides_count(&table), 0);
    overrides_set(&table, key, (struct override){.kind = OVERRIDE_TOMBSTONE, .sticky = true});
    overrides_set(&table, key, (struct override){.kind = OVERRIDE_NONE});
    assert_int_equal(overrides_count(&table), 0);
    assert_int_equal(kind_at(&table, 0), OVERRIDE_NONE);
    overrides_finish(&table);
}

static void the_key_is_copied_with_its_zero_bytes(void **state)
{
    struct overrides table;
    char bytes[] = "a\0b";
    (void)state;
    overrides_init(&table);
    overrides_set(&table, key_make(0, (struct span){bytes, 3}),
                  (struct override){.kind = OVERRIDE_HINT, .until = 9});
    bytes[2] = 'c';
    assert_int_equal(overrides_find(&table, key_make(0, (struct span){"a\0b", 3}), 0).kind,
                     OVERRIDE_HINT);
    assert_int_equal(overrides_find(&table, key_make(0, (struct span){"a\0c", 3}), 0).kind,
                     OVERRIDE_NONE);
    assert_int_equal(overrides_find(&table, key_make(0, (struct span){"a", 1}), 0).kind,
                     OVERRIDE_NONE);
    overrides_finish(&table);
}

static void an_entry_ends_with_its_time(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    overrides_set(&table, key, (struct override){.kind = OVERRIDE_HINT, .until = 100});
    assert_int_equal(kind_at(&table, 99), OVERRIDE_HINT);
    assert_int_equal(kind_at(&table, 100), OVERRIDE_NONE);
    expire(&table, 99, 1, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 1);
    expire(&table, 100, 0, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 0);
    overrides_finish(&table);
}

/* Time and generation must both have passed, in whatever order. */
static void a_sticky_entry_outlives_its_time_until_a_later_generation(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    overrides_set(
        &table, key,
        (struct override){.kind = OVERRIDE_TOMBSTONE, .sticky = true, .until = 100, .epoch = 5});
    expire(&table, 1000, 0, SIZE_MAX);
    expire(&table, 1000, 5, SIZE_MAX);
    assert_int_equal(kind_at(&table, 1000), OVERRIDE_TOMBSTONE);
    expire(&table, 99, 6, SIZE_MAX);
    assert_int_equal(kind_at(&table, 99), OVERRIDE_TOMBSTONE);
    expire(&table, 100, 6, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 0);
    overrides_finish(&table);
}

static void fill(struct overrides *table, int count, uint64_t until)
{
    char text[20];
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "item:%d", i);
        overrides_set(table, key_make(0, span_of(text)),
                      (struct override){.kind = OVERRIDE_HINT, .until = until});
    }
}

static void expiring_looks_at_no_more_entries_than_it_may(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    fill(&table, 100, 10);
    expire(&table, 10, 0, 0);
    assert_int_equal(overrides_count(&table), 100);
    expire(&table, 10, 0, 30);
    assert_int_equal(overrides_count(&table), 70);
    expire(&table, 10, 0, 1000);
    assert_int_equal(overrides_count(&table), 0);
    expire(&table, 10, 0, 1);
    overrides_finish(&table);
}

/* Entries that stay must not hide those behind them. */
static void expiring_in_small_steps_reaches_every_entry(void **state)
{
    struct overrides table;
    char text[20];
    (void)state;
    overrides_init(&table);
    for (int i = 0; i < 90; i++) {
        snprintf(text, sizeof text, "item:%d", i);
        uint64_t until = i < 80 ? 1000 : 10;
        overrides_set(&table, key_make(0, span_of(text)),
                      (struct override){.kind = OVERRIDE_HINT, .until = until});
    }
    for (int i = 0; i < 9; i++)
        expire(&table, 10, 0, 10);
    assert_int_equal(overrides_count(&table), 80);
    overrides_finish(&table);
}

static void a_block_ends_by_itself_and_leaves_what_was_known(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    overrides_set(
        &table, key,
        (struct override){.kind = OVERRIDE_HINT, .sticky = true, .epoch = 3, .blocked_until = 50});
    assert_int_equal(overrides_find(&table, key, 49).blocked_until, 50);
    assert_int_equal(overrides_find(&table, key, 50).blocked_until, 0);
    assert_int_equal(overrides_find(&table, key, 50).kind, OVERRIDE_HINT);
    expire(&table, 60, 3, 10);
    assert_int_equal(overrides_count(&table), 1);
    expire(&table, 60, 4, 10);
    assert_int_equal(overrides_count(&table), 0);
    overrides_set(&table, key, (struct override){.blocked_until = 50});
    expire(&table, 49, 9, 10);
    assert_int_equal(overrides_count(&table), 1);
    expire(&table, 50, 9, 10);
    assert_int_equal(overrides_count(&table), 0);
    overrides_finish(&table);
}

static void admitting_never_weakens_what_admits_already(void **state)
{
    (void)state;
    struct override strong = {.kind = OVERRIDE_HINT, .sticky = true, .until = 9, .epoch = 4};
    struct override weak = {.kind = OVERRIDE_HINT, .until = 20, .epoch = 2};
    struct override both = override_admit(strong, weak);
    assert_true(both.sticky);
    assert_int_equal(both.until, 20);
    assert_int_equal(both.epoch, 4);
    struct override buried = {.kind = OVERRIDE_TOMBSTONE, .sticky = true, .blocked_until = 7};
    both = override_admit(buried, weak);
    assert_int_equal(both.kind, OVERRIDE_HINT);
    assert_false(both.sticky);
    assert_int_equal(both.blocked_until, 7);
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(override_kind_name(OVERRIDE_NONE), "none");
    assert_string_equal(override_kind_name(OVERRIDE_HINT), "hint");
    assert_string_equal(override_kind_name(OVERRIDE_TOMBSTONE), "tombstone");
}

static void what_ends_during_a_block_does_not_come_back_behind_it(void **state)
{
    struct overrides table;
    (void)state;
    overrides_init(&table);
    overrides_set(&table, key_make(0, span_of("item:1")),
                  (struct override){
                      .kind = OVERRIDE_TOMBSTONE, .sticky = true, .epoch = 3, .blocked_until = 50});
    expire(&table, 10, 4, 10);
    assert_int_equal(overrides_find(&table, key_make(0, span_of("item:1")), 10).blocked_until, 50);
    assert_int_equal(overrides_find(&table, key_make(0, span_of("item:1")), 60).kind,
                     OVERRIDE_NONE);
    overrides_finish(&table);
}

static void a_hint_waits_for_what_was_under_way_and_a_tombstone_does_not(void **state)
{
    struct overrides table;
    struct generation unsettled = {.number = 5, .settled = 3},
                      settled = {.number = 6, .settled = 4};
    struct key hint = key_make(0, span_of("hint")), tombstone = key_make(1, span_of("tombstone"));
    (void)state;
    overrides_init(&table);
    overrides_set(&table, hint, (struct override){OVERRIDE_HINT, .sticky = true, .epoch = 3});
    overrides_set(&table, tombstone,
                  (struct override){OVERRIDE_TOMBSTONE, .sticky = true, .epoch = 3});
    overrides_use_generation(&table, NULL);
    overrides_expire(&table, 10, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 2);
    overrides_use_generation(&table, &unsettled);
    assert_int_equal(overrides_find(&table, hint, 10).kind, OVERRIDE_HINT);
    assert_int_equal(overrides_find(&table, tombstone, 10).kind, OVERRIDE_NONE);
    overrides_expire(&table, 10, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 1);
    overrides_use_generation(&table, &settled);
    overrides_expire(&table, 10, SIZE_MAX);
    assert_int_equal(overrides_count(&table), 0);
    overrides_finish(&table);
}

/* However many there are, and however late they are dropped. */
static void a_generation_ends_all_at_once(void **state)
{
    struct overrides table;
    struct generation generation = {.number = 4, .settled = 4}, older = {.number = 3, .settled = 3};
    struct override entry = {OVERRIDE_TOMBSTONE, .sticky = true, .epoch = 3};
    (void)state;
    overrides_init(&table);
    overrides_set(&table, key, entry);
    assert_int_equal(kind_at(&table, 10), OVERRIDE_TOMBSTONE);
    overrides_use_generation(&table, &generation);
    assert_int_equal(kind_at(&table, 10), OVERRIDE_NONE);
    overrides_use_generation(&table, &older);
    assert_int_equal(kind_at(&table, 10), OVERRIDE_NONE);
    assert_int_equal(overrides_count(&table), 1);
    entry.epoch = 4;
    overrides_set(&table, key, entry);
    assert_int_equal(kind_at(&table, 10), OVERRIDE_TOMBSTONE);
    overrides_finish(&table);
}

static void what_a_burst_took_goes_back_when_it_has_ended(void **state)
{
    static const char text[60000];
    struct overrides table;
    (void)state;
    trims = 0;
    overrides_init(&table);
    for (size_t i = 0; i < 1000; i++)
        overrides_set(&table, key_make(0, (struct span){text, sizeof text - i}),
                      (struct override){.kind = OVERRIDE_HINT, .until = 100});
    overrides_settle(&table);
    expire(&table, 100, 1, 500);
    overrides_settle(&table);
    assert_int_equal(trims, 0);
    expire(&table, 100, 1, 400);
    overrides_settle(&table);
    assert_int_equal(trims, 1);
    expire(&table, 100, 1, 100);
    overrides_settle(&table);
    assert_int_equal(trims, 1);
    assert_int_equal(table.bytes, 0);
    overrides_finish(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hint_waits_for_what_was_under_way_and_a_tombstone_does_not),
        cmocka_unit_test(a_generation_ends_all_at_once),
        cmocka_unit_test(the_last_entry_of_a_key_counts),
        cmocka_unit_test(long_keys_take_more_places),
        cmocka_unit_test(none_drops_the_entry),
        cmocka_unit_test(the_key_is_copied_with_its_zero_bytes),
        cmocka_unit_test(an_entry_ends_with_its_time),
        cmocka_unit_test(a_sticky_entry_outlives_its_time_until_a_later_generation),
        cmocka_unit_test(what_ends_during_a_block_does_not_come_back_behind_it),
        cmocka_unit_test(expiring_looks_at_no_more_entries_than_it_may),
        cmocka_unit_test(expiring_in_small_steps_reaches_every_entry),
        cmocka_unit_test(a_block_ends_by_itself_and_leaves_what_was_known),
        cmocka_unit_test(admitting_never_weakens_what_admits_already),
        cmocka_unit_test(every_kind_has_a_name),
        cmocka_unit_test(what_a_burst_took_goes_back_when_it_has_ended),
    };
    return cmocka_run_group_tests(tests, name_key, NULL);
}
