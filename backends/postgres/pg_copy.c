/* COPY's formats (PostgreSQL documentation, "COPY", File Formats).
 *
 * Text: tabs between columns, \N for NULL, and backslash escapes, which never grow when they are
 * undone, so that it can be done in place.
 *
 * Binary: a signature, flags, and an extension of the header that begins with its length; then for
 * each row the number of its columns and each column behind its length, -1 being NULL; at last -1
 * in place of the number of columns.
 */
#include "postgres/pg_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int digit_of(char c, int base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : base;
    return value < base ? value : -1;
}

/* Reads up to `most` digits at *at into one byte; without any, gives `otherwise`. */
static char read_number(const char **at, const char *end, int base, int most, char otherwise)
{
    int value = 0, digits = 0;
    while (digits < most && *at < end && digit_of(**at, base) >= 0) {
        value = value * base + digit_of(*(*at)++, base);
        digits++;
    }
    return digits > 0 ? (char)(value & 0xFF) : otherwise;
}

/* The byte that an escape stands for; *at is behind the backslash, and moves behind the escape. */
static char read_escape(const char **at, const char *end)
{
    if (digit_of(**at, 8) >= 0)
        return read_number(at, end, 8, 3, '\0');
    char c = *(*at)++;
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'v':
        return '\v';
    case 'x':
        return read_number(at, end, 16, 2, 'x');
    default:
        return c;
    }
}

/* A tab or a newline within a value is always escaped, so the row was cut at its tabs before. */
static struct pg_column unescape(char *start, const char *end)
{
    if (end - start == 2 && start[0] == '\\' && start[1] == 'N')
        return (struct pg_column){NULL, 0};
    const char *in = start;
    char *out = start;
    while (in < end) {
        if (*in == '\\' && in + 1 < end) {
            in++;
            *out++ = read_escape(&in, end);
        } else {
            *out++ = *in++;
        }
    }
    return (struct pg_column){start, (size_t)(out - start)};
}

int pg_copy_split(char *row, size_t length, struct pg_column columns[PG_COPY_COLUMNS_MAX])
{
    if (length > 0 && row[length - 1] == '\n')
        length--;
    char *end = row + length;
    bool escaped = memchr(row, '\\', length) != NULL; /* seldom: most rows skip unescape() */
    for (int count = 0; count < PG_COPY_COLUMNS_MAX; row++) {
        char *tab = memchr(row, '\t', (size_t)(end - row));
        char *stop = tab ? tab : end;
        columns[count++] =
            escaped ? unescape(row, stop) : (struct pg_column){row, (size_t)(stop - row)};
        if (!tab)
            return count;
        row = tab;
    }
    return -E2BIG;
}

static uint32_t number_at(const char *at, size_t bytes)
{
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)at[i];
    return number;
}

int pg_copy_binary_header(const char *copy, size_t length)
{
    static const char signature[] = "PGCOPY\n\377\r\n";
    enum { SIGNATURE = sizeof signature, FIXED = SIGNATURE + 4 + 4, EXTENSION_MAX = 1 << 20 };
    if (length < FIXED || memcmp(copy, signature, SIGNATURE) != 0)
        return -EPROTO;
    uint32_t extension = number_at(copy + FIXED - 4, 4);
    if (extension > EXTENSION_MAX || extension > length - FIXED)
        return -EPROTO;
    return FIXED + (int)extension;
}

int pg_copy_split_binary(const char *row, size_t length,
                         struct pg_column columns[PG_COPY_COLUMNS_MAX])
{
    const char *end = row + length;
    if (length < 2)
        return -EPROTO;
    uint32_t count = number_at(row, 2);
    row += 2;
    if (count == UINT16_MAX)
        return row == end ? -ENODATA : -EPROTO;
    if (count > PG_COPY_COLUMNS_MAX)
        return -E2BIG;
    for (uint32_t i = 0; i < count; i++) {
        if (end - row < 4)
            return -EPROTO;
        uint32_t size = number_at(row, 4);
        bool null = size == UINT32_MAX;
        row += 4;
        if (!null && size > (size_t)(end - row))
            return -EPROTO;
        columns[i] = null ? (struct pg_column){NULL, 0} : (struct pg_column){row, size};
        row += columns[i].length;
    }
    return row == end ? (int)count : -EPROTO;
}
