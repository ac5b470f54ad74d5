/* Work for one slot that is done in pieces, each in turn with what others have in line (turn.h).
 * The slot waits for all of it as for one answer, and is there when its client has gone. */
#ifndef NESTGUARD_PIECEMEAL_H
#define NESTGUARD_PIECEMEAL_H

#include "worker/reply/reply_slot.h"

struct piecemeal {
    struct turn_task task;
    struct reply_slot *slot;
    size_t bytes;   /* of serving->piecemeal */
    bool is_paused; /* set by go_on(): not in line before piecemeal_resume() */
    /* Does the next piece. False: that was the last, and nothing but this memory is left of it. */
    bool (*go_on)(struct piecemeal *piecemeal);
};

/* Whether there is room for so many bytes that are held for as long as it takes: past
 * max_client_memory the heaviest client is cut off, and an eighth of it is for that. One alone may
 * have more: the turn would be long without it, and the memory is the same. */
bool piecemeal_has_room(const struct serving *serving, size_t bytes);

/* `slot` and `go_on` are set, in memory of malloc() that this is the first member of: it is freed
 * with the last piece, and the slot answered. */
void piecemeal_begin(struct piecemeal *piecemeal, size_t bytes);

/* Nothing happens when it is not paused. Who pauses one sees to it that this is called, also when
 * the client has gone. */
void piecemeal_resume(struct piecemeal *piecemeal);

#endif
