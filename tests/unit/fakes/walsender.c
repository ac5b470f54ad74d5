#include "fakes/walsender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

void put(struct log_message *message, const void *bytes, size_t length)
{
    assert_true(length <= sizeof message->at - message->length);
    memcpy(message->at + message->length, bytes, length);
    message->length += length;
}

static void put_number(struct log_message *message, uint64_t number, int size)
{
    while (size-- > 0) {
        char byte = (char)(number >> (8 * size));
        put(message, &byte, 1);
    }
}

static void put_value(struct log_message *message, char kind, const char *value)
{
    put(message, &kind, 1);
    put_number(message, strlen(value), 4);
    put(message, value, strlen(value));
}

static struct log_message compose_list(const char *fields, va_list arguments)
{
    struct log_message message = {.length = 0};
    for (; *fields; fields++) {
        if (strchr("chw", *fields))
            put_number(&message, va_arg(arguments, unsigned),
                       *fields == 'c'   ? 1
                       : *fields == 'h' ? 2
                                        : 4);
        else if (*fields == 'q')
            put_number(&message, va_arg(arguments, uint64_t), 8);
        else if (strchr("tb", *fields))
            put_value(&message, *fields, va_arg(arguments, const char *));
        else if (strchr("nu", *fields))
            put(&message, fields, 1);
        else {
            const char *name = va_arg(arguments, const char *);
            put(&message, name, strlen(name) + (*fields == 's'));
        }
    }
    return message;
}

struct log_message compose(const char *fields, ...)
{
    va_list arguments;
    va_start(arguments, fields);
    struct log_message message = compose_list(fields, arguments);
    va_end(arguments);
    return message;
}

int read_copy(const struct log_message *message, size_t length, int in_stream,
              struct pgoutput_event *event, const char **error)
{
    static char *copy;
    free(copy);
    copy = length > 0 ? malloc(length) : NULL;
    if (copy)
        memcpy(copy, message->at, length);
    memset(event, '#', sizeof *event);
    int status = pgoutput_read(copy, length, in_stream == STREAMED, event, error);
    if (status < 0) {
        free(copy);
        copy = NULL;
    }
    return status;
}

struct pgoutput_event read_well(struct log_message message, int in_stream)
{
    struct pgoutput_event event;
    const char *error = "none was set";
    if (read_copy(&message, message.length, in_stream, &event, &error) != 0)
        fail_msg("%s", error);
    assert_null(error);
    return event;
}

struct log_message streamed_by(struct log_message message, uint32_t xid)
{
    struct log_message out = {.length = 0};
    put(&out, message.at, 1);
    if (strchr("RYIUDTM", message.at[0]))
        put_number(&out, xid, 4);
    put(&out, message.at + 1, message.length - 1);
    return out;
}

struct log_message streamed(struct log_message message)
{
    return streamed_by(message, 4711);
}

void for_each_sample(void (*each)(struct log_message message, int in_stream))
{
    const struct log_message samples[] = {
        compose("cqqw", 'B', UINT64_C(0x1122334455667788), UINT64_C(99), 7),
        compose("ccqqq", 'C', 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)),
        compose("cqs", 'O', UINT64_C(5), "elsewhere"),
        compose("cwsschcswwcsww", 'R', 16385, "public", "items", 'd', 2, 1, "id", 20, -1, 0, "n",
                1043, 54),
        compose("cwssch", 'R', 16385, "", "nothing", 'n', 0),
        compose("cwss", 'Y', 16390, "public", "colour"),
        compose("cwchtnub", 'I', 16385, 'N', 4, "text", "binary"),
        compose("cwch", 'I', 16385, 'N', 0),
        compose("cwcht", 'U', 16385, 'N', 1, "1"),
        compose("cwchtncht", 'U', 16385, 'K', 2, "1", 'N', 1, "2"),
        compose("cwchtnchtu", 'U', 16385, 'O', 2, "1", 'N', 2, "2"),
        compose("cwcht", 'D', 16385, 'K', 1, "1"),
        compose("cwchtt", 'D', 16385, 'O', 2, "1", ""),
        compose("cwcwww", 'T', 3, 3, 1, 2, 3),
        compose("ccqswc", 'M', 1, UINT64_C(77), "guard", 1, 'x'),
        compose("cwc", 'S', 7, 1),
        compose("c", 'E'),
        compose("cwcqqq", 'c', 7, 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)),
        compose("cww", 'A', 7, 8),
        compose("cwwqq", 'A', 7, 8, UINT64_C(5), UINT64_C(6)),
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (samples[i].at[0] != 'E')
            each(samples[i], PLAIN);
        if (!strchr("BCScA", samples[i].at[0]))
            each(streamed(samples[i]), STREAMED);
    }
}
