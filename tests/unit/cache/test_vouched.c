#include "cache/vouched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char ours[] = "0123456789abcdef0123456789abcdef01234567";
static const char others[] = "fedcba9876543210fedcba9876543210fedcba98";

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static void all_are_believed_until_the_cache_was_up(void **state)
{
    struct vouched *vouched = vouched_create();
    (void)state;
    assert_true(vouched_believes(vouched, ours, 0));
    vouched_settle(vouched);
    assert_false(vouched_believes(vouched, ours, 0));
    vouched_destroy(vouched);
}

/* A node may come back without what was deleted since, while another one was never up. */
static void but_not_who_is_doubted(void **state)
{
    struct vouched *vouched = vouched_create();
    int one;
    (void)state;
    vouched_doubt(vouched, &one, ours);
    assert_false(vouched_believes(vouched, ours, 0));
    assert_true(vouched_believes(vouched, others, 0));
    vouched_set(vouched, &one, ours);
    assert_true(vouched_believes(vouched, ours, 0));
    vouched_destroy(vouched);
}

static void who_does_not_say_is_believed(void **state)
{
    struct vouched *vouched = vouched_create();
    (void)state;
    vouched_settle(vouched);
    assert_true(vouched_believes(vouched, "", 0));
    assert_true(vouched_believes(NULL, ours, 0));
    vouched_destroy(vouched);
}

static void each_vouches_for_one_and_for_none_before(void **state)
{
    struct vouched *vouched = vouched_create();
    int one, other;
    (void)state;
    vouched_settle(vouched);
    vouched_set(vouched, &one, ours);
    vouched_set(vouched, &other, ours);
    vouched_set(vouched, &one, others);
    assert_true(vouched_believes(vouched, ours, 0));
    assert_true(vouched_believes(vouched, others, 0));
    vouched_set(vouched, &other, NULL);
    assert_false(vouched_believes(vouched, ours, 0));
    assert_true(vouched_believes(vouched, others, 0));
    vouched_set(vouched, &one, "");
    assert_false(vouched_believes(vouched, others, 0));
    vouched_destroy(vouched);
}

static void who_doubted_it_later_and_vouches_has_swept_it_for_all(void **state)
{
    struct vouched *vouched = vouched_create();
    int one, other;
    (void)state;
    vouched_settle(vouched);
    vouched_doubt(vouched, &one, ours);
    vouched_set(vouched, &other, ours);
    assert_true(vouched_is_doubted(vouched, ours));
    vouched_set(vouched, &other, ours);
    assert_true(vouched_is_doubted(vouched, ours)); /* it has only said so again */
    vouched_doubt(vouched, &other, ours);
    assert_false(vouched_believes(vouched, ours, 0));
    vouched_set(vouched, &other, ours);
    assert_false(vouched_is_doubted(vouched, ours));
    assert_true(vouched_believes(vouched, ours, 0));
    vouched_destroy(vouched);
}

static void what_it_was_doubted_for_meanwhile_may_not_be_swept(void **state)
{
    struct vouched *vouched = vouched_create();
    int one, other;
    (void)state;
    vouched_settle(vouched);
    vouched_doubt(vouched, &one, ours);
    vouched_doubt(vouched, &other, ours);
    vouched_doubt(vouched, &one, ours);
    vouched_doubt(vouched, &other, ours);
    vouched_set(vouched, &other, ours);
    assert_true(vouched_is_doubted(vouched, ours));
    vouched_doubt(vouched, &one, others);
    vouched_doubt(vouched, &other, ours);
    vouched_set(vouched, &other, ours);
    assert_true(vouched_is_doubted(vouched, others));
    assert_false(vouched_is_doubted(vouched, ours));
    vouched_destroy(vouched);
}

/* As a connection to it does while it is doubted, for less than a minute. */
static void doubt_for(struct vouched *vouched, const char *run_id, uint64_t from, uint64_t duration)
{
    for (uint64_t now = from; now < from + duration; now += SECOND)
        assert_false(vouched_believes(vouched, run_id, now));
}

static void a_doubt_ends_after_a_minute(void **state)
{
    struct vouched *vouched = vouched_create();
    (void)state;
    vouched_settle(vouched);
    doubt_for(vouched, ours, 1000, MINUTE);
    doubt_for(vouched, others, 2000, MINUTE);
    assert_false(vouched_believes(vouched, ours, 999 + MINUTE));
    assert_true(vouched_believes(vouched, ours, 1000 + MINUTE));
    assert_false(vouched_believes(vouched, others, 1000 + MINUTE));
    vouched_destroy(vouched);
}

/* Who is believed though nobody vouches for it is asked for on and on: else it would seem left. */
static void the_version_says_when_to_ask_again(void **state)
{
    struct vouched *vouched = vouched_create();
    int one;
    (void)state;
    vouched_settle(vouched);
    vouched_set(vouched, &one, others);
    uint64_t version = vouched_version(vouched);
    assert_true(vouched_believes(vouched, others, 1000));
    assert_int_equal(vouched_version(vouched), version);
    doubt_for(vouched, ours, 1000, MINUTE);
    assert_int_equal(vouched_version(vouched), version);
    assert_true(vouched_believes(vouched, ours, 1000 + MINUTE));
    assert_int_not_equal(vouched_version(vouched), version);
    version = vouched_version(vouched);
    vouched_set(vouched, &one, NULL);
    assert_int_not_equal(vouched_version(vouched), version);
    vouched_destroy(vouched);
}

static void one_that_was_left_while_it_was_doubted_is_doubted_anew(void **state)
{
    struct vouched *vouched = vouched_create();
    (void)state;
    vouched_settle(vouched);
    assert_false(vouched_believes(vouched, ours, 1000));
    doubt_for(vouched, ours, 10 * MINUTE, MINUTE);
    assert_true(vouched_believes(vouched, ours, 11 * MINUTE));
    assert_false(vouched_believes(vouched, ours, 20 * MINUTE));
    vouched_destroy(vouched);
}

/* Another thread has read the clock a moment before. */
static void who_asks_a_moment_late_is_told_the_same(void **state)
{
    struct vouched *vouched = vouched_create();
    (void)state;
    vouched_settle(vouched);
    assert_false(vouched_believes(vouched, ours, 1000));
    assert_false(vouched_believes(vouched, ours, 999));
    doubt_for(vouched, ours, 1000, MINUTE);
    vouched_destroy(vouched);
}

static void a_doubt_after_it_was_vouched_for_is_one_of_its_own(void **state)
{
    struct vouched *vouched = vouched_create();
    int one;
    (void)state;
    vouched_settle(vouched);
    assert_false(vouched_believes(vouched, ours, 0));
    vouched_set(vouched, &one, ours);
    vouched_set(vouched, &one, NULL);
    assert_false(vouched_believes(vouched, ours, 2 * MINUTE));
    vouched_destroy(vouched);
}

/* Those that were forgotten have their minute anew. */
static void of_many_strangers_the_oldest_are_forgotten(void **state)
{
    struct vouched *vouched = vouched_create();
    char run_id[] = "00";
    (void)state;
    vouched_settle(vouched);
    for (char high = 'a'; high <= 'z'; high++)
        for (char low = 'a'; low <= 'z'; low++) {
            run_id[0] = high;
            run_id[1] = low;
            assert_false(vouched_believes(vouched, run_id, 1));
        }
    doubt_for(vouched, "zz", 1, MINUTE);
    assert_true(vouched_believes(vouched, "zz", 1 + MINUTE));
    assert_false(vouched_believes(vouched, "aa", 1 + MINUTE));
    vouched_destroy(vouched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_believed_until_the_cache_was_up),
        cmocka_unit_test(but_not_who_is_doubted),
        cmocka_unit_test(who_does_not_say_is_believed),
        cmocka_unit_test(each_vouches_for_one_and_for_none_before),
        cmocka_unit_test(who_doubted_it_later_and_vouches_has_swept_it_for_all),
        cmocka_unit_test(what_it_was_doubted_for_meanwhile_may_not_be_swept),
        cmocka_unit_test(a_doubt_ends_after_a_minute),
        cmocka_unit_test(the_version_says_when_to_ask_again),
        cmocka_unit_test(one_that_was_left_while_it_was_doubted_is_doubted_anew),
        cmocka_unit_test(who_asks_a_moment_late_is_told_the_same),
        cmocka_unit_test(a_doubt_after_it_was_vouched_for_is_one_of_its_own),
        cmocka_unit_test(of_many_strangers_the_oldest_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
