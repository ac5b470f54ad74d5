/* What a client has subscribed to in a cluster (listening.h), by name. */
#ifndef NESTGUARD_LISTENING_NAMES_H
#define NESTGUARD_LISTENING_NAMES_H

#include "base/keymap.h"
#include "resp/pubsub.h"
#include "worker/client/client.h"
#include "worker/reply/turn.h"

struct post;

/* Names that are looked at in one visit of the line: some 100 us, also where each is asked for. */
enum { NAMES_AT_ONCE = 64 };

struct subscription {
    struct keymap_node node; /* its key is the name */
    enum pubsub_family family;
    struct post *post;         /* where it is heard, or was asked for, if it is not lost */
    unsigned asks;             /* that are about it, wherever */
    bool waits;                /* for the reply of its post */
    bool begins;               /* by the command under way */
    bool gone;                 /* from its map: freed with the last of its asks */
    struct subscription *next; /* of those that begin */
    char name[];
};

/* Through all names, some at a time; there are more while `family` is one. */
struct subscriptions_walk {
    struct turn_task task;
    unsigned family;
    struct keymap_node *next;
    bool is_under_way;
    bool again; /* from the start, when it has come to the end */
};

/* The command under way, if it is done in pieces. */
struct listening_command {
    struct turn_task task;
    struct reply_slot *slot; /* NULL: nothing of it is left to be done here */
    enum pubsub_family family;
    bool ends;
    const char *at; /* the names that are left, one bulk after the other; NULL: all of the family */
    size_t left;
    struct buffer input; /* where they are */
    size_t held;         /* bytes of that, which count as the slot's */
};

struct listening {
    struct client *client;
    struct keymap names[PUBSUB_FAMILIES];
    struct post *posts;
    size_t bytes;
    size_t asked; /* of all posts, and not answered yet */
    struct subscriptions_walk walk;
    struct listening_command command;
    /* Of the command under way: what it is answered, and what the first error was. */
    struct subscription *beginning;
    struct buffer reply, error;
    bool lacks;     /* something is not heard, or may not be where it should */
    uint64_t since; /* clock_ms() when that began; 0: it has not */
    uint64_t tried; /* clock_ms() when all was last looked at */
};

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

/* How many there are, where others see it: whenever one has come or gone. */
void subscriptions_show(struct client *client);

/* The walk begins, at the oldest. */
void subscriptions_begin_walk(struct listening *listening);

/* What comes next of it, of at most NAMES_AT_ONCE names: `act` may take out the one that it is
 * given. Whether there are more. */
bool subscriptions_next(struct client *client,
                        void (*act)(struct client *client, struct subscription *subscription));

#endif
