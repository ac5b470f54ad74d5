/* What pg_current_snapshot() prints is read exactly, and ids compare over the wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "database/snapshot.h"

#include <errno.h>

static struct snapshot snapshot_of(const char *text)
{
    struct snapshot snapshot;
    assert_int_equal(snapshot_read(&snapshot, text), 0);
    return snapshot;
}

static void a_transaction_is_over_below_xmin_or_in_between_and_not_listed(void **state)
{
    struct snapshot snapshot = snapshot_of("100:110:101,103,108");
    (void)state;
    for (uint32_t xid = 90; xid < 120; xid++) {
        bool runs = xid == 101 || xid == 103 || xid == 108 || xid >= 110;
        assert_int_equal(snapshot_is_over(&snapshot, xid), !runs);
        assert_int_equal(snapshot_has_passed(&snapshot, xid), xid <= 100);
    }
    snapshot_finish(&snapshot);
}

static void an_idle_server_has_none_running(void **state)
{
    struct snapshot snapshot = snapshot_of("731:731:");
    (void)state;
    assert_true(snapshot_is_over(&snapshot, 730));
    assert_false(snapshot_is_over(&snapshot, 731));
    assert_true(snapshot_has_passed(&snapshot, 731));
    assert_false(snapshot_has_passed(&snapshot, 732));
    snapshot_finish(&snapshot);
}

static void must_cover(const char *later, const char *earlier, bool wanted)
{
    struct snapshot a = snapshot_of(later), b = snapshot_of(earlier);
    if (snapshot_covers(&a, &b) != wanted)
        fail_msg("%s and %s", later, earlier);
    snapshot_finish(&a);
    snapshot_finish(&b);
}

static void a_snapshot_covers_what_is_over_in_it(void **state)
{
    (void)state;
    must_cover("100:110:101", "100:110:101", true);
    must_cover("100:110:", "100:110:101", true);
    must_cover("100:110:101,102", "100:110:101", false);
    must_cover("100:115:101,112", "100:110:101", true);
    must_cover("100:105:101", "100:110:101", false);
    must_cover("98:115:98", "100:110:101", false);
    must_cover("200:200:", "100:110:101", true);
    must_cover("4294967290:4294967300:4294967298", "4294967290:4294967299:4294967298", true);
    must_cover("4294967290:4294967300:4294967297", "4294967290:4294967299:4294967298", false);
}

/* 2^33 - 3 and on: the upper half counts up between the ids. */
static void ids_are_compared_over_the_wrap(void **state)
{
    struct snapshot snapshot = snapshot_of("8589934589:8589934596:8589934590,8589934593");
    (void)state;
    assert_true(snapshot_is_over(&snapshot, UINT32_MAX - 2 - 1000));
    assert_true(snapshot_is_over(&snapshot, UINT32_MAX - 2)); /* xmin */
    assert_false(snapshot_is_over(&snapshot, UINT32_MAX - 1));
    assert_true(snapshot_is_over(&snapshot, UINT32_MAX));
    assert_true(snapshot_is_over(&snapshot, 0));
    assert_false(snapshot_is_over(&snapshot, 1));
    assert_true(snapshot_is_over(&snapshot, 3));
    assert_false(snapshot_is_over(&snapshot, 4)); /* xmax */
    assert_false(snapshot_is_over(&snapshot, 1000));
    assert_false(snapshot_has_passed(&snapshot, 0));
    assert_true(snapshot_has_passed(&snapshot, UINT32_MAX - 2));
    snapshot_finish(&snapshot);
}

static void anything_else_is_refused(void **state)
{
    static const char *const texts[] = {
        "",          "100",       "100:",         "100:105", "x:105:",          ":105:",
        "100:105:x", "100:105:,", "100:105:101,", "1 :2:3",  "100:105:101 102", "100:105:101:",
        "-1:3:"};
    struct snapshot snapshot;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (snapshot_read(&snapshot, texts[i]) != -EPROTO)
            fail_msg("\"%s\" was read", texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_is_over_below_xmin_or_in_between_and_not_listed),
        cmocka_unit_test(an_idle_server_has_none_running),
        cmocka_unit_test(a_snapshot_covers_what_is_over_in_it),
        cmocka_unit_test(ids_are_compared_over_the_wrap),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
