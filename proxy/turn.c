/* libuv runs prepare handles right before it waits: by then all that this turn's events led to has
 * been gathered.
 */
#include "turn.h"

#include <stddef.h>

static void on_prepare(uv_prepare_t *prepare)
{
    turn_run(prepare->data);
}

int turn_init(struct turn *turn, uv_loop_t *loop)
{
    turn->first = NULL;
    turn->prepare.data = turn;
    int status = uv_prepare_init(loop, &turn->prepare);
    return status ? status : uv_prepare_start(&turn->prepare, on_prepare);
}

void turn_add(struct turn *turn, struct turn_task *task)
{
    if (task->queued)
        return;
    task->queued = true; /* in no order: tasks do not depend on each other */
    task->next = turn->first;
    turn->first = task;
}

void turn_cancel(struct turn *turn, struct turn_task *task)
{
    struct turn_task **at = &turn->first;
    if (!task->queued)
        return;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    task->queued = false;
}

void turn_run(struct turn *turn)
{
    while (turn->first) {
        struct turn_task *task = turn->first;
        turn->first = task->next;
        task->queued = false;
        task->run(task);
    }
}

void turn_close(struct turn *turn)
{
    uv_close((uv_handle_t *)&turn->prepare, NULL);
}
