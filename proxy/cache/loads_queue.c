/* Credit is in bytes. A line begins with a quantum, pays for each request when that has its turn,
 * and may go below zero by that, or by the bytes of what is loaded (load_queue_charge(),
 * load_queue_bill()); it gets a quantum each time that its turn comes while it has none, and then
 * goes to the end. So over many rounds every line that is never empty pays the same, however its
 * requests differ in size. Its origin pays the same sums in a round of its own.
 */
#include "cache/loads_queue.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>

enum { QUANTUM = LOAD_COST, BEGINNERS = 4 };

struct load_place {
    struct load_place *previous, *next;
    struct load_places *list; /* fresh or seasoned: the one it is in */
    int64_t credit;           /* bytes, QUANTUM at most; below 0 it is a debt */
    size_t bytes;             /* of the requests that wait here */
};

struct load_origin {
    struct load_place place; /* among all */
    struct keymap_node node; /* by origin */
    uint64_t number;
    struct load_round lines;
};

/* Where a client was there may be another by now, from elsewhere: it has a line of its own. */
struct load_asker {
    uint64_t origin;
    const void *client; /* not to be followed */
};

struct load_line {
    struct load_place place; /* among its origin's */
    struct keymap_node node; /* by asker */
    struct load_origin *origin;
    struct load_asker asker;
    struct load_request *first, *last;
};

static struct load_origin *origin_at(struct load_place *place)
{
    return place ? container_of(place, struct load_origin, place) : NULL;
}

static struct load_line *line_at(struct load_place *place)
{
    return place ? container_of(place, struct load_line, place) : NULL;
}

/* ---- rounds ---- */

static void append(struct load_places *list, struct load_place *place)
{
    place->list = list;
    place->next = NULL;
    place->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = place;
    list->last = place;
}

static void leave(struct load_place *place)
{
    *(place->previous ? &place->previous->next : &place->list->first) = place->next;
    *(place->next ? &place->next->previous : &place->list->last) = place->previous;
}

static void join(struct load_round *round, struct load_place *place)
{
    place->credit = QUANTUM;
    append(&round->fresh, place);
}

static void move_to_seasoned(struct load_round *round, struct load_place *place)
{
    leave(place);
    append(&round->seasoned, place);
}

static bool is_beginners_turn(const struct load_round *round)
{
    return round->fresh.first && (!round->seasoned.first || round->beginners < BEGINNERS);
}

/* Whose turn it is; NULL: there is nobody. */
static struct load_place *look(struct load_round *round)
{
    struct load_place *place;
    while ((place = (is_beginners_turn(round) ? &round->fresh : &round->seasoned)->first) &&
           place->credit <= 0) {
        place->credit += QUANTUM;
        move_to_seasoned(round, place);
    }
    return place;
}

static void pay(struct load_round *round, struct load_place *place, int64_t sum)
{
    bool goes_before = place->list == &round->fresh && round->seasoned.first;
    round->beginners = goes_before ? round->beginners + 1 : 0;
    place->credit -= sum;
}

static void owe(struct load_place *place, size_t bytes)
{
    place->credit -= bytes < LOAD_DEBT ? (int64_t)bytes : LOAD_DEBT;
    if (place->credit < -LOAD_DEBT)
        place->credit = -LOAD_DEBT;
}

/* Its turn came, and it has nothing to ask. A beginner has to let the others go first once, if
 * there are any. False: it has to go. */
static bool may_stay(struct load_round *round, struct load_place *place)
{
    if (place->list != &round->fresh || !round->seasoned.first)
        return false;
    move_to_seasoned(round, place);
    return true;
}

/* ---- lines and origins ---- */

static struct keymap_node *find(const struct keymap *map, struct span name)
{
    return keymap_find(map, name, keymap_hash(name));
}

static void insert(struct keymap *map, struct keymap_node *node, struct span name)
{
    node->key = name;
    node->hash = keymap_hash(name);
    keymap_insert(map, node);
}

static struct span number_of(const uint64_t *origin)
{
    return (struct span){(const char *)origin, sizeof *origin};
}

static struct load_asker asker_of(const struct load_request *request)
{
    return (struct load_asker){request->origin, request->client};
}

static struct span name_of(const struct load_asker *asker)
{
    _Static_assert(sizeof *asker == sizeof asker->origin + sizeof asker->client, "no padding");
    return (struct span){(const char *)asker, sizeof *asker};
}

static struct load_origin *find_origin(const struct load_queue *queue, uint64_t number)
{
    struct keymap_node *node = find(&queue->by_origin, number_of(&number));
    return node ? container_of(node, struct load_origin, node) : NULL;
}

static struct load_line *find_line(const struct load_queue *queue,
                                   const struct load_request *request)
{
    struct load_asker asker = asker_of(request);
    struct keymap_node *node = find(&queue->by_asker, name_of(&asker));
    return node ? container_of(node, struct load_line, node) : NULL;
}

static struct load_origin *begin_origin(struct load_queue *queue, uint64_t number)
{
    struct load_origin *origin = xcalloc(1, sizeof *origin);
    origin->number = number;
    insert(&queue->by_origin, &origin->node, number_of(&origin->number));
    join(&queue->origins, &origin->place);
    return origin;
}

static struct load_line *begin_line(struct load_queue *queue, const struct load_request *request)
{
    struct load_line *line = xcalloc(1, sizeof *line);
    struct load_origin *origin = find_origin(queue, request->origin);
    line->origin = origin ? origin : begin_origin(queue, request->origin);
    line->asker = asker_of(request);
    insert(&queue->by_asker, &line->node, name_of(&line->asker));
    join(&line->origin->lines, &line->place);
    return line;
}

static void end_line(struct load_queue *queue, struct load_line *line)
{
    leave(&line->place);
    keymap_remove(&queue->by_asker, &line->node);
    free(line);
}

static void end_origin(struct load_queue *queue, struct load_origin *origin)
{
    leave(&origin->place);
    keymap_remove(&queue->by_origin, &origin->node);
    free(origin);
}

/* ---- requests ---- */

static size_t bytes_of(const struct load_request *request)
{
    return sizeof *request + request->key.text.length;
}

/* Who joined a query late and waits again is before what its client has asked since; a client has
 * few here at once. NULL: before all. */
static struct load_request *find_ahead(const struct load_line *line,
                                       const struct load_request *request)
{
    struct load_request *ahead = line->last;
    while (ahead && ahead->asked > request->asked)
        ahead = ahead->ahead;
    return ahead;
}

static void insert_behind(struct load_line *line, struct load_request *ahead,
                          struct load_request *request)
{
    request->line = line;
    request->ahead = ahead;
    request->behind = ahead ? ahead->behind : line->first;
    *(ahead ? &ahead->behind : &line->first) = request;
    *(request->behind ? &request->behind->ahead : &line->last) = request;
}

void load_queue_push(struct load_queue *queue, struct load_request *request)
{
    struct load_line *line = find_line(queue, request);
    if (!line)
        line = begin_line(queue, request);
    insert_behind(line, find_ahead(line, request), request);
    line->place.bytes += bytes_of(request);
    line->origin->place.bytes += bytes_of(request);
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
    line->place.bytes -= bytes_of(request);
    line->origin->place.bytes -= bytes_of(request);
    queue->bytes -= bytes_of(request);
    queue->count--;
}

/* ---- turns ---- */

/* The origin's turn; NULL: its line whose turn it was had nothing to ask, or it has none. */
static struct load_request *take_turn(struct load_queue *queue, struct load_origin *origin)
{
    struct load_line *line = line_at(look(&origin->lines));
    if (!line) {
        if (!may_stay(&queue->origins, &origin->place))
            end_origin(queue, origin);
        return NULL;
    }
    struct load_request *request = line->first;
    if (request) {
        int64_t sum = LOAD_COST + (int64_t)request->key.text.length;
        pay(&queue->origins, &origin->place, sum);
        pay(&origin->lines, &line->place, sum);
        load_queue_remove(queue, request);
    } else if (!may_stay(&origin->lines, &line->place)) {
        end_line(queue, line);
    }
    return request;
}

struct load_request *load_queue_next(struct load_queue *queue)
{
    struct load_request *request = NULL;
    struct load_origin *origin;
    while (!request && (origin = origin_at(look(&queue->origins))))
        request = take_turn(queue, origin);
    return request;
}

void load_queue_charge(struct load_queue *queue, const struct load_request *request, size_t bytes)
{
    struct load_line *line = find_line(queue, request);
    struct load_origin *origin = find_origin(queue, request->origin);
    if (line)
        owe(&line->place, bytes);
    if (origin)
        owe(&origin->place, bytes);
}

/* Its line waits for nothing, and ends as any: when its turn comes, which is behind its debt. That
 * the client may be gone, and another be where it was, is its place's loss in either case. */
void load_queue_bill(struct load_queue *queue, const struct load_request *request, size_t bytes)
{
    if (!find_line(queue, request))
        begin_line(queue, request);
    load_queue_charge(queue, request, bytes);
}

/* ---- who has to go ---- */

/* Of all in a round; NULL behind the last. */
static struct load_place *next_place(const struct load_round *round, const struct load_place *place)
{
    if (!place)
        return round->fresh.first ? round->fresh.first : round->seasoned.first;
    if (!place->next && place->list == &round->fresh)
        return round->seasoned.first;
    return place->next;
}

static size_t most_in(const struct load_round *round)
{
    size_t most = 0;
    for (struct load_place *at = NULL; (at = next_place(round, at));)
        most = at->bytes > most ? at->bytes : most;
    return most;
}

/* Who has more than this gives the rest, all of them in one walk. It is less than the fattest has:
 * each walk takes something. */
static size_t level_in(const struct load_round *round)
{
    size_t most = most_in(round);
    return most - (most + 7) / 8;
}

struct shrinking {
    struct load_queue *queue;
    size_t bytes; /* may wait */
    void (*act)(void *arg, struct load_request *request);
    void *arg;
};

static bool has_more(const struct shrinking *shrinking, const struct load_place *place,
                     size_t level)
{
    return place->bytes > level && shrinking->queue->bytes > shrinking->bytes;
}

/* Empty lines stay where they are until their turn comes, so the walk may go on. */
static void shrink_lines(const struct shrinking *shrinking, struct load_origin *origin,
                         size_t level_of_origin)
{
    size_t level = level_in(&origin->lines);
    for (struct load_place *at = NULL; (at = next_place(&origin->lines, at));)
        while (has_more(shrinking, at, level) &&
               has_more(shrinking, &origin->place, level_of_origin))
            shrinking->act(shrinking->arg, line_at(at)->last);
}

void load_queue_shrink(struct load_queue *queue, size_t bytes,
                       void (*act)(void *arg, struct load_request *request), void *arg)
{
    const struct shrinking shrinking = {queue, bytes, act, arg};
    while (queue->bytes > bytes) {
        size_t level = level_in(&queue->origins);
        for (struct load_place *at = NULL; (at = next_place(&queue->origins, at));)
            while (has_more(&shrinking, at, level))
                shrink_lines(&shrinking, origin_at(at), level);
    }
}

static struct load_line *next_line(const struct load_queue *queue, const struct load_line *line)
{
    struct keymap_node *node = line ? line->node.newer : queue->by_asker.oldest;
    return node ? container_of(node, struct load_line, node) : NULL;
}

/* The first of a line has waited longest of it. */
void load_queue_each_overdue(struct load_queue *queue, uint64_t time,
                             void (*act)(void *arg, struct load_request *request), void *arg)
{
    struct load_line *line = NULL;
    while ((line = next_line(queue, line)))
        while (line->first && line->first->asked <= time)
            act(arg, line->first);
}

/* ---- life ---- */

void load_queue_init(struct load_queue *queue)
{
    *queue = (struct load_queue){.count = 0};
    keymap_init(&queue->by_asker);
    keymap_init(&queue->by_origin);
}

void load_queue_finish(struct load_queue *queue)
{
    struct load_line *line;
    struct load_origin *origin;
    while ((line = next_line(queue, NULL)))
        end_line(queue, line);
    while ((origin = origin_at(next_place(&queue->origins, NULL))))
        end_origin(queue, origin);
    keymap_finish(&queue->by_asker);
    keymap_finish(&queue->by_origin);
}
