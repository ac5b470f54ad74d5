/* A list under a lock that is held for a few instructions. The loop may be woken once for many
 * messages (uv_async_send() merges them), so whoever is woken takes all.
 */
#include "base/mailbox.h"

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

static void on_wake(uv_async_t *wake)
{
    struct mailbox *mailbox = wake->data;
    struct message *message = take_all(mailbox);
    while (message) {
        struct message *next = message->next;
        mailbox->deliver(mailbox->arg, message);
        message = next;
    }
}

int mailbox_init(struct mailbox *mailbox, uv_loop_t *loop, mailbox_deliver deliver, void *arg)
{
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    mailbox->deliver = deliver;
    mailbox->arg = arg;
    mailbox->wake.data = mailbox;
    int status = uv_mutex_init(&mailbox->lock);
    return status ? status : uv_async_init(loop, &mailbox->wake, on_wake);
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
