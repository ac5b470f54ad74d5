/* The guard's one clock for spans of time: monotonic, the same for all threads. Goes on while the
 * machine sleeps. */
#ifndef NESTGUARD_CLOCK_H
#define NESTGUARD_CLOCK_H

#include <stdint.h>

uint64_t clock_ms(void);
uint64_t clock_ns(void);

#endif
