#include "resp/pubsub.h"

#include "resp/resp.h"

#include <stdlib.h>

static const char *const messages[PUBSUB_FAMILIES] = {
    [PUBSUB_CHANNEL] = "message", [PUBSUB_PATTERN] = "pmessage", [PUBSUB_SHARD] = "smessage"};

static const char *const words[PUBSUB_FAMILIES][2] = {
    [PUBSUB_CHANNEL] = {"subscribe", "unsubscribe"},
    [PUBSUB_PATTERN] = {"psubscribe", "punsubscribe"},
    [PUBSUB_SHARD] = {"ssubscribe", "sunsubscribe"}};

const char *pubsub_word(enum pubsub_family family, bool ends)
{
    return words[family][ends];
}

bool pubsub_is_command(struct span word, enum pubsub_family *family, bool *ends)
{
    for (unsigned i = 0; i < 2 * PUBSUB_FAMILIES; i++) {
        *family = (enum pubsub_family)(i / 2);
        *ends = i % 2;
        if (span_is_word(word, pubsub_word(*family, *ends)))
            return true;
    }
    return false;
}

/* The frame is whole: behind the number there is a CR. */
static void read_confirmation(struct pubsub_message *message, const char *at, const char *end)
{
    message->kind = PUBSUB_CONFIRMATION;
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
    struct span word = resp_bulk_text(resp_array_next(&at, end));
    for (unsigned i = 0; i < PUBSUB_FAMILIES; i++) {
        message.family = (enum pubsub_family)i;
        message.ends = span_is(word, words[i][true]);
        if (span_is(word, messages[i])) {
            message.kind = PUBSUB_MESSAGE;
            return message;
        }
        if (message.ends || span_is(word, words[i][false])) {
            read_confirmation(&message, at, end);
            return message;
        }
    }
    return message;
}
