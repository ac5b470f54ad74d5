/* One buffer, which grows until a line ends in it, and hands the line out where it lies. Bytes that
 * were searched for an end are not searched again: a line of many pieces costs no more than its
 * length.
 */
#include "sources/lines.h"

#include "base/buffer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

/* All whole lines in the buffer. Only the bytes from `seen` on are new. What stays behind is the
 * beginning of a line. */
static int take_lines(const struct lines_reader *reader, struct buffer *buffer, size_t seen)
{
    struct span left = buffer_span(buffer);
    const char *end;
    int code = 0;
    while (!code && (end = memchr(left.at + seen, '\n', left.length - seen)) != NULL) {
        size_t length = (size_t)(end - left.at);
        code = reader->on_line(reader->arg, (struct span){left.at, length});
        buffer_take(buffer, length + 1);
        left = buffer_span(buffer);
        seen = 0;
    }
    if (!code && left.length > LINE_MAX_BYTES)
        return -EMSGSIZE;
    return code;
}

static int read_lines(int fd, const struct lines_reader *reader, struct buffer *buffer)
{
    for (;;) {
        int code = reader->on_pause ? reader->on_pause(reader->arg) : 0;
        if (code)
            return code;
        size_t seen = buffer_length(buffer);
        ssize_t got = read(fd, buffer_reserve(buffer, CHUNK), CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        buffer_commit(buffer, (size_t)got);
        code = take_lines(reader, buffer, seen);
        if (code)
            return code;
    }
}

int lines_read(int fd, const struct lines_reader *reader)
{
    struct buffer buffer = {0};
    int code = read_lines(fd, reader, &buffer);
    if (!code && buffer_length(&buffer) > 0)
        code = reader->on_line(reader->arg, buffer_span(&buffer));
    if (!code && reader->on_pause)
        code = reader->on_pause(reader->arg);
    buffer_finish(&buffer);
    return code;
}
