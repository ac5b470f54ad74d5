#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/upstream/freshness.h"

static struct redis_standing primary_at(uint64_t offset)
{
    return (struct redis_standing){.role = REDIS_PRIMARY, .history = "one", .offset = offset};
}

static struct redis_standing replica_at(uint64_t offset)
{
    return (struct redis_standing){
        .role = REDIS_REPLICA, .is_linked = true, .history = "one", .offset = offset};
}

static void note(struct freshness *freshness, uint64_t offset, uint64_t asked)
{
    struct redis_standing primary = primary_at(offset);
    freshness_note(freshness, &primary, asked);
}

static uint64_t of(const struct freshness *freshness, struct redis_standing replica)
{
    const char *why = NULL;
    uint64_t asked = freshness_of(freshness, &replica, &why);
    assert_true(asked ? !why : why != NULL);
    return asked;
}

static void a_replica_is_as_of_the_last_question_whose_answer_it_has_reached(void **state)
{
    (void)state;
    struct freshness freshness = {0};
    note(&freshness, 100, 10);
    note(&freshness, 200, 20);
    note(&freshness, 300, 30);
    assert_int_equal(of(&freshness, replica_at(99)), 0);
    assert_int_equal(of(&freshness, replica_at(100)), 10);
    assert_int_equal(of(&freshness, replica_at(299)), 20);
    assert_int_equal(of(&freshness, replica_at(300)), 30);
    assert_int_equal(of(&freshness, replica_at(900)), 30);
}

static void old_words_are_forgotten(void **state)
{
    (void)state;
    struct freshness freshness = {0};
    for (unsigned i = 1; i <= FRESHNESS_WORDS + 1; i++)
        note(&freshness, 100 * i, i);
    assert_int_equal(of(&freshness, replica_at(100)), 0);
    assert_int_equal(of(&freshness, replica_at(200)), 2);
}

static void offsets_of_another_history_do_not_compare(void **state)
{
    (void)state;
    struct freshness freshness = {0};
    struct redis_standing replica = replica_at(900), heir = primary_at(500);
    note(&freshness, 100, 10);
    memcpy(replica.history, "two", 4);
    assert_int_equal(of(&freshness, replica), 0);
    memcpy(heir.history, "two", 4);
    freshness_note(&freshness, &heir, 20);
    assert_int_equal(of(&freshness, replica), 20);
    assert_int_equal(of(&freshness, replica_at(900)), 0);
}

static void one_that_is_cut_off_is_not_believed(void **state)
{
    (void)state;
    struct freshness freshness = {0};
    struct redis_standing replica = replica_at(100), promoted = replica_at(100);
    note(&freshness, 100, 10);
    replica.is_linked = false;
    promoted.role = REDIS_PRIMARY;
    assert_int_equal(of(&freshness, replica), 0);
    assert_int_equal(of(&freshness, promoted), 0);
}

static void a_primary_that_is_none_any_more_proves_nothing(void **state)
{
    (void)state;
    struct freshness freshness = {0};
    struct redis_standing demoted = replica_at(200), silent = primary_at(200);
    note(&freshness, 100, 10);
    freshness_note(&freshness, &demoted, 20);
    assert_int_equal(of(&freshness, replica_at(200)), 0);
    note(&freshness, 100, 30);
    silent.history[0] = '\0';
    freshness_note(&freshness, &silent, 40);
    assert_int_equal(of(&freshness, replica_at(200)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_is_as_of_the_last_question_whose_answer_it_has_reached),
        cmocka_unit_test(old_words_are_forgotten),
        cmocka_unit_test(offsets_of_another_history_do_not_compare),
        cmocka_unit_test(one_that_is_cut_off_is_not_believed),
        cmocka_unit_test(a_primary_that_is_none_any_more_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
