/* Reading pgoutput's messages: a letter, then fields in network byte order (PostgreSQL
 * documentation, "Logical Replication Message Formats"; protocol version 2). One reader walks over
 * the message and stops at the first thing that does not fit; what it gave until then is thrown
 * away, so that the functions for the single messages need no error paths.
 *
 * What each is made of stands with the function that reads it. `xid?` is there only between Stream
 * Start and Stream Stop; numbers are bytes, `name` ends with a zero byte.
 *
 *   tuple    columns:2, and for each column its kind:1, with
 *              t  text, b  binary: length:4 and so many bytes
 *              n  NULL, u  a TOASTed value that has not changed: nothing
 */
#include "postgres/log/pgoutput.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* What can be wrong with a message, and how it is said behind the message's name. */
#define PROBLEMS(X, name)                                                                          \
    X(SHORT, name " ends too early")                                                               \
    X(LONG, name " goes on behind its end")                                                        \
    X(INSIDE, name " inside a streamed block")                                                     \
    X(OUTSIDE, name " outside a streamed block")                                                   \
    X(FLAGS, name " has unknown flags")                                                            \
    X(NAME, name " holds a name without an end")                                                   \
    X(LENGTH, name " holds a value longer than itself")                                            \
    X(VALUE, name " holds an unknown kind of value")                                               \
    X(TUPLE, name " holds an unknown kind of tuple")                                               \
    X(COLUMNS, name " has more columns than a table can have")                                     \
    X(IDENTITY, name " has an unknown replica identity")                                           \
    X(LIST, name " lists more relations than it holds")

#define MESSAGES(X)                                                                                \
    X('I', INSERT, read_insert, "Insert")                                                          \
    X('U', UPDATE, read_update, "Update")                                                          \
    X('D', DELETE, read_delete, "Delete")                                                          \
    X('B', BEGIN, read_begin, "Begin")                                                             \
    X('C', COMMIT, read_commit, "Commit")                                                          \
    X('R', RELATION, read_relation, "Relation")                                                    \
    X('T', TRUNCATE, read_truncate, "Truncate")                                                    \
    X('Y', TYPE, read_type, "Type")                                                                \
    X('O', ORIGIN, read_origin, "Origin")                                                          \
    X('M', MESSAGE, read_logical_message, "Message")                                               \
    X('S', STREAM_START, read_stream_start, "Stream Start")                                        \
    X('E', STREAM_STOP, read_stream_stop, "Stream Stop")                                           \
    X('c', STREAM_COMMIT, read_stream_commit, "Stream Commit")                                     \
    X('A', STREAM_ABORT, read_stream_abort, "Stream Abort")

/* Sent only to a subscriber that asks for two_phase. */
#define REFUSED_MESSAGES(X)                                                                        \
    X('b', "Begin Prepare")                                                                        \
    X('P', "Prepare")                                                                              \
    X('K', "Commit Prepared")                                                                      \
    X('r', "Rollback Prepared")                                                                    \
    X('p', "Stream Prepare")

#define PROBLEM_NAME(problem, text) problem,
#define PROBLEM_TEXT(problem, text) [problem] = (text),
#define MESSAGE_TEXTS(letter, kind, read, name) [PGOUTPUT_##kind] = {PROBLEMS(PROBLEM_TEXT, name)},

enum problem { NONE, PROBLEMS(PROBLEM_NAME, "") PROBLEMS_END };

static const char *const problem_texts[][PROBLEMS_END] = {MESSAGES(MESSAGE_TEXTS)};

struct reader {
    const char *at, *end;
    bool in_stream;
    enum problem problem; /* the first */
};

/* Nothing is left to read then, so that whoever goes on reading fails again. */
static void fail(struct reader *reader, enum problem problem)
{
    if (reader->problem == NONE)
        reader->problem = problem;
    reader->at = reader->end;
}

static void require(struct reader *reader, bool fine, enum problem otherwise)
{
    if (!fine)
        fail(reader, otherwise);
}

static size_t left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Copies the next `size` bytes, zeros if there are fewer. */
static inline void take(struct reader *reader, void *to, size_t size)
{
    if (left(reader) < size) {
        fail(reader, SHORT);
        memset(to, 0, size);
        return;
    }
    memcpy(to, reader->at, size);
    reader->at += size;
}

static inline uint8_t take_8(struct reader *reader)
{
    uint8_t number;
    take(reader, &number, sizeof number);
    return number;
}

static inline uint16_t take_16(struct reader *reader)
{
    uint16_t number;
    take(reader, &number, sizeof number);
    return be16toh(number);
}

static inline uint32_t take_32(struct reader *reader)
{
    uint32_t number;
    take(reader, &number, sizeof number);
    return be32toh(number);
}

static inline uint64_t take_64(struct reader *reader)
{
    uint64_t number;
    take(reader, &number, sizeof number);
    return be64toh(number);
}

/* Where it begins: in the message itself. */
static const char *take_name(struct reader *reader)
{
    const char *name = reader->at;
    const char *zero = memchr(name, '\0', left(reader));
    if (zero)
        reader->at = zero + 1;
    else
        fail(reader, NAME);
    return name;
}

/* Flags of which only `known` have a meaning. */
static uint8_t take_flags(struct reader *reader, uint8_t known)
{
    uint8_t flags = take_8(reader);
    require(reader, (flags & ~known) == 0, FLAGS);
    return flags;
}

/* A number of bytes, and the bytes. A negative number is read as a huge one. */
static inline void skip_bytes(struct reader *reader)
{
    uint32_t length = take_32(reader);
    if (length > left(reader))
        fail(reader, LENGTH);
    else
        reader->at += length;
}

/* A column's kind, and what belongs to it. */
static inline void skip_value(struct reader *reader)
{
    switch (take_8(reader)) {
    case 't':
    case 'b':
        skip_bytes(reader);
        break;
    case 'n':
    case 'u':
        break;
    default:
        fail(reader, VALUE);
    }
}

/* More than a table can have would have the loops below run for nothing. */
static uint16_t take_column_count(struct reader *reader)
{
    uint16_t columns = take_16(reader);
    require(reader, columns <= PGOUTPUT_COLUMNS_MAX, COLUMNS);
    return columns;
}

/* Goes over all of it, so that pgoutput_tuple_next() needs no checks. */
static void take_tuple(struct reader *reader, struct pgoutput_tuple *tuple)
{
    tuple->columns = take_column_count(reader);
    tuple->at = reader->at;
    for (unsigned i = 0; i < tuple->columns && reader->problem == NONE; i++)
        skip_value(reader);
    tuple->end = reader->at;
}

/* Between Stream Start and Stream Stop every change says which (sub)transaction made it. */
static void take_streamed_xid(struct reader *reader, struct pgoutput_event *event)
{
    if (reader->in_stream)
        event->xid = take_32(reader);
}

/* lsn:8 of the commit, time:8 in microseconds since 2000, xid:4 */
static void read_begin(struct reader *reader, struct pgoutput_event *event)
{
    require(reader, !reader->in_stream, INSIDE);
    event->lsn = take_64(reader);
    event->time_us = (int64_t)take_64(reader);
    event->xid = take_32(reader);
}

/* flags:1, lsn:8, the transaction's end:8, time:8 */
static void read_commit(struct reader *reader, struct pgoutput_event *event)
{
    require(reader, !reader->in_stream, INSIDE);
    take_flags(reader, 0);
    event->lsn = take_64(reader);
    event->end_lsn = take_64(reader);
    event->time_us = (int64_t)take_64(reader);
}

/* flags:1, of which 1 says that it is in the replica identity; name; type:4; modifier:4 */
static void take_column(struct reader *reader, struct pgoutput_column *column)
{
    column->is_key = take_flags(reader, 1) != 0;
    column->name = take_name(reader);
    column->type = take_32(reader);
    column->modifier = (int32_t)take_32(reader);
}

/* xid?, id:4, schema and name, replica identity:1 as pg_class has it, columns:2, and these */
static void read_relation(struct reader *reader, struct pgoutput_event *event)
{
    struct pgoutput_relation *relation = &event->described;
    struct pgoutput_column column;
    take_streamed_xid(reader, event);
    relation->id = take_32(reader);
    relation->schema = take_name(reader);
    relation->name = take_name(reader);
    relation->identity = (char)take_8(reader);
    require(reader, relation->identity && strchr("dnfi", relation->identity), IDENTITY);
    relation->columns = take_column_count(reader);
    relation->at = reader->at;
    for (unsigned i = 0; i < relation->columns && reader->problem == NONE; i++)
        take_column(reader, &column);
    relation->end = reader->at;
}

/* N, and the row as it is now. */
static void take_new_tuple(struct reader *reader, uint8_t marker, struct pgoutput_event *event)
{
    require(reader, marker == 'N', TUPLE);
    take_tuple(reader, &event->new_tuple);
}

/* K, and the old values of the replica identity; or O, and all of the old row (identity full). */
static void take_old_tuple(struct reader *reader, uint8_t marker, struct pgoutput_event *event)
{
    require(reader, marker == 'K' || marker == 'O', TUPLE);
    event->old_is_key = marker == 'K';
    take_tuple(reader, &event->old_tuple);
    event->old_tuple.is_key = event->old_is_key;
}

/* xid?, relation:4, new tuple */
static void read_insert(struct reader *reader, struct pgoutput_event *event)
{
    take_streamed_xid(reader, event);
    event->relation = take_32(reader);
    take_new_tuple(reader, take_8(reader), event);
}

/* xid?, relation:4, perhaps an old tuple, new tuple. Without an old one the replica identity's
 * columns have not changed. */
static void read_update(struct reader *reader, struct pgoutput_event *event)
{
    take_streamed_xid(reader, event);
    event->relation = take_32(reader);
    uint8_t marker = take_8(reader);
    if (marker != 'N') {
        take_old_tuple(reader, marker, event);
        marker = take_8(reader);
    }
    take_new_tuple(reader, marker, event);
}

/* xid?, relation:4, old tuple */
static void read_delete(struct reader *reader, struct pgoutput_event *event)
{
    take_streamed_xid(reader, event);
    event->relation = take_32(reader);
    take_old_tuple(reader, take_8(reader), event);
}

/* xid?, number of relations:4, flags:1, and their ids, 4 each */
static void read_truncate(struct reader *reader, struct pgoutput_event *event)
{
    enum { CASCADE = 1, RESTART_IDENTITY = 2 };
    take_streamed_xid(reader, event);
    event->truncated_count = take_32(reader);
    uint8_t flags = take_flags(reader, CASCADE | RESTART_IDENTITY);
    event->cascade = (flags & CASCADE) != 0;
    event->restart_identity = (flags & RESTART_IDENTITY) != 0;
    require(reader, event->truncated_count <= left(reader) / sizeof(uint32_t), LIST);
    event->truncated.at = reader->at;
    if (reader->problem == NONE)
        reader->at += event->truncated_count * sizeof(uint32_t);
    event->truncated.end = reader->at;
}

/* xid?, id:4, schema, name; nothing of it is needed. */
static void read_type(struct reader *reader, struct pgoutput_event *event)
{
    take_streamed_xid(reader, event);
    take_32(reader);
    take_name(reader);
    take_name(reader);
}

/* lsn:8, name. Belongs to the transaction around it, and therefore never carries an id. */
static void read_origin(struct reader *reader, struct pgoutput_event *event)
{
    (void)event;
    take_64(reader);
    take_name(reader);
}

/* xid?, flags:1, lsn:8, prefix, and length:4 with so many bytes of content */
static void read_logical_message(struct reader *reader, struct pgoutput_event *event)
{
    enum { TRANSACTIONAL = 1 };
    take_streamed_xid(reader, event);
    take_flags(reader, TRANSACTIONAL);
    take_64(reader);
    take_name(reader);
    skip_bytes(reader);
}

/* xid:4, and :1, which is 1 in the first block of this transaction */
static void read_stream_start(struct reader *reader, struct pgoutput_event *event)
{
    require(reader, !reader->in_stream, INSIDE);
    event->xid = take_32(reader);
    event->first_segment = take_flags(reader, 1) != 0;
}

/* Only its letter. */
static void read_stream_stop(struct reader *reader, struct pgoutput_event *event)
{
    (void)event;
    require(reader, reader->in_stream, OUTSIDE);
}

/* xid:4, and then what a Commit has */
static void read_stream_commit(struct reader *reader, struct pgoutput_event *event)
{
    require(reader, !reader->in_stream, INSIDE);
    event->xid = take_32(reader);
    read_commit(reader, event);
}

/* xid:4, subxid:4, the same for all of it. Where and when is told only in parallel streaming: the
 * length alone tells. */
static void read_stream_abort(struct reader *reader, struct pgoutput_event *event)
{
    require(reader, !reader->in_stream, INSIDE);
    event->xid = take_32(reader);
    event->subxid = take_32(reader);
    if (left(reader) > 0) {
        event->lsn = take_64(reader);
        event->time_us = (int64_t)take_64(reader);
    }
}

#define READ_CASE(letter, name, read, text)                                                        \
    case letter:                                                                                   \
        event->kind = PGOUTPUT_##name;                                                             \
        read(reader, event);                                                                       \
        break;
#define REFUSED_CASE(letter, name)                                                                 \
    case letter:                                                                                   \
        return name ": two-phase transactions were not asked for";

/* NULL, or what is wrong. */
static const char *read_message(struct reader *reader, char letter, struct pgoutput_event *event)
{
    switch (letter) {
        MESSAGES(READ_CASE)
        REFUSED_MESSAGES(REFUSED_CASE)
    default:
        return "unknown message";
    }
    require(reader, left(reader) == 0, LONG);
    return problem_texts[event->kind][reader->problem];
}

int pgoutput_read(const void *message, size_t length, bool in_stream, struct pgoutput_event *event,
                  const char **error)
{
    const char *bytes = message;
    *error = "empty message";
    if (length == 0)
        return -EPROTO;
    struct reader reader = {.at = bytes + 1, .end = bytes + length, .in_stream = in_stream};
    *event = (struct pgoutput_event){.kind = PGOUTPUT_BEGIN};
    *error = read_message(&reader, bytes[0], event);
    return *error ? -EPROTO : 0;
}

/* ---- what was checked above is read without looking at its end ---- */

/* Moves *at behind it. */
static uint32_t next_32(const char **at)
{
    uint32_t number;
    memcpy(&number, *at, sizeof number);
    *at += sizeof number;
    return be32toh(number);
}

static struct pgoutput_value next_bytes(const char **at, enum pgoutput_value_kind kind)
{
    uint32_t length = next_32(at);
    struct pgoutput_value value = {.kind = kind, .at = *at, .length = length};
    *at += length;
    return value;
}

bool pgoutput_tuple_next(struct pgoutput_tuple *tuple, struct pgoutput_value *value)
{
    if (tuple->at == tuple->end)
        return false;
    switch (*tuple->at++) {
    case 't':
        *value = next_bytes(&tuple->at, PGOUTPUT_TEXT);
        break;
    case 'b':
        *value = next_bytes(&tuple->at, PGOUTPUT_BINARY);
        break;
    case 'u':
        *value = (struct pgoutput_value){.kind = PGOUTPUT_UNCHANGED};
        break;
    default:
        *value = (struct pgoutput_value){.kind = PGOUTPUT_NULL};
    }
    return true;
}

bool pgoutput_column_next(struct pgoutput_relation *relation, struct pgoutput_column *column)
{
    if (relation->at == relation->end)
        return false;
    column->is_key = *relation->at++ != 0;
    column->name = relation->at;
    relation->at += strlen(relation->at) + 1;
    column->type = next_32(&relation->at);
    column->modifier = (int32_t)next_32(&relation->at);
    return true;
}

bool pgoutput_truncated_next(struct pgoutput_truncated *truncated, uint32_t *relation)
{
    if (truncated->at == truncated->end)
        return false;
    *relation = next_32(&truncated->at);
    return true;
}
