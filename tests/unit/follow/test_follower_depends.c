/* Tables that the values of a keyspace, `orders`, are made of: one whose rows do not tell whose
 * they are, and one whose rows do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower_bench.h"

static void describe_lines(void)
{
    must_take(compose("cwsschcswwcswwcsww", 'R', LINE_TABLE, "public", "lines", 'f', 3, 0, "text",
                      25, -1, 1, "who", 25, -1, 1, "nr", 20, -1));
}

static void change_author(void)
{
    must_take(compose("cwchtt", 'U', AUTHOR_TABLE, 'N', 2, "1", "new"));
}

static void insert_line(const char *who, const char *nr)
{
    must_take(compose("cwchttt", 'I', LINE_TABLE, 'N', 3, "x", who, nr));
}

static void open_bench(struct bench *bench)
{
    bench_init(bench);
    begin();
    describe_lines();
}

static void a_row_tells_whose_value_it_is_part_of(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    insert_line("ann", "1");
    must_take(compose("cwchttt", 'D', LINE_TABLE, 'O', 3, "x", "bob", "2"));
    must_hear(&bench, "");
    commit(1000);
    must_hear(&bench, "changed order:ann:1, changed order:bob:2, ");
    assert_int_equal(keys_in(&bench, ORDERS), 0);
    bench_finish(&bench);
}

static void a_row_that_moves_changes_both_values(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    must_take(
        compose("cwchtttchttt", 'U', LINE_TABLE, 'O', 3, "x", "ann", "1", 'N', 3, "x", "bob", "2"));
    commit(1000);
    must_hear(&bench, "changed order:ann:1, changed order:bob:2, ");
    bench_finish(&bench);
}

static void a_row_of_nobody_changes_nothing(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    must_take(compose("cwchtnt", 'I', LINE_TABLE, 'N', 3, "x", "1"));
    commit(1000);
    must_hear(&bench, "");
    bench_finish(&bench);
}

/* A column that is stored out of line, and of which the old row was not sent. */
static void a_row_that_does_not_tell_changes_all_values(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    must_take(compose("cwchtut", 'U', LINE_TABLE, 'N', 3, "x", "1"));
    commit(1000);
    must_hear(&bench, "depended orders, ");
    bench_finish(&bench);
}

static void many_rows_of_a_table_that_never_tells_are_told_once(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    for (unsigned i = 0; i < 1000; i++) {
        change_author();
        insert_line("ann", "1");
    }
    commit(1000);
    run_until_released(&bench);
    assert_int_equal(bench.events, 1001);
    begin();
    change_author();
    bench.heard[0] = '\0';
    commit(2000);
    must_hear(&bench, "depended orders, ");
    bench_finish(&bench);
}

static void a_truncation_changes_all_values_and_empties_no_filter(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    must_take(compose("cwcww", 'T', 2, 0, AUTHOR_TABLE, LINE_TABLE));
    commit(1000);
    must_hear(&bench, "depended orders, ");
    bench_finish(&bench);
}

/* Each subtransaction's is kept for itself: one of them may be rolled back. */
static void what_is_rolled_back_is_not_told(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    stream_start(20, true);
    stream.writer = 21;
    change_author();
    stream.writer = 20;
    change_author();
    stream_stop();
    stream_abort(20, 21);
    stream_commit(20, 1000);
    must_hear(&bench, "depended orders, ");
    stream_start(30, true);
    stream.writer = 31;
    change_author();
    stream.writer = 30;
    stream_stop();
    stream_abort(30, 31);
    stream_commit(30, 2000);
    must_hear(&bench, "");
    bench_finish(&bench);
}

static void an_identity_that_is_not_that_of_the_build_is_a_fault(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    assert_true(feed(compose("cwsschcswwcswwcsww", 'R', LINE_TABLE, "public", "lines", 'd', 3, 1,
                             "id", 20, -1, 0, "who", 25, -1, 0, "nr", 20, -1)) < 0);
    bench_finish(&bench);
}

/* Where all values may be old by any row of it, no row has to tell its key. */
static void of_a_table_without_on_the_identity_does_not_matter(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    must_take(
        compose("cwsschcsww", 'R', AUTHOR_TABLE, "public", "authors", 'f', 1, 1, "id", 20, -1));
    commit(1000);
    bench_finish(&bench);
}

static void a_row_without_its_description_is_a_fault(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    assert_true(feed(compose("cwchttt", 'I', LINE_TABLE, 'N', 3, "x", "ann", "1")) < 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_tells_whose_value_it_is_part_of),
        cmocka_unit_test(a_row_that_moves_changes_both_values),
        cmocka_unit_test(a_row_of_nobody_changes_nothing),
        cmocka_unit_test(a_row_that_does_not_tell_changes_all_values),
        cmocka_unit_test(many_rows_of_a_table_that_never_tells_are_told_once),
        cmocka_unit_test(a_truncation_changes_all_values_and_empties_no_filter),
        cmocka_unit_test(what_is_rolled_back_is_not_told),
        cmocka_unit_test(an_identity_that_is_not_that_of_the_build_is_a_fault),
        cmocka_unit_test(of_a_table_without_on_the_identity_does_not_matter),
        cmocka_unit_test(a_row_without_its_description_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
