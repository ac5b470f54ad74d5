/* The connections over which a client hears what it has subscribed to in a cluster (listening.h),
 * and what each of them is asked. */
#ifndef NESTGUARD_LISTENING_POSTS_H
#define NESTGUARD_LISTENING_POSTS_H

#include "worker/client/listening_names.h"

struct redis_place;
struct upstream_owner;

enum { CONFIRMATION_ROOM = 64 }; /* of a command or confirmation, beside the name */

/* Of every post: listening.c's. */
extern const struct upstream_owner listening_owner;

/* A connection's requests, in order. */
struct ask {
    struct ask *next;
    struct subscription *of;
    bool ends;
};

/* One that is lost, or was closed, is in no list, and goes with the last subscription that has it
 * still: these are too many to be looked through then. */
struct post {
    struct post *next;
    struct listening *listening;
    struct upstream *upstream;
    struct ask *first, *last;
    struct subscription *refused; /* by the reply that just came, and begins */
    size_t count;                 /* of subscriptions */
    bool is_lost;
};

/* NULL: it is heard nowhere, and was asked for nowhere. */
static inline struct post *subscription_post(const struct subscription *subscription)
{
    return subscription->post && !subscription->post->is_lost ? subscription->post : NULL;
}

static inline bool subscription_is_heard(const struct subscription *subscription)
{
    return subscription_post(subscription) && !subscription->waits;
}

bool post_leads_to(const struct post *post, const struct redis_place *place);

/* The client's post at that node, which is opened if there is none. NULL: own_connections are used
 * up. */
struct post *post_at(struct client *client, int node);

/* Where it is to be heard; NO_NODE: nobody knows. */
int post_node_for(const struct client *client, const struct subscription *subscription);

struct post *post_of(const struct listening *listening, const struct upstream *upstream);

/* Asks for it there, or to end it. With `slot`, which waits for the reply. */
void post_begin(struct post *post, struct subscription *subscription, struct reply_slot *slot);
void post_end(struct subscription *subscription, struct reply_slot *slot);

/* The same request was sent to that post by whoever follows redirections. */
void post_take_over(struct post *post, struct subscription *subscription);

/* It is heard there no more. */
void post_leave(struct subscription *subscription);

/* The oldest request has its reply. What it was for; NULL: that does not matter any more. */
struct subscription *post_answered(struct post *post, bool refused);

/* Whether this confirmation is what the oldest request waits for. */
bool post_is_answered_by(const struct post *post, const struct pubsub_message *message);

/* Closes all, or those over which nothing is heard. */
void posts_close(struct client *client, bool all);
void post_close(struct client *client, struct post *post);

#endif
