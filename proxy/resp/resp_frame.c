/* Where a reply ends. The guard forwards replies as they are, so it needs their length and nothing
 * else: no tree is built. An aggregate is only a number of values that must follow, at whatever
 * depth, so one counter stands for the whole stack:
 *
 *   *2 *1 :1 :2     open: 1, then 2, then 2 (the inner array gave one for itself), then 1, then 0
 *
 * What a frame has scanned ends before a value that is not all there; its header is read again
 * with the next bytes, what it contains is not. A large blob is an exception: `body` counts its
 * bytes down, so that they can be passed on before the last has come. So is a long line, which says
 * nowhere how long it will be: its end is looked for in what has come since the last time.
 *
 * RESP3's streamed types end by a mark, not by a count. Each adds a level, which keeps the count
 * that goes on behind it:
 *
 *   *2 *? :1 :2 . :3     levels: the inner array's, with 1 to follow; open is 0 between its values
 */
#include "resp/resp_number.h"

#include <string.h>

enum {
    LARGE_BLOB = 64 * 1024, /* counted down, not waited for */
    LONG_LINE = 4 * 1024,   /* likewise gone through as it comes */
    IN_LINE = -1            /* a frame's `body` in such a line */
};

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

/* A CR at the end may be the one that ends it. */
__attribute__((noinline)) static enum resp_status wait_for_line(struct resp_frame *frame,
                                                                const char **at, const char *end)
{
    if (end - *at >= LONG_LINE)
        frame->body = IN_LINE;
    if (frame->body == IN_LINE)
        *at = end > *at && end[-1] == '\r' ? end - 1 : end;
    return RESP_MORE;
}

static inline enum resp_status skip_line(struct resp_frame *frame, const char **at, const char *end)
{
    const char *after = line_end(*at, end);
    if (!after) {
        return wait_for_line(frame, at, end);
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
static inline bool ends_line(const char *at)
{
    return at[-2] == '\r' && at[-1] == '\n';
}

static enum resp_status skip_rest_of_line(struct resp_frame *frame, const char **at,
                                          const char *end)
{
    enum resp_status status = skip_line(frame, at, end);
    if (status == RESP_DONE)
        frame->body = 0;
    return status;
}

/* What is there of a blob that goes on, its CR and LF together; or of a line. */
static enum resp_status skip_body(struct resp_frame *frame, const char **at, const char *end)
{
    if (frame->body == IN_LINE)
        return skip_rest_of_line(frame, at, end);
    int64_t have = end - *at;
    if (have < frame->body) {
        int64_t text = frame->body - 2 < have ? frame->body - 2 : have;
        frame->body -= text;
        *at += text;
        return RESP_MORE;
    }
    *at += frame->body;
    frame->body = 0;
    return ends_line(*at) ? RESP_DONE : RESP_BAD;
}

/* `length` bytes and CR LF, from *at. */
static inline enum resp_status skip_text(struct resp_frame *frame, const char **at, const char *end,
                                         int64_t length)
{
    if (end - *at >= length + 2) {
        *at += length + 2;
        return ends_line(*at) ? RESP_DONE : RESP_BAD;
    }
    if (length < LARGE_BLOB)
        return RESP_MORE;
    frame->body = length + 2;
    return RESP_DONE;
}

static inline enum resp_status skip_blob(struct resp_frame *frame, const char **at, const char *end,
                                         bool may_be_nil)
{
    int64_t length = 0;
    enum resp_status status = resp_read_number(at, end, &length);
    if (status != RESP_DONE) {
        return status;
    }
    if (length < 0) {
        return may_be_nil && length == -1 ? RESP_DONE : RESP_BAD;
    }
    return skip_text(frame, at, end, length);
}

/* Reads an aggregate's header and adds its values to those that must follow. Attributes come before
 * the value that they belong to; and Redis before 7.2 may put a push into the reply of an EXEC, for
 * none of its elements. */
static enum resp_status open_aggregate(const struct resp_frame *frame, const char **at,
                                       const char *end, char marker, int64_t *open)
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
    values += marker == '|' || (marker == '>' && frame->begun);
    return __builtin_add_overflow(*open, values, open) ? RESP_BAD : RESP_DONE;
}

/* How a value goes on behind its marker byte. */
enum shape { UNKNOWN, LINE, BLOB, AGGREGATE, NIL, BOOLEAN };

static const unsigned char shapes[256] = {
    ['+'] = LINE,      ['-'] = LINE,      [':'] = LINE,      [','] = LINE,      ['('] = LINE,
    ['$'] = BLOB,      ['!'] = BLOB,      ['='] = BLOB,      ['*'] = AGGREGATE, ['%'] = AGGREGATE,
    ['~'] = AGGREGATE, ['>'] = AGGREGATE, ['|'] = AGGREGATE, ['_'] = NIL,       ['#'] = BOOLEAN,
};

/* Skips one value, of an aggregate only the header, and counts in *open what it still needs. */
static inline enum resp_status skip_value(struct resp_frame *frame, const char **at,
                                          const char *end, int64_t *open)
{
    char marker = *(*at)++;
    switch ((enum shape)shapes[(unsigned char)marker]) {
    case LINE:
        return skip_line(frame, at, end);
    case BLOB:
        return skip_blob(frame, at, end, marker == '$');
    case AGGREGATE:
        return open_aggregate(frame, at, end, marker, open);
    case NIL:
        return skip_exactly(at, end, "\r\n");
    case BOOLEAN:
        return skip_exactly(at, end, *at < end && **at == 'f' ? "f\r\n" : "t\r\n");
    case UNKNOWN:
        break;
    }
    return RESP_BAD;
}

/* The header of a streamed type, from its marker; `open` is what must follow behind its end. */
static enum resp_status open_level(struct resp_frame *frame, const char **at, const char *end,
                                   int64_t open)
{
    char marker = *(*at)++;
    if (marker == '\0' || !strchr("$*%~>", marker) || frame->depth == RESP_LEVELS)
        return RESP_BAD;
    enum resp_status status = skip_exactly(at, end, "?\r\n");
    if (status == RESP_DONE)
        frame->levels[frame->depth++] = (struct resp_level){open, marker == '$'};
    return status;
}

/* One piece of a streamed text; one of no bytes ends it. */
static enum resp_status skip_piece(struct resp_frame *frame, const char **at, const char *end,
                                   int64_t *open)
{
    int64_t length = 0;
    if (*(*at)++ != ';')
        return RESP_BAD;
    enum resp_status status = resp_read_number(at, end, &length);
    if (status != RESP_DONE)
        return status;
    if (length < 0)
        return RESP_BAD;
    if (length > 0)
        return skip_text(frame, at, end, length);
    *open = frame->levels[--frame->depth].open;
    return RESP_DONE;
}

/* What may come next of a streamed type: its end, a piece of text, or a value. */
static enum resp_status skip_streamed(struct resp_frame *frame, const char **at, const char *end,
                                      int64_t *open)
{
    const struct resp_level *level = &frame->levels[frame->depth - 1];
    if (level->is_text)
        return skip_piece(frame, at, end, open);
    if (**at != '.')
        return skip_value(frame, at, end, open);
    enum resp_status status = skip_exactly(at, end, ".\r\n");
    if (status == RESP_DONE) {
        *open = level->open;
        frame->depth--;
    }
    return status;
}

/* From *at on: a value, or what a streamed type goes on with. */
static inline enum resp_status skip_next(struct resp_frame *frame, const char **at, const char *end,
                                         int64_t *open)
{
    const char *start = *at;
    int64_t behind = *open > 0 ? *open - 1 : 0;
    bool in_level = *open == 0;
    *open = behind;
    enum resp_status status =
        in_level ? skip_streamed(frame, at, end, open) : skip_value(frame, at, end, open);
    /* What no value begins like may be the header of a streamed type, "$?" or "*?"; tried last, for
     * hardly any server sends one. Inside a streamed text there are only pieces. */
    if (status != RESP_BAD || (in_level && frame->levels[frame->depth - 1].is_text))
        return status;
    *at = start;
    *open = 0;
    return open_level(frame, at, end, behind);
}

/* As resp_plain_blob(), of any length. */
static inline size_t plain_blob(const char *input, const char *end)
{
    const char *at = input + 1;
    int64_t length = -1;
    if (input == end || *input != '$' || resp_read_number(&at, end, &length) != RESP_DONE ||
        length < 0 || end - at < length + 2 || !ends_line(at + length + 2))
        return 0;
    return (size_t)(at - input) + (size_t)length + 2;
}

enum resp_status resp_frame_any(struct resp_frame *frame, const char *input, size_t length,
                                size_t *taken)
{
    const char *at = input + frame->scanned, *end = input + length;
    size_t plain = frame->begun ? 0 : plain_blob(input, end);
    if (plain) {
        *taken = plain;
        return RESP_DONE;
    }
    int64_t open = frame->begun ? frame->open : 1; /* at the start: the reply itself */
    enum resp_status status = RESP_DONE;
    while (status == RESP_DONE && (open > 0 || frame->depth || frame->body)) {
        const char *next = at;
        int64_t after = open;
        if (frame->body)
            status = skip_body(frame, &next, end);
        else
            status = at < end ? skip_next(frame, &next, end, &after) : RESP_MORE;
        if (status == RESP_DONE || frame->body) {
            at = next;
            open = after;
            frame->begun = true;
        } /* else this value is read again from its marker when there is more */
    }
    if (status == RESP_MORE) {
        frame->scanned = (size_t)(at - input);
        frame->open = open;
    } else if (status == RESP_DONE) {
        frame->scanned = 0;
        frame->begun = false;
        *taken = (size_t)(at - input);
    }
    return status;
}

size_t resp_frame_pass(struct resp_frame *frame)
{
    size_t scanned = frame->scanned;
    frame->scanned = 0;
    return scanned;
}

/* The number behind one of these markers, or -1. */
static int64_t open_header(struct span reply, const char *markers, const char **at)
{
    const char *end = reply.at + reply.length;
    int64_t count = -1;
    *at = end;
    if (reply.length > 0 && memchr(markers, *reply.at, strlen(markers))) {
        const char *header = reply.at + 1;
        if (resp_read_number(&header, end, &count) == RESP_DONE) {
            *at = header;
        }
    }
    return count;
}

int64_t resp_array_open(struct span reply, const char **at)
{
    return open_header(reply, "*~>", at);
}

int64_t resp_map_open(struct span reply, const char **at)
{
    int64_t count = open_header(reply, "%*", at);
    if (reply.length > 0 && *reply.at == '*' && count > 0) {
        count = count % 2 ? -1 : count / 2;
    }
    return count;
}

struct span resp_bulk_text(struct span element)
{
    const char *at;
    int64_t length = open_header(element, "$", &at);
    size_t left = (size_t)(element.at + element.length - at);
    bool whole = length >= 0 && (uint64_t)length + 2 == left;
    return whole ? (struct span){at, (size_t)length} : (struct span){"", 0};
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
