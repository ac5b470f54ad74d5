/* Calls that are at work for a key hear of it. */
#include "keeper/changes/touches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/container_of.h"

struct call {
    struct touches *touches;
    struct key_touch touch;
    unsigned probes;
};

static struct key item(const char *text)
{
    return key_make(0, span_of(text));
}

static struct call call_of(struct touches *touches, const char *key)
{
    return (struct call){.touches = touches, .touch.key = item(key)};
}

static void written(struct touches *touches, const char *key)
{
    struct key_change change = change_of_key(CAUSE_WRITTEN, item(key));
    touches_hear(touches, &change);
}

static void every_call_for_the_key_is_touched_and_no_other(void **state)
{
    struct watch *watch = watch_create(10);
    struct touches touches;
    (void)state;
    touches_init(&touches, watch);
    struct call one = call_of(&touches, "item:1"), again = one, two = call_of(&touches, "item:2");
    touches_open(&touches, &one.touch);
    touches_open(&touches, &again.touch);
    touches_open(&touches, &two.touch);
    written(&touches, "item:1");
    assert_true(one.touch.touched && again.touch.touched);
    assert_false(two.touch.touched);
    touches_close(&touches, &again.touch);
    touches_close(&touches, &two.touch);
    touches_close(&touches, &one.touch);
    watch_destroy(watch);
}

static void what_is_told_of_a_keyspace_touches_every_call_for_its_keys(void **state)
{
    struct watch *watch = watch_create(10);
    struct touches touches;
    struct key_change change = change_of_keyspace(CAUSE_RENAMED, 0);
    (void)state;
    touches_init(&touches, watch);
    struct call one = call_of(&touches, "item:1"), another = call_of(&touches, "order:1");
    another.touch.key.keyspace = 1;
    touches_open(&touches, &one.touch);
    touches_open(&touches, &another.touch);
    touches_hear(&touches, &change);
    assert_true(one.touch.touched);
    assert_false(another.touch.touched);
    touches_close(&touches, &another.touch);
    touches_close(&touches, &one.touch);
    watch_destroy(watch);
}

static void a_workers_write_is_told_only_while_a_call_is_at_work(void **state)
{
    struct watch *watch = watch_create(10);
    struct touches touches;
    (void)state;
    touches_init(&touches, watch);
    struct call one = call_of(&touches, "item:1");
    assert_false(watch_has(watch, item("item:1")));
    touches_open(&touches, &one.touch);
    assert_true(watch_has(watch, item("item:1")));
    touches_close(&touches, &one.touch);
    assert_false(watch_has(watch, item("item:1")));
    watch_destroy(watch);
}

/* It ends its call, and with it the member that it is called by. */
static void end_call(struct key_touch *touch)
{
    struct call *call = container_of(touch, struct call, touch);
    call->probes++;
    touches_close(call->touches, touch);
    *touch = (struct key_touch){0};
}

static void who_waits_for_a_probe_is_called_once_and_may_end(void **state)
{
    struct watch *watch = watch_create(10);
    struct touches touches;
    (void)state;
    touches_init(&touches, watch);
    struct call one = call_of(&touches, "item:1"), two = call_of(&touches, "item:2"),
                patient = call_of(&touches, "item:3");
    touches_open(&touches, &one.touch);
    touches_open(&touches, &patient.touch);
    touches_open(&touches, &two.touch);
    one.touch.on_probe = two.touch.on_probe = end_call;
    touches_probed(&touches);
    touches_probed(&touches);
    assert_int_equal(one.probes, 1);
    assert_int_equal(two.probes, 1);
    assert_ptr_equal(touches.first, &patient.touch);
    touches_close(&touches, &patient.touch);
    watch_destroy(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_for_the_key_is_touched_and_no_other),
        cmocka_unit_test(what_is_told_of_a_keyspace_touches_every_call_for_its_keys),
        cmocka_unit_test(a_workers_write_is_told_only_while_a_call_is_at_work),
        cmocka_unit_test(who_waits_for_a_probe_is_called_once_and_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
