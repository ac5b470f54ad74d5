/* The account of loads that the database refused. */
#include "cache/refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log/log.h"

enum { ITEMS, USERS, KEYSPACES };

static struct keyspace keyspaces[KEYSPACES] = {{.name = "items"}, {.name = "users"}};
static struct config one = {.keyspaces = keyspaces, .keyspace_count = 1};
static struct config both = {.keyspaces = keyspaces, .keyspace_count = KEYSPACES};

static uint64_t now_ms = 5;

uint64_t clock_ms(void)
{
    return now_ms;
}

static struct {
    unsigned count;
    char latest[3000];
} lines;

void log_line(enum log_level level, const char *format, ...)
{
    va_list list;
    assert_int_equal(level, LOG_LEVEL_ERROR);
    lines.count++;
    va_start(list, format);
    vsnprintf(lines.latest, sizeof lines.latest, format, list);
    va_end(list);
}

static int begin(void **state)
{
    *state = refusals_create(&both);
    lines.count = 0;
    now_ms += 100000;
    return 0;
}

static int finish(void **state)
{
    refusals_destroy(*state);
    return 0;
}

static void each_keyspace_has_its_latest_until_a_row_is_given(void **state)
{
    struct refusals *refusals = *state;
    const struct refused_load *items = refusals_latest(refusals, ITEMS);
    assert_int_equal(items->count, 0);
    refusals_add(refusals, ITEMS, "permission denied");
    now_ms += 7;
    refusals_add(refusals, ITEMS, "column \"v\" does not exist");
    assert_int_equal(items->count, 2);
    assert_true(items->time == now_ms);
    assert_string_equal(items->text, "column \"v\" does not exist");
    assert_int_equal(refusals_latest(refusals, USERS)->count, 0);
    refusals_end(refusals, USERS);
    assert_int_equal(items->count, 2);
    refusals_end(refusals, ITEMS);
    assert_int_equal(items->count, 0);
    refusals_add(refusals, ITEMS, "permission denied");
    assert_int_equal(items->count, 1);
}

static void what_was_refused_stays_when_keyspaces_are_added(void **state)
{
    struct refusals *refusals = refusals_create(&one);
    (void)state;
    refusals_add(refusals, ITEMS, "permission denied");
    refusals_use_config(refusals, &both);
    assert_string_equal(refusals_latest(refusals, ITEMS)->text, "permission denied");
    assert_int_equal(refusals_latest(refusals, USERS)->count, 0);
    refusals_add(refusals, USERS, "gone");
    assert_int_equal(refusals_latest(refusals, USERS)->count, 1);
    refusals_destroy(refusals);
}

static void long_words_are_cut_off(void **state)
{
    struct refusals *refusals = *state;
    const struct refused_load *items = refusals_latest(refusals, ITEMS);
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    refusals_add(refusals, ITEMS, text);
    assert_int_equal(strlen(items->text), sizeof items->text - 1);
}

static void the_log_has_one_a_second(void **state)
{
    struct refusals *refusals = *state;
    refusals_add(refusals, ITEMS, "permission denied");
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.latest, "keyspace items: "));
    assert_non_null(strstr(lines.latest, "permission denied"));
    now_ms += 999;
    refusals_add(refusals, USERS, "permission denied");
    assert_int_equal(lines.count, 1);
    now_ms++;
    refusals_add(refusals, USERS, "permission denied");
    assert_int_equal(lines.count, 2);
    assert_non_null(strstr(lines.latest, "keyspace users: "));
}

static void none_may_be_destroyed(void **state)
{
    (void)state;
    refusals_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_keyspace_has_its_latest_until_a_row_is_given, begin,
                                        finish),
        cmocka_unit_test(what_was_refused_stays_when_keyspaces_are_added),
        cmocka_unit_test_setup_teardown(long_words_are_cut_off, begin, finish),
        cmocka_unit_test_setup_teardown(the_log_has_one_a_second, begin, finish),
        cmocka_unit_test(none_may_be_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
