#include "resp/reply.h"

#include "resp/resp_number.h"

bool reply_is_number(struct span reply)
{
    int64_t number;
    const char *at = reply.at + 1, *end = reply.at + reply.length;
    return reply.length && reply.at[0] == ':' && resp_read_number(&at, end, &number) == RESP_DONE &&
           at == end;
}

bool reply_is_text(struct span reply)
{
    return reply.length && (reply.at[0] == '$' || reply.at[0] == '=') && !reply_is_nil(reply);
}

/* Sets and pushes are opened as arrays are, too. */
static int64_t list_length(struct span reply)
{
    const char *at;
    return reply.length && reply.at[0] == '*' ? resp_array_open(reply, &at) : -1;
}

bool reply_is_list(struct span reply)
{
    return list_length(reply) >= 0;
}

bool reply_is_list_of(struct span reply, size_t count)
{
    int64_t length = list_length(reply);
    return length >= 0 && (uint64_t)length == count;
}

bool reply_is_hello(struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    int64_t pairs = resp_map_open(reply, &at);
    for (int64_t i = 0; i < pairs; i++) {
        struct span name = resp_bulk_text(resp_array_next(&at, end));
        struct span value = resp_array_next(&at, end);
        if (span_is(name, "proto"))
            return span_is(value, reply.at[0] == '%' ? ":3\r\n" : ":2\r\n");
    }
    return false;
}
