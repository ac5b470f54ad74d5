#include "worker/command/join.h"

#include "resp/reply.h"
#include "resp/resp.h"
#include "resp/resp_number.h"

#include <stdlib.h>

static void put(struct reply_slot *whole, struct span reply)
{
    buffer_clear(&whole->reply);
    reply_slot_append(whole, &whole->reply, reply);
}

/* ":12\r\n"; -1: it is no number. */
static int64_t number_in(struct span reply)
{
    int64_t number;
    const char *at = reply.at + 1, *end = reply.at + reply.length;
    if (!reply.length || reply.at[0] != ':' || resp_read_number(&at, end, &number) != RESP_DONE)
        return -1;
    return number;
}

static void join_first(struct reply_slot *whole, struct span reply)
{
    if (!buffer_length(&whole->reply))
        put(whole, reply);
}

static void join_sum(struct reply_slot *whole, struct span reply)
{
    int64_t sum = buffer_length(&whole->reply) ? number_in(buffer_span(&whole->reply)) : 0;
    int64_t number = number_in(reply);
    buffer_clear(&whole->reply);
    if (sum < 0 || number < 0)
        resp_write_error(&whole->reply, "NESTGUARD cache error: a node's reply is no number");
    else
        resp_write_integer(&whole->reply, sum + number);
}

/* Elements alone; how many there are is known at the end. */
static void join_lists(struct reply_slot *whole, struct span reply)
{
    const char *at;
    int64_t count = resp_array_open(reply, &at);
    if (count < 0) {
        buffer_clear(&whole->reply);
        resp_write_error(&whole->reply, "NESTGUARD cache error: a node's reply is no list");
        return;
    }
    whole->joined += (size_t)count;
    reply_slot_append(whole, &whole->reply,
                      (struct span){at, reply.length - (size_t)(at - reply.at)});
}

/* Each with the same chance, however many there will be (a reservoir of one: Vitter's algorithm R).
 * The node that answers first, mostly the same, would else be the only one. */
static void join_any(struct reply_slot *whole, struct span reply)
{
    if (reply_is_nil(reply) ? !buffer_length(&whole->reply)
                            : !arc4random_uniform((uint32_t)++whole->joined))
        put(whole, reply);
}

static void join_least(struct reply_slot *whole, struct span reply)
{
    struct buffer joined = {0};
    struct span before = buffer_span(&whole->reply);
    const char *at, *other, *end = reply.at + reply.length, *other_end = before.at + before.length;
    int64_t count = resp_array_open(reply, &at);
    if (before.length && reply.at[0] == ':' && number_in(before) <= number_in(reply))
        return;
    if (!before.length || count < 0 || resp_array_open(before, &other) != count) {
        put(whole, reply);
        return;
    }
    resp_write_array(&joined, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t a = number_in(resp_array_next(&at, end));
        int64_t b = number_in(resp_array_next(&other, other_end));
        resp_write_integer(&joined, a < b ? a : b);
    }
    put(whole, buffer_span(&joined));
    buffer_finish(&joined);
}

/* What one server would rather have said of all scripts: that one was ended, that one cannot be,
 * any other error, for nobody knows of a script there; that there is none, if all say so. */
static int weight(struct span reply)
{
    if (reply.at[0] != '-')
        return 3;
    if (span_starts(reply, "-UNKILLABLE"))
        return 2;
    return span_starts(reply, "-NOTBUSY") ? 0 : 1;
}

static void join_ended(struct reply_slot *whole, struct span reply)
{
    struct span before = buffer_span(&whole->reply);
    if (!before.length || weight(reply) > weight(before))
        put(whole, reply);
}

static void (*const joins[JOINS])(struct reply_slot *, struct span) = {
    [JOIN_FIRST] = join_first, [JOIN_SUM] = join_sum,     [JOIN_LISTS] = join_lists,
    [JOIN_ANY] = join_any,     [JOIN_LEAST] = join_least, [JOIN_ENDED] = join_ended};

static bool is_error(const struct reply_slot *whole)
{
    return span_starts(buffer_span(&whole->reply), "-");
}

/* The first error stands, but where errors are answers. */
void join_part(struct reply_slot *whole, enum command_join join, struct span reply)
{
    if (!reply.length)
        reply = span_of("-NESTGUARD cache error: no reply\r\n");
    if (join == JOIN_ENDED || (reply.at[0] != '-' && !is_error(whole)))
        joins[join](whole, reply);
    else if (!is_error(whole))
        put(whole, reply);
}
