/* What is left for the end of a loop turn: everything gathered while events were handled is served
 * in one go, and written with one call. A task embeds in what it belongs to; it is queued at most
 * once at a time, and may be queued again while it runs.
 */
#ifndef NESTGUARD_TURN_H
#define NESTGUARD_TURN_H

#include <stdbool.h>
#include <uv.h>

/* Tasks of an earlier phase go first: input is parsed, commands are served, replies and what goes
 * to the cache are written. */
enum turn_phase { TURN_READ, TURN_SERVE, TURN_WRITE, TURN_PHASES };

struct turn_task {
    struct turn_task *next;
    enum turn_phase phase;
    bool queued;
    void (*run)(struct turn_task *task);
};

struct turn {
    uv_prepare_t prepare;
    struct turn_task *first[TURN_PHASES];
};

/* Tasks run before the loop waits again. 0 or a negative errno. */
int turn_init(struct turn *turn, uv_loop_t *loop);

void turn_add(struct turn *turn, struct turn_task *task);
/* Nothing happens when it is not queued. */
void turn_cancel(struct turn *turn, struct turn_task *task);
/* Whether a task of this phase or one before it is queued. */
bool turn_has(const struct turn *turn, enum turn_phase last);

/* Now, until none of this phase and those before it is left. */
void turn_run(struct turn *turn, enum turn_phase last);
void turn_close(struct turn *turn);

#endif
