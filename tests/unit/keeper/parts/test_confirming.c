/* In whose name commits return: what was confirmed is remembered, and nobody takes over who does
 * not know it. */
#include "keeper/parts/confirming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"

/* ---- a confirmer that does what the test says ---- */

static struct {
    bool open, at_work;
    uint64_t confirmed;
} fake;

struct confirmer *confirmer_create(uv_loop_t *loop, const struct config *config)
{
    (void)loop;
    (void)config;
    fake.open = true;
    return (struct confirmer *)&fake;
}

void confirmer_use_config(struct confirmer *fake_confirmer, const struct config *config)
{
    (void)fake_confirmer;
    assert_non_null(config);
}

void confirmer_begin(struct confirmer *confirmer)
{
    assert_ptr_equal(confirmer, &fake);
    fake.at_work = true;
}

uint64_t confirmer_end(struct confirmer *confirmer)
{
    assert_ptr_equal(confirmer, &fake);
    uint64_t confirmed = fake.at_work ? fake.confirmed : 0;
    fake.at_work = false;
    return confirmed;
}

bool confirmer_is_at_work(const struct confirmer *confirmer)
{
    assert_ptr_equal(confirmer, &fake);
    return fake.at_work;
}

void confirmer_destroy(struct confirmer *confirmer)
{
    fake.open = fake.open && !confirmer;
}

static void open_confirming(struct confirming *confirming)
{
    fake.open = fake.at_work = false;
    fake.confirmed = 0;
    confirming_open(confirming, NULL, NULL, true);
    assert_true(fake.open);
}

static void close_confirming(struct confirming *confirming)
{
    confirming_close(confirming);
    assert_false(fake.open);
}

static bool is_known_at(const struct confirming *confirming, uint64_t position)
{
    struct lag lag = {.position = position};
    return confirming_is_known(confirming, &lag);
}

/* ---- tests ---- */

static void what_the_confirmer_let_go_must_be_known(void **state)
{
    struct confirming confirming;
    (void)state;
    open_confirming(&confirming);
    confirming_everything(&confirming);
    assert_true(fake.at_work);
    fake.confirmed = 500;
    assert_true(confirming_ends_everything(&confirming));
    assert_false(fake.at_work);
    assert_false(is_known_at(&confirming, 499));
    assert_true(is_known_at(&confirming, 500));
    close_confirming(&confirming);
}

static void a_confirmer_that_let_nothing_go_leaves_nothing_to_catch_up_to(void **state)
{
    struct confirming confirming;
    (void)state;
    open_confirming(&confirming);
    confirming_everything(&confirming);
    assert_false(confirming_ends_everything(&confirming));
    assert_true(is_known_at(&confirming, 0));
    close_confirming(&confirming);
}

/* A standby that was promoted may not have the position that the server before it had. */
static void a_later_question_makes_up_for_a_position_that_is_no_more(void **state)
{
    struct confirming confirming;
    struct lag lag = {.position = 10};
    (void)state;
    open_confirming(&confirming);
    confirming_remember(&confirming, 500);
    lag.known = confirming.until;
    assert_false(confirming_is_known(&confirming, &lag));
    lag.known++;
    assert_true(confirming_is_known(&confirming, &lag));
    close_confirming(&confirming);
}

static void the_furthest_position_is_remembered(void **state)
{
    struct confirming confirming;
    (void)state;
    open_confirming(&confirming);
    confirming_remember(&confirming, 500);
    confirming_remember(&confirming, 300);
    assert_false(is_known_at(&confirming, 499));
    assert_true(is_known_at(&confirming, 500));
    close_confirming(&confirming);
}

static void only_who_has_the_voice_lets_everything_go(void **state)
{
    struct confirming confirming;
    (void)state;
    open_confirming(&confirming);
    confirming.voice = VOICE_SILENT;
    confirming_everything(&confirming);
    assert_false(fake.at_work);
    confirming.voice = VOICE_SHARED;
    confirming_everything(&confirming);
    assert_false(fake.at_work);
    assert_true(confirming_speak(&confirming));
    assert_true(confirming.until > 0 && confirming.until <= clock_ms());
    assert_false(confirming_speak(&confirming));
    confirming_everything(&confirming);
    assert_true(fake.at_work);
    close_confirming(&confirming);
}

static void a_limit_is_none_that_the_confirmer_would_keep(void **state)
{
    struct confirming confirming;
    (void)state;
    open_confirming(&confirming);
    assert_true(confirming.limit == UINT64_MAX);
    confirming.limit = 500;
    confirming_everything(&confirming);
    assert_false(fake.at_work);
    close_confirming(&confirming);
}

static void without_a_log_nothing_is_confirmed(void **state)
{
    struct confirming confirming;
    (void)state;
    fake.open = fake.at_work = false;
    confirming_open(&confirming, NULL, NULL, false);
    assert_false(fake.open);
    confirming_everything(&confirming);
    assert_false(fake.at_work);
    assert_false(confirming_ends_everything(&confirming));
    confirming_close(&confirming);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_confirmer_let_go_must_be_known),
        cmocka_unit_test(a_confirmer_that_let_nothing_go_leaves_nothing_to_catch_up_to),
        cmocka_unit_test(a_later_question_makes_up_for_a_position_that_is_no_more),
        cmocka_unit_test(the_furthest_position_is_remembered),
        cmocka_unit_test(only_who_has_the_voice_lets_everything_go),
        cmocka_unit_test(a_limit_is_none_that_the_confirmer_would_keep),
        cmocka_unit_test(without_a_log_nothing_is_confirmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
