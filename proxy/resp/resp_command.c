/* Commands as clients send them. A client's whole read buffer is parsed in one go, hundreds of
 * small commands at a time, so the common case is a straight line of compares over bytes that are
 * all there:
 *
 *   *2\r\n  $3\r\n GET\r\n  $6\r\n item:1\r\n
 *   header  bulk ......... bulk .............
 *
 * An item that is not all there is read again from its start when it can be whole. Until then only
 * what is new of it is measured: of a million arguments thousands come at a time. The verdict
 * depends on the bytes alone, never on how they were cut into reads.
 */
#include "base/memory.h"
#include "filters/short_word.h"
#include "resp/resp_internal.h"
#include "resp/resp_number.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SMALLEST_BULK = 6,     /* $0 CR LF CR LF */
    PLAIN_HEADER = 4,      /* a marker, one digit, CR LF */
    PLAIN_ARGUMENTS = 9,   /* what one digit can count */
    FIRST_ARGUMENTS = 64,  /* places, when the list is first made */
    HEAD_AROUND_NAME = 11, /* "*2 CR LF $3 CR LF", and "CR LF $" behind the name */
    HEAD_MAX = 16          /* two words */
};

/* One call of resp_read_command(). */
struct reader {
    char *start;          /* of the command; inline ones are unquoted in place */
    const char *at, *end; /* how far it is read; the end of what there is */
    const struct resp_limits *limits;
    struct resp_command *command;
};

void resp_arguments_finish(struct resp_arguments *arguments)
{
    free(arguments->at);
    *arguments = (struct resp_arguments){.head = arguments->head};
}

__attribute__((noinline)) static bool grow(struct resp_arguments *arguments)
{
    size_t size = arguments->size ? arguments->size * 2 : FIRST_ARGUMENTS;
    struct span *larger = realloc(arguments->at, size * sizeof *larger);
    if (!larger)
        return false;
    arguments->at = larger;
    arguments->size = size;
    return true;
}

/* Makes room for at most FIRST_ARGUMENTS more. False: there is no memory for them. */
static inline bool has_room(struct resp_arguments *arguments, size_t room)
{
    return arguments->size - arguments->count >= room || grow(arguments);
}

/* Where the next go. */
static inline struct span *next_of(const struct resp_arguments *arguments)
{
    return arguments->at + arguments->count;
}

bool resp_arguments_push(struct resp_arguments *arguments, const char *at, size_t length)
{
    if (!has_room(arguments, 1))
        return false;
    *next_of(arguments) = (struct span){at, length};
    arguments->count++;
    return true;
}

/* At most 18 digits are looked at: a 19th is in the place of the CR, and makes the number bad. */
enum resp_status resp_read_long_number(const char **at, const char *end, int64_t *number)
{
    const char *first = *at;
    bool negative = first < end && *first == '-';
    first += negative;
    const char *digit = first, *limit = end - first > 18 ? first + 18 : end;
    int64_t value = 0;
    for (; digit < limit && (unsigned char)(*digit - '0') <= 9; digit++) {
        value = value * 10 + (*digit - '0');
    }
    if (digit == end) {
        return RESP_MORE;
    }
    if (*digit != '\r' || digit == first || (*first == '0' && (negative || digit - first > 1))) {
        return RESP_BAD;
    }
    if (digit + 1 == end) {
        return RESP_MORE;
    }
    *number = negative ? -value : value;
    *at = digit + 2;
    return digit[1] == '\n' ? RESP_DONE : RESP_BAD;
}

static size_t have(const struct reader *reader)
{
    return (size_t)(reader->end - reader->start);
}

static size_t offset(const struct reader *reader)
{
    return (size_t)(reader->at - reader->start);
}

/* The texts are Redis' own where it has one: clients and their users look for them. */
static enum resp_status bad(struct reader *reader, const char *error)
{
    reader->command->error = error;
    return RESP_BAD;
}

/* Redis has no such limit; here it bounds what one client can make a worker hold. */
static enum resp_status too_long(struct reader *reader)
{
    return bad(reader, "command longer than max_command");
}

/* `least` is what the command takes at least, as far as it is known. */
static enum resp_status more(struct reader *reader, size_t least)
{
    size_t need = least > have(reader) ? least : have(reader) + 1;
    reader->command->need = need;
    return need > reader->limits->max_command ? too_long(reader) : RESP_MORE;
}

/* A control byte, which may be a CR, would break the line of the error. */
static const char *unexpected_byte(char byte)
{
    static _Thread_local char text[] = "expected '$', got ' '";
    bool control = (unsigned char)byte < ' ';
    text[sizeof text - 3] = control ? ' ' : byte;
    return text;
}

/* A line that is no header of `marker`. Like Redis, waits for its end before saying what is wrong,
 * but not longer than an inline command may be. */
static enum resp_status bad_header(struct reader *reader, char marker, size_t least)
{
    size_t left = (size_t)(reader->end - reader->at), limit = reader->limits->max_inline;
    bool bulk = marker == '$', overdue = left > limit;
    if (!memchr(reader->at, '\r', overdue ? limit : left)) {
        if (!overdue) {
            return more(reader, least);
        }
        return bad(reader, bulk ? "too big bulk count string" : "too big mbulk count string");
    }
    if (*reader->at != marker) {
        return bad(reader, unexpected_byte(*reader->at));
    }
    return bad(reader, bulk ? "invalid bulk length" : "invalid multibulk length");
}

/* The marker, a number and CR LF. The common case is done when the number is. */
static inline enum resp_status read_header(struct reader *reader, char marker, size_t least,
                                           int64_t *number)
{
    if (reader->at == reader->end) {
        return more(reader, least);
    }
    enum resp_status status = RESP_BAD;
    if (*reader->at == marker) {
        const char *at = reader->at + 1;
        status = resp_read_number(&at, reader->end, number);
        if (status == RESP_DONE) {
            reader->at = at;
            return RESP_DONE;
        }
    }
    return status == RESP_MORE ? more(reader, least) : bad_header(reader, marker, least);
}

/* `left` arguments are still to come, this one included. */
static inline enum resp_status read_bulk(struct reader *reader, size_t left,
                                         struct resp_arguments *arguments)
{
    int64_t number = 0;
    size_t least = offset(reader) + left * SMALLEST_BULK;
    enum resp_status status = read_header(reader, '$', least, &number);
    if (status != RESP_DONE) {
        return status;
    }
    size_t length = (size_t)number;
    if (number < 0 || length > reader->limits->max_bulk) {
        bool later = number >= 0 && length <= reader->limits->later_bulk;
        return bad(reader, later ? "unauthenticated bulk length" : "invalid bulk length");
    }
    const char *at = reader->at;
    if ((size_t)(reader->end - at) < length + 2) {
        return more(reader, offset(reader) + length + 2 + (left - 1) * SMALLEST_BULK);
    }
    /* Redis skips these two bytes unseen. What is forwarded verbatim must not mean one thing here
     * and another behind a cache that looks. */
    if (at[length] != '\r' || at[length + 1] != '\n') {
        return bad(reader, "expected CRLF after a bulk");
    }
    if (!resp_arguments_push(arguments, at, length)) {
        return bad(reader, "out of memory");
    }
    reader->at = at + length + 2;
    return RESP_DONE;
}

/* A count of 0 or less is an empty command, which Redis ignores. */
static enum resp_status read_multibulk(struct reader *reader, struct resp_arguments *arguments)
{
    int64_t number = 0;
    enum resp_status status = read_header(reader, '*', 0, &number);
    if (status != RESP_DONE || number <= 0) {
        return status;
    }
    if (number > INT_MAX || (size_t)number > reader->limits->max_arguments) {
        bool later = number <= INT_MAX && reader->limits->later_bulk;
        return bad(reader, later ? "unauthenticated multibulk length" : "invalid multibulk length");
    }
    for (size_t left = (size_t)number; left > 0; left--) {
        status = read_bulk(reader, left, arguments);
        if (status != RESP_DONE) {
            return status;
        }
    }
    return RESP_DONE;
}

static inline bool is_line_end(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0; /* compiled as one compare */
}

static inline size_t digit(char byte)
{
    return (unsigned char)byte - (size_t)'0'; /* more than 9: it is none */
}

/* A bulk of at most 99 bytes that is all there and well-formed. Returns where it ends, or NULL. */
static inline const char *read_plain_bulk(const char *at, const char *end, size_t max_bulk,
                                          struct span *argument)
{
    if (end - at < SMALLEST_BULK || at[0] != '$')
        return NULL;
    size_t length = digit(at[1]), second = digit(at[2]);
    if (length > 9)
        return NULL;
    at += 2;
    if (length > 0 && second <= 9) { /* behind a 0 it is no length, and the line does not end */
        length = 10 * length + second;
        at++;
    }
    if (length > max_bulk || !is_line_end(at) || (size_t)(end - at) < length + 4 ||
        !is_line_end(at + 2 + length))
        return NULL;
    *argument = (struct span){at + 2, length};
    return at + length + 4;
}

/* The command's last `count` arguments, at `at`. Returns its length, or 0. */
static inline size_t read_plain_bulks(const char *input, const char *at, const char *end,
                                      const struct resp_limits *limits, struct span *argument,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        at = read_plain_bulk(at, end, limits->max_bulk, &argument[i]);
        if (!at)
            return 0;
    }
    size_t length = (size_t)(at - input);
    return length > limits->max_command ? 0 : length;
}

/* Nearly every command has a few arguments, is all there, and nothing is wrong with it: this reads
 * it in a straight line. Returns its length; 0 says nothing about the command: then the reader
 * above has the word. */
static inline size_t read_plain(const char *input, const char *end,
                                const struct resp_limits *limits, struct resp_arguments *arguments)
{
    if (end - input < PLAIN_HEADER || input[0] != '*' || !is_line_end(input + 2))
        return 0;
    size_t count = digit(input[1]);
    if (count > PLAIN_ARGUMENTS || count > limits->max_arguments)
        return 0;
    if (!has_room(arguments, PLAIN_ARGUMENTS))
        return 0;
    struct span *argument = next_of(arguments);
    size_t length = read_plain_bulks(input, input + PLAIN_HEADER, end, limits, argument, count);
    arguments->count += length ? count : 0;
    return length;
}

/* A head has the name and the marker behind it: two words tell it from others. */
static inline uint64_t remember_head(struct resp_arguments *arguments, const char *input,
                                     const struct resp_command *command)
{
    struct resp_head *head = &arguments->head;
    size_t length = arguments->at[command->first].length + HEAD_AROUND_NAME;
    if (command->count < 2 || length > HEAD_MAX)
        return 0;
    *head = (struct resp_head){.first = word_load(input),
                               .last = word_load(input + length - sizeof head->last),
                               .length = length,
                               .count = command->count,
                               .number = head->number + 1};
    return head->number;
}

/* The same for a command that begins as one before it did, and so has its name. */
static inline size_t read_alike(const char *input, const char *end,
                                const struct resp_limits *limits, struct resp_arguments *arguments)
{
    const struct resp_head *head = &arguments->head;
    if (end - input < HEAD_MAX || word_load(input) != head->first || !head->number ||
        word_load(input + head->length - sizeof head->last) != head->last)
        return 0;
    if (!has_room(arguments, PLAIN_ARGUMENTS))
        return 0;
    struct span *argument = next_of(arguments);
    argument[0] = (struct span){input + 2 * PLAIN_HEADER, head->length - HEAD_AROUND_NAME};
    if (head->count > limits->max_arguments || argument[0].length > limits->max_bulk)
        return 0;
    size_t length = read_plain_bulks(input, input + head->length - 1, end, limits, argument + 1,
                                     head->count - 1);
    arguments->count += length ? head->count : 0;
    return length;
}

/* A line ends at LF, a CR before it or not, as with telnet and netcat. */
static enum resp_status read_inline(struct reader *reader, struct resp_arguments *arguments)
{
    size_t limit = reader->limits->max_inline;
    bool overdue = have(reader) > limit;
    char *newline = memchr(reader->start, '\n', overdue ? limit : have(reader));
    if (!newline) {
        return overdue ? bad(reader, "too big inline request") : more(reader, 0);
    }
    reader->at = newline + 1;
    if (offset(reader) > reader->limits->max_command) {
        return too_long(reader); /* before the line is written over */
    }
    size_t length = (size_t)(newline - reader->start);
    length -= length > 0 && newline[-1] == '\r';
    const char *error = resp_split_inline(reader->start, length, reader->limits, arguments);
    return error ? bad(reader, error) : RESP_DONE;
}

/* Apart from the plain way, which is so compiled without regard to it. */
__attribute__((noinline)) static enum resp_status read_any(char *input, size_t length,
                                                           const struct resp_limits *limits,
                                                           struct resp_arguments *arguments,
                                                           struct resp_command *command)
{
    if (length == 0) {
        command->need = 1;
        return RESP_MORE;
    }
    struct reader reader = {input, input, input + length, limits, command};
    command->is_inline = *input != '*';
    enum resp_status status =
        command->is_inline ? read_inline(&reader, arguments) : read_multibulk(&reader, arguments);
    if (status == RESP_DONE && offset(&reader) > limits->max_command) {
        status = too_long(&reader);
    }
    if (status == RESP_DONE) {
        command->count = arguments->count - command->first;
        command->length = offset(&reader);
    } else {
        arguments->count = command->first;
    }
    return status;
}

enum resp_status resp_read_command(char *input, size_t length, const struct resp_limits *limits,
                                   struct resp_arguments *arguments, struct resp_command *command)
{
    *command = (struct resp_command){.first = arguments->count};
    command->length = read_alike(input, input + length, limits, arguments);
    if (command->length) {
        command->count = arguments->head.count;
        command->head = arguments->head.number;
        return RESP_DONE;
    }
    command->length = read_plain(input, input + length, limits, arguments);
    if (!command->length)
        return read_any(input, length, limits, arguments, command);
    command->count = arguments->count - command->first;
    command->head = remember_head(arguments, input, command);
    return RESP_DONE;
}

/* ---- what is not all there ---- */

/* The array's header; a good one. */
static bool measure_header(struct resp_measure *measure, const char *input, const char *end,
                           const struct resp_limits *limits)
{
    const char *at = input + 1;
    int64_t number = 0;
    if (input == end || *input != '*' || resp_read_number(&at, end, &number) != RESP_DONE ||
        number <= 0 || number > INT_MAX || (size_t)number > limits->max_arguments)
        return false;
    *measure = (struct resp_measure){.scanned = (size_t)(at - input), .left = (size_t)number};
    return true;
}

/* Passes the next argument. RESP_MORE: it is not all there, and *body is what of it stands behind
 * *at. RESP_BAD: the reader has the word. */
static enum resp_status measure_bulk(const char **at, const char *end, size_t max_bulk,
                                     size_t *body)
{
    const char *next = *at;
    int64_t length = 0;
    *body = SMALLEST_BULK;
    if (next == end)
        return RESP_MORE;
    enum resp_status status = *next++ == '$' ? resp_read_number(&next, end, &length) : RESP_BAD;
    if (status != RESP_DONE)
        return status;
    if (length < 0 || (size_t)length > max_bulk)
        return RESP_BAD;
    *body = (size_t)(next - *at) + (size_t)length + 2;
    if ((size_t)(end - *at) < *body)
        return RESP_MORE;
    if (!is_line_end(*at + *body - 2))
        return RESP_BAD;
    *at += *body;
    return RESP_DONE;
}

/* The reader says what is wrong with a header when that has ended, or is too long: see
 * bad_header(). Until then all that stands before it, which may be a million arguments, is not read
 * again. */
static bool has_no_end_yet(const char *header, const char *end, const struct resp_limits *limits)
{
    size_t left = (size_t)(end - header);
    return left <= limits->max_inline && !memchr(header, '\r', left);
}

size_t resp_measure(struct resp_measure *measure, const char *input, size_t length,
                    const struct resp_limits *limits, size_t most)
{
    const char *end = input + length;
    if (!measure->scanned && !measure_header(measure, input, end, limits))
        return 0;
    const char *at = input + measure->scanned;
    for (; measure->left; most--) {
        if (!most)
            return length;
        size_t body;
        enum resp_status status = measure_bulk(&at, end, limits->max_bulk, &body);
        size_t need = measure->scanned + body + (measure->left - 1) * SMALLEST_BULK;
        need = need > length ? need : length + 1;
        if (status == RESP_BAD && !has_no_end_yet(at, end, limits))
            return 0;
        if (status != RESP_DONE)
            return need > limits->max_command ? 0 : need;
        measure->scanned = (size_t)(at - input);
        measure->passed++;
        measure->left--;
    }
    return 0;
}

/* ---- what was measured ---- */

/* Lengths are good ones of 18 digits at most, and end with CR LF. */
static size_t read_measured(const char **at)
{
    const char *digit = *at + 1;
    size_t value = 0;
    for (; *digit != '\r'; digit++)
        value = 10 * value + (size_t)(*digit - '0');
    *at = digit + 2;
    return value;
}

const char *resp_measured_open(const char *input)
{
    read_measured(&input);
    return input;
}

void resp_measured_next(const char **at, struct span *arguments, size_t count)
{
    const char *next = *at;
    for (size_t i = 0; i < count; i++) {
        size_t length = read_measured(&next);
        arguments[i] = (struct span){next, length};
        next += length + 2;
    }
    *at = next;
}
