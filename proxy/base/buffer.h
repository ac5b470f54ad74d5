/* A growing run of bytes: written at its end, read from its start.
 *
 *   bytes          start            end          size
 *     |  taken       |   readable    |  writable   |
 *
 * Zeroed memory is an empty buffer. Running out of memory aborts: for amounts that a peer chooses
 * there are buffer_try_reserve() and buffer_try_append().
 */
#ifndef NESTGUARD_BUFFER_H
#define NESTGUARD_BUFFER_H

#include "base/span.h"
#include <stdbool.h>

struct buffer {
    char *bytes;
    size_t start, end, size;
};

/* Spans into a buffer (buffer_span()) are good until bytes are added to it or it is trimmed or
 * finished; to take bytes from its start moves nothing. */

void buffer_finish(struct buffer *buffer);                 /* frees; the buffer is empty again */
void buffer_commit(struct buffer *buffer, size_t written); /* that many of those reserved hold
                                                              bytes now */
void buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *buffer_string(struct buffer *buffer); /* what is readable, as a new string; the buffer is
                                               empty again */
void buffer_take(struct buffer *buffer, size_t length); /* drops readable bytes from the start */
void buffer_clear(struct buffer *buffer);               /* keeps the memory */
/* Gives memory back when the buffer is empty and larger than `keep`. */
void buffer_trim(struct buffer *buffer, size_t keep);

/* That part of what is readable is never looked at again: much memory of a large buffer goes back
 * to the system, and it reads as zeros. */
void buffer_forget(struct buffer *buffer, struct span part);

/* How much of its memory malloc() has: what is freed of the rest goes back to the system at once.
 */
size_t buffer_heap(const struct buffer *buffer);

void buffer_make_room(struct buffer *buffer, size_t room);     /* for buffer_reserve() */
bool buffer_try_make_room(struct buffer *buffer, size_t room); /* for buffer_try_reserve() */

/* Makes room for at least so many bytes; where they begin. Readable bytes may move. */
static inline char *buffer_reserve(struct buffer *buffer, size_t room)
{
    if (!buffer->bytes || buffer->size - buffer->end < room) {
        buffer_make_room(buffer, room);
    }
    return buffer->bytes + buffer->end;
}

static inline void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (length > 0) {
        memcpy(buffer_reserve(buffer, length), bytes, length);
        buffer->end += length;
    }
}

/* The same for amounts that a peer chooses. NULL, or false: there is no memory for so much, and the
 * buffer is as it was. Compilers think it too long to be inlined, which every forwarded command
 * would pay for twice. */
__attribute__((always_inline)) static inline char *buffer_try_reserve(struct buffer *buffer,
                                                                      size_t room)
{
    bool has_room = buffer->bytes && buffer->size - buffer->end >= room;
    return has_room || buffer_try_make_room(buffer, room) ? buffer->bytes + buffer->end : NULL;
}

static inline bool buffer_try_append(struct buffer *buffer, const void *bytes, size_t length)
{
    char *at = length > 0 ? buffer_try_reserve(buffer, length) : NULL;
    if (at) {
        memcpy(at, bytes, length);
        buffer->end += length;
    }
    return at || length == 0;
}

static inline size_t buffer_length(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline struct span buffer_span(const struct buffer *buffer)
{
    if (!buffer->bytes) {
        return (struct span){"", 0}; /* never NULL: memcpy() and pointer arithmetic may have it */
    }
    return (struct span){buffer->bytes + buffer->start, buffer->end - buffer->start};
}

/* For buffer_try_pour(), and for what is mostly much: where `to` is empty much is not copied, also
 * if there is room for it. */
bool buffer_try_pour_much(struct buffer *to, struct buffer *from);

/* Appends all that is readable of `from`, which is empty then; much of it is not copied when `to`
 * is empty: the two change their memory. False: there is no memory, and both are as they were. */
static inline bool buffer_try_pour(struct buffer *to, struct buffer *from)
{
    struct span bytes = buffer_span(from);
    if (!bytes.length)
        return true;
    if (!to->bytes || to->size - to->end < bytes.length)
        return buffer_try_pour_much(to, from);
    buffer_append(to, bytes.at, bytes.length);
    buffer_clear(from);
    return true;
}

#endif
