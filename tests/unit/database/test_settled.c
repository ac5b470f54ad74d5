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
    uint64_t newest = settled_learn(settled, number, &snapshot, next);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_is_settled_at_once_where_nobody_writes),
        cmocka_unit_test(a_generation_is_settled_by_one_in_which_all_that_ran_is_over),
        cmocka_unit_test(ids_wrap),
        cmocka_unit_test(ids_of_another_server_settle_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
