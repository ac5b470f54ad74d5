/* What a load leaves in the cache: the row's value, or the hash that is made of it, with a TTL, and
 * only where the cache has nothing.
 */
#include "cache/loads_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "resp/resp.h"

#include <stdlib.h>
#include <string.h>

enum { FILLS_MAX = 1000 }; /* a cache that hangs must not make values pile up here */

/* A full server takes no value for hours, and without a word of it every lookup of what is not
 * there would only be slower. */
static void complain_of_fill(struct loads *loads, int keyspace, const char *error)
{
    if (log_pace_may(&loads->untaken, clock_ms(), NULL))
        log_warning("keyspace %s: the cache did not take a value that was loaded: %s",
                    loads->view->config->keyspaces[keyspace].name, error);
}

/* By what the cache said, for each reason has another remedy. */
static counter *fill_counter(struct load_counters *counters, const struct redis_answer *reply)
{
    size_t length = strlen(reply->error);
    if (reply->outcome == REDIS_DONE)
        return &counters->fills;
    if (reply->outcome == REDIS_DOWN)
        return &counters->fills_failed_down;
    if (redis_is_full(reply->error, length))
        return &counters->fills_failed_full;
    if (redis_is_readonly(reply->error, length))
        return &counters->fills_failed_readonly;
    return redis_is_passing_trouble(reply->error, length) ? &counters->fills_failed_busy
                                                          : &counters->fills_failed_refused;
}

struct loads_clearing {
    struct loads_clearing *before, *behind;
    uint64_t number; /* of clearings */
    uint64_t fill;   /* the last before it */
    bool begun;
    void (*begin)(void *arg);
    void *arg;
};

/* ---- in their order ---- */

static void link_fill(struct loads *loads, struct load *load)
{
    load->fill = ++loads->fills;
    load->waits_for = 0;
    load->fill_behind = NULL;
    load->fill_before = loads->last_fill;
    *(load->fill_before ? &load->fill_before->fill_behind : &loads->first_fill) = load;
    loads->last_fill = load;
    loads->filling++;
}

static void unlink_fill(struct loads *loads, struct load *load)
{
    *(load->fill_before ? &load->fill_before->fill_behind : &loads->first_fill) = load->fill_behind;
    *(load->fill_behind ? &load->fill_behind->fill_before : &loads->last_fill) = load->fill_before;
    loads->filling--;
}

static bool is_behind_fills(const struct loads *loads, const struct loads_clearing *clearing)
{
    return loads->first_fill && loads->first_fill->fill <= clearing->fill;
}

/* Who came later waits for no fewer. */
static void begin_clearings(struct loads *loads)
{
    struct loads_clearing *clearing = loads->first_clearing, *behind;
    for (; clearing && !is_behind_fills(loads, clearing); clearing = behind) {
        behind = clearing->behind;
        if (!clearing->begun) {
            clearing->begun = true;
            clearing->begin(clearing->arg);
        }
    }
}

/* ---- what the cache says ---- */

/* In any case the load has ended: a value that was not cached is loaded anew. */
static void on_filled(void *arg, const struct redis_answer *reply)
{
    struct load *load = arg;
    struct loads *loads = load->loads;
    unlink_fill(loads, load);
    counter_add(fill_counter(&loads->options.counters[load->key.keyspace], reply), 1);
    if (reply->outcome == REDIS_REFUSED)
        complain_of_fill(loads, load->key.keyspace, reply->error);
    loads_end(load);
    begin_clearings(loads);
}

/* Drawn from ttl * (1 - jitter) to ttl, so that what was loaded together does not expire together.
 * The ttl is the row's own, if that is above 0. */
static uint64_t draw_ttl(const struct keyspace *keyspace, int64_t own)
{
    uint64_t ttl = own > 0 ? (uint64_t)own : keyspace->ttl_ms;
    uint64_t spread = (uint64_t)((double)ttl * keyspace->ttl_jitter);
    if (spread >= UINT32_MAX)
        spread = UINT32_MAX - 1;
    if (ttl && spread >= ttl)
        spread = ttl - 1; /* a TTL of 0 would be none */
    return ttl - arc4random_uniform((uint32_t)spread + 1);
}

/* False: it is over, or nobody knows. */
static bool may_live(struct loads *loads, int keyspace, int64_t ttl)
{
    if (ttl >= 0)
        return true;
    counter_add(&loads->options.counters[keyspace].fills_forgone, 1);
    if (ttl == ROW_TTL_UNREADABLE && log_pace_may(&loads->untaken, clock_ms(), NULL))
        log_warning("keyspace %s: ttl_expression gives no number of seconds for a row, whose value "
                    "is not cached",
                    loads->view->config->keyspaces[keyspace].name);
    return false;
}

static struct redis_bytes bytes_of(struct span span)
{
    return (struct redis_bytes){span.at, span.length};
}

/* With its TTL, and only where the cache has nothing: what the application has written meanwhile
 * stays, a string or a hash. What is purged behind this is told on the same connection. */
static void send_fill(struct load *load, struct span value, uint64_t ttl)
{
    redis_fill(load->loads->options.redis, bytes_of(load->key.text), bytes_of(value), ttl,
               on_filled, load);
}

static void send_hash(struct load *load, struct span value, uint64_t ttl)
{
    const char *at, *end = value.at + value.length;
    size_t pairs = (size_t)resp_map_open(value, &at);
    struct redis_bytes *words = xcalloc(2 * pairs, sizeof *words);
    for (size_t i = 0; i < 2 * pairs; i++)
        words[i] = bytes_of(resp_bulk_text(resp_array_next(&at, end)));
    redis_fill_hash(load->loads->options.redis, bytes_of(load->key.text),
                    (struct redis_hash){words, pairs}, ttl, on_filled, load);
    free(words);
}

static void write_value(struct load *load)
{
    struct loads *loads = load->loads;
    if (loads->options.filling)
        loads->options.filling(loads->options.arg, load->key);
    (loads_keyspace(load)->fill == FILL_HASH ? send_hash : send_fill)(load, blob_span(load->value),
                                                                      load->ttl);
}

/* A hash without fields is one that Redis cannot hold. */
static bool may_be_filled(const struct load *load, const struct blob *value)
{
    const char *at;
    const struct keyspace *keyspace = loads_keyspace(load);
    return !keyspace->retired &&
           (keyspace->fill != FILL_HASH || resp_map_open(blob_span(value), &at) > 0);
}

/* Behind the clearings that are under way: what was read before one of them is not to come to the
 * cache behind it. */
static void hold(struct loads *loads, struct load *load)
{
    load->waits_for = loads->last_clearing->number;
    if (!loads->first_held)
        loads->first_held = load;
}

/* Whoever asks while the fill is under way is answered by join_flight(). Of a keyspace that is
 * retired nothing is cached any more: nobody would purge it. */
void loads_fill(struct load *load, const struct row_result *result)
{
    struct loads *loads = load->loads;
    const struct keyspace *keyspace = loads_keyspace(load);
    if (!may_be_filled(load, result->value) ||
        !may_live(loads, load->key.keyspace, result->ttl_ms)) {
        loads_end(load);
        return;
    }
    if (loads->filling >= FILLS_MAX) {
        counter_add(&loads->options.counters[load->key.keyspace].fills_failed_waiting, 1);
        loads_end(load);
        return;
    }
    load->value = blob_share(result->value);
    load->ttl = draw_ttl(keyspace, result->ttl_ms);
    link_fill(loads, load);
    if (loads->last_clearing)
        hold(loads, load);
    else
        write_value(load);
}

/* ---- clearings ---- */

struct loads_clearing *loads_begin_clearing(struct loads *loads, void (*begin)(void *arg),
                                            void *arg, bool *begun)
{
    struct loads_clearing *clearing = xmalloc(sizeof *clearing);
    *clearing = (struct loads_clearing){.before = loads->last_clearing,
                                        .number = ++loads->clearings,
                                        .fill = loads->fills,
                                        .begin = begin,
                                        .arg = arg};
    *(clearing->before ? &clearing->before->behind : &loads->first_clearing) = clearing;
    loads->last_clearing = clearing;
    *begun = clearing->begun = !is_behind_fills(loads, clearing);
    return clearing;
}

/* It ends as if the cache had not taken it. */
static void drop_held(struct loads *loads, struct load *load)
{
    unlink_fill(loads, load);
    loads_end(load);
}

/* They wait in the order of the clearings: behind one that still waits there is none that need not.
 */
static void go_on_filling(struct loads *loads)
{
    const struct loads_clearing *first = loads->first_clearing;
    struct load *load;
    while ((load = loads->first_held) && (!first || load->waits_for < first->number)) {
        loads->first_held = load->fill_behind;
        load->waits_for = 0;
        if (load->stale || loads_keyspace(load)->retired)
            drop_held(loads, load);
        else
            write_value(load);
    }
}

static void drop_clearing(struct loads *loads, struct loads_clearing *clearing)
{
    *(clearing->before ? &clearing->before->behind : &loads->first_clearing) = clearing->behind;
    *(clearing->behind ? &clearing->behind->before : &loads->last_clearing) = clearing->before;
    free(clearing);
}

void loads_end_clearing(struct loads *loads, struct loads_clearing *clearing)
{
    drop_clearing(loads, clearing);
    go_on_filling(loads);
    begin_clearings(loads);
}

void loads_drop_clearings(struct loads *loads)
{
    struct load *load;
    while ((load = loads->first_held)) {
        loads->first_held = load->fill_behind;
        drop_held(loads, load);
    }
    while (loads->first_clearing)
        drop_clearing(loads, loads->first_clearing);
}
