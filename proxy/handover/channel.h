/* What two guards say to each other while the one follows the other: frames, in order, over a unix
 * socket on one loop.
 *
 *   kind (1 byte) │ length (4 bytes) │ so many bytes
 *
 * Both run on one machine, so numbers stand as the machine has them.
 */
#ifndef NESTGUARD_CHANNEL_H
#define NESTGUARD_CHANNEL_H

#include "base/span.h"
#include <uv.h>

struct channel;

struct channel_events {
    void (*frame)(void *arg, int kind, struct span bytes); /* `bytes` during the call */
    void (*ended)(void *arg); /* the other has left, or says what nobody understands; last of all */
};

/* Takes the descriptor over, also when it fails. 0 or a negative errno. No event comes before this
 * has returned. */
int channel_open(struct channel **out, uv_loop_t *loop, int fd, const struct channel_events *events,
                 void *arg);

/* Copied, and sent behind all that was sent before; lost when the other has left. */
void channel_send(struct channel *channel, int kind, struct span bytes);

/* Memory of what was sent, and what the other has not read: without what the system holds. */
size_t channel_unsent(const struct channel *channel);

/* No event any more; what was sent still leaves, if the other reads it within some seconds. NULL is
 * allowed. */
void channel_close(struct channel *channel);

#endif
