/* A list under a lock that is held for a few instructions. The loop may be woken once for many
 * messages (uv_async_send() merges them), so whoever is woken takes all, and wakes himself again
 * for those that he has no time for.
 */
#include "base/mailbox.h"

#include "base/clock.h"

/* Delivered without the lock: a receiver may post, also to itself. */
static struct message *take_all(struct mailbox *mailbox)
{
    uv_mutex_lock(&mailbox->lock);
    struct message *first = mailbox->first;
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    uv_mutex_unlock(&mailbox->lock);
    return first;
}

/* Nobody who waits for one message needs the clock. A mailbox that is closed meanwhile is woken no
 * more: it gets all. */
static void deliver_some(struct mailbox *mailbox)
{
    bool is_paced = mailbox->pace && mailbox->taken && mailbox->taken->next;
    uint64_t end = is_paced ? clock_ns() + mailbox->pace : 0;
    struct message *message;
    while ((message = mailbox->taken)) {
        mailbox->taken = message->next;
        mailbox->deliver(mailbox->arg, message);
        if (is_paced && clock_ns() >= end && !uv_is_closing((uv_handle_t *)&mailbox->wake))
            return;
    }
}

/* What is posted behind messages that are left wakes the loop before its turn has come: hence once
 * more when these are gone. */
static void on_wake(uv_async_t *wake)
{
    struct mailbox *mailbox = wake->data;
    bool was_left = mailbox->taken;
    if (!was_left)
        mailbox->taken = take_all(mailbox);
    deliver_some(mailbox);
    if ((was_left || mailbox->taken) && !uv_is_closing((uv_handle_t *)wake))
        uv_async_send(wake);
}

int mailbox_init(struct mailbox *mailbox, uv_loop_t *loop, mailbox_deliver deliver, void *arg)
{
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    mailbox->taken = NULL;
    mailbox->pace = 0;
    mailbox->deliver = deliver;
    mailbox->arg = arg;
    mailbox->wake.data = mailbox;
    int status = uv_mutex_init(&mailbox->lock);
    return status ? status : uv_async_init(loop, &mailbox->wake, on_wake);
}

void mailbox_pace(struct mailbox *mailbox, uint64_t nanoseconds)
{
    mailbox->pace = nanoseconds;
}

void mailbox_post(struct mailbox *mailbox, struct message *message)
{
    message->next = NULL;
    uv_mutex_lock(&mailbox->lock);
    *mailbox->last = message;
    mailbox->last = &message->next;
    /* Under the lock: whoever has taken the message may close the mailbox as soon as the lock is
     * free. */
    uv_async_send(&mailbox->wake);
    uv_mutex_unlock(&mailbox->lock);
}

static void on_closed(uv_handle_t *handle)
{
    struct mailbox *mailbox = handle->data;
    uv_mutex_destroy(&mailbox->lock);
}

void mailbox_close(struct mailbox *mailbox)
{
    uv_close((uv_handle_t *)&mailbox->wake, on_closed);
}
