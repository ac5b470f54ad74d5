#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "database/settled.h"

static uint64_t learn(struct settled *settled, uint64_t number, const char *text, uint32_t next)
{
    struct snapshot snapshot;
    assert_int_equal(snapshot_read(&snapshot, text), 0);
    uint64_t newest = settled_learn(
        settled, &(struct settled_build){.number = number, .snapshot = &snapshot, .next = next});
    snapshot_finish(&snapshot);
    return newest;
}

/* Of a standby where nobody writes, so far behind by its word. */
static uint64_t learn_behind(struct settled *settled, uint64_t number, uint64_t begun,
                             uint64_t behind)
{
    struct snapshot snapshot;
    assert_int_equal(snapshot_read(&snapshot, "100:100:"), 0);
    uint64_t newest = settled_learn(settled, &(struct settled_build){.number = number,
                                                                     .snapshot = &snapshot,
                                                                     .next = 100,
                                                                     .begun = begun,
                                                                     .asked = begun + 5,
                                                                     .behind = behind});
    snapshot_finish(&snapshot);
    return newest;
}

static void a_generation_is_settled_at_once_where_nobody_writes(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn(&settled, 1, "100:100:", 100), 1);
    assert_int_equal(learn(&settled, 2, "100:100:", 100), 2);
}

static void a_generation_is_settled_by_one_in_which_all_that_ran_is_over(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn(&settled, 1, "90:90:", 90), 1);
    assert_int_equal(learn(&settled, 2, "100:102:100", 105), 1);
    assert_int_equal(learn(&settled, 3, "104:108:104,107", 110), 1);
    assert_int_equal(learn(&settled, 4, "107:108:107", 112), 2);
    assert_int_equal(learn(&settled, 5, "108:112:108", 115),
                     2); /* it waits for 4, which reached 112 */
    assert_int_equal(learn(&settled, 6, "112:112:", 116), 4);
    assert_int_equal(learn(&settled, 7, "120:120:", 120), 7);
}

static void ids_wrap(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn(&settled, 1, "4294967290:4294967290:", 4294967294), 0);
    assert_int_equal(learn(&settled, 2, "4294967292:4294967293:4294967292", 3), 0);
    assert_int_equal(learn(&settled, 3, "4294967300:4294967300:", 5), 1);
}

static void ids_of_another_server_settle_nothing(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn(&settled, 1, "100:102:100", 105), 0);
    settled_forget(&settled);
    assert_int_equal(learn(&settled, 2, "500:500:", 501), 0);
    assert_int_equal(learn(&settled, 3, "501:501:", 502), 2);
}

/* What one has been told of another may not have heard of yet. */
static void a_standby_that_is_further_behind_settles_nothing_for_the_one_before(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn(&settled, 1, "90:90:", 90), 1);
    assert_int_equal(learn(&settled, 2, "100:102:100", 105), 1);
    settled_forget(&settled);
    assert_int_equal(learn_behind(&settled, 3, 2000, UINT64_MAX), 1);
    assert_int_equal(learn_behind(&settled, 4, 3000, 600), 3);
}

/* What was written before 1 was begun a standby knows when 2 is, if it is behind by less than the
 * time between them. */
static void on_a_standby_a_generation_is_settled_by_one_that_was_begun_long_after(void **state)
{
    struct settled settled = {0};
    (void)state;
    assert_int_equal(learn_behind(&settled, 1, 1000, 600), 0);
    assert_int_equal(learn_behind(&settled, 2, 1600, 600), 1);
    assert_int_equal(learn_behind(&settled, 3, 2200, 600), 2);
}

/* However many: it may have replayed nothing in between. */
static void on_a_standby_builds_that_follow_each_other_at_once_settle_nothing(void **state)
{
    struct settled settled = {0};
    (void)state;
    for (uint64_t i = 1; i < 60; i++)
        assert_int_equal(learn_behind(&settled, i, 1000 + 10 * i, 600), 0);
    assert_int_equal(learn_behind(&settled, 60, 1610, 600), 1);
    assert_int_equal(learn_behind(&settled, 61, 1620, 600), 1);
    assert_int_equal(learn_behind(&settled, 62, 3000, UINT64_MAX), 1);
    assert_int_equal(learn_behind(&settled, 63, 3010, 600), 60);
}

static void a_bound_of_a_standby_speaks_for_what_was_old_when_it_was_asked_for(void **state)
{
    struct settled settled = {0};
    (void)state;
    learn_behind(&settled, 1, 1000, 600);
    struct snapshot running, over;
    assert_int_equal(snapshot_read(&running, "100:105:100"), 0);
    assert_int_equal(snapshot_read(&over, "105:107:105"), 0);
    struct settled_build second = {.number = 2,
                                   .snapshot = &running,
                                   .next = 105,
                                   .begun = 2000,
                                   .asked = 2000,
                                   .behind = 600};
    struct settled_build third = {
        .number = 3, .snapshot = &over, .next = 107, .begun = 3000, .asked = 3000, .behind = 600};
    assert_int_equal(settled_learn(&settled, &second), 0);
    assert_int_equal(settled_learn(&settled, &third), 1);
    snapshot_finish(&running);
    snapshot_finish(&over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_is_settled_at_once_where_nobody_writes),
        cmocka_unit_test(a_generation_is_settled_by_one_in_which_all_that_ran_is_over),
        cmocka_unit_test(ids_wrap),
        cmocka_unit_test(ids_of_another_server_settle_nothing),
        cmocka_unit_test(a_standby_that_is_further_behind_settles_nothing_for_the_one_before),
        cmocka_unit_test(on_a_standby_a_generation_is_settled_by_one_that_was_begun_long_after),
        cmocka_unit_test(on_a_standby_builds_that_follow_each_other_at_once_settle_nothing),
        cmocka_unit_test(a_bound_of_a_standby_speaks_for_what_was_old_when_it_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
