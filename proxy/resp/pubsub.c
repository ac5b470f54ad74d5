/* Only the first word tells such a message from any other array. */
#include "resp/pubsub.h"

#include "resp/resp.h"

#include <stdlib.h>

static const struct {
    const char *word; /* as it is on the wire */
    enum pubsub_kind kind;
    enum pubsub_family family;
    bool ends;
} words[] = {{"$7\r\nmessage\r\n", PUBSUB_MESSAGE, PUBSUB_CHANNEL, false},
             {"$8\r\npmessage\r\n", PUBSUB_MESSAGE, PUBSUB_PATTERN, false},
             {"$8\r\nsmessage\r\n", PUBSUB_MESSAGE, PUBSUB_SHARD, false},
             {"$9\r\nsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL, false},
             {"$10\r\npsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_PATTERN, false},
             {"$10\r\nssubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_SHARD, false},
             {"$11\r\nunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL, true},
             {"$12\r\npunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_PATTERN, true},
             {"$12\r\nsunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_SHARD, true}};

/* The frame is whole: behind the number there is a CR. */
static void read_confirmation(struct pubsub_message *message, const char *at, const char *end)
{
    message->name = resp_bulk_text(resp_array_next(&at, end));
    struct span count = resp_array_next(&at, end);
    if (count.length && count.at[0] == ':')
        message->count = (unsigned)strtoul(count.at + 1, NULL, 10);
}

struct pubsub_message pubsub_read(struct span frame)
{
    struct pubsub_message message = {.kind = PUBSUB_NONE};
    const char *at, *end = frame.at + frame.length;
    if (resp_array_open(frame, &at) < 2)
        return message;
    struct span first = resp_array_next(&at, end);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (first.length != strlen(words[i].word) || !span_starts(first, words[i].word))
            continue;
        message.kind = words[i].kind;
        message.family = words[i].family;
        message.ends = words[i].ends;
        if (message.kind == PUBSUB_CONFIRMATION)
            read_confirmation(&message, at, end);
        return message;
    }
    return message;
}
