/* What is known of a client's own writes: worker/client/reads.h decides by it, whether it may read
 * from replicas.
 */
#ifndef NESTGUARD_READS_STATE_H
#define NESTGUARD_READS_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: it has asked nothing. */
struct reads {
    bool wrote;             /* and replies have not all been out since */
    uint64_t wrote_at;      /* clock_ms() */
    uint64_t primary_until; /* likewise: what it wrote may not have come to replicas before */
};

#endif
