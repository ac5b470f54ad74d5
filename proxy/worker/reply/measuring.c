/* The clock is looked at once in a turn, however many lookups begin or end in it: times are those
 * of turns, as guard/timing.h has it. What is timed stands for what is not, too (`times`).
 */
#include "worker/reply/measuring.h"

#include "base/container_of.h"

#include <string.h>

enum { TELL_EACH = 10 }; /* ticks: it is a walk through the table of commands */

/* ---- lookups ---- */

static void forget_now(struct turn_task *task)
{
    container_of(task, struct measures, task)->now = 0;
}

/* One time for all that happens in a turn. */
static uint64_t now_of(struct serving *serving)
{
    struct measures *measures = &serving->measures;
    if (measures->now)
        return measures->now;
    if (!measures->task.queued)
        measures->task = (struct turn_task){.run = forget_now, .phase = TURN_WRITE};
    turn_add(&serving->turn, &measures->task);
    return measures->now = uv_hrtime();
}

/* The first of a tick stand for themselves alone. */
void measuring_time(struct reply_slot *slot)
{
    struct measures *measures = &slot->serving->measures;
    bool is_single = measures->singles < MEASURES_EXACT;
    slot->times = is_single ? 1 : MEASURES_EACH;
    if (is_single)
        measures->singles++;
    else
        measures->passed = MEASURES_EACH - 1;
    slot->since = now_of(slot->serving);
}

void measuring_count(const struct lookup *lookup, enum worker_time time)
{
    const struct reply_slot *slot = lookup->slot;
    histogram_add(&slot->serving->measures.times[time], now_of(slot->serving) - slot->since,
                  slot->times);
}

/* ---- turns, and the rejects in them ---- */

static uint64_t count_rejected(const struct serving *serving)
{
    uint64_t count = 0;
    for (size_t i = 0; i < serving_config(serving)->keyspace_count; i++)
        count += counter_read(&serving->keyspaces[i].rejected);
    return count;
}

/* Of turns in which nothing was served nobody wants to know. */
static bool on_timed(void *arg, uint64_t nanoseconds)
{
    struct serving *serving = arg;
    struct measures *measures = &serving->measures;
    uint64_t commands = counter_read(&serving->counters.commands);
    uint64_t rejected = count_rejected(serving);
    if (commands == measures->commands)
        return false;
    histogram_add(&measures->times[TIME_TURN], nanoseconds, 1);
    if (rejected > measures->rejected)
        histogram_add(&measures->times[TIME_ABSENT_REJECTED], nanoseconds,
                      rejected - measures->rejected);
    measures->commands = commands;
    measures->rejected = rejected;
    return true;
}

/* ---- commands ---- */

/* GET is what is left of all commands when the others are taken away: rejected ones are not counted
 * by name. */
static void tell_calls(struct serving *serving)
{
    struct measures *measures = &serving->measures;
    size_t get = command_number(command_find(span_of("GET")));
    uint64_t gets = counter_read(&serving->counters.commands);
    for (size_t i = 0; i <= command_table_rows; i++)
        gets -= i == get ? 0 : measures->calls[i];
    for (size_t i = 0; i <= command_table_rows; i++)
        atomic_store_explicit(&measures->told[i], i == get ? gets : measures->calls[i],
                              memory_order_relaxed);
}

void measuring_tick(struct serving *serving)
{
    turn_time_next(&serving->turn, on_timed, serving);
    serving->measures.singles = 0;
    if (serving->measures.ticks++ % TELL_EACH == 0)
        tell_calls(serving);
}
