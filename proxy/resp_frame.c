/* Where a reply ends. The guard forwards replies as they are, so it needs their length and nothing
 * else: no tree is built. An aggregate is only a number of values that must follow, at whatever
 * depth, so one counter stands for the whole stack:
 *
 *   *2 *1 :1 :2     open: 1, then 2, then 2 (the inner array gave one for itself), then 1, then 0
 *
 * What a frame has scanned ends before a value that is not all there; its header is read again
 * with the next bytes, what it contains is not.
 */
#include "resp_internal.h"

/* A line may hold a CR or LF by itself, as in hiredis: modules answer with what they like. */
static const char *line_end(const char *at, const char *end)
{
    while ((at = memchr(at, '\r', (size_t)(end - at))) && at + 1 < end) {
        if (at[1] == '\n') {
            return at + 2;
        }
        at++;
    }
    return NULL;
}

static inline enum resp_status skip_line(const char **at, const char *end)
{
    const char *after = line_end(*at, end);
    if (!after) {
        return RESP_MORE;
    }
    *at = after;
    return RESP_DONE;
}

/* `text` and CR LF, nothing else. */
static enum resp_status skip_exactly(const char **at, const char *end, const char *text)
{
    size_t have = (size_t)(end - *at), length = strlen(text);
    size_t compared = have < length ? have : length;
    if (memcmp(*at, text, compared) != 0) {
        return RESP_BAD;
    }
    *at += compared;
    return have < length ? RESP_MORE : RESP_DONE;
}

/* The two bytes behind the blob must be CR LF: a cache that is out of step is found out early. */
static inline enum resp_status skip_blob(const char **at, const char *end, bool may_be_nil)
{
    int64_t length = 0;
    enum resp_status status = resp_read_number(at, end, &length);
    if (status != RESP_DONE) {
        return status;
    }
    if (length < 0) {
        return may_be_nil && length == -1 ? RESP_DONE : RESP_BAD;
    }
    if (end - *at < length + 2) {
        return RESP_MORE;
    }
    *at += length + 2;
    return (*at)[-2] == '\r' && (*at)[-1] == '\n' ? RESP_DONE : RESP_BAD;
}

/* Reads an aggregate's header and adds its values to those that must follow. */
static enum resp_status open_aggregate(const char **at, const char *end, char marker, int64_t *open)
{
    int64_t count = 0;
    enum resp_status status = resp_read_number(at, end, &count);
    if (status != RESP_DONE) {
        return status;
    }
    if (count < 0) {
        return marker == '*' && count == -1 ? RESP_DONE : RESP_BAD;
    }
    int64_t values = marker == '%' || marker == '|' ? count * 2 : count;
    /* The value that attributes belong to comes after them. */
    values += marker == '|';
    return __builtin_add_overflow(*open, values, open) ? RESP_BAD : RESP_DONE;
}

/* How a value goes on behind its marker byte. RESP3's streamed types are unknown here: Redis sends
 * none. */
enum shape { UNKNOWN, LINE, BLOB, AGGREGATE, NIL, BOOLEAN };

static const unsigned char shapes[256] = {
    ['+'] = LINE,      ['-'] = LINE,      [':'] = LINE,      [','] = LINE,      ['('] = LINE,
    ['$'] = BLOB,      ['!'] = BLOB,      ['='] = BLOB,      ['*'] = AGGREGATE, ['%'] = AGGREGATE,
    ['~'] = AGGREGATE, ['>'] = AGGREGATE, ['|'] = AGGREGATE, ['_'] = NIL,       ['#'] = BOOLEAN,
};

/* Skips one value, of an aggregate only the header, and counts in *open what it still needs. */
static inline enum resp_status skip_value(const char **at, const char *end, int64_t *open)
{
    char marker = *(*at)++;
    switch ((enum shape)shapes[(unsigned char)marker]) {
    case LINE:
        return skip_line(at, end);
    case BLOB:
        return skip_blob(at, end, marker == '$');
    case AGGREGATE:
        return open_aggregate(at, end, marker, open);
    case NIL:
        return skip_exactly(at, end, "\r\n");
    case BOOLEAN:
        return skip_exactly(at, end, *at < end && **at == 'f' ? "f\r\n" : "t\r\n");
    case UNKNOWN:
        break;
    }
    return RESP_BAD;
}

enum resp_status resp_frame_reply(struct resp_frame *frame, const char *input, size_t length,
                                  size_t *taken)
{
    const char *at = input + frame->scanned, *end = input + length;
    int64_t open = frame->open ? frame->open : 1; /* at the start: the reply itself */
    while (open > 0 && at < end) {
        const char *next = at;
        int64_t after = open - 1;
        enum resp_status status = skip_value(&next, end, &after);
        if (status == RESP_BAD) {
            return RESP_BAD;
        }
        if (status == RESP_MORE) {
            break; /* this value is read again from its marker when there is more */
        }
        at = next;
        open = after;
    }
    if (open > 0) {
        *frame = (struct resp_frame){(size_t)(at - input), open};
        return RESP_MORE;
    }
    *frame = (struct resp_frame){0};
    *taken = (size_t)(at - input);
    return RESP_DONE;
}

int64_t resp_array_open(struct span reply, const char **at)
{
    const char *end = reply.at + reply.length;
    int64_t count = -1;
    *at = end;
    if (reply.length > 0 && (*reply.at == '*' || *reply.at == '~' || *reply.at == '>')) {
        const char *header = reply.at + 1;
        if (resp_read_number(&header, end, &count) == RESP_DONE) {
            *at = header;
        }
    }
    return count;
}

/* An element may be an aggregate itself: it is framed like a reply. */
struct span resp_array_next(const char **at, const char *end)
{
    struct resp_frame frame = {0};
    struct span element = {*at, 0};
    if (resp_frame_reply(&frame, *at, (size_t)(end - *at), &element.length) == RESP_DONE) {
        *at += element.length;
    }
    return element;
}
