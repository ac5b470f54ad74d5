/* With hundreds of thousands of names, to free them takes as long as to serve as many lookups. */
#include "worker/client/listening_remains.h"

#include "base/memory.h"
#include "worker/client/listening_posts.h"

#include <stdlib.h>

enum { FREED_AT_ONCE = 8 * NAMES_AT_ONCE }; /* nobody is asked anything */

struct remains {
    struct turn_task task;
    struct turn *turn;
    struct keymap_node *next[PUBSUB_FAMILIES]; /* that is left of each */
};

/* Nothing is looked up any more: no node is taken from its bucket. Whether there are more. */
static bool free_some(struct remains *remains)
{
    size_t most = FREED_AT_ONCE;
    for (unsigned i = 0; i < PUBSUB_FAMILIES; i++)
        for (struct keymap_node *node; (node = remains->next[i]); most--) {
            if (!most)
                return true;
            remains->next[i] = node->newer;
            struct subscription *subscription = container_of(node, struct subscription, node);
            post_leave(subscription);
            subscription_let_go(subscription);
        }
    return false;
}

static void go_on(struct turn_task *task)
{
    struct remains *remains = container_of(task, struct remains, task);
    bool are_left = free_some(remains);
    turn_worked(remains->turn, NAMES_AT_ONCE);
    if (are_left)
        turn_line_up(remains->turn, task);
    else
        free(remains);
}

void listening_leave_remains(struct client *client)
{
    struct keymap *names = client->pinned.listening->names;
    struct turn *turn = &client->serving->turn;
    struct remains remains = {.task = {.run = go_on, .phase = TURN_READ}, .turn = turn};
    for (unsigned i = 0; i < PUBSUB_FAMILIES; i++) {
        remains.next[i] = names[i].oldest;
        keymap_finish(&names[i]);
    }
    subscriptions_show(client);
    if (!free_some(&remains))
        return;
    struct remains *left = xmalloc(sizeof *left);
    *left = remains;
    turn_line_up(turn, &left->task);
}
