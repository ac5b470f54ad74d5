/* What is left for the end of a loop turn: everything gathered while events were handled is served
 * in one go, and written with one call. A task embeds in what it belongs to; it is queued at most
 * once at a time, and may be queued again while it runs.
 *
 *   sockets ─▶ READ ─▶ SERVE ─▶ WRITE     who asked little: at once, and their replies leave
 *                ▲
 *              LINE                       the others: one visit each in turn
 *
 * The line goes on until a turn's work is done, or its time is over; then replies leave, and the
 * loop looks at its sockets before it goes on with it. So one visit that takes long is the turn's
 * last. After a turn in which much was done the processor goes to whoever else waits for it.
 */
#ifndef NESTGUARD_TURN_H
#define NESTGUARD_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Tasks of an earlier phase go first: input is parsed, commands are served, replies and what goes
 * to the cache are written. */
enum turn_phase {
    TURN_READ,
    TURN_SERVE,
    TURN_WRITE,
    TURN_PHASES,
    TURN_LINE = TURN_PHASES /* where a task is that has lined up */
};

struct turn_task {
    struct turn_task *next;
    enum turn_phase phase;
    bool queued;
    void (*run)(struct turn_task *task);
};

struct turn {
    uv_prepare_t prepare;
    uv_idle_t awake; /* while there is a line: the loop looks at its sockets, but does not wait */
    struct turn_task *first[TURN_PHASES];
    struct turn_task *front, **back; /* of the line */
    size_t work;                     /* for the line in each turn, in arguments of commands */
    size_t worked;                   /* in this turn so far; in the line by itself */
    uint64_t number;                 /* of turns begun */
    bool (*timed)(void *arg, uint64_t nanoseconds); /* of turn_time_next() */
    void *timed_arg;
    bool is_timed;   /* this turn: what is served before its end counts, too */
    uint64_t served; /* nanoseconds of that */
};

/* Tasks run before the loop waits again. 0 or a negative errno. */
int turn_init(struct turn *turn, uv_loop_t *loop);

/* Runs the task before the loop waits again. Nothing happens when it is queued. */
void turn_add(struct turn *turn, struct turn_task *task);
/* A task of TURN_READ takes its place at the line's end. Nothing happens when it is queued. */
void turn_line_up(struct turn *turn, struct turn_task *task);
/* At the line's front, wherever it is queued: for who gives back much by it, and comes no more. */
void turn_line_up_first(struct turn *turn, struct turn_task *task);
/* Nothing happens when it is not queued. */
void turn_cancel(struct turn *turn, struct turn_task *task);
/* Runs it before its time. Nothing happens when it is not queued. */
void turn_run_now(struct turn *turn, struct turn_task *task);
/* Whether a task of this phase or one before it is queued. */
bool turn_has(const struct turn *turn, enum turn_phase last);

/* Whether anybody is in line. */
static inline bool turn_has_line(const struct turn *turn)
{
    return turn->front != NULL;
}

/* How long the next whole turn takes is told, and that of each further one until `timed` says that
 * it was of use: its end, all that was left for it, and what was served before. */
void turn_time_next(struct turn *turn, bool (*timed)(void *arg, uint64_t nanoseconds), void *arg);

/* Around what is served while sockets are still read: 0 in turns that nobody times. */
static inline uint64_t turn_begin_serving(const struct turn *turn)
{
    return turn->is_timed ? uv_hrtime() : 0;
}
static inline void turn_end_serving(struct turn *turn, uint64_t began)
{
    if (began)
        turn->served += uv_hrtime() - began;
}

/* Now, until none of this phase and those before it is left; the line stays. */
void turn_run(struct turn *turn, enum turn_phase last);
/* So much was done, in arguments of commands. */
static inline void turn_worked(struct turn *turn, size_t arguments)
{
    turn->worked += arguments;
}

/* All of the line, as far as TURN_SERVE. */
void turn_empty_line(struct turn *turn);
void turn_close(struct turn *turn);

#endif
