/* The guard's one clock for spans of time: milliseconds, monotonic, the same for all threads. */
#ifndef NESTGUARD_CLOCK_H
#define NESTGUARD_CLOCK_H

#include <stdint.h>
#include <uv.h>

static inline uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

#endif
