/* Only the first word tells such a message from any other array. */
#include "resp/pubsub.h"

#include "resp/resp.h"

#include <stdlib.h>

static const struct {
    const char *word; /* as it is on the wire */
    enum pubsub_kind kind;
    enum pubsub_family family;
} words[] = {{"$7\r\nmessage\r\n", PUBSUB_MESSAGE, PUBSUB_CHANNEL},
             {"$8\r\npmessage\r\n", PUBSUB_MESSAGE, PUBSUB_PATTERN},
             {"$8\r\nsmessage\r\n", PUBSUB_MESSAGE, PUBSUB_SHARD},
             {"$9\r\nsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL},
             {"$10\r\npsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_PATTERN},
             {"$10\r\nssubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_SHARD},
             {"$11\r\nunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_CHANNEL},
             {"$12\r\npunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_PATTERN},
             {"$12\r\nsunsubscribe\r\n", PUBSUB_CONFIRMATION, PUBSUB_SHARD}};

/* The frame is whole: behind the number there is a CR. */
static unsigned count_of(const char *at, const char *end)
{
    resp_array_next(&at, end); /* the channel */
    struct span count = resp_array_next(&at, end);
    return count.length && count.at[0] == ':' ? (unsigned)strtoul(count.at + 1, NULL, 10) : 0;
}

struct pubsub_message pubsub_read(struct span frame)
{
    const char *at, *end = frame.at + frame.length;
    if (resp_array_open(frame, &at) < 2)
        return (struct pubsub_message){.kind = PUBSUB_NONE};
    struct span first = resp_array_next(&at, end);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (first.length == strlen(words[i].word) && span_starts(first, words[i].word))
            return (struct pubsub_message){words[i].kind, words[i].family,
                                           words[i].kind == PUBSUB_CONFIRMATION ? count_of(at, end)
                                                                                : 0};
    return (struct pubsub_message){.kind = PUBSUB_NONE};
}
