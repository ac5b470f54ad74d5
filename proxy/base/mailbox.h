/* How threads talk: each event loop has one mailbox, and any thread may post to it.
 *
 *   sender ──post──▶ receiver's loop: deliver() ──post back──▶ sender's loop: deliver() ──▶ free
 *
 * Every message makes a round trip. Its receiver may read and fill it until it posts it back;
 * whoever made it frees it. So an answer needs no second allocation, and a returned message is an
 * acknowledgement.
 */
#ifndef NESTGUARD_MAILBOX_H
#define NESTGUARD_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct mailbox;

/* The first member of each message: whoever gets one knows by its kind what it is part of. */
struct message {
    int kind;               /* which of the messages it is that the loops have agreed on */
    struct mailbox *sender; /* where it goes back to */
    struct message *next;   /* the mailbox's, while the message is in it */
};

/* Called on the receiver's loop, once for each message, in an event of its own and never from
 * within mailbox_post(). Must return the message now or later, unless it is one of the receiver's
 * own that has come back: that it frees. */
typedef void (*mailbox_deliver)(void *arg, struct message *message);

struct mailbox {
    uv_async_t wake;               /* of the receiver's loop */
    uv_mutex_t lock;               /* held for a few instructions */
    struct message *first, **last; /* posted and not taken yet, the oldest first; by the lock */
    struct message *taken;         /* and not delivered yet, likewise; the loop's alone */
    uint64_t pace;                 /* nanoseconds; 0: none */
    mailbox_deliver deliver;       /* with `arg`, on the receiver's loop */
    void *arg;
};

/* The loop's thread. 0, or libuv's error: then there is nothing to close. Keeps its loop alive
 * until it is closed. */
int mailbox_init(struct mailbox *mailbox, uv_loop_t *loop, mailbox_deliver deliver, void *arg);

/* Deliveries take no longer than this at a time, but for the one that is under way then: the rest
 * comes in the loop's next turn, behind what its sockets and timers have brought. 0, as at first:
 * all comes at once. */
void mailbox_pace(struct mailbox *mailbox, uint64_t nanoseconds);

/* Any thread. Messages of one thread arrive in the order in which it posted them. */
void mailbox_post(struct mailbox *mailbox, struct message *message);

/* Gives the message back to who sent it; from then on it must not be touched. */
static inline void mailbox_return(struct message *message)
{
    mailbox_post(message->sender, message);
}

/* The loop's thread, when nobody posts any more. The memory may go when the loop has closed the
 * handle. */
void mailbox_close(struct mailbox *mailbox);

#endif
