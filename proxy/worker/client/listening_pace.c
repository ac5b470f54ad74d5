/* Whoever is not done, and not in line, waits for replies: nothing else is kept of that. */
#include "worker/client/listening_pace.h"

void listening_go_on(struct listening *listening, struct turn_task *task)
{
    if (!listening_has_asked_much(listening))
        turn_line_up(&listening->client->serving->turn, task);
}

void listening_answered(struct listening *listening)
{
    struct turn *turn = &listening->client->serving->turn;
    if (--listening->asked > MOST_ASKED / 2)
        return;
    if (listening->command.slot)
        turn_line_up(turn, &listening->command.task);
    if (listening->walk.is_under_way)
        turn_line_up(turn, &listening->walk.task);
}
