/* The names by which a successor asks for the sockets of this guard (see handover/handover.h), had
 * as soon as nobody else has them.
 */
#ifndef NESTGUARD_NAMING_H
#define NESTGUARD_NAMING_H

#include "handover/handover.h"
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct naming {
    uv_loop_t *loop;
    const char *file;                      /* of the configuration; outlives it */
    void (*asked)(void *arg, int channel); /* somebody has; takes the descriptor over */
    void *arg;
    /* its own, zeroed at first: */
    uv_poll_t polls[HANDOVER_NAMES];
    int listening[HANDOVER_NAMES];
    int count;      /* of those; 0: nobody can ask, as yet */
    uint64_t since; /* when it was first tried in vain: clock_ms(); 0: it was not */
    bool told;      /* the log knows of that */
};

/* Has them from here on, if it can and does not yet. */
void naming_try(struct naming *naming);

/* Nobody is to ask here any more. The loop needs the memory until it has run again. */
void naming_withdraw(struct naming *naming);

#endif
