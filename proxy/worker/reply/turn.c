/* libuv runs prepare handles right before it waits: by then all that this turn's events led to has
 * been gathered.
 *
 * The line is served in turn (a round robin): who has more left after a visit goes to its end.
 * Nobody starves in it, since at least one is visited in each turn, however many ask for little,
 * and who goes to its front comes no more.
 */
#include "worker/reply/turn.h"

#include "base/clock.h"

#include <sched.h>
#include <string.h>

/* Five hundred lookups take as long, with their replies; what takes longer, such as much for the
 * cache, has fewer visits. A load comes by the worker several times, and waits for a turn each
 * time; with much shorter ones it is the loop that takes the time. */
enum { WORK = 1024, WORK_OF_VISIT = 16, LINE_NS = 125 * 1000 };

/* After a turn of so much, in arguments of commands, others get the processor. */
enum { MUCH_WORK = 64 };

/* An active idle handle is what keeps the loop from waiting. The line may have come to its end
 * elsewhere than in advance_line(). */
static void on_awake(uv_idle_t *awake)
{
    const struct turn *turn = awake->data;
    if (!turn->front)
        uv_idle_stop(awake);
}

static struct turn_task *pop_line(struct turn *turn)
{
    struct turn_task *task = turn->front;
    turn->front = task->next;
    if (!turn->front)
        turn->back = &turn->front;
    task->phase = TURN_READ;
    task->queued = false;
    return task;
}

/* A visit has its price, however little is served: many small ones make a turn's work, too. */
static void visit_first(struct turn *turn)
{
    struct turn_task *task = pop_line(turn);
    task->run(task);
    turn_run(turn, TURN_SERVE);
    turn->worked += WORK_OF_VISIT;
}

/* The clock is read for each visit, of a batch of commands, and not where there is no line. */
__attribute__((noinline)) static void advance_line(struct turn *turn)
{
    uint64_t end = clock_ns() + LINE_NS;
    do
        visit_first(turn);
    while (turn->front && turn->worked < turn->work && clock_ns() < end);
    turn_run(turn, TURN_WRITE);
    if (turn->front)
        uv_idle_start(&turn->awake, on_awake);
    else
        uv_idle_stop(&turn->awake);
}

/* Returns how much was done in it. */
static size_t end_turn(struct turn *turn)
{
    turn->number++;
    turn_run(turn, TURN_WRITE);
    size_t worked = turn->worked;
    turn->worked = 0;
    if (!turn->front)
        return worked;
    advance_line(turn);
    worked += turn->worked;
    turn->worked = 0;
    return worked;
}

/* Under a flood the loop never sleeps, and the kernel would let it go on to the end of its slice
 * while the cache, on the same processor, has a reply ready that somebody waits for. With nobody
 * waiting for the processor it costs a system call, which a turn of so much does not notice. */
static void give_way(size_t worked)
{
    if (worked >= MUCH_WORK)
        (void)sched_yield();
}

static void on_prepare(uv_prepare_t *prepare)
{
    give_way(end_turn(prepare->data));
}

/* A handle that is started already keeps its callback: hence the stop. */
static void be_prepared(struct turn *turn, uv_prepare_cb callback)
{
    uv_prepare_stop(&turn->prepare);
    uv_prepare_start(&turn->prepare, callback);
}

static void on_timed_prepare(uv_prepare_t *prepare)
{
    struct turn *turn = prepare->data;
    uint64_t began = uv_hrtime();
    size_t worked = end_turn(turn);
    turn->is_timed = !turn->timed(turn->timed_arg, turn->served + (uv_hrtime() - began));
    turn->served = 0;
    if (!turn->is_timed)
        be_prepared(turn, on_prepare);
    give_way(worked);
}

/* The end of a turn whose beginning was not seen. */
static void on_prepare_before(uv_prepare_t *prepare)
{
    struct turn *turn = prepare->data;
    on_prepare(prepare);
    turn->is_timed = true;
    be_prepared(turn, on_timed_prepare);
}

/* Another callback in place of a question in every turn. */
void turn_time_next(struct turn *turn, bool (*timed)(void *arg, uint64_t nanoseconds), void *arg)
{
    turn->timed = timed;
    turn->timed_arg = arg;
    if (!turn->is_timed)
        be_prepared(turn, on_prepare_before);
}

int turn_init(struct turn *turn, uv_loop_t *loop)
{
    memset(turn->first, 0, sizeof turn->first);
    turn->front = NULL;
    turn->back = &turn->front;
    turn->work = WORK;
    turn->worked = 0;
    turn->number = 0;
    turn->is_timed = false;
    turn->served = 0;
    turn->prepare.data = turn->awake.data = turn;
    int status = uv_prepare_init(loop, &turn->prepare);
    if (!status)
        status = uv_idle_init(loop, &turn->awake);
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

void turn_line_up(struct turn *turn, struct turn_task *task)
{
    if (task->queued)
        return;
    task->queued = true;
    task->phase = TURN_LINE;
    task->next = NULL;
    *turn->back = task;
    turn->back = &task->next;
}

/* A walk along the line: it happens when a client goes. */
static void leave_line(struct turn *turn, struct turn_task *task)
{
    struct turn_task **at = &turn->front;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (turn->back == &task->next)
        turn->back = at;
    task->phase = TURN_READ;
    task->queued = false;
}

void turn_cancel(struct turn *turn, struct turn_task *task)
{
    struct turn_task **at;
    if (!task->queued)
        return;
    if (task->phase == TURN_LINE) {
        leave_line(turn, task);
        return;
    }
    at = &turn->first[task->phase];
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    task->queued = false;
}

void turn_line_up_first(struct turn *turn, struct turn_task *task)
{
    turn_cancel(turn, task);
    task->queued = true;
    task->phase = TURN_LINE;
    task->next = turn->front;
    if (!turn->front)
        turn->back = &task->next;
    turn->front = task;
}

void turn_run_now(struct turn *turn, struct turn_task *task)
{
    if (!task->queued)
        return;
    turn_cancel(turn, task);
    task->run(task);
}

bool turn_has(const struct turn *turn, enum turn_phase last)
{
    for (int phase = 0; phase <= (int)last; phase++)
        if (turn->first[phase])
            return true;
    return false;
}

/* From the first phase on each time: a task may have added one of an earlier phase. It is not
 * queued any more when it runs, so it may add itself. */
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

void turn_empty_line(struct turn *turn)
{
    turn_run(turn, TURN_SERVE);
    while (turn->front)
        visit_first(turn);
}

void turn_close(struct turn *turn)
{
    uv_close((uv_handle_t *)&turn->prepare, NULL);
    uv_close((uv_handle_t *)&turn->awake, NULL);
}
