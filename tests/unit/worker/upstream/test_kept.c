#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/upstream/kept.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must_have(const struct kept *kept, uint64_t begin, uint64_t end, const char *text)
{
    struct span got = kept_bytes(kept, begin, end);
    assert_int_equal(got.length, strlen(text));
    assert_memory_equal(got.at, text, got.length);
}

static void each_command_is_there_whole_until_the_next_is_written(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_copy(&kept, 0, 0, span_of("onetwo"));
    must_have(&kept, 0, 3, "one");
    must_have(&kept, 3, UINT64_MAX, "two");
    must_have(&kept, 0, 3, "one");
    kept_copy(&kept, 3, 6, span_of("three"));
    must_have(&kept, 3, 6, "two");
    must_have(&kept, 6, UINT64_MAX, "three");
    kept_finish(&kept);
}

/* `out` had not been written when more was added to it, and was looked at again. */
static void nothing_is_kept_twice(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_copy(&kept, 0, 0, span_of("one"));
    kept_copy(&kept, 0, 0, span_of("onetwo"));
    kept_copy(&kept, 0, 2, span_of("etwo"));
    must_have(&kept, 0, 3, "one");
    kept_copy(&kept, 3, 5, span_of("o"));
    must_have(&kept, 3, UINT64_MAX, "two");
    kept_finish(&kept);
}

static void it_may_begin_anew(void **state)
{
    struct kept kept = {0};
    (void)state;
    kept_copy(&kept, 7, 7, span_of("lost"));
    kept_clear(&kept);
    kept_copy(&kept, 20, 20, span_of("new"));
    must_have(&kept, 20, UINT64_MAX, "new");
    kept_copy(&kept, 23, 23, span_of("er"));
    must_have(&kept, 23, UINT64_MAX, "er");
    kept_finish(&kept);
}

/* Some are written, some answered, at random, and each is there when it is answered. */
static void whatever_is_written_and_answered_when(void **state)
{
    enum { MOST = 64 };
    struct kept kept = {0};
    struct buffer out = {0};
    uint64_t begins[MOST], left = 0, written = 0, sent = 0, answered = 0;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        char text[24];
        switch (rand() % 3) {
        case 0:
            if (sent - answered == MOST)
                break;
            begins[sent % MOST] = left + buffer_length(&out);
            buffer_printf(&out, "command %llu;", (unsigned long long)sent++);
            break;
        case 1:
            if (answered == sent)
                break;
            kept_copy(&kept, begins[answered % MOST], left, buffer_span(&out));
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
            must_have(&kept, begins[answered % MOST],
                      answered + 1 < sent ? begins[(answered + 1) % MOST] : UINT64_MAX, text);
            if (++answered == sent && !buffer_length(&out))
                kept_clear(&kept);
        }
    }
    kept_finish(&kept);
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_is_there_whole_until_the_next_is_written),
        cmocka_unit_test(nothing_is_kept_twice),
        cmocka_unit_test(it_may_begin_anew),
        cmocka_unit_test(whatever_is_written_and_answered_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
