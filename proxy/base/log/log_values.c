/* The format is gone through as vprintf() does (C11, 7.21.6.1), for what is taken from the list
 * depends on it: flags, width, precision, length, and what kind of value it is.
 */
#include "base/log/log_values.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 1024 };

/* Where the reading is. */
struct values {
    const char *at;
    va_list list;
    size_t room; /* bytes that texts may still take */
};

enum length { LENGTH_INT, LENGTH_LONG, LENGTH_LONG_LONG, LENGTH_SIZE };

/* How many bytes JSON has for one that is a character by itself. */
static size_t written(char byte)
{
    if (byte == '"' || byte == '\\')
        return 2;
    if ((unsigned char)byte >= ' ')
        return 1;
    return strchr("\b\f\n\r\t", byte) ? 2 : strlen("\\u0001");
}

json_t *log_text(const char *text, size_t length, size_t *room)
{
    char *copy = xmalloc((length < *room ? length : *room) + 1), *to = copy;
    for (const char *at = text, *end = text + length; at < end;) {
        size_t character = utf8_character(at, (size_t)(end - at)),
               bytes = character ? character : 1;
        size_t takes = character > 1 ? character : character ? written(*at) : 1;
        if (takes > *room)
            break;
        *room -= takes;
        memcpy(to, character ? at : "?", bytes);
        to += bytes;
        at += bytes;
    }
    json_t *json = json_stringn(copy, (size_t)(to - copy));
    free(copy);
    return json;
}

/* Digits, or a star: then it is a value of the list. */
static int read_number(struct values *values)
{
    if (*values->at == '*') {
        values->at++;
        return va_arg(values->list, int);
    }
    char *end;
    long number = strtol(values->at, &end, 10);
    values->at = end;
    return number > INT_MAX ? INT_MAX : (int)number;
}

static enum length read_length(struct values *values)
{
    size_t letters = strspn(values->at, "hlzjt");
    enum length length = LENGTH_INT;
    if (letters && values->at[0] == 'l')
        length = letters == 2 ? LENGTH_LONG_LONG : LENGTH_LONG;
    else if (letters && values->at[0] != 'h')
        length = LENGTH_SIZE; /* those of z, j and t are as wide here */
    values->at += letters;
    return length;
}

static json_t *take_signed(struct values *values, enum length length)
{
    if (length == LENGTH_INT)
        return json_integer(va_arg(values->list, int));
    if (length == LENGTH_LONG)
        return json_integer(va_arg(values->list, long));
    return json_integer(va_arg(values->list, long long));
}

/* JSON's integers end where those with a sign do. */
static json_t *take_unsigned(struct values *values, enum length length)
{
    unsigned long long number;
    if (length == LENGTH_INT)
        number = va_arg(values->list, unsigned);
    else if (length == LENGTH_LONG)
        number = va_arg(values->list, unsigned long);
    else
        number = va_arg(values->list, unsigned long long);
    return number > LLONG_MAX ? json_real((double)number) : json_integer((json_int_t)number);
}

static json_t *take_real(struct values *values)
{
    double number = va_arg(values->list, double);
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *take_text(struct values *values, int most)
{
    const char *text = va_arg(values->list, const char *);
    if (!text)
        return json_null();
    return log_text(text, strnlen(text, most < 0 ? SIZE_MAX : (size_t)most), &values->room);
}

/* NULL: nobody knows what it would take from the list. */
static json_t *take(struct values *values, char kind, enum length length, int precision)
{
    if (kind == 'd' || kind == 'i')
        return take_signed(values, length);
    if (kind && strchr("uxXo", kind))
        return take_unsigned(values, length);
    if (kind && strchr("fFgGeE", kind))
        return take_real(values);
    return kind == 's' ? take_text(values, precision) : NULL;
}

/* Behind a percent sign. */
static json_t *read_conversion(struct values *values)
{
    int precision = -1;
    values->at += strspn(values->at, "-+ #0");
    (void)read_number(values);
    if (*values->at == '.') {
        values->at++;
        precision = read_number(values);
    }
    enum length length = read_length(values);
    char kind = *values->at;
    values->at += kind != '\0';
    return take(values, kind, length, precision);
}

json_t *log_values(const char *format, va_list list)
{
    json_t *found = json_array(), *value;
    struct values values = {.at = format, .room = TEXT_MOST};
    va_copy(values.list, list);
    while ((values.at = strchr(values.at, '%'))) {
        values.at++;
        if (*values.at == '%') {
            values.at++;
            continue;
        }
        value = read_conversion(&values);
        if (!value)
            break;
        json_array_append_new(found, value);
    }
    va_end(values.list);
    return found;
}
