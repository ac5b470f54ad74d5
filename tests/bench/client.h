/* What the clients in C share. They measure and then end, so a call that fails ends them. */
#ifndef NESTGUARD_BENCH_CLIENT_H
#define NESTGUARD_BENCH_CLIENT_H

#include <stdint.h>
#include <time.h>

/* Says what failed, with the text of errno, and exits with 1. */
_Noreturn void fail(const char *what);

/* Memory that was asked for, or the end. */
void *need(void *memory);

uint64_t clock_ns(clockid_t clock);
uint64_t now_ns(void); /* of CLOCK_MONOTONIC */

/* Not 0. */
uint64_t random_seed(void);

/* A blocking socket to the port of this host, without Nagle's delay. */
int connect_to(int port);

#endif
