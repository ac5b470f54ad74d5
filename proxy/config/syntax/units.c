/* Overflow is a mistake like any other: a number that does not fit was not meant. */
#include "config/syntax/units.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One way of writing a number: its unit, and what that multiplies it by. */
struct unit {
    const char *name;
    uint64_t factor;
};

static int refuse(const char **error, const char *text)
{
    *error = text;
    return -EINVAL;
}

/* Reads the digits at *text and moves on behind them. False: no digits, or more than fit. */
static bool read_digits(const char **text, uint64_t *out)
{
    const char *at = *text;
    uint64_t number = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    bool any = at != *text;
    *text = at;
    *out = number;
    return any;
}

typedef int (*comparison)(const char *a, const char *b);

static const struct unit *find_unit(const struct unit *units, const char *name, comparison compare)
{
    for (; units->name; units++)
        if (compare(units->name, name) == 0)
            return units;
    return NULL;
}

/* A number and one of the units. The readers below have the texts for what can be wrong. */
static bool read_with_unit(const char *text, const struct unit *units, comparison compare,
                           uint64_t *out)
{
    uint64_t number;
    if (!read_digits(&text, &number))
        return false;
    const struct unit *unit = find_unit(units, text, compare);
    return unit && !__builtin_mul_overflow(number, unit->factor, out);
}

int units_count(const char *text, uint64_t *out, const char **error)
{
    if (!read_digits(&text, out) || *text)
        return refuse(error, *text && !text[strspn(text, "0123456789")]
                                 ? "is too large a number"
                                 : "must be a whole number, such as 4");
    return 0;
}

/* Units of time in lower case only: whoever writes 10M may mean minutes or months. */
int units_duration(const char *text, uint64_t *out, const char **error)
{
    static const struct unit units[] = {{"ms", 1},          {"s", 1000},         {"m", 60 * 1000},
                                        {"h", 3600 * 1000}, {"d", 86400 * 1000}, {0}};
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return 0;
    }
    if (!read_with_unit(text, units, strcmp, out))
        return refuse(error, "must be a duration: a whole number and its unit (ms, s, m, h or d), "
                             "such as 250ms or 10m");
    return 0;
}

/* As in redis.conf: in either case, and in steps of 1024. */
int units_size(const char *text, uint64_t *out, const char **error)
{
    static const struct unit units[] = {
        {"", 1}, {"b", 1}, {"kb", 1u << 10}, {"mb", 1u << 20}, {"gb", 1u << 30}, {"tb", 1ull << 40},
        {0}};
    if (!read_with_unit(text, units, strcasecmp, out))
        return refuse(error, "must be a size: a whole number and its unit (b, kb, mb, gb or tb), "
                             "such as 64kb or 512mb");
    return 0;
}

/* Percent or plain; the setting's bounds say what makes sense. */
int units_fraction(const char *text, double *out, const char **error)
{
    static const char *const wrong = "must be a share, such as 10%, 0.1 or 1e-4";
    /* strtod() knows more than we want: hexadecimal numbers, infinity, blanks in front. */
    size_t length = strspn(text, "0123456789.eE+-");
    char *end;
    if (length == 0 || text[0] == '+' || text[0] == '-')
        return refuse(error, wrong);
    double number = strtod(text, &end);
    if (end != text + length || !isfinite(number))
        return refuse(error, wrong);
    bool percent = strcmp(end, "%") == 0;
    if (*end && !percent)
        return refuse(error, wrong);
    *out = percent ? number / 100 : number;
    return 0;
}
