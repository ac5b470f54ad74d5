/* Messages of the log of any bytes. The first byte of the input says whether they lie within a
 * streamed block. Build with -DFUZZ=ON and clang. */
#include "postgres/log/pgoutput.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

struct input {
    const char *at, *end;
};

static void check_inside(const struct input *input, const char *at, size_t length)
{
    CHECK(at > input->at && at <= input->end && length <= (size_t)(input->end - at));
}

static void check_name(const struct input *input, const char *name)
{
    check_inside(input, name, 1);
    CHECK(memchr(name, '\0', (size_t)(input->end - name)));
}

static void check_list(const struct input *input, const char *at, const char *end)
{
    CHECK(at <= end);
    check_inside(input, at, (size_t)(end - at));
}

static void check_tuple(const struct input *input, struct pgoutput_tuple tuple)
{
    struct pgoutput_value value;
    unsigned count = 0;
    const unsigned columns = tuple.columns;
    check_list(input, tuple.at, tuple.end);
    CHECK(columns <= PGOUTPUT_COLUMNS_MAX);
    for (; pgoutput_tuple_next(&tuple, &value); count++) {
        bool has_bytes = value.kind == PGOUTPUT_TEXT || value.kind == PGOUTPUT_BINARY;
        CHECK(has_bytes == (value.at != NULL));
        CHECK(has_bytes || value.length == 0);
        if (has_bytes)
            check_inside(input, value.at, value.length);
    }
    CHECK(count == columns && tuple.at == tuple.end);
}

static void check_relation(const struct input *input, struct pgoutput_relation relation)
{
    struct pgoutput_column column;
    unsigned count = 0;
    const unsigned columns = relation.columns;
    check_name(input, relation.schema);
    check_name(input, relation.name);
    check_list(input, relation.at, relation.end);
    CHECK(columns <= PGOUTPUT_COLUMNS_MAX);
    for (; pgoutput_column_next(&relation, &column); count++)
        check_name(input, column.name);
    CHECK(count == columns && relation.at == relation.end);
}

static void check_truncated(const struct input *input, const struct pgoutput_event *event)
{
    struct pgoutput_truncated truncated = event->truncated;
    uint32_t relation, count = 0;
    check_list(input, truncated.at, truncated.end);
    while (pgoutput_truncated_next(&truncated, &relation))
        count++;
    CHECK(count == event->truncated_count && truncated.at == truncated.end);
}

static bool is_one_of(enum pgoutput_kind kind, enum pgoutput_kind one, enum pgoutput_kind other)
{
    return kind == one || kind == other;
}

/* Each kind has its parts, and no others. */
static void check_event(const struct input *input, const struct pgoutput_event *event)
{
    enum pgoutput_kind kind = event->kind;
    CHECK((event->new_tuple.at != NULL) == is_one_of(kind, PGOUTPUT_INSERT, PGOUTPUT_UPDATE));
    CHECK(!event->old_tuple.at || is_one_of(kind, PGOUTPUT_UPDATE, PGOUTPUT_DELETE));
    CHECK(event->old_tuple.at || kind != PGOUTPUT_DELETE);
    CHECK(event->old_tuple.at || !event->old_is_key);
    CHECK((event->described.name != NULL) == (kind == PGOUTPUT_RELATION));
    CHECK((event->truncated.at != NULL) == (kind == PGOUTPUT_TRUNCATE));
    if (event->new_tuple.at)
        check_tuple(input, event->new_tuple);
    if (event->old_tuple.at)
        check_tuple(input, event->old_tuple);
    if (kind == PGOUTPUT_RELATION)
        check_relation(input, event->described);
    if (kind == PGOUTPUT_TRUNCATE)
        check_truncated(input, event);
}

/* A message that is whole is not whole without its last byte, nor with one more. Stream Abort has
 * two whole forms, but they differ by more than one byte. */
static void check_length_matters(const char *message, size_t length, bool in_stream)
{
    struct pgoutput_event event;
    const char *error;
    char *other = malloc(length + 1);
    CHECK(other);
    memcpy(other, message, length);
    other[length] = '\0';
    CHECK(pgoutput_read(other, length - 1, in_stream, &event, &error) == -EPROTO && error);
    CHECK(pgoutput_read(other, length + 1, in_stream, &event, &error) == -EPROTO && error);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1)
        return 0;
    struct pgoutput_event event;
    const char *error = "none was set";
    const bool in_stream = bytes[0] & 1;
    const struct input input = {(const char *)bytes + 1, (const char *)bytes + size};
    int status = pgoutput_read(input.at, size - 1, in_stream, &event, &error);
    CHECK(status == 0 ? error == NULL : status == -EPROTO && error && strlen(error) > 0);
    if (status == 0) {
        check_event(&input, &event);
        check_length_matters(input.at, size - 1, in_stream);
    }
    return 0;
}
