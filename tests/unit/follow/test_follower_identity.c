/* The identity by which an old row is told: a key that changes must be told with the one before.
 * Descriptions come as PostgreSQL 15 and 17 send them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower_bench.h"

enum { PART = 201, STRANGER };

static const char no_key[] = "does not tell the row's key";

static void open_bench(struct bench *bench)
{
    bench_init(bench);
    begin();
}

/* (number, customer), and whether each is in the identity. */
static void describe(uint32_t table, char identity, int number, int customer)
{
    must_take(compose("cwsschcswwcsww", 'R', table, "public", "orders", identity, 2, number,
                      "number", 20, -1, customer, "customer", 25, -1));
}

static struct log_message inserted(void)
{
    return compose("cwchtt", 'I', ORDER_TABLE, 'N', 2, "7", "bob");
}

/* An update that tells no old key. */
static struct log_message moved(void)
{
    return compose("cwchtt", 'U', ORDER_TABLE, 'N', 2, "8", "bob");
}

static void must_refuse(struct bench *bench, struct log_message message, const char *why)
{
    struct pg_error lost = {.text = "gone"};
    assert_int_equal(feed(message), -EPROTO);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench->fault, why));
    bench_finish(bench);
}

static void of_a_table_must_cover_the_key(void **state)
{
    (void)state;
    for (int covered = 0; covered < 2; covered++) {
        struct bench bench;
        open_bench(&bench);
        describe(ORDER_TABLE, 'd', 1, 1);
        must_take(inserted());
        describe(ORDER_TABLE, 'd', covered, !covered);
        must_refuse(&bench, moved(), no_key);
    }
}

static void of_a_partition_must_cover_it_too(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    describe(ORDER_TABLE, 'd', 1, 1);
    describe(PART, 'i', 1, 0);
    must_refuse(&bench, moved(), no_key);
}

static void of_a_table_with_partitions_says_nothing(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    describe(ORDER_TABLE, 'd', 0, 0);
    must_take(compose("cwss", 'Y', 16400, "public", "mood"));
    describe(PART, 'f', 1, 1);
    must_take(inserted());
    must_take(inserted());
    commit(1000);
    must_hear(&bench, "changed order:bob:7, inserted order:bob:7, changed order:bob:7, inserted "
                      "order:bob:7, ");
    bench_finish(&bench);
}

/* TRUNCATE orders, strangers: what is described behind the first is no partition of it. */
static void of_another_table_does_not_matter(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench);
    describe(ORDER_TABLE, 'd', 1, 1);
    describe(STRANGER, 'd', 0, 0);
    must_take(compose("cwcww", 'T', 2, 0, ORDER_TABLE, STRANGER));
    must_take(inserted());
    describe(ORDER_TABLE, 'd', 1, 1);
    must_take(inserted());
    describe(STRANGER, 'd', 0, 0);
    must_take(compose("cwchtt", 'I', STRANGER, 'N', 2, "7", "bob"));
    must_take(inserted());
    commit(1000);
    assert_true(has(&bench, ORDERS, "order:bob:7"));
    bench_finish(&bench);
}

static void of_what_values_depend_on_must_cover_its_key(void **state)
{
    static const char identities[] = {'d', 'i'};
    (void)state;
    for (size_t i = 0; i < sizeof identities; i++) {
        struct bench bench;
        open_bench(&bench);
        must_take(compose("cwsschcswwcswwcsww", 'R', LINE_TABLE, "public", "lines", 'f', 3, 1, "id",
                          20, -1, 1, "who", 25, -1, 1, "nr", 20, -1));
        must_take(compose("cwsschcswwcswwcsww", 'R', PART, "public", "lines_1", identities[i], 3, 1,
                          "id", 20, -1, 1, "who", 25, -1, 0, "nr", 20, -1));
        must_refuse(&bench, compose("cwchttt", 'I', LINE_TABLE, 'N', 3, "x", "ann", "1"), "`on`");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_table_must_cover_the_key),
        cmocka_unit_test(of_a_partition_must_cover_it_too),
        cmocka_unit_test(of_a_table_with_partitions_says_nothing),
        cmocka_unit_test(of_another_table_does_not_matter),
        cmocka_unit_test(of_what_values_depend_on_must_cover_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
