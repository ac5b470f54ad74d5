/* An answer is read whole before anything is changed by it: it comes from a server that may be
 * wrong, or not be one.
 */
#include "redis/topology/redis_map.h"

#include "net/allocate.h"

#include <errno.h>
#include <hiredis.h>

void redis_map_init(struct redis_map *map)
{
    *map = (struct redis_map){.nodes = allocate(REDIS_MAP_NODES, sizeof *map->nodes),
                              .ids = allocate(REDIS_MAP_IDS, sizeof *map->ids)};
}

void redis_map_finish(struct redis_map *map)
{
    free(map->nodes);
    free(map->ids);
    map->nodes = NULL;
    map->ids = NULL;
}

int redis_map_owner(const struct redis_map *map, unsigned slot)
{
    return map->owners[slot] ? map->owners[slot] - 1 : -ENOENT;
}

/* ---- what maps have in common ---- */

/* The end of splitmix64 (Steele, Lea and Flood 2014). Nobody gains by two places that are alike. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

/* FNV-1a (Fowler, Noll, Vo). Of ids, which are random themselves, two with one hash do no harm. */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static uint64_t mark_of(const struct redis_place *place)
{
    uint64_t hash = hash_of(place->host, strlen(place->host));
    return mix((hash ^ place->port) * 1099511628211u);
}

/* What a slot of that node's adds to the digest. */
static uint64_t part_of(const struct redis_map_node *node, unsigned slot)
{
    return mix(node->mark + (slot + 1) * 0x9e3779b97f4a7c15);
}

unsigned redis_map_owners(const struct redis_map *map)
{
    unsigned owners = 0;
    for (unsigned i = 0; i < map->count; i++)
        owners += map->nodes[i].slots > 0;
    return owners;
}

static unsigned rank_of(const struct redis_map *map, const struct redis_map_node *node)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < map->count; i++)
        rank += map->nodes[i].slots && map->nodes[i].mark < node->mark;
    return rank;
}

int redis_map_ranked(const struct redis_map *map, unsigned rank)
{
    for (unsigned i = 0; i < map->count; i++)
        if (map->nodes[i].slots && rank_of(map, &map->nodes[i]) == rank)
            return (int)i;
    return -ENOENT;
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

/* -1: it has none. */
static int find(const struct redis_map *map, const struct redis_place *place)
{
    for (unsigned i = 0; i < map->count; i++)
        if (redis_place_equal(&map->nodes[i].place, place))
            return (int)i;
    return -1;
}

int redis_map_number(struct redis_map *map, const struct redis_place *place)
{
    int number = find(map, place);
    if (number >= 0)
        return number;
    number = free_number(map);
    if (number >= 0)
        map->nodes[number] = (struct redis_map_node){.place = *place, .mark = mark_of(place)};
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

bool redis_map_owns(const struct redis_map *map, const struct redis_place *place)
{
    for (int number = -1; map && place && (number = redis_map_next(map, number)) >= 0;)
        if (redis_place_equal(&map->nodes[number].place, place))
            return true;
    return false;
}

bool redis_map_move(struct redis_map *map, unsigned slot, int number)
{
    int before = redis_map_owner(map, slot);
    if (before == number)
        return false;
    if (before >= 0) {
        map->nodes[before].slots--;
        map->digest ^= part_of(&map->nodes[before], slot);
    }
    map->nodes[number].slots++;
    map->digest ^= part_of(&map->nodes[number], slot);
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

static bool is_unknown(const char *host)
{
    return !*host || strcmp(host, "?") == 0;
}

/* The address beside an endpoint: behind it a port, an id, and since Redis 7 pairs of a name and a
 * value. NULL: it is not told. */
static const char *address_of(const struct redisReply *node)
{
    const struct redisReply *pairs = node->elements > 3 ? node->element[3] : NULL;
    if (!pairs || pairs->type != REDIS_REPLY_ARRAY)
        return NULL;
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        const struct redisReply *name = pairs->element[i], *value = pairs->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && strcmp(name->str, "ip") == 0)
            return value->type == REDIS_REPLY_STRING && !is_unknown(value->str) ? value->str : NULL;
    }
    return NULL;
}

/* No endpoint, or an empty one, is the host that was asked (Redis' documents of CLUSTER SLOTS). A
 * "?" is a node without a hostname where hostnames are preferred: its address stands beside it. */
static const char *host_of(const struct redisReply *node, const struct redis_place *asked)
{
    const struct redisReply *endpoint = node->element[0];
    if (endpoint->type == REDIS_REPLY_NIL)
        return asked->host;
    if (endpoint->type != REDIS_REPLY_STRING)
        return NULL;
    if (!is_unknown(endpoint->str))
        return endpoint->str;
    const char *address = endpoint->len ? address_of(node) : NULL;
    return address ? address : asked->host;
}

static bool read_primary(struct redis_place *place, const struct redisReply *reply,
                         const struct redis_place *asked)
{
    char port[8];
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        !is_number(reply->element[1], UINT16_MAX))
        return false;
    const char *host = host_of(reply, asked);
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

static void count_left_out(struct redis_map *map, const struct said *said)
{
    map->left_out = 0;
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        map->left_out += !said->owners[slot];
}

/* With more nodes than there are numbers the rest stays whose it was. */
static bool take(struct redis_map *map, const struct said *said)
{
    int numbers[REDIS_MAP_NAMED];
    bool changed = false;
    for (unsigned i = 0; i < said->count; i++) {
        numbers[i] = redis_map_number(map, &said->nodes[i]);
        if (numbers[i] >= 0)
            map->nodes[numbers[i]].is_named = true;
    }
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        if (said->owners[slot] && numbers[said->owners[slot] - 1] >= 0)
            changed |= redis_map_move(map, slot, numbers[said->owners[slot] - 1]);
    count_left_out(map, said);
    return changed;
}

/* ---- of which cluster ---- */

/* NULL: it tells none, or is no node. */
static const struct redisReply *id_of(const struct redisReply *node)
{
    if (node->type != REDIS_REPLY_ARRAY || node->elements < 3)
        return NULL;
    const struct redisReply *id = node->element[2];
    return id->type == REDIS_REPLY_STRING && id->len ? id : NULL;
}

/* Each node's that is named, as often as it is; `act` ends it by true. */
static bool each_id(const struct redisReply *answer, bool (*act)(void *arg, uint64_t hash),
                    void *arg)
{
    size_t ranges = answer->type == REDIS_REPLY_ARRAY ? answer->elements : 0;
    for (size_t i = 0; i < ranges; i++) {
        const struct redisReply *range = answer->element[i];
        for (size_t j = 2; range->type == REDIS_REPLY_ARRAY && j < range->elements; j++) {
            const struct redisReply *id = id_of(range->element[j]);
            if (id && act(arg, hash_of(id->str, id->len)))
                return true;
        }
    }
    return false;
}

/* NULL: it is not known. */
static struct redis_map_id *find_id(const struct redis_map *map, uint64_t hash)
{
    for (size_t i = 0; i < map->id_count; i++)
        if (map->ids[i].hash == hash && map->answers - map->ids[i].named < REDIS_MAP_REMEMBERED)
            return &map->ids[i];
    return NULL;
}

static bool is_known(void *arg, uint64_t hash)
{
    return find_id(arg, hash);
}

static bool is_any(void *arg, uint64_t hash)
{
    (void)arg;
    (void)hash;
    return true;
}

/* The place of the one that was named longest ago. */
static struct redis_map_id *oldest_id(const struct redis_map *map)
{
    struct redis_map_id *oldest = map->ids;
    for (size_t i = 1; i < map->id_count; i++)
        if (map->ids[i].named < oldest->named)
            oldest = &map->ids[i];
    return oldest;
}

static bool remember(void *arg, uint64_t hash)
{
    struct redis_map *map = arg;
    struct redis_map_id *id = find_id(map, hash);
    if (!id)
        id = map->id_count < REDIS_MAP_IDS ? &map->ids[map->id_count++] : oldest_id(map);
    *id = (struct redis_map_id){hash, map->answers};
    return false;
}

bool redis_map_is_akin(const struct redis_map *map, const struct redisReply *answer)
{
    return !map->id_count || !each_id(answer, is_any, NULL) ||
           each_id(answer, is_known, (void *)(uintptr_t)map);
}

const char redis_stranger_text[] =
    "a node of another cluster answers there: the address has been given to it";

/* A replica has no number: it is named by its primary, which may not know yet that it has gone. */
bool redis_map_is_stranger(const struct redis_map *map, const struct redis_place *place,
                           const char *id, size_t length)
{
    int number = find(map, place);
    bool may_be_new = number >= 0 && !map->nodes[number].is_named;
    return length && map->id_count && !may_be_new &&
           !is_known((void *)(uintptr_t)map, hash_of(id, length));
}

int redis_map_take(struct redis_map *map, const struct redisReply *answer,
                   const struct redis_place *asked, const char **why)
{
    struct said *said = allocate(1, sizeof *said);
    *why = read_answer(said, answer, asked);
    int changed = *why ? -EPROTO : take(map, said);
    free(said);
    if (changed < 0)
        return changed;
    if (!redis_map_is_akin(map, answer))
        map->id_count = 0; /* it was made anew */
    map->answers++;
    each_id(answer, remember, map);
    return changed;
}

void redis_map_look_over(struct redis_map *map, const struct redisReply *answer,
                         const struct redis_place *asked)
{
    struct said *said = allocate(1, sizeof *said);
    if (!read_answer(said, answer, asked))
        count_left_out(map, said);
    free(said);
}
