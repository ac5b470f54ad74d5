/* What is left for the end of a loop turn: everything gathered while events were handled is written
 * with one call. A task embeds in what it belongs to; it is queued at most once at a time, and may
 * be queued again while it runs.
 */
#ifndef NESTGUARD_TURN_H
#define NESTGUARD_TURN_H

#include <stdbool.h>
#include <uv.h>

struct turn_task {
    struct turn_task *next;
    bool queued;
    void (*run)(struct turn_task *task);
};

struct turn {
    uv_prepare_t prepare;
    struct turn_task *first;
};

/* Tasks run before the loop waits again. 0 or a negative errno. */
int turn_init(struct turn *turn, uv_loop_t *loop);

void turn_add(struct turn *turn, struct turn_task *task);
/* Nothing happens when it is not queued. */
void turn_cancel(struct turn *turn, struct turn_task *task);
/* Now, until none is left. */
void turn_run(struct turn *turn);
void turn_close(struct turn *turn);

#endif
