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

#include <uv.h>

struct mailbox;

struct message {
    int kind;               /* which of the messages it is that the loops have agreed on */
    struct mailbox *sender; /* where it goes back to */
    struct message *next;
};

typedef void (*mailbox_deliver)(void *arg, struct message *message);

struct mailbox {
    uv_async_t wake;
    uv_mutex_t lock;
    struct message *first, **last;
    mailbox_deliver deliver;
    void *arg;
};

int mailbox_init(struct mailbox *mailbox, uv_loop_t *loop, mailbox_deliver deliver, void *arg);

/* Any thread. Messages of one thread arrive in the order in which it posted them. */
void mailbox_post(struct mailbox *mailbox, struct message *message);

static inline void mailbox_return(struct message *message)
{
    mailbox_post(message->sender, message);
}

/* The loop's thread, when nobody posts any more. The memory may go when the loop has closed the
 * handle. */
void mailbox_close(struct mailbox *mailbox);

#endif
