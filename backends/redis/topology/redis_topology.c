/* Each sentinel (redis_sentinel.h) says by itself whom it names, and whether its answer to the last
 * question is still to come. What follows from that is worked out anew whenever one has spoken,
 * time is up or somebody asks, and always from the idle handle:
 *
 *   a search that was cancelled ──────────────────────────────▶ found(): "cancelled"
 *   more than half have answered, with the same ─────────┐
 *   all have answered, or will not ──────────────────────┼────▶ found(): best_place(), if any
 *   somebody names one, and the slower ones had GRACE_MS ┘
 *   most of those that name any agree on another than `current` ─▶ moved()
 *
 * So no function of the header calls back from within, and what several sentinels say in one turn
 * of the loop is weighed together.
 */
#include "redis/topology/redis_topology.h"

#include "net/allocate.h"
#include "net/tls.h"
#include "redis/topology/redis_sentinel.h"

enum {
    GRACE_MS = 300,     /* for the slower ones, from the beginning of a round of questions */
    PATIENCE_MS = 1000, /* of a sentinel, for connecting and for each answer */
    DISTRUST_MS = 1000
};

struct redis_topology {
    uv_loop_t *loop;
    struct redis_sentinels options; /* with copies of the texts */
    struct redis_seed *seeds;
    struct redis_sentinel *sentinels;
    struct redis_search *searches, **last;
    struct redis_place current; /* the last that most named, or that was found */
    struct redis_place distrusted;
    uint64_t distrusted_until; /* the loop's time */
    bool grace_over;
    uv_timer_t grace;
    uv_idle_t idle; /* runs while searches may have come to their end */
    void (*moved)(void *arg);
    void *moved_arg;
    void (*closed)(void *arg);
    void *closed_arg;
    size_t handles; /* sentinels, timer, idle */
    bool closing;
};

/* ---- votes ---- */

/* What a sentinel said counts as long as its connection stands, also while it is asked anew. */
static size_t votes_for(const struct redis_topology *topology, const struct redis_place *place)
{
    size_t votes = 0;
    for (size_t i = 0; i < topology->options.count; i++) {
        const struct redis_sentinel *sentinel = &topology->sentinels[i];
        votes += sentinel->knows && redis_place_equal(&sentinel->primary, place);
    }
    return votes;
}

static bool is_distrusted(const struct redis_topology *topology, const struct redis_place *place)
{
    return uv_now(topology->loop) < topology->distrusted_until &&
           redis_place_equal(&topology->distrusted, place);
}

/* Of two that as many name, the one that was known before. */
static bool is_better(const struct redis_topology *topology, const struct redis_place *place,
                      const struct redis_place *best)
{
    if (is_distrusted(topology, place) != is_distrusted(topology, best))
        return is_distrusted(topology, best);
    size_t votes = votes_for(topology, place), most = votes_for(topology, best);
    return votes > most || (votes == most && redis_place_equal(place, &topology->current));
}

/* NULL: none of them names any. */
static const struct redis_place *best_place(const struct redis_topology *topology)
{
    const struct redis_place *best = NULL;
    for (size_t i = 0; i < topology->options.count; i++) {
        const struct redis_sentinel *sentinel = &topology->sentinels[i];
        if (sentinel->knows && (!best || is_better(topology, &sentinel->primary, best)))
            best = &sentinel->primary;
    }
    return best;
}

/* What more than half of those say that name any; NULL: nothing. */
static const struct redis_place *agreed_place(const struct redis_topology *topology)
{
    size_t known = 0;
    const struct redis_place *agreed = NULL;
    for (size_t i = 0; i < topology->options.count; i++)
        known += topology->sentinels[i].knows;
    for (size_t i = 0; i < topology->options.count && !agreed; i++) {
        const struct redis_sentinel *sentinel = &topology->sentinels[i];
        if (sentinel->knows && 2 * votes_for(topology, &sentinel->primary) > known)
            agreed = &sentinel->primary;
    }
    return agreed;
}

static size_t count_asked(const struct redis_topology *topology)
{
    size_t asked = 0;
    for (size_t i = 0; i < topology->options.count; i++)
        asked += topology->sentinels[i].asked;
    return asked;
}

/* Whether more than half of all have answered, and with this. */
static bool is_sure(const struct redis_topology *topology, const struct redis_place *place)
{
    size_t fresh = 0;
    for (size_t i = 0; i < topology->options.count; i++) {
        const struct redis_sentinel *sentinel = &topology->sentinels[i];
        fresh +=
            !sentinel->asked && sentinel->knows && redis_place_equal(&sentinel->primary, place);
    }
    return 2 * fresh > topology->options.count && !is_distrusted(topology, place);
}

/* ---- searches ---- */

static void answer_all(struct redis_topology *topology, const struct redis_place *place,
                       const char *error)
{
    struct redis_search *search = topology->searches;
    topology->searches = NULL;
    topology->last = &topology->searches;
    while (search) {
        struct redis_search *next = search->next;
        if (search->cancelled)
            search->found(search->arg, NULL, "cancelled");
        else
            search->found(search->arg, place, error);
        search = next;
    }
}

/* The first reason there is: nearly always all have the same. */
static void print_reason(const struct redis_topology *topology, char *text, size_t size)
{
    char place[REDIS_PLACE_TEXT];
    struct redis_word word;
    redis_topology_word(topology, 0, &word);
    redis_place_print(&word.sentinel, place);
    snprintf(text, size, "no sentinel names a primary %s (%s: %s)", topology->options.name, place,
             word.why ? word.why : "");
}

static void end_searches(struct redis_topology *topology)
{
    const struct redis_place *best = best_place(topology);
    struct redis_place found;
    char reason[400];
    if (best) {
        found = topology->current = *best;
        answer_all(topology, &found, NULL);
    } else {
        print_reason(topology, reason, sizeof reason);
        answer_all(topology, NULL, reason);
    }
}

static void answer_cancelled(struct redis_topology *topology)
{
    struct redis_search **at = &topology->searches, *search;
    while ((search = *at)) {
        if (!search->cancelled) {
            at = &search->next;
            continue;
        }
        *at = search->next;
        if (!*at)
            topology->last = at;
        search->found(search->arg, NULL, "cancelled");
        at = &topology->searches; /* it may have begun others */
    }
}

static bool is_decided(const struct redis_topology *topology)
{
    const struct redis_place *best = best_place(topology);
    return !count_asked(topology) || (best && (topology->grace_over || is_sure(topology, best)));
}

/* A primary that most name and that is not the one known so far; at first there is none. */
static void notice_move(struct redis_topology *topology)
{
    const struct redis_place *agreed = agreed_place(topology);
    if (!agreed || redis_place_equal(agreed, &topology->current))
        return;
    bool is_first = !topology->current.host[0];
    topology->current = *agreed;
    if (!is_first)
        topology->moved(topology->moved_arg);
}

static void on_idle(uv_idle_t *idle)
{
    struct redis_topology *topology = idle->data;
    uv_idle_stop(idle);
    answer_cancelled(topology);
    if (topology->searches && is_decided(topology))
        end_searches(topology);
    if (!topology->closing)
        notice_move(topology);
}

static void review(struct redis_topology *topology)
{
    if (!topology->closing)
        uv_idle_start(&topology->idle, on_idle);
}

static void on_told(void *arg, struct redis_sentinel *sentinel)
{
    (void)sentinel;
    review(arg);
}

static void on_grace_over(uv_timer_t *timer)
{
    struct redis_topology *topology = timer->data;
    topology->grace_over = true;
    review(topology);
}

void redis_topology_find(struct redis_topology *topology, struct redis_search *search)
{
    bool is_first = !topology->searches;
    search->next = NULL;
    search->cancelled = false;
    *topology->last = search;
    topology->last = &search->next;
    if (is_first) {
        topology->grace_over = false;
        uv_update_time(topology->loop);
        uv_timer_start(&topology->grace, on_grace_over, GRACE_MS, 0);
    }
    for (size_t i = 0; i < topology->options.count; i++)
        redis_sentinel_ask(&topology->sentinels[i]);
    review(topology);
}

void redis_topology_cancel(struct redis_topology *topology, struct redis_search *search)
{
    search->cancelled = true;
    review(topology);
}

void redis_topology_distrust(struct redis_topology *topology, const struct redis_place *place)
{
    topology->distrusted = *place;
    topology->distrusted_until = uv_now(topology->loop) + DISTRUST_MS;
}

bool redis_topology_has_moved(const struct redis_topology *topology,
                              const struct redis_place *place)
{
    const struct redis_place *agreed = agreed_place(topology);
    return agreed && !redis_place_equal(agreed, place);
}

/* ---- accounts ---- */

size_t redis_topology_sentinels(const struct redis_topology *topology)
{
    return topology->options.count;
}

void redis_topology_word(const struct redis_topology *topology, size_t number,
                         struct redis_word *word)
{
    const struct redis_sentinel *sentinel = &topology->sentinels[number];
    *word = (struct redis_word){.sentinel.port = sentinel->options.port,
                                .primary = sentinel->knows ? &sentinel->primary : NULL,
                                .is_deaf = sentinel->is_deaf};
    snprintf(word->sentinel.host, sizeof word->sentinel.host, "%s", sentinel->options.host);
    if (sentinel->knows)
        return;
    word->why = sentinel->why[0] ? sentinel->why : "has not answered yet";
    word->since = sentinel->silent;
}

bool redis_topology_has_heard(const struct redis_topology *topology, size_t number)
{
    const struct redis_sentinel *sentinel = &topology->sentinels[number];
    return !sentinel->asked && (sentinel->state != SENTINEL_UP || !sentinel->reply_count);
}

/* ---- life ---- */

static void release(struct redis_topology *topology)
{
    if (--topology->handles)
        return;
    void (*closed)(void *arg) = topology->closed;
    void *arg = topology->closed_arg;
    for (size_t i = 0; i < topology->options.count; i++)
        free((char *)topology->seeds[i].host);
    free(topology->seeds);
    free(topology->sentinels);
    free((char *)topology->options.name);
    free((char *)topology->options.user);
    free((char *)topology->options.password);
    tls_context_release(topology->options.tls);
    free(topology);
    if (closed)
        closed(arg);
}

static void on_sentinel_closed(void *arg)
{
    release(arg);
}

static void copy_options(struct redis_topology *topology, const struct redis_sentinels *options)
{
    topology->options = *options;
    topology->options.name = allocate_text(options->name);
    topology->options.user = allocate_text(options->user);
    topology->options.password = allocate_text(options->password);
    if (options->tls)
        tls_context_hold(options->tls);
    topology->seeds = allocate(options->count, sizeof *topology->seeds);
    for (size_t i = 0; i < options->count; i++)
        topology->seeds[i] =
            (struct redis_seed){allocate_text(options->seeds[i].host), options->seeds[i].port};
    topology->options.seeds = topology->seeds;
}

static void open_sentinel(struct redis_topology *topology, size_t number)
{
    struct redis_sentinel *sentinel = &topology->sentinels[number];
    *sentinel =
        (struct redis_sentinel){.options = {.host = topology->seeds[number].host,
                                            .port = topology->seeds[number].port,
                                            .name = topology->options.name,
                                            .login = {.user = topology->options.user,
                                                      .password = topology->options.password},
                                            .tls = topology->options.tls,
                                            .timeout_ms = PATIENCE_MS},
                                .told = on_told,
                                .closed = on_sentinel_closed,
                                .arg = topology};
    redis_sentinel_open(sentinel, topology->loop);
}

struct redis_topology *redis_topology_create(uv_loop_t *loop, const struct redis_sentinels *options,
                                             void (*moved)(void *arg), void *arg)
{
    struct redis_topology *topology = allocate(1, sizeof *topology);
    topology->loop = loop;
    topology->moved = moved;
    topology->moved_arg = arg;
    topology->last = &topology->searches;
    copy_options(topology, options);
    uv_timer_init(loop, &topology->grace);
    uv_idle_init(loop, &topology->idle);
    topology->grace.data = topology->idle.data = topology;
    topology->sentinels = allocate(options->count, sizeof *topology->sentinels);
    topology->handles = options->count + 2;
    for (size_t i = 0; i < options->count; i++)
        open_sentinel(topology, i);
    return topology;
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

/* Whoever still waits is told before the last handle is closed. */
static void on_last_turn(uv_handle_t *idle)
{
    struct redis_topology *topology = idle->data;
    answer_all(topology, NULL, "closed");
    release(topology);
}

void redis_topology_close(struct redis_topology *topology, void (*closed)(void *arg), void *arg)
{
    topology->closing = true;
    topology->closed = closed;
    topology->closed_arg = arg;
    for (size_t i = 0; i < topology->options.count; i++)
        redis_sentinel_close(&topology->sentinels[i]);
    uv_close((uv_handle_t *)&topology->grace, on_handle_closed);
    uv_close((uv_handle_t *)&topology->idle, on_last_turn);
}
