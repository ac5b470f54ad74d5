/* Large rows go as many at a time as their bytes allow, each origin's and client's in its turn. */
#include "database/row_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int entered, forgotten;
static const struct row_lane_place *unwanted;

static void enter(struct row_lane_place *place)
{
    (void)place;
    entered++;
}

static void forget(struct row_lane_place *place)
{
    assert_ptr_equal(place, unwanted);
    forgotten++;
}

static bool is_not_unwanted(const void *load)
{
    return load != unwanted;
}

static void wait(struct row_lane *lane, struct row_lane_place *place, size_t bytes)
{
    *place =
        (struct row_lane_place){.bytes = bytes, .load = place, .enter = enter, .forget = forget};
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

static void note_one(void *arg)
{
    ++*(int *)arg;
}

static void who_comes_is_told_of_and_may_be_forgotten(void **state)
{
    int came = 0;
    struct row_lane lane = {
        .most = 10, .wants = is_not_unwanted, .on_come = note_one, .arg = &came};
    struct row_lane_place places[4];
    (void)state;
    entered = forgotten = 0;
    wait(&lane, &places[0], 10);
    assert_int_equal(came, 1);
    for (int i = 1; i < 4; i++)
        wait(&lane, &places[i], 5);
    assert_int_equal(came, 4);
    assert_int_equal(lane.waiting, 3);
    unwanted = &places[1];
    row_lane_leave(&lane, &places[0]);
    unwanted = NULL;
    assert_int_equal(entered, 3);
    assert_int_equal(forgotten, 1);
    assert_int_equal(lane.taken, 10); /* of the other two */
    assert_int_equal(lane.waiting, 0);
}

/* Nothing in the lane gets ready meanwhile. */
static void one_that_is_unwanted_holds_nobody_up_though_it_has_no_room(void **state)
{
    struct row_lane lane = {.most = 10, .wants = is_not_unwanted};
    struct row_lane_place places[4];
    (void)state;
    entered = forgotten = 0;
    wait(&lane, &places[0], 6);
    wait(&lane, &places[1], 5);
    wait(&lane, &places[2], 3);
    assert_int_equal(entered, 1);
    unwanted = &places[1];
    row_lane_go_on(&lane);
    assert_int_equal(forgotten, 1);
    assert_int_equal(entered, 2);
    unwanted = &places[3];
    wait(&lane, &places[3], 5);
    unwanted = NULL;
    assert_int_equal(forgotten, 2);
    row_lane_leave(&lane, &places[0]);
    row_lane_leave(&lane, &places[2]);
    assert_int_equal(lane.taken + lane.waiting + lane.inside, 0);
}

/* Places in the order of coming, and in that of entering; who entered first leaves first. */
struct crowd {
    struct row_lane lane;
    struct row_lane_place places[400];
    struct row_lane_asker askers[400]; /* of the places */
    size_t count, left;                /* who came; who has left */
    const struct row_lane_place *order[400];
    size_t gone;
};

static struct crowd crowd;

static const struct row_lane_asker *asker_of_place(const struct row_lane_place *place)
{
    return &crowd.askers[place - crowd.places];
}

static struct row_lane_asker asker_of(const void *load)
{
    return *asker_of_place(load);
}

static void crowd_init(size_t most)
{
    crowd = (struct crowd){.lane = {.most = most, .asker_of = asker_of, .wants = is_not_unwanted}};
}

static void enter_in_order(struct row_lane_place *place)
{
    crowd.order[crowd.gone++] = place;
}

static const char clients[128]; /* each has a letter */

static void client_comes(uint64_t origin, char client, size_t bytes)
{
    struct row_lane_place *place = &crowd.places[crowd.count];
    crowd.askers[crowd.count++] = (struct row_lane_asker){origin, &clients[(int)client]};
    *place = (struct row_lane_place){
        .bytes = bytes, .load = place, .enter = enter_in_order, .forget = forget};
    row_lane_wait(&crowd.lane, place);
}

static void come(uint64_t origin, size_t bytes)
{
    client_comes(origin, 'a', bytes);
}

static void leave_first(void)
{
    row_lane_leave(&crowd.lane, crowd.order[crowd.left++]);
}

static void origins_go_in_turn(void **state)
{
    static const uint64_t wanted[] = {1, 1, 2, 3, 1, 3, 1};
    (void)state;
    crowd_init(10);
    for (int i = 0; i < 4; i++)
        come(1, 10);
    come(2, 10);
    come(3, 10);
    come(3, 10);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(asker_of_place(crowd.order[i])->origin, wanted[i]);
        leave_first();
    }
    assert_null(crowd.lane.origins.first);
}

/* The one of another origin has more turns than each of these. */
static void clients_of_an_origin_have_its_turns_in_turn(void **state)
{
    static const size_t wanted[] = {0, 1, 6, 4, 7, 5, 2, 3};
    (void)state;
    crowd_init(10);
    for (int i = 0; i < 4; i++)
        client_comes(1, 'a', 10);
    client_comes(1, 'b', 10);
    client_comes(1, 'c', 10);
    client_comes(2, 'a', 10);
    client_comes(2, 'a', 10);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_ptr_equal(crowd.order[i], &crowd.places[wanted[i]]);
        leave_first();
    }
    assert_null(crowd.lane.origins.first);
}

/* Whoever asks again as soon as it is answered, and never has one waiting, has no way past those
 * who wait for room. */
static void who_comes_again_and_again_passes_nobody(void **state)
{
    (void)state;
    crowd_init(10);
    come(1, 9);
    come(1, 9);
    for (int i = 0; i < 100 && crowd.gone < 20; i++) {
        come(2, 1);
        leave_first();
    }
    size_t of_first = 0;
    for (size_t i = 0; i < 5; i++)
        of_first += asker_of_place(crowd.order[i])->origin == 1;
    assert_int_equal(of_first, 2);
}

/* Those that nobody wants any more take no turn from the others of their client. */
static void the_unwanted_have_no_turn(void **state)
{
    static const size_t wanted[] = {0, 2, 4, 3};
    (void)state;
    crowd_init(10);
    forgotten = 0;
    for (int i = 0; i < 4; i++)
        client_comes(1, 'a', 10);
    client_comes(1, 'b', 10);
    unwanted = &crowd.places[1];
    leave_first();
    unwanted = NULL;
    assert_int_equal(forgotten, 1);
    for (size_t i = 1; i < sizeof wanted / sizeof *wanted; i++) {
        assert_ptr_equal(crowd.order[i], &crowd.places[wanted[i]]);
        leave_first();
    }
    assert_int_equal(crowd.lane.taken + crowd.lane.waiting + crowd.lane.inside, 0);
}

static void join(size_t place, uint64_t origin, char client)
{
    struct row_lane_asker asker = {origin, &clients[(int)client]};
    row_lane_join(&crowd.lane, &crowd.places[place], asker);
}

/* Else whoever asks for much, and so for what others want, has them wait for all of it. */
static void who_joins_need_not_wait_behind_all_of_another(void **state)
{
    static const size_t wanted[] = {0, 1, 6, 5, 4, 2, 3};
    (void)state;
    crowd_init(10);
    for (int i = 0; i < 6; i++)
        client_comes(1, 'a', 10);
    client_comes(2, 'a', 10);
    join(4, 2, 'b'); /* from elsewhere: it is behind one of there */
    join(5, 1, 'b'); /* from there, another client */
    join(2, 2, 'a'); /* who has one waiting: it stays */
    join(1, 3, 'a'); /* whose turn it is: likewise */
    join(0, 3, 'a'); /* which is being read */
    assert_int_equal(crowd.lane.waiting, 6);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_ptr_equal(crowd.order[i], &crowd.places[wanted[i]]);
        leave_first();
    }
    assert_null(crowd.lane.origins.first);
}

/* Against a model, seeded: each has its turn behind the turns that others had before it came, one
 * of each origin for each of its own, and of those one for each client for each row of its own. */
enum { ORIGINS = 4, CLIENTS = 3 };

struct model {
    size_t waits[ORIGINS][CLIENTS];
    size_t last[ORIGINS][CLIENTS]; /* of those of their places that have entered, when it came */
    size_t came[400];              /* of each place: when, to the line where it is */
    size_t bound[400];             /* likewise: entries until its own, at most */
    size_t now, next;
};

static int client_of(const struct row_lane_place *place)
{
    return (int)((const char *)asker_of_place(place)->client - clients);
}

static void model_comes(struct model *model, size_t place, int origin, int client)
{
    size_t turns = ++model->waits[origin][client] * CLIENTS * ORIGINS;
    model->bound[place] = crowd.gone + turns;
    model->came[place] = ++model->now;
}

static void any_joins(struct model *model)
{
    size_t number = (size_t)random() % crowd.count;
    const struct row_lane_place *place = &crowd.places[number];
    const struct row_lane_asker before = place->asker;
    int origin = (int)(random() % ORIGINS), client = (int)(random() % CLIENTS);
    int from = client_of(place);
    join(number, (uint64_t)origin, (char)client);
    if (place->asker.origin == before.origin && place->asker.client == before.client)
        return;
    assert_true(place->waits);
    crowd.askers[number] = place->asker;
    model->waits[before.origin][from]--;
    model_comes(model, number, origin, client);
}

static void must_be_due(struct model *model)
{
    for (; model->next < crowd.gone; model->next++) {
        const struct row_lane_place *place = crowd.order[model->next];
        uint64_t origin = asker_of_place(place)->origin;
        size_t number = (size_t)(place - crowd.places), *last = model->last[origin];
        int client = client_of(place);
        assert_true(last[client] < model->came[number]);
        assert_true(model->next <= model->bound[number]);
        last[client] = model->came[number];
        model->waits[origin][client]--;
    }
}

static void nobody_waits_for_more_than_a_turn_of_each(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct model model = {.now = 0};
        srandom(seed);
        crowd_init(100);
        while (crowd.count < 400 || crowd.left < crowd.gone) {
            int origin = (int)(random() % ORIGINS), client = (int)(random() % CLIENTS);
            if (crowd.count < 400 && (random() % 2 || crowd.left == crowd.gone)) {
                model_comes(&model, crowd.count, origin, client);
                client_comes((uint64_t)origin, (char)client, 1 + (size_t)random() % 150);
            } else {
                leave_first();
            }
            must_be_due(&model);
            if (seed % 2)
                any_joins(&model);
        }
        assert_int_equal(crowd.gone, crowd.count);
        assert_int_equal(crowd.lane.taken + crowd.lane.waiting, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_go_as_there_is_room_for),
        cmocka_unit_test(nobody_overtakes),
        cmocka_unit_test(one_that_is_too_large_goes_alone),
        cmocka_unit_test(who_comes_is_told_of_and_may_be_forgotten),
        cmocka_unit_test(one_that_is_unwanted_holds_nobody_up_though_it_has_no_room),
        cmocka_unit_test(origins_go_in_turn),
        cmocka_unit_test(clients_of_an_origin_have_its_turns_in_turn),
        cmocka_unit_test(who_comes_again_and_again_passes_nobody),
        cmocka_unit_test(the_unwanted_have_no_turn),
        cmocka_unit_test(who_joins_need_not_wait_behind_all_of_another),
        cmocka_unit_test(nobody_waits_for_more_than_a_turn_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
