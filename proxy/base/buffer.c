/* Bytes between a socket and the protocol: what was read and is not yet parsed, what was answered
 * and is not yet written. Readable bytes stay contiguous, so that parsers need no second case.
 *
 * Large memory is mapped, not malloc()'s. It grows without a byte being copied, however much a
 * client lets pile up, and goes back to the system at once, without a search for what is free.
 */
#include "base/buffer.h"
#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    FIRST_SIZE = 512,
    /* And more. What is used for a moment is had from malloc() again and again, and costs no page
     * faults: an ordinary large reply does not come so far. */
    MAPPED_SIZE = 8 * 1024 * 1024,
    /* And more is not copied where a buffer can change hands. */
    POURED_SIZE = 1024 * 1024
};

/* ---- memory ---- */

static char *allocate(size_t size)
{
    if (size < MAPPED_SIZE)
        return malloc(size);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void release(char *bytes, size_t size)
{
    if (size < MAPPED_SIZE)
        free(bytes);
    else
        munmap(bytes, size);
}

static char *move(const struct buffer *buffer, size_t size)
{
    char *larger = allocate(size);
    if (!larger)
        return NULL;
    struct span readable = buffer_span(buffer);
    memcpy(larger, readable.at, readable.length);
    release(buffer->bytes, buffer->size);
    return larger;
}

/* Only the readable bytes travel: realloc() would also copy those already taken. */
static char *enlarge(const struct buffer *buffer, size_t size)
{
    if (buffer->start > 0 || (buffer->size < MAPPED_SIZE && size >= MAPPED_SIZE))
        return move(buffer, size);
    if (size < MAPPED_SIZE)
        return realloc(buffer->bytes, size);
    void *mapped = mremap(buffer->bytes, buffer->size, size, MREMAP_MAYMOVE);
    return mapped == MAP_FAILED ? NULL : mapped;
}

size_t buffer_heap(const struct buffer *buffer)
{
    return buffer->size < MAPPED_SIZE ? buffer->size : 0;
}

/* ---- the buffer ---- */

void buffer_finish(struct buffer *buffer)
{
    release(buffer->bytes, buffer->size);
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

static bool grow(struct buffer *buffer, size_t room)
{
    size_t length = buffer_length(buffer);
    size_t size = grown_size(buffer, room);
    char *larger = size ? enlarge(buffer, size) : NULL;
    if (!larger)
        return false;
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

/* What is small is copied into memory that is there: `to` may be used again and again. */
bool buffer_try_pour_much(struct buffer *to, struct buffer *from)
{
    if (!buffer_length(to) && buffer_length(from) >= POURED_SIZE) {
        struct buffer empty = *to;
        *to = *from;
        *from = empty;
        buffer_clear(from);
        return true;
    }
    struct span bytes = buffer_span(from);
    if (!buffer_try_append(to, bytes.at, bytes.length))
        return false;
    buffer_clear(from);
    return true;
}

/* Of what malloc() has others may be neighbours, and it is soon used again. */
void buffer_forget(struct buffer *buffer, struct span part)
{
    if (buffer->size >= MAPPED_SIZE)
        memory_forget(part);
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
