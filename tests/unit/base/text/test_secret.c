#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text/secret.h"

static bool opens(const char *given, const char *secret)
{
    return secret_equal(span_of(given), span_of(secret));
}

static void only_the_secret_itself_opens(void **state)
{
    (void)state;
    assert_true(opens("open sesame", "open sesame"));
    assert_false(opens("open sesamf", "open sesame"));
    assert_false(opens("Open sesame", "open sesame"));
    assert_false(opens("open sesam", "open sesame"));
    assert_false(opens("open sesame ", "open sesame"));
    assert_false(opens("open sesameopen sesame", "open sesame")); /* the secret, repeated */
    assert_false(opens("", "open sesame"));
    assert_false(opens("x", ""));
    assert_true(opens("", ""));
}

static void a_zero_byte_ends_nothing(void **state)
{
    (void)state;
    assert_false(secret_equal((struct span){"abc\0d", 5}, span_of("abc")));
    assert_false(secret_equal((struct span){"abc\0d", 5}, (struct span){"abc\0e", 5}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_secret_itself_opens),
        cmocka_unit_test(a_zero_byte_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
