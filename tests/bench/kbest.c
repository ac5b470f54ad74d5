/* K-best over the cycle counter where the processor has one that ticks evenly, else the clock. */
#include "kbest.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define TOLERANCE 0.02

/* A turn is as long as a task needs to fill the caches again with what is its own, at least; runs
 * before that agree on being slow. */
#define TURN_NS 50000000

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

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        abort();
    return memory;
}

/* What is known of one task. */
struct record {
    const struct kbest_task *task;
    struct kbest_time (*shortest)[KBEST_K]; /* of each slice */
};

static struct kbest_time sum_up(const struct record *record)
{
    struct kbest_time sum = {0};
    double longest = 0;
    for (size_t i = 0; i < record->task->slices; i++) {
        sum.ns += record->shortest[i][0].ns;
        sum.wall_ns += record->shortest[i][0].wall_ns;
        longest += record->shortest[i][KBEST_K - 1].ns;
    }
    sum.agreed = longest <= sum.ns * (1 + TOLERANCE);
    return sum;
}

static void run_once(const struct record *record)
{
    const struct kbest_task *task = record->task;
    if (task->prepare)
        task->prepare(task->arg);
    for (size_t i = 0; i < task->slices; i++)
        keep(record->shortest[i], run_slice(task, i));
}

static size_t take_turn(const struct record *record)
{
    uint64_t until = clock_ns() + TURN_NS;
    size_t runs = 0;
    do {
        run_once(record);
        runs++;
    } while (clock_ns() < until);
    return runs;
}

void kbest_compare(const struct kbest_task *tasks, size_t count, struct kbest_time *times)
{
    struct record *records = allocate(count, sizeof *records);
    uint64_t until = clock_ns() + (uint64_t)(tasks->seconds * 1e9);
    bool agreed = false;
    for (size_t i = 0; i < count; i++) {
        records[i].task = &tasks[i];
        records[i].shortest = allocate(tasks[i].slices, sizeof *records[i].shortest);
    }
    for (size_t runs = 0; runs < KBEST_K || (!agreed && clock_ns() < until);) {
        size_t fewest = SIZE_MAX;
        agreed = true;
        for (size_t i = 0; i < count; i++) {
            size_t more = take_turn(&records[i]);
            fewest = more < fewest ? more : fewest;
            times[i] = sum_up(&records[i]);
            agreed &= times[i].agreed;
        }
        runs += fewest;
    }
    for (size_t i = 0; i < count; i++)
        free(records[i].shortest);
    free(records);
}

struct kbest_time kbest_measure(const struct kbest_task *task)
{
    struct kbest_time time;
    kbest_compare(task, 1, &time);
    return time;
}
