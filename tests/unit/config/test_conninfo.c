/* What of `database` is refused before libpq connects with it. */
#include "config/conninfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static void must_refuse(const char *text, const char *reason)
{
    char error[400];
    if (conninfo_check(text, error, sizeof error) != -EINVAL)
        fail_msg("\"%s\" was accepted", text);
    if (!strstr(error, reason) || strstr(error, "hunter"))
        fail_msg("\"%s\": %s", text, error);
    assert_true(strlen(error) + 1 < sizeof error);
}

static void what_libpq_would_split_elsewhere_is_refused_with_the_rule(void **state)
{
    static const char *const texts[] = {
        "postgresql://app:a@hunter@127.0.0.1:5432/shop",
        "postgres://app:a@hunter@h1,h2:5432/shop",
        "postgresql://app:a@h1:1,app:hunter@h2:2/shop",
        "postgresql://app:hunter/a@127.0.0.1:5432/shop",
        "postgresql://app:5/hunter@127.0.0.1:5432/shop",
        "postgresql://app:a@b/hunter@127.0.0.1/shop",
        "postgresql://app:hunter%a@h/shop",
        "postgresql://app:hunter%zz@h/shop",
        "postgresql://h?password=hunter:b@c",
        "postgresql://h:5432?password=a@hunter",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        must_refuse(texts[i], "@ is written %40, / %2F");
}

static void what_is_no_place_for_a_password_is_refused(void **state)
{
    (void)state;
    must_refuse("host=app:hunter@h dbname=shop", "no @");
    must_refuse("postgresql://app:a@h,b%40hunter/shop", "no @");
    must_refuse("dbname=postgresql://app:hunter@h/shop", "stands alone");
    must_refuse("postgresql://h:0/x", "1 to 65535");
    must_refuse("host=h port=1,x", "1 to 65535");
    must_refuse("password=a hunter", "libpq says: missing \"=\"");
    must_refuse("postgresql://u:hunter@[h/x", "matching");
}

static void what_libpq_reads_as_it_was_meant_is_accepted(void **state)
{
    static const char *const texts[] = {
        "postgresql://app:se%40cr%2Fet@127.0.0.1:5432/shop",
        "postgresql://app:a:b?c#d@h1:1,[::1]:2/shop?user=app@tenant",
        "postgresql:///shop?host=@abstract",
        "postgresql://%2Ftmp%2Fa%40b/shop",
        "postgresql://app@/shop%40home?password=a@b",
        "host=/tmp/a@b,@abstract,h password=a@b dbname=a@b",
        "host=h password='a b\\'c'",
        "dbname=shop",
    };
    char error[400];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (conninfo_check(texts[i], error, sizeof error))
            fail_msg("\"%s\": %s", texts[i], error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_libpq_would_split_elsewhere_is_refused_with_the_rule),
        cmocka_unit_test(what_is_no_place_for_a_password_is_refused),
        cmocka_unit_test(what_libpq_reads_as_it_was_meant_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
