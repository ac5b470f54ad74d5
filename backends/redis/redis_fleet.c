/* Nodes come and go from the top of the loop alone (on_review()): whoever is in the middle of an
 * answer is not closed under his own hands.
 */
#include "redis/redis_fleet.h"

#include "net/allocate.h"
#include "redis/protocol/redis_role.h"
#include "redis/redis_internal.h"
#include "redis/topology/redis_cluster.h"

enum { MOST_HOPS = 8 };

struct fleet_node {
    struct redis_fleet *fleet;
    int number;
    struct redis *redis;
    bool leaving;
};

struct redis_fleet {
    struct redis *all;
    uv_loop_t *loop;
    struct redis_cluster *cluster;
    struct redis_options server; /* of a node, but for its address */
    struct redis_nodes events;
    void *arg; /* of these */
    struct fleet_node *nodes[REDIS_MAP_NODES];
    uint16_t owners[REDIS_SLOTS]; /* as redis_map's, when it was looked at last */
    bool has_nodes; /* the first map is there: whoever joins later may have forgotten something */
    bool closing;
    uv_timer_t review;
    unsigned open; /* nodes, the map, the timer */
    void (*closed)(void *arg);
    void *closed_arg;
};

static void on_review(uv_timer_t *timer);

static void review(struct redis_fleet *fleet)
{
    if (!fleet->closing)
        uv_timer_start(&fleet->review, on_review, 0, 0);
}

static void on_changed(void *arg)
{
    review(arg);
}

static const struct redis_map *map_of(const struct redis_fleet *fleet)
{
    return redis_cluster_map(fleet->cluster);
}

/* ---- its end ---- */

static void release(struct redis_fleet *fleet)
{
    if (--fleet->open)
        return;
    void (*closed)(void *arg) = fleet->closed;
    void *arg = fleet->closed_arg;
    free(fleet);
    closed(arg);
}

static void on_map_closed(void *arg)
{
    release(arg);
}

static void on_timer_closed(uv_handle_t *timer)
{
    release(timer->data);
}

/* ---- nodes ---- */

static void on_state(void *arg, bool up, const char *error)
{
    struct fleet_node *node = arg;
    struct redis_fleet *fleet = node->fleet;
    if (!up && !fleet->closing)
        redis_cluster_refresh(fleet->cluster);
    if (fleet->events.state)
        fleet->events.state(fleet->arg, node->number, up, error);
}

static struct fleet_node *join(struct redis_fleet *fleet, int number)
{
    const struct redis_place *place = &map_of(fleet)->nodes[number].place;
    struct fleet_node *node = allocate(1, sizeof *node);
    struct redis_options options = fleet->server;
    options.host = place->host;
    options.port = place->port;
    options.map = map_of(fleet);
    *node = (struct fleet_node){.fleet = fleet, .number = number};
    redis_create(&node->redis, fleet->loop, &options, on_state, node);
    fleet->nodes[number] = node;
    fleet->open++;
    fleet->events.joined(fleet->arg, number, node->redis, fleet->has_nodes);
    return node;
}

static void on_ended(void *arg)
{
    struct fleet_node *node = arg;
    struct redis_fleet *fleet = node->fleet;
    fleet->nodes[node->number] = NULL;
    fleet->events.ended(fleet->arg, node->number);
    if (!fleet->closing)
        redis_cluster_drop(fleet->cluster, node->number);
    free(node);
    review(fleet);
    release(fleet);
}

static void leave(struct fleet_node *node)
{
    node->leaving = true;
    redis_close(node->redis, on_ended, node);
}

/* Once for a row of slots. */
static void tell_gifts(struct redis_fleet *fleet)
{
    const uint16_t *owners = map_of(fleet)->owners;
    uint16_t from = 0, to = 0;
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        uint16_t before = fleet->owners[slot], now = owners[slot];
        fleet->owners[slot] = now;
        if (before == now || !before || !now || (before == from && now == to))
            continue;
        from = before;
        to = now;
        fleet->events.gave(fleet->arg, from - 1, to - 1);
    }
}

static void on_review(uv_timer_t *timer)
{
    struct redis_fleet *fleet = timer->data;
    const struct redis_map *map = map_of(fleet);
    for (unsigned i = 0; i < map->count; i++)
        if (map->nodes[i].slots && !fleet->nodes[i])
            join(fleet, (int)i);
    tell_gifts(fleet);
    for (unsigned i = 0; i < map->count; i++)
        if (!map->nodes[i].slots && fleet->nodes[i] && !fleet->nodes[i]->leaving)
            leave(fleet->nodes[i]);
    fleet->has_nodes |= redis_map_next(map, -1) >= 0;
    fleet->events.moved(fleet->arg);
}

struct redis *redis_fleet_owner(const struct redis_fleet *fleet, struct redis_bytes key)
{
    if (fleet->closing)
        return NULL;
    int owner = redis_map_owner(map_of(fleet), redis_slot_of(key.at, key.length));
    const struct fleet_node *node = owner < 0 ? NULL : fleet->nodes[owner];
    return node && !node->leaving ? node->redis : NULL;
}

struct redis *redis_fleet_next(const struct redis_fleet *fleet, int *number)
{
    for (; *number < REDIS_MAP_NODES; (*number)++)
        if (fleet->nodes[*number] && !fleet->nodes[*number]->leaving)
            return fleet->nodes[*number]->redis;
    return NULL;
}

unsigned redis_fleet_left_out(const struct redis_fleet *fleet)
{
    return map_of(fleet)->left_out;
}

const char *redis_fleet_why(const struct redis_fleet *fleet)
{
    if (fleet->closing)
        return "closed";
    const char *why = redis_cluster_why(fleet->cluster);
    return *why || fleet->has_nodes ? why : "the cluster's nodes have not been asked yet";
}

/* ---- what may have to go elsewhere ---- */

struct errand {
    struct redis_fleet *fleet;
    bool asks; /* EXISTS; else DEL */
    unsigned hops;
    struct redis *at;
    redis_answer_cb done;
    void *arg;
    size_t length;
    char key[];
};

static void on_answer(void *arg, const struct redis_answer *answer);

static void run(struct errand *errand, struct redis *at, bool asking)
{
    struct redis_bytes key = {errand->key, errand->length};
    errand->at = at;
    if (asking) {
        struct redis_command *command = redis_command_of((const char *[]){"ASKING"}, 1);
        command->form = REDIS_FORM_OK;
        redis_submit(at, command, NULL, NULL);
    }
    redis_submit(at, errand->asks ? redis_command_exists(key) : redis_command_purge(key), on_answer,
                 errand);
}

/* Where that is may be in the map by now. */
static bool read_redirect(struct redis_fleet *fleet, struct redis_redirect *redirect,
                          const char *error, const struct redis_place *from)
{
    size_t length = strlen(error);
    if (redis_redirect_read(redirect, error, length, from))
        return true;
    if (redis_redirect_is_meant(error, length) || redis_is_cluster_down(error, length))
        redis_cluster_refresh(fleet->cluster);
    return false;
}

/* Whom the answer names; NULL: nobody. One that is new gets a connection. */
static struct redis *next_of(struct errand *errand, const struct redis_answer *answer,
                             struct redis_redirect *redirect)
{
    struct redis_fleet *fleet = errand->fleet;
    struct redis_place from = {.port = errand->at->options.port};
    bool changed;
    if (answer->outcome != REDIS_REFUSED) /* at the end of all, the fleet's memory may be gone */
        return NULL;
    if (fleet->closing || errand->hops++ >= MOST_HOPS || !errand->at->options.host)
        return NULL;
    snprintf(from.host, sizeof from.host, "%s", errand->at->options.host);
    if (!read_redirect(fleet, redirect, answer->error, &from))
        return NULL;
    int number = redis_cluster_follow(fleet->cluster, redirect, &changed);
    if (changed)
        review(fleet);
    if (number < 0)
        return NULL;
    struct fleet_node *node = fleet->nodes[number] ? fleet->nodes[number] : join(fleet, number);
    return node->leaving ? NULL : node->redis;
}

static void on_answer(void *arg, const struct redis_answer *answer)
{
    struct errand *errand = arg;
    struct redis_redirect redirect;
    struct redis *next = next_of(errand, answer, &redirect);
    if (next) {
        run(errand, next, redirect.asks);
        return;
    }
    if (errand->done)
        errand->done(errand->arg, answer);
    free(errand);
}

static void ask_owner(struct redis_fleet *fleet, struct redis_bytes key, bool asks,
                      redis_answer_cb done, void *arg)
{
    struct errand *errand = allocate(1, sizeof *errand + key.length);
    struct redis *owner = redis_fleet_owner(fleet, key);
    *errand = (struct errand){
        .fleet = fleet, .asks = asks, .done = done, .arg = arg, .length = key.length};
    memcpy(errand->key, key.at, key.length);
    run(errand, owner ? owner : fleet->all, false);
}

void redis_fleet_purge(struct redis_fleet *fleet, struct redis_bytes key, redis_answer_cb done,
                       void *arg)
{
    ask_owner(fleet, key, false, done, arg);
}

void redis_fleet_exists(struct redis_fleet *fleet, struct redis_bytes key, redis_answer_cb done,
                        void *arg)
{
    ask_owner(fleet, key, true, done, arg);
}

/* ---- life ---- */

void redis_fleet_open(struct redis *all)
{
    struct redis_fleet *fleet = allocate(1, sizeof *fleet);
    fleet->all = all;
    fleet->loop = all->loop;
    fleet->events = *all->options.nodes;
    all->options.nodes = NULL; /* the caller's, of a moment ago */
    fleet->server = all->options;
    fleet->arg = all->state_arg;
    uv_timer_init(fleet->loop, &fleet->review);
    fleet->review.data = fleet;
    fleet->cluster = redis_cluster_create(fleet->loop, fleet->events.cluster, on_changed, fleet);
    fleet->open = 2;
    all->fleet = fleet;
    all->is_new = false;
    all->handles++;
    snprintf(all->reason, sizeof all->reason, "no node of the cluster is known to have the key");
}

void redis_fleet_close(struct redis_fleet *fleet, void (*closed)(void *arg), void *arg)
{
    fleet->closing = true;
    fleet->closed = closed;
    fleet->closed_arg = arg;
    for (int i = 0; i < REDIS_MAP_NODES; i++)
        if (fleet->nodes[i] && !fleet->nodes[i]->leaving) {
            fleet->nodes[i]->leaving = true;
            redis_close(fleet->nodes[i]->redis, on_ended, fleet->nodes[i]);
        }
    redis_cluster_close(fleet->cluster, on_map_closed, fleet);
    uv_close((uv_handle_t *)&fleet->review, on_timer_closed);
}
