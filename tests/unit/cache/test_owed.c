/* What the cache is still to be told to delete: each key once, the oldest first, and what becomes
 * of them when they are too many. */
#include "cache/owed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS, ORDERS, KEYSPACES };

static struct keyspace keyspaces[KEYSPACES] = {{.name = (char *)"items"},
                                               {.name = (char *)"orders"}};
static const struct config config = {.keyspaces = keyspaces, .keyspace_count = KEYSPACES};

static bool add(struct owed *owed, int keyspace, const char *text, bool up)
{
    return owed_add(owed, key_make(keyspace, span_of(text)), up);
}

static void must_take(struct owed *owed, size_t keyspace, const char *text)
{
    struct owed_key *key = owed_take(owed, keyspace);
    assert_non_null(key);
    assert_int_equal(key->keyspace, keyspace);
    assert_true(span_is(key->node.key, text));
    free(key);
}

static void each_key_is_owed_once_and_the_oldest_goes_first(void **state)
{
    struct owed owed;
    (void)state;
    owed_init(&owed, &config, 10);
    assert_true(add(&owed, ITEMS, "a", true));
    assert_true(add(&owed, ITEMS, "b", true));
    assert_false(add(&owed, ITEMS, "a", true));
    assert_true(add(&owed, ORDERS, "a", true)); /* another keyspace's */
    assert_int_equal(owed.count, 3);
    must_take(&owed, ITEMS, "a");
    assert_true(add(&owed, ITEMS, "a", true)); /* it changed again while the first is on its way */
    must_take(&owed, ITEMS, "b");
    must_take(&owed, ITEMS, "a");
    assert_null(owed_take(&owed, ITEMS));
    must_take(&owed, ORDERS, "a");
    assert_int_equal(owed.count, 0);
    owed_finish(&owed);
}

static void what_was_not_deleted_is_owed_again_but_once(void **state)
{
    struct owed owed;
    (void)state;
    owed_init(&owed, &config, 10);
    add(&owed, ITEMS, "a", true);
    add(&owed, ITEMS, "b", true);
    struct owed_key *a = owed_take(&owed, ITEMS), *b = owed_take(&owed, ITEMS);
    add(&owed, ITEMS, "a", true);
    owed_give_back(&owed, a, true);
    owed_give_back(&owed, b, true);
    assert_int_equal(owed.count, 2);
    must_take(&owed, ITEMS, "a");
    must_take(&owed, ITEMS, "b");
    owed_finish(&owed);
}

/* It may refuse to be swept: so what is remembered is kept, and the newest is left to the sweep. */
static void past_the_limit_of_a_cache_that_is_up_only_the_newest_is_left_to_a_sweep(void **state)
{
    struct owed owed;
    (void)state;
    owed_init(&owed, &config, 3);
    add(&owed, ORDERS, "x", true);
    add(&owed, ITEMS, "a", true);
    add(&owed, ITEMS, "b", true);
    add(&owed, ITEMS, "c", true);
    assert_int_equal(owed.count, 4);
    owed_keep_limit(&owed, true);
    assert_int_equal(owed.count, 3);
    assert_true(owed.lanes[ITEMS].whole); /* the fullest */
    assert_false(owed.lanes[ORDERS].whole);
    assert_true(add(&owed, ITEMS, "d", true));
    must_take(&owed, ITEMS, "a");
    must_take(&owed, ITEMS, "b");
    must_take(&owed, ITEMS, "d");
    owed_finish(&owed);
}

static void of_a_cache_that_is_down_nothing_is_remembered_that_its_sweep_will_find(void **state)
{
    struct owed owed;
    (void)state;
    owed_init(&owed, &config, 2);
    add(&owed, ORDERS, "x", false);
    add(&owed, ITEMS, "a", false);
    add(&owed, ITEMS, "b", false);
    struct owed_key *sent = owed_take(&owed, ITEMS);
    add(&owed, ITEMS, "c", false);
    add(&owed, ITEMS, "d", false);
    owed_keep_limit(&owed, false);
    assert_true(owed.lanes[ITEMS].whole);
    assert_int_equal(owed.count, 1);
    owed_give_back(&owed, sent, false);
    assert_false(add(&owed, ITEMS, "e", false));
    assert_int_equal(owed.count, 1);
    must_take(&owed, ORDERS, "x");
    owed_finish(&owed);
}

static void everything_is_owed_whole(void **state)
{
    struct owed owed;
    (void)state;
    owed_init(&owed, &config, 10);
    assert_false(owed_any_whole(&owed));
    owed.lanes[ORDERS].whole = true;
    assert_true(owed_any_whole(&owed));
    owed_all(&owed, "it is another server");
    assert_true(owed.lanes[ITEMS].whole);
    owed_finish(&owed);
}

static void keyspaces_that_come_later_have_lanes(void **state)
{
    struct config first = {.keyspaces = keyspaces, .keyspace_count = 1};
    struct owed owed;
    (void)state;
    owed_init(&owed, &first, 10);
    add(&owed, ITEMS, "a", true);
    owed_use_config(&owed, &config);
    add(&owed, ORDERS, "x", true);
    must_take(&owed, ITEMS, "a");
    must_take(&owed, ORDERS, "x");
    owed_finish(&owed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_owed_once_and_the_oldest_goes_first),
        cmocka_unit_test(what_was_not_deleted_is_owed_again_but_once),
        cmocka_unit_test(past_the_limit_of_a_cache_that_is_up_only_the_newest_is_left_to_a_sweep),
        cmocka_unit_test(of_a_cache_that_is_down_nothing_is_remembered_that_its_sweep_will_find),
        cmocka_unit_test(everything_is_owed_whole),
        cmocka_unit_test(keyspaces_that_come_later_have_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
