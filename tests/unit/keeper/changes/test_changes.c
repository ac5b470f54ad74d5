#include "keeper/changes/changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char heard[100]; /* a letter for each who was told */
static const struct key_change *told;

static void hear(void *arg, const struct key_change *change)
{
    size_t length = strlen(heard);
    heard[length] = *(const char *)arg;
    heard[length + 1] = '\0';
    told = change;
}

static void subscribe_all(struct changes *changes)
{
    static char letters[] = "DULPCEBR"; /* in the order of the enum */
    *changes = (struct changes){0};
    for (unsigned i = 0; i < SUBSCRIBERS; i++)
        changes_subscribe(changes, i, hear, &letters[i]);
}

static const char *who_hears(struct changes *changes, enum cause cause)
{
    struct key_change change = change_of_key(cause, key_make(0, span_of("item:1")));
    heard[0] = '\0';
    changes_tell(changes, &change);
    assert_ptr_equal(told, &change);
    return heard;
}

static void what_the_log_tells_makes_old_whatever_is_kept_of_a_key(void **state)
{
    struct changes changes;
    (void)state;
    subscribe_all(&changes);
    assert_string_equal(who_hears(&changes, CAUSE_INSERTED), "DULPCEB");
    assert_string_equal(who_hears(&changes, CAUSE_UPDATED), "DULP");
    assert_string_equal(who_hears(&changes, CAUSE_DELETED), "DULPB");
    assert_string_equal(who_hears(&changes, CAUSE_UNTOLD), "ULP");
    assert_string_equal(who_hears(&changes, CAUSE_TRUNCATED), "ULPR");
    assert_string_equal(who_hears(&changes, CAUSE_LEFT), "R");
    assert_string_equal(who_hears(&changes, CAUSE_DEPENDED), "ULP");
}

static void entries_and_writes_make_loads_old_and_leave_the_cache_alone(void **state)
{
    struct changes changes;
    (void)state;
    subscribe_all(&changes);
    assert_string_equal(who_hears(&changes, CAUSE_WRITTEN), "LC");
    assert_string_equal(who_hears(&changes, CAUSE_DROPPED), "LC");
    assert_string_equal(who_hears(&changes, CAUSE_HINT), "LC");
    assert_string_equal(who_hears(&changes, CAUSE_TOMBSTONE), "L");
    assert_string_equal(who_hears(&changes, CAUSE_BLOCK), "L");
    assert_string_equal(who_hears(&changes, CAUSE_RELEASE), "L");
}

/* Loads first: nothing may be filled behind the purge. */
static void what_no_log_told_is_purged_behind_the_loads(void **state)
{
    struct changes changes;
    (void)state;
    subscribe_all(&changes);
    assert_string_equal(who_hears(&changes, CAUSE_MISSED), "LPB");
    assert_string_equal(who_hears(&changes, CAUSE_ALTERED), "LP");
    assert_string_equal(who_hears(&changes, CAUSE_ASKED), "L");
    assert_string_equal(who_hears(&changes, CAUSE_CLEARED), "L");
    assert_string_equal(who_hears(&changes, CAUSE_UNVOUCHED), "P");
    assert_string_equal(who_hears(&changes, CAUSE_FILLED), "P");
    assert_string_equal(who_hears(&changes, CAUSE_RENAMED), "LCE");
}

static void every_cause_is_told_to_somebody(void **state)
{
    struct changes changes;
    (void)state;
    subscribe_all(&changes);
    for (unsigned cause = 0; cause < CAUSES; cause++)
        assert_true(who_hears(&changes, cause)[0]);
}

static void a_cause_is_of_a_key_or_of_a_keyspace(void **state)
{
    const enum cause keyspaces[] = {CAUSE_CLEARED, CAUSE_UNTOLD, CAUSE_TRUNCATED, CAUSE_ASKED,
                                    CAUSE_FILLED,  CAUSE_MISSED, CAUSE_ALTERED,   CAUSE_DEPENDED,
                                    CAUSE_LEFT,    CAUSE_RENAMED};
    unsigned count = 0;
    (void)state;
    for (unsigned cause = 0; cause < CAUSES; cause++)
        count += cause_is_of_keyspace(cause);
    assert_int_equal(count, sizeof keyspaces / sizeof *keyspaces);
    for (unsigned i = 0; i < count; i++)
        assert_true(cause_is_of_keyspace(keyspaces[i]));
}

static void who_is_not_there_is_left_out(void **state)
{
    struct changes changes;
    struct key_change change = change_of_keyspace(CAUSE_MISSED, 1);
    (void)state;
    subscribe_all(&changes);
    changes_subscribe(&changes, SUBSCRIBER_CACHE, NULL, NULL);
    struct change_sink sink = changes_sink(&changes);
    heard[0] = '\0';
    sink.tell(sink.arg, &change);
    assert_string_equal(heard, "LB");
    assert_int_equal(told->key.keyspace, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_log_tells_makes_old_whatever_is_kept_of_a_key),
        cmocka_unit_test(entries_and_writes_make_loads_old_and_leave_the_cache_alone),
        cmocka_unit_test(what_no_log_told_is_purged_behind_the_loads),
        cmocka_unit_test(every_cause_is_told_to_somebody),
        cmocka_unit_test(a_cause_is_of_a_key_or_of_a_keyspace),
        cmocka_unit_test(who_is_not_there_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
