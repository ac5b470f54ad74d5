/* The Redis protocol (commands, inline ones too; replies of RESP2 and RESP3), as bytes in and
 * progress out. No sockets, no allocation but the list of arguments.
 */
#ifndef NESTGUARD_RESP_H
#define NESTGUARD_RESP_H

#include "base/buffer.h"
#include "base/span.h"
#include <stdint.h>

enum resp_status {
    RESP_DONE, /* a whole item was read */
    RESP_MORE, /* the item goes on past the bytes at hand */
    RESP_BAD   /* this is not RESP, or over a limit: the connection can only be closed */
};

struct resp_limits {
    size_t max_arguments; /* of one command */
    size_t max_bulk;      /* bytes of one argument */
    size_t max_command;   /* bytes of one command as sent */
    size_t max_inline;    /* bytes of an inline command (64 KiB in Redis) */
    size_t later_bulk;    /* of who has not authenticated: what max_bulk will then be; else 0 */
};

/* How a command began: "*2 $3 GET $", all that is the same in the many commands of one name. */
struct resp_head {
    uint64_t first, last; /* its first and its last eight bytes, which overlap */
    size_t length;
    size_t count;    /* of arguments */
    uint64_t number; /* a new one for each; 0: there is none yet */
};

/* Arguments of many commands one after the other; memory is kept between uses. Zeroed memory is an
 * empty list. */
struct resp_arguments {
    struct span *at;
    size_t count, size;
    struct resp_head head; /* the last one of those that are short enough */
};
/* Frees the list, which may be used again. Numbers of heads go on where they were: somebody may
 * know a command by one. */
void resp_arguments_finish(struct resp_arguments *arguments);

struct resp_command {
    size_t first, count; /* its arguments in the list; count is 0 for an empty line or *0, which
                            gets no reply */
    size_t length;       /* bytes that it takes in the input */
    size_t need; /* with RESP_MORE: fewer bytes than this at the item's start cannot complete it */
    const char *error; /* with RESP_BAD: what Redis says after "-ERR Protocol error: "; valid until
                          this thread reads its next command */
    uint64_t head;     /* number of the head it has: commands with the same have the same name, and
                          as many arguments; 0: nothing is known of that */
    bool is_inline;    /* an inline command must be re-encoded before it is forwarded */
};

/* Reads one command from the start of `input` and appends its arguments, which point into `input`,
 * to `arguments` (unless RESP_DONE, `arguments` is as it was). Quotes and escapes of inline
 * arguments follow Redis (sdssplitargs); the unquoted bytes are written over the input, hence not
 * const. */
enum resp_status resp_read_command(char *input, size_t length, const struct resp_limits *limits,
                                   struct resp_arguments *arguments, struct resp_command *command);

/* How far a command that is not all there was looked at. Zeroed: not at all. */
struct resp_measure {
    size_t scanned;      /* bytes of it, up to the end of an argument */
    size_t passed, left; /* arguments: so far, and still to come */
};

/* Whether a command that resp_read_command() found incomplete still is, looking only at what has
 * come since the last call: fewer bytes than are returned cannot complete it. As many as there are:
 * it has looked at `most` arguments, and is to be called again. 0: that is not to be said without
 * reading it again, because it is whole (`left` is 0), or wrong, or inline. */
size_t resp_measure(struct resp_measure *measure, const char *input, size_t length,
                    const struct resp_limits *limits, size_t most);

/* Of a command that was measured or read, and is whole: the first of its arguments, for *at, and
 * then the next `count` of them, for as many as it has; *at moves behind them. */
const char *resp_measured_open(const char *input);
void resp_measured_next(const char **at, struct span *arguments, size_t count);

/* Streamed types inside each other. Redis sends none; that its modules nest them deeper is not to
 * be feared. */
enum { RESP_LEVELS = 4 };

struct resp_level {
    int64_t open; /* values to come behind its end */
    bool is_text;
};

/* How far a reply is framed, kept between calls while a reply arrives in pieces. Zeroed: at the
 * start of a reply. */
struct resp_frame {
    size_t scanned; /* bytes from the reply's start, or behind those passed, that are done with */
    int64_t open;   /* values still to come */
    int64_t body;   /* bytes still to come of a large blob; -1: it is inside a long line */
    bool begun;     /* inside the reply */
    unsigned depth; /* of streamed types */
    struct resp_level levels[RESP_LEVELS];
};

/* Most replies are one blob of less than a thousand bytes that is all there. Returns its length; 0:
 * it is something else, or perhaps so. */
static inline size_t resp_plain_blob(const char *input, size_t length)
{
    enum { SMALLEST = 6 }; /* $0 CR LF CR LF: no header of up to three digits is longer */
    if (length < SMALLEST || input[0] != '$')
        return 0;
    size_t at = 2, bytes = (unsigned char)(input[1] - '0');
    if (bytes > 9)
        return 0;
    for (unsigned digit; bytes && at < 4 && (digit = (unsigned char)(input[at] - '0')) <= 9; at++)
        bytes = 10 * bytes + digit;
    if (memcmp(input + at, "\r\n", 2) != 0 || length - at < bytes + 4 ||
        memcmp(input + at + 2 + bytes, "\r\n", 2) != 0)
        return 0;
    return at + bytes + 4;
}

/* Finds the end of the reply that begins at input. RESP_DONE: *taken holds its length, and the
 * frame is ready for the next. RESP_MORE: call again with the same start and more bytes. Nested
 * aggregates need no recursion. (Here for the compiler; the second is for the first alone.) */
enum resp_status resp_frame_any(struct resp_frame *frame, const char *input, size_t length,
                                size_t *taken);
static inline enum resp_status resp_frame_reply(struct resp_frame *frame, const char *input,
                                                size_t length, size_t *taken)
{
    size_t plain = frame->begun ? 0 : resp_plain_blob(input, length);
    if (!plain)
        return resp_frame_any(frame, input, length, taken);
    *taken = plain;
    return RESP_DONE;
}

/* After RESP_MORE: lets go of the bytes that were scanned, whose number it returns; the next call
 * begins behind them. */
size_t resp_frame_pass(struct resp_frame *frame);

/* One element of an array reply that resp_frame_reply() found whole: the header is skipped by
 * resp_array_open(), which gives the count (-1: nil array, or no array, set or push) and *at at the
 * first element; each call of resp_array_next() gives the span of one whole element, or an empty
 * one when none is left. */
int64_t resp_array_open(struct span reply, const char **at);
struct span resp_array_next(const char **at, const char *end);

/* The same of a map, or of the array of names and values that stands for one in RESP2: the number
 * of pairs, of which each is two elements; -1: it is neither. */
int64_t resp_map_open(struct span reply, const char **at);

/* The bytes of a blob string ("$2 ab"), without what stands around them; of anything else none. */
struct span resp_bulk_text(struct span element);

/* What resp_write_bulk() adds to its bytes, at most: for whoever reserves room for it. */
enum { RESP_HEADER_ROOM = 26 };

/* Writers: append one reply, or one command's header and arguments. */
void resp_write_bulk(struct buffer *out, const void *bytes, size_t length);
void resp_write_integer(struct buffer *out, int64_t number);
void resp_write_array(struct buffer *out, size_t count);
void resp_write_map(struct buffer *out, size_t pairs, bool resp3); /* RESP2: an array of both */
void resp_write_truth(struct buffer *out, bool truth, bool resp3); /* RESP2: 1 or 0 */
void resp_write_status(struct buffer *out, const char *text);      /* +text */
void resp_write_error(struct buffer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* -text; CR, LF become blanks */
/* For people: in RESP3 a verbatim string of the kind "txt". */
void resp_write_text(struct buffer *out, struct span text, bool resp3);
void resp_write_command(struct buffer *out, const struct span *arguments, size_t count);

/* The commonest reply of all: here for the compiler, which makes two stores of it. */
static inline void resp_write_nil(struct buffer *out, bool resp3)
{
    char *at = buffer_reserve(out, 5);
    memcpy(at, resp3 ? "_\r\n\0\0" : "$-1\r\n", 5);
    buffer_commit(out, resp3 ? 3 : 5);
}

#endif
