/* Large rows go as many at a time as their bytes allow, in the order of asking. */
#include "database/row_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int entered;
static const struct row_lane_place *unwanted;

static bool enter(struct row_lane_place *place)
{
    entered++;
    return place != unwanted;
}

static void wait(struct row_lane *lane, struct row_lane_place *place, size_t bytes)
{
    *place = (struct row_lane_place){.bytes = bytes, .enter = enter};
    row_lane_wait(lane, place);
}

static void as_many_go_as_there_is_room_for(void **state)
{
    struct row_lane lane = {.most = 10};
    struct row_lane_place places[4];
    (void)state;
    entered = 0;
    wait(&lane, &places[0], 6);
    wait(&lane, &places[1], 4);
    assert_int_equal(entered, 2);
    wait(&lane, &places[2], 1);
    wait(&lane, &places[3], 9);
    assert_int_equal(entered, 2);
    row_lane_leave(&lane, &places[1]);
    assert_int_equal(entered, 3);
    row_lane_leave(&lane, &places[0]);
    assert_int_equal(entered, 4);
    row_lane_leave(&lane, &places[2]);
    row_lane_leave(&lane, &places[3]);
    assert_int_equal(lane.taken, 0);
}

static void nobody_overtakes(void **state)
{
    struct row_lane lane = {.most = 10};
    struct row_lane_place places[3];
    (void)state;
    entered = 0;
    wait(&lane, &places[0], 6);
    wait(&lane, &places[1], 6);
    wait(&lane, &places[2], 1);
    assert_int_equal(entered, 1);
    row_lane_leave(&lane, &places[0]);
    assert_int_equal(entered, 3);
}

static void one_that_is_too_large_goes_alone(void **state)
{
    struct row_lane lane = {.most = 10};
    struct row_lane_place places[2];
    (void)state;
    entered = 0;
    wait(&lane, &places[0], 100);
    assert_int_equal(entered, 1);
    wait(&lane, &places[1], 1);
    assert_int_equal(entered, 1);
    row_lane_leave(&lane, &places[0]);
    assert_int_equal(entered, 2);
}

static void note_wait(void *arg)
{
    ++*(int *)arg;
}

static void who_has_to_wait_is_told_of_and_may_be_forgotten(void **state)
{
    int waits = 0;
    struct row_lane lane = {.most = 10, .on_wait = note_wait, .arg = &waits};
    struct row_lane_place places[4];
    (void)state;
    entered = 0;
    wait(&lane, &places[0], 10);
    assert_int_equal(waits, 0);
    for (int i = 1; i < 4; i++)
        wait(&lane, &places[i], 5);
    assert_int_equal(waits, 3);
    assert_int_equal(lane.waiting, 3);
    unwanted = &places[1];
    row_lane_leave(&lane, &places[0]);
    unwanted = NULL;
    assert_int_equal(entered, 4);
    assert_int_equal(lane.taken, 10); /* of the other two */
    assert_int_equal(lane.waiting, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_go_as_there_is_room_for),
        cmocka_unit_test(nobody_overtakes),
        cmocka_unit_test(one_that_is_too_large_goes_alone),
        cmocka_unit_test(who_has_to_wait_is_told_of_and_may_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
