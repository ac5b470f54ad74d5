/* A queue of replies whose client is played by the test. To be included behind cmocka.h. */
#ifndef NESTGUARD_FAKES_REPLIES_H
#define NESTGUARD_FAKES_REPLIES_H

#include "base/memory.h"
#include "fakes/config_file.h"
#include "guard/guard.h"
#include "worker/reply/reply_slot.h"

#include <stdlib.h>

/* A client that is nothing but its replies. */
struct bench {
    struct serving *serving;
    struct shared_config *shared;
    struct replies replies;
    struct turn_task task; /* queued: there is something to do for the client */
};

void bench_init(struct bench *bench);

void bench_finish(struct bench *bench);

/* What has left since the last time. */
void must_leave(struct bench *bench, const char *wanted);

#endif
