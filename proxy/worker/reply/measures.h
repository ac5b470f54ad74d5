/* What a worker measures beyond its counters: how long things take, and which commands come.
 *
 * Rejects are not to pay for it. Commands are counted where they are no rejected GET; GETs are the
 * rest of all. And of turns some are timed (turn_time_next()), each in the name of all rejects
 * since the last. Of commands that go to the cache the first of each tenth of a second are all
 * timed, of those behind them one in so many, in the name of those passed over: where little is
 * asked each is counted, and where much is, few pay.
 */
#ifndef NESTGUARD_MEASURES_H
#define NESTGUARD_MEASURES_H

#include "guard/timing.h"
#include "resp/command.h"
#include "worker/reply/turn.h"

enum { MEASURES_EXACT = 32, MEASURES_EACH = 64 }; /* per tick; and one in so many */

struct measures {
    struct turn_task task;
    uint64_t now;      /* uv_hrtime() of this turn, once somebody has asked; else 0 */
    uint64_t rejected; /* of all keyspaces, when a turn was last timed */
    uint64_t commands; /* likewise */
    unsigned ticks;
    unsigned singles; /* commands timed since the last tick, each for itself alone */
    unsigned passed;  /* commands that will not be timed, before one is */
    bool shadowed;    /* the last ruling: shadow mode alone lets the key pass */
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
