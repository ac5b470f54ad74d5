/* What a client has subscribed to in a cluster (listening.h), by name. */
#ifndef NESTGUARD_LISTENING_NAMES_H
#define NESTGUARD_LISTENING_NAMES_H

#include "base/keymap.h"
#include "resp/pubsub.h"
#include "worker/client/client.h"

struct post;

struct subscription {
    struct keymap_node node; /* its key is the name */
    enum pubsub_family family;
    struct post *post;         /* where it is heard, or was asked for; NULL: nowhere */
    unsigned asks;             /* that are about it, wherever */
    bool waits;                /* for the reply of its post */
    bool begins;               /* by the command under way */
    bool gone;                 /* from its map: freed with the last of its asks */
    struct subscription *next; /* of those that begin */
    char name[];
};

struct listening {
    struct keymap names[PUBSUB_FAMILIES];
    struct post *posts;
    size_t bytes;
    /* Of the command under way: what it is answered, and what the first error was. */
    struct subscription *beginning;
    struct buffer reply, error;
    bool lacks;     /* something is not heard, or may not be where it should */
    uint64_t since; /* clock_ms() when that began; 0: it has not */
    uint64_t tried; /* clock_ms() when all was last looked at */
};

static inline bool subscription_is_heard(const struct subscription *subscription)
{
    return subscription->post && !subscription->waits;
}

static inline struct span subscription_name(const struct subscription *subscription)
{
    return subscription->node.key;
}

/* Begun, if there is none. */
struct listening *listening_of(struct client *client);

/* NULL: it is not subscribed to. */
struct subscription *subscription_find(const struct listening *listening, enum pubsub_family family,
                                       struct span name);

/* One more, which begins. NULL: there is no memory. */
struct subscription *subscription_add(struct client *client, enum pubsub_family family,
                                      struct span name);

/* It is not the client's any more, and its end is asked for wherever it is heard. The second frees
 * it, at once or with the last reply that is about it. */
void subscription_take_out(struct client *client, struct subscription *subscription);
void subscription_let_go(struct subscription *subscription);

/* May take out the one that it is given. */
void subscriptions_each(struct client *client,
                        void (*act)(struct client *client, struct subscription *subscription));

#endif
