#include "config/syntax/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef int (*whole_reader)(const char *text, uint64_t *out, const char **error);

struct accepted {
    const char *text;
    uint64_t value;
};

static void must_read(whole_reader read, const struct accepted *rows)
{
    for (; rows->text; rows++) {
        uint64_t value = 12345;
        const char *error = NULL;
        if (read(rows->text, &value, &error) != 0)
            fail_msg("\"%s\" was refused: %s", rows->text, error);
        if (value != rows->value)
            fail_msg("\"%s\" was read as %llu", rows->text, (unsigned long long)value);
    }
}

static void must_refuse(whole_reader read, const char *const *texts, const char *word)
{
    for (; *texts; texts++) {
        uint64_t value;
        const char *error = NULL;
        if (read(*texts, &value, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", *texts);
        assert_non_null(error);
        if (!strstr(error, word))
            fail_msg("the error says nothing of \"%s\": %s", word, error);
    }
}

static void durations_are_milliseconds(void **state)
{
    (void)state;
    static const struct accepted rows[] = {{"0", 0},
                                           {"0s", 0},
                                           {"1ms", 1},
                                           {"250ms", 250},
                                           {"10s", 10000},
                                           {"10m", 600000},
                                           {"2h", 7200000},
                                           {"1d", 86400000},
                                           {"007s", 7000},
                                           {"18446744073709551615ms", UINT64_MAX},
                                           {0}};
    must_read(units_duration, rows);
}

static void a_duration_needs_a_whole_number_and_a_known_unit(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "s",
                                        "10",
                                        "1.5s",
                                        "-1s",
                                        "+1s",
                                        " 1s",
                                        "1s ",
                                        "1 s",
                                        "10M",
                                        "1S",
                                        "1w",
                                        "1msx",
                                        "1h30m",
                                        "nan",
                                        "0x10s",
                                        "1e3s",
                                        "ms1",
                                        "18446744073709551616ms",
                                        "213503982335d",
                                        NULL};
    must_refuse(units_duration, texts, "250ms");
}

static void sizes_are_bytes_in_steps_of_1024(void **state)
{
    (void)state;
    static const struct accepted rows[] = {{"0", 0},
                                           {"17", 17},
                                           {"17b", 17},
                                           {"64kb", 65536},
                                           {"64KB", 65536},
                                           {"512mb", 512ull << 20},
                                           {"1gb", 1ull << 30},
                                           {"3Tb", 3ull << 40},
                                           {"18446744073709551615", UINT64_MAX},
                                           {0}};
    must_read(units_size, rows);
}

static void a_size_needs_a_whole_number_and_a_known_unit(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "kb",
                                        "1.5gb",
                                        "-1",
                                        "1 kb",
                                        "1k",
                                        "1kib",
                                        "1pb",
                                        "1kbb",
                                        "16777216tb",
                                        "18446744073709551616",
                                        NULL};
    must_refuse(units_size, texts, "512mb");
}

static void counts_are_plain_whole_numbers(void **state)
{
    (void)state;
    static const struct accepted rows[] = {
        {"0", 0}, {"4", 4}, {"18446744073709551615", UINT64_MAX}, {0}};
    static const char *const texts[] = {"", "-1", "1.0", "1e3", "0x4", "4 ", "four", NULL};
    static const char *const large[] = {"18446744073709551616", NULL};
    must_read(units_count, rows);
    must_refuse(units_count, texts, "whole number");
    must_refuse(units_count, large, "too large");
}

static void shares_come_as_percent_decimal_or_exponent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"10%", 0.1}, {"0.0001", 0.0001}, {"1e-4", 0.0001}, {"0.01%", 0.0001}, {"1E-4", 0.0001},
        {"0", 0},     {"100%", 1},        {".5", 0.5},      {"250%", 2.5},     {"1", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value;
        const char *error = NULL;
        assert_int_equal(units_fraction(rows[i].text, &value, &error), 0);
        assert_float_equal(value, rows[i].value, 1e-15);
    }
}

static void a_share_is_a_finite_number_that_is_not_negative(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "%",     "-1%",   "+1",   "nan", "inf",  "0x1",
                                        "1e999", "1e-4e", "1.2.3", "10 %", " 1",  "10%%", "ten",
                                        "e",     ".",     "1,5",   "--",   "1e",  NULL};
    for (size_t i = 0; texts[i]; i++) {
        double value;
        const char *error = NULL;
        if (units_fraction(texts[i], &value, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_non_null(strstr(error, "10%"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_milliseconds),
        cmocka_unit_test(a_duration_needs_a_whole_number_and_a_known_unit),
        cmocka_unit_test(sizes_are_bytes_in_steps_of_1024),
        cmocka_unit_test(a_size_needs_a_whole_number_and_a_known_unit),
        cmocka_unit_test(counts_are_plain_whole_numbers),
        cmocka_unit_test(shares_come_as_percent_decimal_or_exponent),
        cmocka_unit_test(a_share_is_a_finite_number_that_is_not_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
