/* A hash of many fields that is asked for many of them is sorted first: a client could else have
 * each of a million names compared with each of the row's.
 */
#include "worker/command/keys/hash_answer.h"

#include "resp/reply.h"
#include "resp/resp.h"
#include "worker/command/keys/answer.h"

#include <stdlib.h>

struct field {
    struct span name, value; /* the value as an element of a reply, with what stands around it */
};

/* ---- writing ---- */

static bool write_nil(struct buffer *out, bool resp3)
{
    if (!buffer_try_reserve(out, 8))
        return false;
    resp_write_nil(out, resp3);
    return true;
}

static bool write_number(struct buffer *out, size_t number)
{
    if (!buffer_try_reserve(out, RESP_HEADER_ROOM))
        return false;
    resp_write_integer(out, (int64_t)number);
    return true;
}

static bool write_header(struct buffer *out, size_t count)
{
    if (!buffer_try_reserve(out, RESP_HEADER_ROOM))
        return false;
    resp_write_array(out, count);
    return true;
}

/* ---- all of it ---- */

static bool write_all(const struct hash_question *question, size_t pairs, struct span members,
                      struct buffer *out)
{
    if (!buffer_try_reserve(out, members.length + RESP_HEADER_ROOM))
        return false;
    resp_write_map(out, pairs, question->resp3);
    buffer_append(out, members.at, members.length);
    return true;
}

/* Its names, or its values. */
static bool write_half(bool names, size_t pairs, struct span members, struct buffer *out)
{
    const char *at = members.at, *end = members.at + members.length;
    bool written = write_header(out, pairs);
    for (size_t i = 0; i < 2 * pairs && written; i++) {
        struct span element = resp_array_next(&at, end);
        if (names == (i % 2 == 0))
            written = buffer_try_append(out, element.at, element.length);
    }
    return written;
}

/* ---- one field ---- */

static int compare_names(struct span a, struct span b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return memcmp(a.at, b.at, a.length);
}

/* Its value; an empty span: there is no such field. */
static struct span find(struct span name, size_t pairs, struct span members)
{
    const char *at = members.at, *end = members.at + members.length;
    for (size_t i = 0; i < pairs; i++) {
        struct span key = resp_bulk_text(resp_array_next(&at, end));
        struct span value = resp_array_next(&at, end);
        if (compare_names(key, name) == 0)
            return value;
    }
    return (struct span){"", 0};
}

static bool write_value(const struct hash_question *question, struct span value, struct buffer *out)
{
    return value.length ? buffer_try_append(out, value.at, value.length)
                        : write_nil(out, question->resp3);
}

static bool write_one(const struct hash_question *question, size_t pairs, struct span members,
                      struct buffer *out)
{
    struct span value = find(question->fields[0].key, pairs, members);
    if (question->what == HASH_VALUE)
        return write_value(question, value, out);
    return write_number(out, question->what == HASH_HAS ? value.length > 0
                                                        : resp_bulk_text(value).length);
}

/* ---- many ---- */

static int compare_fields(const void *a, const void *b)
{
    return compare_names(((const struct field *)a)->name, ((const struct field *)b)->name);
}

/* NULL: there is no memory for it. */
static struct field *sort(size_t pairs, struct span members)
{
    const char *at = members.at, *end = members.at + members.length;
    struct field *fields = malloc((pairs + 1) * sizeof *fields);
    for (size_t i = 0; i < pairs && fields; i++) {
        fields[i].name = resp_bulk_text(resp_array_next(&at, end));
        fields[i].value = resp_array_next(&at, end);
    }
    if (fields)
        qsort(fields, pairs, sizeof *fields, compare_fields);
    return fields;
}

static bool write_many(const struct hash_question *question, size_t pairs, struct span members,
                       struct buffer *out)
{
    struct field *fields = sort(pairs, members);
    bool written = fields && write_header(out, question->count);
    for (size_t i = 0; i < question->count && written; i++) {
        struct field wanted = {.name = question->fields[i].key};
        const struct field *found = bsearch(&wanted, fields, pairs, sizeof *fields, compare_fields);
        written = write_value(question, found ? found->value : (struct span){"", 0}, out);
    }
    free(fields);
    return written;
}

bool hash_answer_write(const struct hash_question *question, struct span hash, struct buffer *out)
{
    const char *at;
    int64_t opened = resp_map_open(hash, &at);
    size_t pairs = opened > 0 ? (size_t)opened : 0;
    struct span members = {at, (size_t)(hash.at + hash.length - at)};
    switch (question->what) {
    case HASH_ALL:
        return write_all(question, pairs, members, out);
    case HASH_NAMES:
    case HASH_TEXTS:
        return write_half(question->what == HASH_NAMES, pairs, members, out);
    case HASH_COUNT:
        return write_number(out, pairs);
    case HASH_VALUES:
        return write_many(question, pairs, members, out);
    case HASH_VALUE:
    case HASH_LENGTH:
    case HASH_HAS:
    case HASH_NOT:
        break;
    }
    return write_one(question, pairs, members, out);
}

bool hash_answer_write_nothing(const struct hash_question *question, struct buffer *out)
{
    return hash_answer_write(question, span_of("*0\r\n"), out);
}

/* ---- reading ---- */

static bool are_nils(struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    int64_t count = resp_array_open(reply, &at);
    for (int64_t i = 0; i < count; i++)
        if (!reply_is_nil(resp_array_next(&at, end)))
            return false;
    return count > 0;
}

bool hash_answer_has_form(const struct hash_question *question, struct span reply)
{
    const char *at;
    switch (question->what) {
    case HASH_VALUE:
        return reply_is_text(reply) || reply_is_nil(reply);
    case HASH_VALUES:
        return reply_is_list_of(reply, question->count);
    case HASH_LENGTH:
    case HASH_HAS:
    case HASH_COUNT:
        return reply_is_number(reply);
    case HASH_ALL:
        return resp_map_open(reply, &at) >= 0;
    case HASH_NAMES:
    case HASH_TEXTS:
    case HASH_NOT:
        break;
    }
    return resp_array_open(reply, &at) >= 0;
}

bool hash_answer_is_nothing(const struct hash_question *question, struct span reply)
{
    switch (question->what) {
    case HASH_VALUE:
        return reply_is_nil(reply);
    case HASH_VALUES:
        return are_nils(reply);
    case HASH_LENGTH:
    case HASH_HAS:
    case HASH_COUNT:
        return span_is(reply, ":0\r\n");
    case HASH_ALL:
    case HASH_NAMES:
    case HASH_TEXTS:
    case HASH_NOT:
        break;
    }
    return span_is(reply, "*0\r\n") || span_is(reply, "%0\r\n") || span_is(reply, "~0\r\n");
}
