/* An answer is read whole before anything is changed by it: it comes from a server that may be
 * wrong, or not be one.
 */
#include "redis/topology/redis_map.h"

#include "net/allocate.h"

#include <errno.h>
#include <hiredis.h>

void redis_map_init(struct redis_map *map)
{
    *map = (struct redis_map){.nodes = allocate(REDIS_MAP_NODES, sizeof *map->nodes)};
}

void redis_map_finish(struct redis_map *map)
{
    free(map->nodes);
    map->nodes = NULL;
}

int redis_map_owner(const struct redis_map *map, unsigned slot)
{
    return map->owners[slot] ? map->owners[slot] - 1 : -ENOENT;
}

/* ---- numbers ---- */

static bool is_free(const struct redis_map *map, unsigned number)
{
    return !map->nodes[number].place.host[0];
}

/* Around from where the last was found. */
static int free_number(struct redis_map *map)
{
    for (unsigned i = 0; i < REDIS_MAP_NODES; i++) {
        unsigned number = (map->next + i) % REDIS_MAP_NODES;
        if (!is_free(map, number))
            continue;
        map->next = (number + 1) % REDIS_MAP_NODES;
        if (number >= map->count)
            map->count = number + 1;
        return (int)number;
    }
    return -ENOSPC;
}

int redis_map_number(struct redis_map *map, const struct redis_place *place)
{
    for (unsigned i = 0; i < map->count; i++)
        if (redis_place_equal(&map->nodes[i].place, place))
            return (int)i;
    int number = free_number(map);
    if (number >= 0)
        map->nodes[number] = (struct redis_map_node){.place = *place};
    return number;
}

void redis_map_drop(struct redis_map *map, int number)
{
    map->nodes[number] = (struct redis_map_node){0};
    while (map->count && is_free(map, map->count - 1))
        map->count--;
}

int redis_map_next(const struct redis_map *map, int number)
{
    for (unsigned i = (unsigned)(number + 1); i < map->count; i++)
        if (map->nodes[i].slots)
            return (int)i;
    return -ENOENT;
}

bool redis_map_move(struct redis_map *map, unsigned slot, int number)
{
    int before = redis_map_owner(map, slot);
    if (before == number)
        return false;
    if (before >= 0)
        map->nodes[before].slots--;
    map->nodes[number].slots++;
    map->owners[slot] = (uint16_t)(number + 1);
    return true;
}

unsigned redis_map_uncovered(const struct redis_map *map)
{
    unsigned uncovered = 0;
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        uncovered += !map->owners[slot];
    return uncovered;
}

/* ---- answers ---- */

/* Of one element: from, to, its primary, then perhaps replicas. */
struct range {
    unsigned first, last;
    struct redis_place primary;
};

static bool is_number(const struct redisReply *reply, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= most;
}

/* Its own name a node may not know, or not tell: then it is the one that was asked by. */
static const char *host_of(const struct redisReply *reply, const struct redis_place *asked)
{
    if (reply->type == REDIS_REPLY_NIL)
        return asked->host;
    if (reply->type != REDIS_REPLY_STRING)
        return NULL;
    bool unknown = reply->len == 0 || strcmp(reply->str, "?") == 0;
    return unknown ? asked->host : reply->str;
}

static bool read_primary(struct redis_place *place, const struct redisReply *reply,
                         const struct redis_place *asked)
{
    char port[8];
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        !is_number(reply->element[1], UINT16_MAX))
        return false;
    const char *host = host_of(reply->element[0], asked);
    snprintf(port, sizeof port, "%u", (unsigned)reply->element[1]->integer);
    return host && redis_place_set(place, host, port);
}

static bool read_range(struct range *range, const struct redisReply *reply,
                       const struct redis_place *asked)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        !is_number(reply->element[0], REDIS_SLOTS - 1) ||
        !is_number(reply->element[1], REDIS_SLOTS - 1))
        return false;
    range->first = (unsigned)reply->element[0]->integer;
    range->last = (unsigned)reply->element[1]->integer;
    return range->first <= range->last && read_primary(&range->primary, reply->element[2], asked);
}

/* What an answer says, before any of it counts. */
struct said {
    struct redis_place nodes[REDIS_MAP_NAMED];
    unsigned count;
    uint16_t owners[REDIS_SLOTS]; /* one of `nodes`, and one; 0: nobody is named */
};

/* -1: there are too many. */
static int named(struct said *said, const struct redis_place *node)
{
    for (unsigned i = 0; i < said->count; i++)
        if (redis_place_equal(&said->nodes[i], node))
            return (int)i;
    if (said->count == REDIS_MAP_NAMED)
        return -1;
    said->nodes[said->count] = *node;
    return (int)said->count++;
}

/* False: somebody else has been named for one of these. */
static bool give(struct said *said, const struct range *range, int node)
{
    for (unsigned slot = range->first; slot <= range->last; slot++) {
        if (said->owners[slot])
            return false;
        said->owners[slot] = (uint16_t)(node + 1);
    }
    return true;
}

/* NULL: all of it can be read, and it does not contradict itself. */
static const char *read_answer(struct said *said, const struct redisReply *answer,
                               const struct redis_place *asked)
{
    struct range range;
    if (answer->type != REDIS_REPLY_ARRAY)
        return "answers CLUSTER SLOTS with something else";
    if (!answer->elements)
        return "knows of no slots: it is not part of a cluster yet";
    if (answer->elements > REDIS_SLOTS)
        return "names more ranges of slots than there are slots";
    for (size_t i = 0; i < answer->elements; i++) {
        if (!read_range(&range, answer->element[i], asked))
            return "answers CLUSTER SLOTS with what is no range of slots and its node";
        int node = named(said, &range.primary);
        if (node < 0)
            return "names more primaries than a cluster has";
        if (!give(said, &range, node))
            return "names a slot twice";
    }
    return NULL;
}

/* With more nodes than there are numbers the rest stays whose it was. */
static bool take(struct redis_map *map, const struct said *said)
{
    int numbers[REDIS_MAP_NAMED];
    bool changed = false;
    for (unsigned i = 0; i < said->count; i++)
        numbers[i] = redis_map_number(map, &said->nodes[i]);
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        if (said->owners[slot] && numbers[said->owners[slot] - 1] >= 0)
            changed |= redis_map_move(map, slot, numbers[said->owners[slot] - 1]);
    return changed;
}

int redis_map_take(struct redis_map *map, const struct redisReply *answer,
                   const struct redis_place *asked, const char **why)
{
    struct said *said = allocate(1, sizeof *said);
    *why = read_answer(said, answer, asked);
    int changed = *why ? -EPROTO : take(map, said);
    free(said);
    return changed;
}
