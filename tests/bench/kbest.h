/* How long something takes, by the K-best method: it is done again and again until the K shortest
 * times lie within a tolerance of each other; the shortest is the answer. Whatever else the machine
 * does can only lengthen a run, so runs that agree on being short were hardly disturbed. (Bryant
 * and O'Hallaron, "Computer Systems", "Measuring program execution time".) What takes long enough
 * to be disturbed each time is cut into slices, and the K shortest of each slice are kept.
 */
#ifndef NESTGUARD_KBEST_H
#define NESTGUARD_KBEST_H

#include <stdbool.h>
#include <stddef.h>

enum { KBEST_K = 3 };

struct kbest_task {
    void (*prepare)(void *arg); /* before each run, not timed; may be NULL */
    void (*run)(void *arg, size_t slice);
    void *arg;
    size_t slices; /* of a run, in order from 0; at least 1 */
    double
        seconds; /* no new run after this time, prepare() included; of several, the first one's */
};

struct kbest_time {
    double ns;      /* of the shortest run of each slice, by the processor's cycle counter */
    double wall_ns; /* of the same runs by the clock */
    bool agreed;    /* the K shortest are within the tolerance */
};

/* At least K runs are made, also when they take longer than they may. */
struct kbest_time kbest_measure(const struct kbest_task *task);

/* The same for tasks that are to be compared: they take turns of some runs, so that whatever
 * changes on the machine changes for all. The time of each goes to *times. */
void kbest_compare(const struct kbest_task *tasks, size_t count, struct kbest_time *times);

#endif
