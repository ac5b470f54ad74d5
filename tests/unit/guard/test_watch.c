#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guard/watch.h"

#include <stdio.h>

static void a_key_is_watched_until_its_last_drop(void **state)
{
    struct watch *watch = watch_create(10);
    struct key key = key_make(0, span_of("item:1"));
    (void)state;
    assert_false(watch_has(watch, key));
    watch_add(watch, key);
    watch_add(watch, key);
    watch_drop(watch, key);
    assert_true(watch_has(watch, key));
    watch_drop(watch, key);
    assert_false(watch_has(watch, key));
    watch_destroy(watch);
}

static void every_watched_key_is_found_and_few_others(void **state)
{
    enum { KEYS = 10000 };
    struct watch *watch = watch_create(KEYS);
    char text[32];
    unsigned others = 0;
    (void)state;
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(text, sizeof text, "item:%u", i);
        watch_add(watch, key_make(0, span_of(text)));
    }
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(text, sizeof text, "item:%u", i);
        assert_true(watch_has(watch, key_make(0, span_of(text))));
        snprintf(text, sizeof text, "other:%u", i);
        others += watch_has(watch, key_make(0, span_of(text)));
    }
    assert_true(others < KEYS / 5);
    watch_destroy(watch);
}

static void without_a_watch_nothing_is_watched(void **state)
{
    (void)state;
    watch_add(NULL, key_make(0, span_of("a")));
    assert_false(watch_has(NULL, key_make(0, span_of("a"))));
    watch_drop(NULL, key_make(0, span_of("a")));
    watch_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_watched_until_its_last_drop),
        cmocka_unit_test(every_watched_key_is_found_and_few_others),
        cmocka_unit_test(without_a_watch_nothing_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
