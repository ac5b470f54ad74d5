/* Requests of an upstream, in order: those whose replies are still to come, and those that are to
 * be told that none will. A queue in a ring that grows. */
#ifndef NESTGUARD_PENDING_H
#define NESTGUARD_PENDING_H

#include <stddef.h>
#include <stdint.h>

struct slot;

struct pending {
    struct slot *slot; /* NULL for the connection's own greeting */
    unsigned index;    /* which of the slot's requests */
    uint64_t since;    /* the loop's time when it was sent */
};

/* Zeroed memory is an empty queue. */
struct pending_queue {
    struct pending *ring; /* first, first + 1, ... (mod size, a power of two) */
    size_t size, first, count;
};

void pending_push(struct pending_queue *queue, struct pending request);
struct pending pending_pop(struct pending_queue *queue); /* the queue is not empty */
/* The first of them, which stays; NULL: the queue is empty. */
const struct pending *pending_first(const struct pending_queue *queue);
/* Puts the first `count` of them behind the others. */
void pending_rotate(struct pending_queue *queue, size_t count);
/* When the first of them was sent; 0: the queue is empty, or at no time. */
uint64_t pending_oldest(const struct pending_queue *queue);
/* When the last of them counts as sent; 0: at no time. */
void pending_set_time(struct pending_queue *queue, uint64_t since);
void pending_finish(struct pending_queue *queue);

#endif
