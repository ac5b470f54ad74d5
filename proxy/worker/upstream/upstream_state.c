/* What may follow what: the pictures are in upstream.h and upstream_internal.h. */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"

#include <assert.h>

/* One more, one less, or none. */
static void count_connection(const struct upstream *upstream, int change)
{
    struct worker_counters *counters = &upstream->serving->counters;
    counter_add(upstream_is_own(upstream) ? &counters->own_connections
                                          : &counters->shared_connections,
                (uint64_t)change);
}

/* For each state, the states that may follow it, a bit each. */
void upstream_set_state(struct upstream *upstream, enum state state)
{
    static const unsigned allowed[] = {[CLOSED] = 1u << DIALING,
                                       [DIALING] = 1u << GREETING | 1u << CLOSING,
                                       [GREETING] = 1u << UP | 1u << CLOSING,
                                       [UP] = 1u << CLOSING,
                                       [CLOSING] = 1u << CLOSED};
    assert(allowed[upstream->state] & 1u << state);
    (void)allowed;
    count_connection(upstream, (upstream->state != UP && state == UP) -
                                   (upstream->state == UP && state != UP));
    upstream->state = state;
    upstream->since = clock_ms();
}

bool upstream_has_gathered(const struct upstream *upstream)
{
    return buffer_length(&upstream->out);
}

void upstream_set_tenure(struct upstream *upstream, enum tenure tenure)
{
    static const unsigned allowed[] = {
        [TENURE_HELD] = 1u << TENURE_LOST | 1u << TENURE_FINISHED,
        [TENURE_LOST] = 1u << TENURE_TOLD | 1u << TENURE_FINISHED,
        [TENURE_TOLD] = 1u << TENURE_FINISHED,
        [TENURE_FINISHED] = 0,
    };
    assert(allowed[upstream->tenure] & 1u << tenure);
    (void)allowed;
    upstream->tenure = tenure;
}
