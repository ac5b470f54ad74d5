/* Bytes between a socket and the protocol: what was read and is not yet parsed, what was answered
 * and is not yet written. Readable bytes stay contiguous, so that parsers need no second case.
 */
#include "base/buffer.h"
#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SIZE = 512 };

void buffer_finish(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}

/* 0: more than an address space holds. */
static size_t grown_size(const struct buffer *buffer, size_t room)
{
    size_t length = buffer_length(buffer);
    if (room > SIZE_MAX / 2 - length)
        return 0;
    size_t doubled = buffer->size < SIZE_MAX / 2 ? buffer->size * 2 : buffer->size;
    size_t wanted = length + room > doubled ? length + room : doubled;
    return wanted < FIRST_SIZE ? FIRST_SIZE : wanted;
}

/* Only the readable bytes travel: realloc() would also copy those already taken. */
static bool grow(struct buffer *buffer, size_t room)
{
    size_t length = buffer_length(buffer);
    size_t size = grown_size(buffer, room);
    char *larger = NULL;
    if (size)
        larger = buffer->start == 0 ? realloc(buffer->bytes, size) : malloc(size);
    if (!larger)
        return false;
    if (buffer->start > 0) {
        memcpy(larger, buffer->bytes + buffer->start, length);
        free(buffer->bytes);
    }
    *buffer = (struct buffer){.bytes = larger, .end = length, .size = size};
    return true;
}

static void move_to_front(struct buffer *buffer)
{
    size_t length = buffer_length(buffer);
    memcpy(buffer->bytes, buffer->bytes + buffer->start, length);
    buffer->start = 0;
    buffer->end = length;
}

/* Moving no more bytes than were taken since the last move keeps the cost per byte constant; it
 * also means that the two places do not overlap. */
bool buffer_try_make_room(struct buffer *buffer, size_t room)
{
    size_t length = buffer_length(buffer);
    if (length <= buffer->start && buffer->bytes && buffer->size - length >= room) {
        move_to_front(buffer);
        return true;
    }
    return grow(buffer, room);
}

void buffer_make_room(struct buffer *buffer, size_t room)
{
    if (!buffer_try_make_room(buffer, room)) {
        out_of_memory();
    }
}

void buffer_commit(struct buffer *buffer, size_t written)
{
    assert(written <= buffer->size - buffer->end);
    buffer->end += written;
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0) {
        abort(); /* an encoding error: no format of ours has one */
    }
    size_t room = (size_t)length + 1; /* vsnprintf() ends with a zero byte */
    char *end = buffer_reserve(buffer, room);
    va_start(list, format);
    vsnprintf(end, room, format, list);
    va_end(list);
    buffer->end += (size_t)length;
}

void buffer_take(struct buffer *buffer, size_t length)
{
    assert(length <= buffer_length(buffer));
    buffer->start += length;
    if (buffer->start == buffer->end) {
        buffer_clear(buffer);
    }
}

void buffer_clear(struct buffer *buffer)
{
    buffer->start = buffer->end = 0;
}

void buffer_trim(struct buffer *buffer, size_t keep)
{
    if (buffer_length(buffer) == 0 && buffer->size > keep) {
        buffer_finish(buffer);
    }
}

char *buffer_string(struct buffer *buffer)
{
    char *text = xspandup(buffer_span(buffer));
    buffer_finish(buffer);
    return text;
}
