/* What a person has as `options` is read as the server reads it. */
#include "postgres/pg_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void must_be(const char *own, const char *setting, const char *value)
{
    char *found = pg_options_value(own, setting);
    if (!value)
        assert_null(found);
    else
        assert_string_equal(found ? found : "(none)", value);
    free(found);
}

static void what_they_set_is_told_as_the_server_takes_it(void **state)
{
    (void)state;
    must_be(NULL, "jit", NULL);
    must_be("", "jit", NULL);
    must_be("-c jit=off", "jit", "off");
    must_be("-cjit=off", "jit", "off");
    must_be(" \t--jit=off ", "jit", "off");
    must_be("-c JIT=off", "jit", "off");
    must_be("--search-path=a", "search_path", "a");
    must_be("-c search_path=a,\\ b\\\\c -c jit=on", "search_path", "a, b\\c");
    must_be("-c jit=off --jit=on", "jit", "on");
    must_be("-c jit_above_cost=5", "jit", NULL);
    must_be("-c jit", "jit", NULL);
    must_be("-c ji=1", "jit", NULL);
    must_be("-c", "jit", NULL);
    must_be("-c jit=", "jit", "");
    must_be("jit=on -S 64", "jit", NULL);
    must_be("-e", "DateStyle", "euro");
    must_be("-c jit=on\\", "jit", "on");
}

static int check(const char *own, struct pg_error *error)
{
    setenv("PGOPTIONS", own, 1);
    int rc = pg_conninfo_check("host=nowhere", error);
    unsetenv("PGOPTIONS");
    return rc;
}

static void what_does_not_read_back_is_refused(void **state)
{
    static const char *const refused[][2] = {
        {"-c extra_float_digits=0", "extra_float_digits=0"},
        {"--extra-float-digits=-15", "extra-float-digits=-15"},
        {"-c array_nulls=off", "array_nulls=off"},
        {"-c Array_Nulls=F", "Array_Nulls=F"},
        {"-c array_nulls=0", "array_nulls=0"},
        {"-c datestyle=SQL", "datestyle=SQL"},
        {"-c datestyle=DMY,\\ german", "datestyle=DMY, german"},
        {"-c datestyle=postgresql -c datestyle=DMY", "datestyle=postgresql"},
    };
    struct pg_error error;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(check(refused[i][0], &error), -EINVAL);
        assert_non_null(strstr(error.text, refused[i][1]));
        assert_non_null(strstr(error.text, "take it out"));
    }
    assert_int_equal(pg_conninfo_check("host=nowhere options='-c array_nulls=no'", &error),
                     -EINVAL);
}

static void what_reads_back_is_not(void **state)
{
    static const char *const taken[] = {
        "", "-c extra_float_digits=3", "-c array_nulls=on", "-c datestyle=ISO,DMY -e",
        "-c IntervalStyle=postgres_verbose -c bytea_output=escape -c search_path=sql,german"};
    struct pg_error error;
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_int_equal(check(taken[i], &error), 0);
}

static void the_conninfos_own_count_and_not_those_of_the_environment(void **state)
{
    struct pg_error error;
    (void)state;
    setenv("PGOPTIONS", "-c array_nulls=off", 1);
    assert_int_equal(pg_conninfo_check("options='-c jit=on'", &error), 0);
    unsetenv("PGOPTIONS");
}

static void a_conninfo_that_makes_no_sense_is_refused_with_libpqs_reason(void **state)
{
    struct pg_error error;
    (void)state;
    assert_int_equal(pg_conninfo_check("nonsense", &error), -EINVAL);
    assert_non_null(strstr(error.text, "nonsense"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_they_set_is_told_as_the_server_takes_it),
        cmocka_unit_test(what_does_not_read_back_is_refused),
        cmocka_unit_test(what_reads_back_is_not),
        cmocka_unit_test(the_conninfos_own_count_and_not_those_of_the_environment),
        cmocka_unit_test(a_conninfo_that_makes_no_sense_is_refused_with_libpqs_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
