/* When generations are built: at the start, on a timer (sync: poll), on request, and again after a
 * failure, with backoff. */
#ifndef NESTGUARD_RENEWAL_H
#define NESTGUARD_RENEWAL_H

#include "builder.h"

struct renewal_options {
    /* The configuration to build for; asked at each beginning. */
    struct shared_config *(*config)(void *arg);
    /* A generation is complete; it is the callee's. */
    void (*complete)(void *arg, struct generation *generation);
    void *arg;
};

struct renewal {
    uv_loop_t *loop;
    struct renewal_options options;
    bool stopped;
    struct builder *builder;      /* at work, or NULL */
    struct shared_config *shared; /* what it builds for; held */
    uv_timer_t timer;             /* the next poll, or the next try */
    uint64_t newest;              /* number of the newest generation that was begun */
    uint64_t retry_ms;
    uint64_t polled;   /* clock_ms() when the last build began */
    uint64_t reported; /* clock_ms() of the log's last line about its progress */
    bool wanted;       /* another is wanted when this one has ended */
    uint64_t failures;
    char error[600]; /* of the last build, or "" */
};

int renewal_init(struct renewal *renewal, uv_loop_t *loop, const struct renewal_options *options);

/* Begins a generation whose snapshot is taken after this call, now or when the one at work has
 * ended. Returns its number. */
uint64_t renewal_begin(struct renewal *renewal);

/* Once in a while: tells the log how far a long build is. */
void renewal_report(struct renewal *renewal, uint64_t now);

/* The poll interval may have changed. */
void renewal_reschedule(struct renewal *renewal);

/* No more builds; one at work is stopped and ends on the loop. */
void renewal_stop(struct renewal *renewal);

#endif
