/* The text comes from PostgreSQL's own output, so most of what JSON forbids is not looked for; but
 * no byte is read behind its end, and what is no object is refused.
 */
#include "cache/row_hash.h"

#include "resp/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    struct buffer text;    /* of the string that was read last */
    struct buffer members; /* names and values in turn, as they are in the reply */
    size_t count;          /* of these */
    const char *error;
};

static const char no_object[] = "the row's value is no JSON object";
static const char twice[] = "the row's value names a field twice";
static const char no_memory[] = "no memory for the row's value";

static bool fail(struct reader *reader, const char *error)
{
    reader->error = error;
    return false;
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

static bool is_next(const struct reader *reader, char wanted)
{
    return reader->at < reader->end && *reader->at == wanted;
}

/* The mark, and blanks around it. */
static bool take(struct reader *reader, char mark)
{
    skip_blanks(reader);
    if (!is_next(reader, mark))
        return false;
    reader->at++;
    skip_blanks(reader);
    return true;
}

/* ---- strings ---- */

static bool add_text(struct reader *reader, const char *bytes, size_t length)
{
    return buffer_try_append(&reader->text, bytes, length) || fail(reader, no_memory);
}

/* Four hexadecimal digits behind \u; -1: there are none. */
static long code_at(const struct reader *reader, const char *at)
{
    long code = 0;
    if (reader->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit)
            return -1;
        code = code * 16 + (digit - digits);
    }
    return code;
}

static bool add_utf8(struct reader *reader, long code)
{
    char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(marks[length] | code);
    return add_text(reader, bytes, length);
}

/* A pair of surrogates is one character. Half a pair is none at all: it stays as it is written. */
static bool read_code(struct reader *reader)
{
    long code = code_at(reader, reader->at), low = -1;
    if (code < 0)
        return fail(reader, no_object);
    if (code >= 0xd800 && code < 0xdc00)
        low = code_at(reader, reader->at + 6);
    bool pair = low >= 0xdc00 && low < 0xe000;
    if (code >= 0xd800 && code < 0xe000 && !pair) {
        reader->at += 6;
        return add_text(reader, reader->at - 6, 6);
    }
    reader->at += pair ? 12 : 6;
    return add_utf8(reader, pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : code);
}

/* From the backslash on. */
static bool read_escape(struct reader *reader)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (reader->end - reader->at < 2)
        return fail(reader, no_object);
    if (reader->at[1] == 'u')
        return read_code(reader);
    const char *name = reader->at[1] ? strchr(names, reader->at[1]) : NULL;
    reader->at += 2;
    return name ? add_text(reader, &meant[name - names], 1) : fail(reader, no_object);
}

static size_t plain_length(const struct reader *reader)
{
    const char *at = reader->at;
    while (at < reader->end && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - reader->at);
}

/* From the first quote to behind the last. */
static bool read_string(struct reader *reader)
{
    buffer_clear(&reader->text);
    reader->at++;
    while (reader->at < reader->end && *reader->at != '"') {
        size_t plain = plain_length(reader);
        if (plain ? !add_text(reader, reader->at, plain) : !read_escape(reader))
            return false;
        reader->at += plain;
    }
    if (!is_next(reader, '"'))
        return fail(reader, no_object);
    reader->at++;
    return true;
}

/* ---- anything else ---- */

static void skip_string(struct reader *reader)
{
    reader->at++;
    while (reader->at < reader->end && *reader->at != '"')
        reader->at += *reader->at == '\\' && reader->end - reader->at > 1 ? 2 : 1;
    if (reader->at < reader->end)
        reader->at++;
}

static bool ends_value(char byte)
{
    return byte == ',' || byte == '}' || byte == ']' || strchr(" \t\r\n", byte);
}

/* A number, a word, or what stands in brackets of its own, with all that is in it. */
static struct span read_raw(struct reader *reader)
{
    const char *begin = reader->at;
    size_t depth = 0;
    while (reader->at < reader->end && (depth || !ends_value(*reader->at))) {
        char byte = *reader->at;
        if (byte == '"') {
            skip_string(reader);
            continue;
        }
        depth += byte == '{' || byte == '[';
        depth -= depth && (byte == '}' || byte == ']');
        reader->at++;
    }
    return (struct span){begin, (size_t)(reader->at - begin)};
}

/* ---- members ---- */

static bool add_word(struct reader *reader, struct span word)
{
    if (!buffer_try_reserve(&reader->members, word.length + RESP_HEADER_ROOM))
        return fail(reader, no_memory);
    resp_write_bulk(&reader->members, word.at, word.length);
    return true;
}

/* "name": value; with a null all is as if it had not been there. */
static bool read_member(struct reader *reader)
{
    size_t before = reader->members.end;
    if (!is_next(reader, '"') || !read_string(reader) ||
        !add_word(reader, buffer_span(&reader->text)))
        return fail(reader, reader->error ? reader->error : no_object);
    if (!take(reader, ':') || reader->at == reader->end)
        return fail(reader, no_object);
    bool is_string = is_next(reader, '"');
    if (is_string && !read_string(reader))
        return false;
    struct span value = is_string ? buffer_span(&reader->text) : read_raw(reader);
    if (!is_string && !value.length)
        return fail(reader, no_object);
    if (!is_string && span_is(value, "null")) {
        reader->members.end = before;
        return true;
    }
    reader->count += 2;
    return add_word(reader, value);
}

static bool read_object(struct reader *reader)
{
    if (!take(reader, '{'))
        return fail(reader, no_object);
    bool more = !is_next(reader, '}');
    while (more) {
        if (!read_member(reader))
            return false;
        more = take(reader, ',');
    }
    return (take(reader, '}') && reader->at == reader->end) || fail(reader, no_object);
}

static int compare_names(const void *a, const void *b)
{
    const struct span *one = a, *other = b;
    if (one->length != other->length)
        return one->length < other->length ? -1 : 1;
    return memcmp(one->at, other->at, one->length);
}

/* A row has no two columns of a name, but what an expression gives may: and the cache takes a hash
 * as it is. */
static bool check_names(struct reader *reader)
{
    struct span members = buffer_span(&reader->members);
    const char *at = members.at, *end = members.at + members.length;
    size_t pairs = reader->count / 2;
    struct span *names = malloc((pairs + 1) * sizeof *names);
    if (!names)
        return fail(reader, no_memory);
    for (size_t i = 0; i < pairs; i++) {
        names[i] = resp_bulk_text(resp_array_next(&at, end));
        resp_array_next(&at, end);
    }
    qsort(names, pairs, sizeof *names, compare_names);
    for (size_t i = 1; i < pairs && !reader->error; i++)
        if (compare_names(&names[i - 1], &names[i]) == 0)
            fail(reader, twice);
    free(names);
    return !reader->error;
}

static struct blob *blob_of(struct reader *reader)
{
    char *bytes, header[RESP_HEADER_ROOM];
    struct span members = buffer_span(&reader->members);
    size_t length = (size_t)snprintf(header, sizeof header, "*%zu\r\n", reader->count);
    struct blob *blob = blob_create(length + members.length, &bytes);
    if (!blob) {
        reader->error = no_memory;
        return NULL;
    }
    memcpy(bytes, header, length);
    memcpy(bytes + length, members.at, members.length);
    return blob;
}

struct blob *row_hash_create(struct span json, const char **error)
{
    struct reader reader = {.at = json.at, .end = json.at + json.length};
    bool good = !json.length || (read_object(&reader) && check_names(&reader));
    struct blob *blob = good ? blob_of(&reader) : NULL;
    buffer_finish(&reader.text);
    buffer_finish(&reader.members);
    *error = reader.error;
    return blob;
}
