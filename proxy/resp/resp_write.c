/* Writers: each appends whole items and reserves once for each, with no printf on the way of a
 * reply. */
#include "resp/resp.h"

#include <stdarg.h>
#include <stdio.h>

enum { HEADER_ROOM = RESP_HEADER_ROOM - 2 }; /* marker, sign, 19 digits, CR LF */

static char *put_end(char *out)
{
    out[0] = '\r';
    out[1] = '\n';
    return out + 2;
}

/* From the last digit to the first; no printf() on the path of every reply. */
static char *put_header(char *out, char marker, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *out++ = marker;
    memcpy(out, digits + first, sizeof digits - first);
    return put_end(out + sizeof digits - first);
}

static void write_header(struct buffer *out, char marker, uint64_t number)
{
    char *start = buffer_reserve(out, HEADER_ROOM);
    buffer_commit(out, (size_t)(put_header(start, marker, number) - start));
}

void resp_write_bulk(struct buffer *out, const void *bytes, size_t length)
{
    char *start = buffer_reserve(out, HEADER_ROOM + length + 2);
    char *at = put_header(start, '$', length);
    if (length > 0) {
        memcpy(at, bytes, length);
    }
    buffer_commit(out, (size_t)(put_end(at + length) - start));
}

/* The sign takes the place of a marker. Negated as an unsigned number, the smallest of all has its
 * digits, too. */
void resp_write_integer(struct buffer *out, int64_t number)
{
    if (number >= 0) {
        write_header(out, ':', (uint64_t)number);
    } else {
        buffer_append(out, ":", 1);
        write_header(out, '-', -(uint64_t)number);
    }
}

void resp_write_array(struct buffer *out, size_t count)
{
    write_header(out, '*', count);
}

void resp_write_map(struct buffer *out, size_t pairs, bool resp3)
{
    write_header(out, resp3 ? '%' : '*', resp3 ? pairs : 2 * pairs);
}

void resp_write_truth(struct buffer *out, bool truth, bool resp3)
{
    static const char *const texts[2][2] = {{":0\r\n", ":1\r\n"}, {"#f\r\n", "#t\r\n"}};
    buffer_append(out, texts[resp3][truth], 4);
}

/* A text of our own: there is no CR or LF in it that would end the line. */
void resp_write_status(struct buffer *out, const char *text)
{
    size_t length = strlen(text);
    char *start = buffer_reserve(out, length + 3);
    *start = '+';
    memcpy(start + 1, text, length);
    put_end(start + 1 + length);
    buffer_commit(out, length + 3);
}

/* Printed twice: once for the length, once in place. */
void resp_write_error(struct buffer *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int printed = vsnprintf(NULL, 0, format, list);
    va_end(list);
    size_t length = printed > 0 ? (size_t)printed : 0;
    char *start = buffer_reserve(out, length + 3);
    *start = '-';
    va_start(list, format);
    vsnprintf(start + 1, length + 1, format, list);
    va_end(list);
    for (char *at = start + 1; at <= start + length; at++) {
        *at = *at == '\r' || *at == '\n' ? ' ' : *at;
    }
    put_end(start + 1 + length);
    buffer_commit(out, length + 3);
}

/* A verbatim string counts its kind and the colon as bytes of its own: four. */
void resp_write_text(struct buffer *out, struct span text, bool resp3)
{
    if (!resp3) {
        resp_write_bulk(out, text.at, text.length);
        return;
    }
    buffer_printf(out, "=%zu\r\ntxt:", text.length + 4);
    buffer_append(out, text.at, text.length);
    buffer_append(out, "\r\n", 2);
}

void resp_write_command(struct buffer *out, const struct span *arguments, size_t count)
{
    resp_write_array(out, count);
    for (size_t i = 0; i < count; i++) {
        resp_write_bulk(out, arguments[i].at, arguments[i].length);
    }
}
