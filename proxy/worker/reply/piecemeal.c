/* Who is in line is visited until the turn's time is over: a piece is what may be done after that.
 */
#include "worker/reply/piecemeal.h"

#include "base/container_of.h"
#include "guard/view.h"

#include <stdlib.h>

bool piecemeal_has_room(const struct serving *serving, size_t bytes)
{
    return !serving->piecemeal ||
           serving->piecemeal + bytes <= serving_config(serving)->max_client_memory / 8;
}

static void run(struct turn_task *task)
{
    struct piecemeal *piecemeal = container_of(task, struct piecemeal, task);
    struct reply_slot *slot = piecemeal->slot;
    struct serving *serving = slot->serving;
    if (piecemeal->go_on(piecemeal)) {
        if (!piecemeal->is_paused)
            turn_line_up(&serving->turn, task);
        return;
    }
    serving->piecemeal -= piecemeal->bytes;
    reply_slot_answered(slot);
    free(piecemeal);
}

void piecemeal_begin(struct piecemeal *piecemeal, size_t bytes)
{
    struct serving *serving = piecemeal->slot->serving;
    piecemeal->task = (struct turn_task){.run = run, .phase = TURN_READ};
    piecemeal->bytes = bytes;
    piecemeal->is_paused = false;
    serving->piecemeal += bytes;
    turn_line_up(&serving->turn, &piecemeal->task);
}

void piecemeal_resume(struct piecemeal *piecemeal)
{
    if (!piecemeal->is_paused)
        return;
    piecemeal->is_paused = false;
    turn_line_up(&piecemeal->slot->serving->turn, &piecemeal->task);
}
