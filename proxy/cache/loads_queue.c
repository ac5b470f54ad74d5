/* Credit is in bytes. A line begins with a quantum, pays for each request when that has its turn,
 * and may go below zero by that, or by the bytes of what was loaded (load_queue_charge()); it gets
 * a quantum each time that its turn comes while it has none, and then goes to the end. So over many
 * rounds every line that is never empty pays the same, however its requests differ in size.
 */
#include "cache/loads_queue.h"

#include "base/memory.h"

#include <stdlib.h>

enum { QUANTUM = LOAD_COST };

struct load_line {
    struct keymap_node node; /* by client */
    struct load_line *previous, *next;
    struct load_lines *list; /* fresh or seasoned: the one it is in */
    const void *client;      /* not to be followed: it may be gone */
    int64_t credit;          /* bytes, QUANTUM at most; below 0 it is a debt */
    size_t bytes;            /* of its requests that wait */
    struct load_request *first, *last;
};

/* ---- lines ---- */

static void lines_append(struct load_lines *lines, struct load_line *line)
{
    line->list = lines;
    line->next = NULL;
    line->previous = lines->last;
    *(lines->last ? &lines->last->next : &lines->first) = line;
    lines->last = line;
}

static void lines_remove(struct load_line *line)
{
    *(line->previous ? &line->previous->next : &line->list->first) = line->next;
    *(line->next ? &line->next->previous : &line->list->last) = line->previous;
}

static void move_to_seasoned(struct load_queue *queue, struct load_line *line)
{
    lines_remove(line);
    lines_append(&queue->seasoned, line);
}

/* A client is told from others by its address, whatever lies there. */
static struct span name_of(const void *const *client)
{
    return (struct span){(const char *)client, sizeof *client};
}

static struct load_line *find(const struct load_queue *queue, const void *client)
{
    struct span name = name_of(&client);
    struct keymap_node *node = keymap_find(&queue->by_client, name, keymap_hash(name));
    return node ? container_of(node, struct load_line, node) : NULL;
}

static struct load_line *begin_line(struct load_queue *queue, const void *client)
{
    struct load_line *line = xcalloc(1, sizeof *line);
    line->client = client;
    line->credit = QUANTUM;
    line->node.key = name_of(&line->client);
    line->node.hash = keymap_hash(line->node.key);
    keymap_insert(&queue->by_client, &line->node);
    lines_append(&queue->fresh, line);
    return line;
}

static void end_line(struct load_queue *queue, struct load_line *line)
{
    lines_remove(line);
    keymap_remove(&queue->by_client, &line->node);
    free(line);
}

/* ---- requests ---- */

static size_t bytes_of(const struct load_request *request)
{
    return sizeof *request + request->key.text.length;
}

void load_queue_push(struct load_queue *queue, struct load_request *request)
{
    struct load_line *line = find(queue, request->client);
    if (!line)
        line = begin_line(queue, request->client);
    request->line = line;
    request->behind = NULL;
    request->ahead = line->last;
    *(line->last ? &line->last->behind : &line->first) = request;
    line->last = request;
    line->bytes += bytes_of(request);
    queue->bytes += bytes_of(request);
    queue->count++;
}

/* An empty line goes when its turn comes. */
void load_queue_remove(struct load_queue *queue, struct load_request *request)
{
    struct load_line *line = request->line;
    *(request->ahead ? &request->ahead->behind : &line->first) = request->behind;
    *(request->behind ? &request->behind->ahead : &line->last) = request->ahead;
    request->line = NULL;
    line->bytes -= bytes_of(request);
    queue->bytes -= bytes_of(request);
    queue->count--;
}

/* ---- turns ---- */

/* A beginner that has run empty has to let the others go first once, if there are any. */
static void pass_empty(struct load_queue *queue, struct load_line *line)
{
    if (line->list == &queue->fresh && queue->seasoned.first)
        move_to_seasoned(queue, line);
    else
        end_line(queue, line);
}

struct load_request *load_queue_next(struct load_queue *queue)
{
    struct load_line *line;
    while ((line = queue->fresh.first ? queue->fresh.first : queue->seasoned.first)) {
        if (line->credit <= 0) {
            line->credit += QUANTUM;
            move_to_seasoned(queue, line);
        } else if (!line->first) {
            pass_empty(queue, line);
        } else {
            struct load_request *request = line->first;
            line->credit -= LOAD_COST + (int64_t)request->key.text.length;
            load_queue_remove(queue, request);
            return request;
        }
    }
    return NULL;
}

void load_queue_charge(struct load_queue *queue, const void *client, size_t bytes)
{
    struct load_line *line = find(queue, client);
    if (!line)
        return;
    line->credit -= bytes < LOAD_DEBT ? (int64_t)bytes : LOAD_DEBT;
    if (line->credit < -LOAD_DEBT)
        line->credit = -LOAD_DEBT;
}

/* ---- who has to go ---- */

/* Of all lines; NULL behind the last. */
static struct load_line *next_line(const struct load_queue *queue, const struct load_line *line)
{
    struct keymap_node *node = line ? line->node.newer : queue->by_client.oldest;
    return node ? container_of(node, struct load_line, node) : NULL;
}

struct load_request *load_queue_fattest(const struct load_queue *queue)
{
    struct load_line *fattest = NULL, *line = NULL;
    while ((line = next_line(queue, line)))
        if (line->first && (!fattest || line->bytes > fattest->bytes))
            fattest = line;
    return fattest ? fattest->last : NULL;
}

/* The first of a line has waited longest of it. */
void load_queue_each_overdue(struct load_queue *queue, uint64_t time,
                             void (*act)(void *arg, struct load_request *request), void *arg)
{
    struct load_line *line = NULL;
    while ((line = next_line(queue, line)))
        while (line->first && line->first->queued <= time)
            act(arg, line->first);
}

/* ---- life ---- */

void load_queue_init(struct load_queue *queue)
{
    *queue = (struct load_queue){.count = 0};
    keymap_init(&queue->by_client);
}

void load_queue_finish(struct load_queue *queue)
{
    struct load_line *line;
    while ((line = next_line(queue, NULL)))
        end_line(queue, line);
    keymap_finish(&queue->by_client);
}
