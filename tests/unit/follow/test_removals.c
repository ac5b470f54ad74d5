/* Which removals are carried out, by whose word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow/removals.h"

#include <errno.h>
#include <stdlib.h>

enum { MANY = 200000 /* more than are kept in memory */ };

static void hold(struct removals *removals, uint32_t xid, uint32_t keyspace, uint64_t hash)
{
    struct removal removal = {.hash = hash, .xid = xid, .keyspace = keyspace};
    assert_int_equal(removals_hold(removals, &removal), 0);
}

/* How many of the round are carried out, and the sum of their hashes. */
static size_t go_round(struct removals *removals, uint64_t *sum)
{
    struct removal removal;
    size_t carried_out = 0;
    bool vouched;
    int status;
    *sum = 0;
    while ((status = removals_next(removals, &removal, &vouched)) == 1) {
        carried_out += vouched;
        *sum += vouched ? removal.hash : 0;
        assert_int_equal(vouched, removals_are_vouched(removals, removal.xid));
    }
    assert_int_equal(status, 0);
    assert_false(removals_are_under_way(removals));
    return carried_out;
}

static void must_go(struct removals *removals, const char *snapshot, size_t count, uint64_t sum)
{
    uint64_t found;
    size_t before = removals_count(removals);
    removals_vouch(removals, snapshot);
    assert_int_equal(go_round(removals, &found), count);
    assert_int_equal(found, sum);
    assert_int_equal(removals_count(removals), before - count);
}

static void only_what_is_over_in_the_snapshot_goes(void **state)
{
    struct removals *removals = removals_create(2);
    (void)state;
    hold(removals, 10, 0, 1);
    hold(removals, 11, 1, 2);
    hold(removals, 12, 0, 4);
    hold(removals, 10, 1, 8);
    assert_false(removals_are_vouched(removals, 10) || removals_are_under_way(removals));
    assert_int_equal(removals_of(removals, 0), 2);
    must_go(removals, "9:20:10,11,12", 0, 0);
    must_go(removals, "11:12:11", 2, 9);
    assert_int_equal(removals_of(removals, 0), 1);
    assert_int_equal(removals_of(removals, 1), 1);
    must_go(removals, "11:13:11", 1, 4);
    must_go(removals, "13:13:", 1, 2);
    assert_true(removals_are_vouched(removals, 12));
    removals_vouch(removals, "14:14:");
    assert_false(removals_are_under_way(removals)); /* there is nothing to do */
    removals_destroy(removals);
}

static void what_is_held_during_a_round_waits_for_the_next(void **state)
{
    struct removals *removals = removals_create(1);
    struct removal removal;
    bool vouched;
    (void)state;
    hold(removals, 10, 0, 1);
    hold(removals, 11, 0, 2);
    removals_vouch(removals, "11:12:11");
    assert_int_equal(removals_next(removals, &removal, &vouched), 1);
    assert_true(vouched && removal.hash == 1);
    hold(removals, 12, 0, 4);
    removals_vouch(removals, "12:12:"); /* it goes on by the newer one */
    assert_int_equal(removals_next(removals, &removal, &vouched), 1);
    assert_true(vouched && removal.hash == 2);
    assert_int_equal(removals_next(removals, &removal, &vouched), 0);
    must_go(removals, "13:13:", 1, 4);
    removals_destroy(removals);
}

static void without_anything_to_carry_out_there_is_no_round(void **state)
{
    struct removals *removals = removals_create(1);
    (void)state;
    hold(removals, 10, 0, 1);
    hold(removals, 12, 0, 2);
    removals_vouch(removals, "9:20:10,12");
    assert_false(removals_are_under_way(removals));
    must_go(removals, "12:13:12", 1, 1);
    removals_vouch(removals, "12:14:12");
    assert_false(removals_are_under_way(removals));
    must_go(removals, "14:14:", 1, 2);
    removals_destroy(removals);
}

static void of_many_transactions_none_is_forgotten(void **state)
{
    enum { TRANSACTIONS = 1000, EACH = 3 };
    struct removals *removals = removals_create(1);
    (void)state;
    for (unsigned i = 0; i < TRANSACTIONS * EACH; i++)
        hold(removals, 100 + i % TRANSACTIONS, 0, 1);
    for (unsigned xid = 99 + TRANSACTIONS; xid >= 100; xid--)
        hold(removals, xid, 0, 1);
    must_go(removals, "600:600:", 500 * (EACH + 1), 500 * (EACH + 1));
    must_go(removals, "1099:1099:", 499 * (EACH + 1), 499 * (EACH + 1));
    removals_vouch(removals, "1099:2000:1099");
    go_round(removals, &(uint64_t){0});
    must_go(removals, "2000:2000:", EACH + 1, EACH + 1);
    assert_int_equal(removals_count(removals), 0);
    hold(removals, 3000, 0, 1);
    removals_vouch(removals, "2001:3001:3000");
    assert_false(removals_are_under_way(removals)); /* all places are free again */
    removals_destroy(removals);
}

static void a_text_that_is_no_snapshot_vouches_for_nothing(void **state)
{
    struct removals *removals = removals_create(1);
    (void)state;
    hold(removals, 10, 0, 1);
    must_go(removals, "", 0, 0);
    must_go(removals, "11:11:x", 0, 0);
    must_go(removals, "11:11:", 1, 1);
    removals_vouch(removals, "x");
    assert_false(removals_are_vouched(removals, 10));
    removals_destroy(removals);
}

static void many_are_kept_in_a_file(void **state)
{
    struct removals *removals = removals_create(1);
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        hold(removals, 10 + i % 2, 0, 1);
    must_go(removals, "11:12:11", MANY / 2, MANY / 2);
    hold(removals, 12, 0, 1);
    must_go(removals, "12:13:12", MANY / 2, MANY / 2);
    must_go(removals, "13:13:", 1, 1);
    removals_destroy(removals);
}

static void without_a_place_for_a_file_many_cannot_be_held(void **state)
{
    struct removals *removals = removals_create(1);
    struct removal removal = {.hash = 1, .xid = 10};
    int status = 0;
    (void)state;
    setenv("TMPDIR", "/nowhere", 1);
    for (unsigned i = 0; i < MANY && !status; i++)
        status = removals_hold(removals, &removal);
    unsetenv("TMPDIR");
    assert_int_equal(status, -ENOENT);
    removals_destroy(removals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_over_in_the_snapshot_goes),
        cmocka_unit_test(what_is_held_during_a_round_waits_for_the_next),
        cmocka_unit_test(without_anything_to_carry_out_there_is_no_round),
        cmocka_unit_test(of_many_transactions_none_is_forgotten),
        cmocka_unit_test(a_text_that_is_no_snapshot_vouches_for_nothing),
        cmocka_unit_test(many_are_kept_in_a_file),
        cmocka_unit_test(without_a_place_for_a_file_many_cannot_be_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
