/* A part of the keeper: who asks how much (traffic/), as the workers tell it once a second; and the
 * log's word when an attack begins and is over.
 */
#ifndef NESTGUARD_ACCOUNTING_H
#define NESTGUARD_ACCOUNTING_H

#include "guard/counters.h"
#include "guard/messages.h"
#include "keeper/changes/outlet.h"
#include "traffic/traffic.h"
#include "worker/worker.h"

struct accounting {
    struct traffic *traffic;
    size_t keyspaces;
    const struct outlet *outlet;
    uint64_t marked;    /* clock_ms() of the last mark */
    unsigned under_way; /* ledgers that workers have */
    uint64_t *rejects;  /* of each keyspace, for the next mark */
    struct ledger
        *suspects; /* since an attack began; NULL: there is none, or the log has named one */
};

/* `keyspaces`: so many numbers of them there may be. The outlet outlives it. */
void accounting_init(struct accounting *accounting, const struct outlet *outlet, size_t keyspaces);
void accounting_finish(struct accounting *accounting);

/* Once in a while, with the workers that count rejects, while they take messages. */
void accounting_check_time(struct accounting *accounting, struct worker *const *workers,
                           unsigned threshold, uint64_t now);

/* What was rejected since the last mark, at which *ms ago. */
uint64_t accounting_fresh_rejects(const struct accounting *accounting,
                                  struct worker *const *workers, uint64_t now, uint64_t *ms);

/* A worker's ledger, filled. */
void accounting_take_back(struct accounting *accounting, struct ledger_message *message);

#endif
