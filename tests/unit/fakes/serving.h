/* In place of a worker's thread: what its parts share, on a loop that the test turns. */
#ifndef NESTGUARD_FAKES_SERVING_H
#define NESTGUARD_FAKES_SERVING_H

#include "fakes/keeper.h"
#include "fakes/keyspaces.h"
#include "worker/reply/hosts.h"
#include "worker/reply/serving.h"

struct fake_serving {
    struct serving *serving;
    struct shared_config *shared;
    struct generation *generation;
    struct watch *watch;
    struct cache_route route;
    struct fake_keeper keeper;
    struct hosts hosts; /* of no client that is there */
};

/* Guards the keyspaces of fakes/keyspaces.h. The keeper's answers go to `deliver`; NULL: none
 * comes. */
void fake_serving_init(struct fake_serving *fake, uint16_t cache_port, const char *settings,
                       mailbox_deliver deliver, void *arg);

/* Nothing is left in its loops, and no slot in use. */
void fake_serving_finish(struct fake_serving *fake);

/* From now on decided by this state of all keyspaces. */
void use_state(struct fake_serving *fake, enum keyspace_state state);

/* A turn of the loop: what has come in, and all that follows from it. */
void turn_loop(struct fake_serving *fake);

#endif
