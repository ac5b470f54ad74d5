/* The slices that threads ask for, as the kernel knows them; an older one knows none. */
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

static uint64_t slice(void)
{
    uint64_t attributes[7] = {0};
    assert_return_code(syscall(SYS_sched_getattr, 0, attributes, sizeof attributes, 0), 0);
    return attributes[3];
}

static void look(void *arg)
{
    *(uint64_t *)arg = slice();
}

static void a_short_slice_is_shorter_than_the_standard_and_inherited(void **state)
{
    uint64_t standard = slice(), inherited = 0;
    uv_thread_t thread;
    (void)state;
    slice_take(SLICE_KEEPER);
    if (!standard || slice() == standard)
        skip(); /* before Linux 6.12, or forbidden */
    assert_true(slice() < standard);
    assert_int_equal(uv_thread_create(&thread, look, &inherited), 0);
    uv_thread_join(&thread);
    assert_int_equal(inherited, slice());
    slice_take(SLICE_STANDARD);
    assert_int_equal(slice(), standard);
}

static void what_the_operator_has_set_stays(void **state)
{
    (void)state;
    int before = getpriority(PRIO_PROCESS, 0);
    assert_return_code(setpriority(PRIO_PROCESS, 0, before < 18 ? before + 1 : 19), 0);
    int nice = getpriority(PRIO_PROCESS, 0);
    slice_take(SLICE_KEEPER);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
    slice_take(SLICE_STANDARD);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_slice_is_shorter_than_the_standard_and_inherited),
        cmocka_unit_test(what_the_operator_has_set_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
