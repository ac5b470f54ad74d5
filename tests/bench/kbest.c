/* K-best over the cycle counter where the processor has one that ticks evenly, else the clock. */
#include "kbest.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define TOLERANCE 0.02

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    unsigned processor;
    return __rdtscp(&processor); /* waits for what came before */
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return clock_ns();
#endif
}

/* Measured once, against the clock. */
static double ns_per_tick(void)
{
    static double known;
    if (known > 0)
        return known;
    uint64_t clock = clock_ns(), tick = ticks(), elapsed;
    do
        elapsed = clock_ns() - clock;
    while (elapsed < 100000000);
    known = (double)elapsed / (double)(ticks() - tick);
    return known;
}

/* Keeps the K shortest in order. */
static void keep(struct kbest_time shortest[KBEST_K], struct kbest_time time)
{
    for (size_t i = 0; i < KBEST_K; i++) {
        if (shortest[i].ns > 0 && shortest[i].ns <= time.ns)
            continue;
        struct kbest_time longer = shortest[i];
        shortest[i] = time;
        time = longer;
    }
}

static struct kbest_time run_slice(const struct kbest_task *task, size_t slice)
{
    uint64_t clock = clock_ns(), tick = ticks();
    task->run(task->arg, slice);
    uint64_t passed = ticks() - tick;
    return (struct kbest_time){.ns = (double)passed * ns_per_tick(),
                               .wall_ns = (double)(clock_ns() - clock)};
}

static struct kbest_time sum_up(struct kbest_time (*shortest)[KBEST_K], size_t slices)
{
    struct kbest_time sum = {0};
    double longest = 0;
    for (size_t i = 0; i < slices; i++) {
        sum.ns += shortest[i][0].ns;
        sum.wall_ns += shortest[i][0].wall_ns;
        longest += shortest[i][KBEST_K - 1].ns;
    }
    sum.agreed = longest <= sum.ns * (1 + TOLERANCE);
    return sum;
}

struct kbest_time kbest_measure(const struct kbest_task *task)
{
    struct kbest_time(*shortest)[KBEST_K] = calloc(task->slices, sizeof *shortest);
    struct kbest_time sum = {0};
    uint64_t until = clock_ns() + (uint64_t)(task->seconds * 1e9);
    if (!shortest)
        abort();
    for (size_t runs = 0; runs < KBEST_K || (!sum.agreed && clock_ns() < until); runs++) {
        if (task->prepare)
            task->prepare(task->arg);
        for (size_t i = 0; i < task->slices; i++)
            keep(shortest[i], run_slice(task, i));
        sum = sum_up(shortest, task->slices);
    }
    free(shortest);
    return sum;
}
