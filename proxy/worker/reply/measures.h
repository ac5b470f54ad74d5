/* What a worker measures beyond its counters: how long things take, and which commands come.
 *
 * Rejects are not to pay for it. Commands are counted where they are no rejected GET; GETs are the
 * rest of all. And of turns some are timed (turn_time_next()), each in the name of all rejects
 * since the last. Who goes to the cache costs the clock once a turn.
 */
#ifndef NESTGUARD_MEASURES_H
#define NESTGUARD_MEASURES_H

#include "guard/timing.h"
#include "resp/command.h"
#include "worker/reply/turn.h"

struct measures {
    struct turn_task task;
    uint64_t now;      /* uv_hrtime() of this turn, once somebody has asked; else 0 */
    uint64_t rejected; /* of all keyspaces, when a turn was last timed */
    uint64_t commands; /* likewise */
    unsigned ticks;
    bool shadowed; /* the last ruling: shadow mode alone lets the key pass */
    struct histogram times[WORKER_TIME_COUNT];
    uint64_t calls[COMMAND_NUMBERS]; /* by command_number(); of GET only some */
    counter told[COMMAND_NUMBERS];   /* the same for other threads, and GET */
};

/* Of a GET nothing need be known: what is counted of them makes no difference. */
static inline void measures_call(struct measures *measures, const struct command *command)
{
    measures->calls[command_number(command)]++;
}

/* It will be counted once more. */
static inline void measures_uncall(struct measures *measures, const struct command *command)
{
    measures->calls[command_number(command)]--;
}

/* Takes what `shadowed` says, which is of one ruling only. */
static inline bool measures_take_shadow(struct measures *measures)
{
    bool shadowed = measures->shadowed;
    measures->shadowed = false;
    return shadowed;
}

#endif
