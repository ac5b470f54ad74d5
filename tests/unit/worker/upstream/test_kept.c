#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/upstream/kept.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must_take(struct kept *kept, const char *text, unsigned wanted)
{
    unsigned hops;
    struct span got = kept_take(kept, &hops);
    assert_int_equal(got.length, strlen(text));
    assert_memory_equal(got.at, text, got.length);
    assert_int_equal(hops, wanted);
}

static void each_command_comes_back_whole(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_begin(&kept, 0, 0);
    kept_begin(&kept, 3, 2);
    kept_copy(&kept, 0, span_of("onetwo"));
    must_take(&kept, "one", 0);
    must_take(&kept, "two", 2);
    kept_finish(&kept);
}

/* `out` had not been written when more was added to it, and was looked at again. */
static void nothing_is_kept_twice(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_begin(&kept, 0, 0);
    kept_copy(&kept, 0, span_of("one"));
    kept_begin(&kept, 3, 0);
    kept_copy(&kept, 0, span_of("onetwo"));
    kept_copy(&kept, 2, span_of("etwo"));
    must_take(&kept, "one", 0);
    kept_copy(&kept, 5, span_of("o"));
    must_take(&kept, "two", 0);
    kept_finish(&kept);
}

static void it_may_begin_anew(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_begin(&kept, 7, 0);
    kept_copy(&kept, 7, span_of("lost"));
    kept_clear(&kept);
    kept_begin(&kept, 20, 0);
    kept_copy(&kept, 20, span_of("new"));
    must_take(&kept, "new", 0);
    kept_begin(&kept, 23, 0);
    kept_copy(&kept, 23, span_of("er"));
    must_take(&kept, "er", 0);
    kept_finish(&kept);
}

/* Some are written, some answered, at random, and all come back in order. */
static void whatever_is_written_and_answered_when(void **state)
{
    struct kept kept = {0};
    struct buffer out = {0};
    uint64_t left = 0, written = 0, sent = 0, answered = 0;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        char text[24];
        switch (rand() % 3) {
        case 0:
            kept_begin(&kept, left + buffer_length(&out), (unsigned)(sent % 5));
            buffer_printf(&out, "command %llu;", (unsigned long long)sent++);
            break;
        case 1:
            kept_copy(&kept, left, buffer_span(&out));
            size_t some = buffer_length(&out);
            if (rand() % 2)
                some = some ? (size_t)rand() % some : 0;
            left += some;
            buffer_take(&out, some);
            written = buffer_length(&out) ? written : sent;
            break;
        default:
            if (answered == written)
                break;
            snprintf(text, sizeof text, "command %llu;", (unsigned long long)answered);
            must_take(&kept, text, (unsigned)(answered % 5));
            answered++;
        }
    }
    kept_finish(&kept);
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_comes_back_whole),
        cmocka_unit_test(nothing_is_kept_twice),
        cmocka_unit_test(it_may_begin_anew),
        cmocka_unit_test(whatever_is_written_and_answered_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
