#include "worker/upstream/pending.h"

#include "base/memory.h"

#include <stdlib.h>

enum { FIRST_SIZE = 256 };

static size_t place_of(const struct pending_queue *queue, size_t index)
{
    return (queue->first + index) & (queue->size - 1);
}

static void grow(struct pending_queue *queue)
{
    size_t size = queue->size ? 2 * queue->size : FIRST_SIZE;
    struct pending *ring = xmalloc(size * sizeof *ring);
    for (size_t i = 0; i < queue->count; i++)
        ring[i] = queue->ring[place_of(queue, i)];
    free(queue->ring);
    queue->ring = ring;
    queue->size = size;
    queue->first = 0;
}

void pending_push(struct pending_queue *queue, struct pending request)
{
    if (queue->count == queue->size)
        grow(queue);
    queue->ring[place_of(queue, queue->count++)] = request;
}

struct pending pending_pop(struct pending_queue *queue)
{
    struct pending head = queue->ring[queue->first];
    queue->first = place_of(queue, 1);
    queue->count--;
    return head;
}

void pending_rotate(struct pending_queue *queue, size_t count)
{
    while (count--)
        pending_push(queue, pending_pop(queue));
}

uint64_t pending_oldest(const struct pending_queue *queue)
{
    return queue->count ? queue->ring[queue->first].since : 0;
}

void pending_set_time(struct pending_queue *queue, uint64_t since)
{
    queue->ring[place_of(queue, queue->count - 1)].since = since;
}

const struct pending *pending_first(const struct pending_queue *queue)
{
    return queue->count ? &queue->ring[queue->first] : NULL;
}

void pending_finish(struct pending_queue *queue)
{
    free(queue->ring);
    *queue = (struct pending_queue){0};
}
