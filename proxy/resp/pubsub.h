/* The messages of publish and subscribe, as an array of RESP2 or a push of RESP3:
 *
 *   subscribe news :1       message news "text"       invalidate ["key"]
 */
#ifndef NESTGUARD_PUBSUB_H
#define NESTGUARD_PUBSUB_H

#include "base/span.h"
#include <stdbool.h>

enum pubsub_kind {
    PUBSUB_NONE,        /* no such message */
    PUBSUB_MESSAGE,     /* from whoever published */
    PUBSUB_CONFIRMATION /* of a subscription that began or ended */
};

enum pubsub_family { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_FAMILIES };

struct pubsub_message {
    enum pubsub_kind kind;
    enum pubsub_family family;
    unsigned count;   /* of a confirmation: the subscriptions that there are now */
    bool ends;        /* likewise: the subscription has ended */
    struct span name; /* likewise: whose; in the frame. Empty: nobody's */
};

/* `frame`: a whole reply. One that is no array or push, or has another first word, is none. */
struct pubsub_message pubsub_read(struct span frame);

/* What begins subscriptions of the family, or ends them: as a command and in its confirmation,
 * which has it in lower case. */
const char *pubsub_word(enum pubsub_family family, bool ends);

/* Whether a command is called so, in whichever case; and which. */
bool pubsub_is_command(struct span word, enum pubsub_family *family, bool *ends);

#endif
