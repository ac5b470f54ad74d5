/* `first` and `count` are all that is kept: places follow from them, modulo a size that is a power
 * of two. The ring doubles when it is full, so that a request costs the same on average however
 * many there are.
 */
#include "worker/upstream/in_flight.h"

#include "base/memory.h"

#include <stdlib.h>

enum { FIRST_SIZE = 256 }; /* entries */

static size_t place_of(const struct in_flight_queue *queue, size_t index)
{
    return (queue->first + index) & (queue->size - 1);
}

void in_flight_grow(struct in_flight_queue *queue)
{
    size_t size = queue->size ? 2 * queue->size : FIRST_SIZE;
    struct in_flight *ring = xmalloc(size * sizeof *ring);
    for (size_t i = 0; i < queue->count; i++)
        ring[i] = queue->ring[place_of(queue, i)];
    free(queue->ring);
    queue->ring = ring;
    queue->size = size;
    queue->first = 0;
}

/* One by one: it is done once a greeting, and mostly nothing waits. */
void in_flight_rotate(struct in_flight_queue *queue, size_t count)
{
    while (count--)
        in_flight_push(queue, in_flight_pop(queue));
}

uint64_t in_flight_oldest(const struct in_flight_queue *queue)
{
    return queue->count ? queue->ring[queue->first].since : 0;
}

struct in_flight *in_flight_last(const struct in_flight_queue *queue)
{
    return &queue->ring[place_of(queue, queue->count - 1)];
}

void in_flight_set_time(struct in_flight_queue *queue, uint64_t since)
{
    in_flight_last(queue)->since = since;
}

const struct in_flight *in_flight_first(const struct in_flight_queue *queue)
{
    return queue->count ? &queue->ring[queue->first] : NULL;
}

struct reply_slot *in_flight_first_slot(const struct in_flight_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        if (queue->ring[place_of(queue, i)].slot)
            return queue->ring[place_of(queue, i)].slot;
    return NULL;
}

void in_flight_finish(struct in_flight_queue *queue)
{
    free(queue->ring);
    *queue = (struct in_flight_queue){0};
}
