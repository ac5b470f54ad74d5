/* Who may have how many of the places for hints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "guard/hint_share.h"

static const struct hint_room empty = {.most = 100000, .now = 1000, .ttl_ms = 500};

/* By the only client of its host. */
static bool take(struct hint_share *share, const struct hint_room *room, size_t count)
{
    struct hint_share host = *share;
    return hint_share_take(share, &host, room, count);
}

static void one_client_gets_half_of_the_places(void **state)
{
    struct hint_share share = {0};
    (void)state;
    assert_true(take(&share, &empty, 50000));
    assert_false(take(&share, &empty, 1));
}

static void whoever_comes_when_most_are_taken_gets_of_what_is_left(void **state)
{
    struct hint_share second = {0}, third = {0}, newcomer = {0};
    (void)state;
    assert_false(take(&second, &(struct hint_room){.most = 100000, .used = 75000}, 18760));
    assert_true(take(&second, &(struct hint_room){.most = 100000, .used = 75000}, 18750));
    assert_true(take(&third, &(struct hint_room){.most = 100000, .used = 99900}, 100));
    assert_false(take(&second, &(struct hint_room){.most = 100000, .used = 99900}, 1));
    assert_false(take(&newcomer, &(struct hint_room){.most = 100000, .used = 100000}, 1));
}

static void many_clients_of_one_host_leave_a_quarter_to_others(void **state)
{
    struct hint_share host = {0}, other = {0};
    struct hint_room room = empty;
    (void)state;
    for (room.used = 0; room.used < 75000; room.used += 100) {
        struct hint_share client = {0};
        assert_true(hint_share_take(&client, &host, &room, 100));
    }
    struct hint_share client = {0}, neighbour = {0};
    assert_false(hint_share_take(&client, &host, &room, 1));
    assert_int_equal(client.count, 0);
    assert_int_equal(host.count, 75000);
    assert_true(hint_share_take(&neighbour, &other, &room, 1));
    room.now += room.ttl_ms;
    assert_true(hint_share_take(&client, &host, &room, 1));
}

static void a_host_whose_hints_have_become_rows_goes_on(void **state)
{
    struct hint_share host = {0};
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct hint_share client = {0};
        assert_true(hint_share_take(&client, &host, &empty, 50000));
    }
}

static void what_a_refused_write_took_is_free_again(void **state)
{
    struct hint_share share = {0};
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_true(take(&share, &empty, 50000));
        hint_share_return(&share, 50000);
    }
    hint_share_return(&share, 1);
    assert_int_equal(share.count, 0);
}

static void a_share_is_whole_again_when_its_hints_have_ended(void **state)
{
    struct hint_share share = {0};
    struct hint_room room = empty;
    (void)state;
    assert_true(take(&share, &room, 50000));
    room.now += 499;
    assert_false(take(&share, &room, 1));
    room.now += 1;
    assert_true(take(&share, &room, 50000));
}

static void without_a_log_a_generation_ends_them(void **state)
{
    struct hint_share share = {0};
    struct hint_room room = {.most = 100000, .now = 1000, .generation = 1};
    (void)state;
    assert_true(take(&share, &room, 50000));
    room.now += 1000000;
    assert_false(take(&share, &room, 1));
    room.generation = 2;
    assert_true(take(&share, &room, 50000));
}

static void half_a_table_is_scarce(void **state)
{
    (void)state;
    assert_false(hint_room_is_scarce(49999, 100000));
    assert_true(hint_room_is_scarce(50000, 100000));
    assert_false(hint_room_is_scarce(0, 1));
    assert_true(hint_room_is_scarce(1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_client_gets_half_of_the_places),
        cmocka_unit_test(whoever_comes_when_most_are_taken_gets_of_what_is_left),
        cmocka_unit_test(many_clients_of_one_host_leave_a_quarter_to_others),
        cmocka_unit_test(a_host_whose_hints_have_become_rows_goes_on),
        cmocka_unit_test(what_a_refused_write_took_is_free_again),
        cmocka_unit_test(a_share_is_whole_again_when_its_hints_have_ended),
        cmocka_unit_test(without_a_log_a_generation_ends_them),
        cmocka_unit_test(half_a_table_is_scarce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
