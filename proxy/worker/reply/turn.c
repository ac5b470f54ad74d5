/* libuv runs prepare handles right before it waits: by then all that this turn's events led to has
 * been gathered.
 */
#include "worker/reply/turn.h"

#include <string.h>

static void on_prepare(uv_prepare_t *prepare)
{
    turn_run(prepare->data, TURN_WRITE);
}

int turn_init(struct turn *turn, uv_loop_t *loop)
{
    memset(turn->first, 0, sizeof turn->first);
    turn->prepare.data = turn;
    int status = uv_prepare_init(loop, &turn->prepare);
    return status ? status : uv_prepare_start(&turn->prepare, on_prepare);
}

void turn_add(struct turn *turn, struct turn_task *task)
{
    if (task->queued)
        return;
    task->queued = true; /* in no order: tasks do not depend on each other */
    task->next = turn->first[task->phase];
    turn->first[task->phase] = task;
}

void turn_cancel(struct turn *turn, struct turn_task *task)
{
    struct turn_task **at = &turn->first[task->phase];
    if (!task->queued)
        return;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    task->queued = false;
}

bool turn_has(const struct turn *turn, enum turn_phase last)
{
    for (int phase = 0; phase <= (int)last; phase++)
        if (turn->first[phase])
            return true;
    return false;
}

static struct turn_task *pop(struct turn *turn, enum turn_phase last)
{
    for (int phase = 0; phase <= (int)last; phase++) {
        struct turn_task *task = turn->first[phase];
        if (!task)
            continue;
        turn->first[phase] = task->next;
        task->queued = false;
        return task;
    }
    return NULL;
}

void turn_run(struct turn *turn, enum turn_phase last)
{
    for (struct turn_task *task; (task = pop(turn, last));)
        task->run(task);
}

void turn_close(struct turn *turn)
{
    uv_close((uv_handle_t *)&turn->prepare, NULL);
}
