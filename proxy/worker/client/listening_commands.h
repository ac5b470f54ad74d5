/* SUBSCRIBE and its like in a cluster (listening.h), as they are under way. */
#ifndef NESTGUARD_LISTENING_COMMANDS_H
#define NESTGUARD_LISTENING_COMMANDS_H

#include "resp/pubsub.h"
#include "worker/client/client.h"
#include "worker/client/listening_names.h"

/* What a command names. `kept`: where that begins in the client's input, one bulk after the other,
 * which is for this command alone and goes over to it with many names; NULL: it does not stay. */
struct listening_words {
    const struct span *names;
    size_t count;
    const char *kept;
};

/* SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE: all of them, or an error and none. And what ends them;
 * `count` is 0: all of the family. Nothing of the client's is under way, and it settles. */
void listening_begin(struct client *client, enum pubsub_family family,
                     const struct listening_words *words);
void listening_end(struct client *client, enum pubsub_family family,
                   const struct listening_words *words);

/* Whether a command with so many names is served in pieces. */
bool listening_has_pieces(size_t names);

/* The slot of an UNSUBSCRIBE or the like whose names have not all been sent yet; NULL: there is
 * none. */
const struct reply_slot *listening_ending_slot(const struct listening *listening);

/* Its client has gone, or all of its names are sent: nothing is left to be done in pieces. */
void listening_command_end(struct listening *listening);

#endif
