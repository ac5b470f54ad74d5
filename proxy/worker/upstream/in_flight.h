/* Requests of an upstream, in order: those whose replies are still to come, and those that are to
 * be told that none will. A queue in a ring that grows. */
#ifndef NESTGUARD_IN_FLIGHT_H
#define NESTGUARD_IN_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply_slot;

struct in_flight {
    struct reply_slot *slot; /* NULL for the connection's own greeting */
    unsigned index;          /* which of the slot's requests */
    bool leads_on;           /* its server is doubted: only that another has the key counts */
    uint8_t hops;            /* how often it was sent on before */
    uint64_t since;          /* the loop's time when it was sent */
    uint64_t begin;          /* where its bytes are kept that do so (kept.h) */
};

/* Zeroed memory is an empty queue. */
struct in_flight_queue {
    struct in_flight *ring; /* first, first + 1, ... (mod size, a power of two) */
    size_t size, first, count;
};

/* For what follows: makes room for more. */
void in_flight_grow(struct in_flight_queue *queue);
void in_flight_finish(struct in_flight_queue *queue);

/* Behind all others. */
static inline void in_flight_push(struct in_flight_queue *queue, struct in_flight request)
{
    if (queue->count == queue->size)
        in_flight_grow(queue);
    queue->ring[(queue->first + queue->count++) & (queue->size - 1)] = request;
}

/* The queue is not empty. What one command of many keys needed is given back. */
static inline struct in_flight in_flight_pop(struct in_flight_queue *queue)
{
    enum { KEEP_SIZE = 16 * 1024 }; /* entries */
    struct in_flight head = queue->ring[queue->first];
    queue->first = (queue->first + 1) & (queue->size - 1);
    if (--queue->count == 0 && queue->size > KEEP_SIZE)
        in_flight_finish(queue);
    return head;
}

/* The first of them, which stays; NULL: the queue is empty. */
const struct in_flight *in_flight_first(const struct in_flight_queue *queue);
/* Puts the first `count` of them behind the others. */
void in_flight_rotate(struct in_flight_queue *queue, size_t count);
/* The slot of the first that has one; NULL: none has. Those without are few, and mostly there are
 * none. */
struct reply_slot *in_flight_first_slot(const struct in_flight_queue *queue);
/* When the first of them was sent; 0: the queue is empty, or at no time. */
uint64_t in_flight_oldest(const struct in_flight_queue *queue);
/* The one that was pushed last. There is one. */
struct in_flight *in_flight_last(const struct in_flight_queue *queue);
/* When the last of them counts as sent; 0: at no time. */
void in_flight_set_time(struct in_flight_queue *queue, uint64_t since);

#endif
