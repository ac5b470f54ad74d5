/* How long a thread asks for its processor at a time, while others want it too. A thread that wakes
 * up goes before one whose slices are longer, which would else finish its own first: milliseconds
 * in which somebody waits for an answer. Its share of the processor stays the same, so nobody else
 * loses by it, and it takes no privilege.
 *
 * Linux has this since 6.12; before, and where the call is forbidden, nothing changes.
 */
#ifndef NESTGUARD_SLICE_H
#define NESTGUARD_SLICE_H

/* Microseconds, at least 100; 0: the system's standard, for work that is in no hurry. Among the
 * guard's own threads, too, who has the shorter ones goes first: workers never sleep under a flood,
 * and every load takes the keeper's thread several times. */
enum { SLICE_KEEPER = 100, SLICE_WORKER = 300, SLICE_STANDARD = 0 };

/* For the calling thread, and those that it starts from now on. */
void slice_take(unsigned microseconds);

#endif
