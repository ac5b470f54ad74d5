#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow/lag.h"

static void nothing_is_known_before_a_probe_is_reached(void **state)
{
    struct lag lag = {0};
    (void)state;
    lag_reached(&lag, 500);
    assert_int_equal(lag.known, 0);
    lag_probed(&lag, 10, 501);
    assert_int_equal(lag.known, 0);
    lag_reached(&lag, 501);
    assert_int_equal(lag.known, 10);
}

/* The time of the question counts, not that of the answer: what was committed in between may lie
 * behind. */
static void a_probe_that_is_reached_already_counts_at_once(void **state)
{
    struct lag lag = {0};
    (void)state;
    lag_reached(&lag, 500);
    lag_probed(&lag, 10, 500);
    assert_int_equal(lag.known, 10);
    lag_probed(&lag, 20, 499);
    assert_int_equal(lag.known, 20);
}

static void the_newest_reached_probe_tells_the_time(void **state)
{
    struct lag lag = {0};
    (void)state;
    lag_probed(&lag, 10, 100);
    lag_probed(&lag, 20, 200);
    lag_probed(&lag, 30, 300);
    lag_reached(&lag, 250);
    assert_int_equal(lag.known, 20);
    assert_int_equal(lag_bytes(&lag), 50);
    lag_reached(&lag, 240); /* positions never go back */
    assert_int_equal(lag.position, 250);
    lag_reached(&lag, 300);
    assert_int_equal(lag.known, 30);
    assert_int_equal(lag_bytes(&lag), 0);
}

static void too_many_probes_lose_precision_but_never_promise_too_much(void **state)
{
    struct lag lag = {0};
    (void)state;
    for (unsigned i = 1; i <= 10 * LAG_PROBES; i++)
        lag_probed(&lag, i, 100 * i);
    assert_int_equal(lag.count, LAG_PROBES);
    for (unsigned i = 1; i <= 10 * LAG_PROBES; i++) {
        lag_reached(&lag, 100 * i);
        assert_true(lag.known <= i);
    }
    assert_int_equal(lag.known, 10 * LAG_PROBES);
    assert_int_equal(lag.count, 0);
}

/* PostgreSQL's insert position skips the header of the page that comes next; no stream gets there
 * on an idle database. */
static void an_idle_log_that_ends_at_a_page_has_one_end(void **state)
{
    (void)state;
    assert_int_equal(lag_end_of_log(8192 * 7 + 24, 8192 * 7), 8192 * 7);
    assert_int_equal(lag_end_of_log((1 << 24) + 40, 1 << 24), 1 << 24);
    assert_int_equal(lag_end_of_log(1000, 900), 1000);
    assert_int_equal(lag_end_of_log(1000, 1000), 1000);
}

/* The last bytes of a commit that begins on the page before. */
static void what_is_left_of_a_record_behind_a_page_is_no_header(void **state)
{
    (void)state;
    for (uint64_t rest = 8; rest <= 48; rest += 8)
        assert_int_equal(lag_end_of_log(8192 * 7 + 24 + rest, 8192 * 7), 8192 * 7 + 24 + rest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_before_a_probe_is_reached),
        cmocka_unit_test(a_probe_that_is_reached_already_counts_at_once),
        cmocka_unit_test(the_newest_reached_probe_tells_the_time),
        cmocka_unit_test(too_many_probes_lose_precision_but_never_promise_too_much),
        cmocka_unit_test(an_idle_log_that_ends_at_a_page_has_one_end),
        cmocka_unit_test(what_is_left_of_a_record_behind_a_page_is_no_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
