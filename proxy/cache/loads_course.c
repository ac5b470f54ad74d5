/* One struct load for each key that is to be read, or is being read or filled, found by its key:
 *
 *   start ─▶ each who asks waits in line ─▶ the first of them has its turn ─▶ ask
 *
 *   ask ─▶ on_row ─▶ answers ─┬─ a row, not stale ─▶ fill ─▶ on_filled ─┐
 *                             └─ anything else ─────────────────────────┴─▶ finish ─▶ free
 *   start ◀─────── those who came too late for that answer ◀────────────────┘
 *
 * While its value is on the way to the cache a load answers from it whoever asks: the cache may
 * not have it yet.
 */
#include "cache/loads_internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cache/row_hash.h"
#include "database/rows_statements.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNTAKEN_MS = 60 * 1000, /* between two lines about fills that the cache did not take */
    GRACE_MS = 250          /* for the server's own timeout to come first */
};

/* Those of the configuration in force; they may change at any time. */
static void use_limits(struct loads *loads, const struct config *config)
{
    negative_cache_limit(&loads->absent, config->max_known_absent);
    load_window_limit(&loads->window, config->load_connections, config->load_budget);
}

struct loads *loads_create(const struct loads_options *options, const struct view *view)
{
    struct loads *loads = xcalloc(1, sizeof *loads);
    loads->options = *options;
    loads->untaken.period_ms = UNTAKEN_MS;
    loads->view = view;
    keymap_init(&loads->in_flight);
    load_queue_init(&loads->queue);
    loads->refusals = refusals_create(view->config);
    negative_cache_init(&loads->absent, view->config->max_known_absent, options->watch);
    use_limits(loads, view->config);
    return loads;
}

void loads_destroy(struct loads *loads)
{
    if (!loads)
        return;
    loads_drop_clearings(loads);
    negative_cache_finish(&loads->absent);
    refusals_destroy(loads->refusals);
    load_queue_finish(&loads->queue);
    keymap_finish(&loads->in_flight);
    free(loads);
}

void loads_use_view(struct loads *loads, const struct view *view)
{
    loads_outdate_absences(loads, view);
    use_limits(loads, view->config);
    refusals_use_config(loads->refusals, view->config);
    loads->view = view;
}

void loads_use_cache(struct loads *loads, struct redis *redis)
{
    loads->options.redis = redis;
}

/* The load that whoever asks for this key joins; NULL: it needs one. */
static struct load *find(const struct loads *loads, struct key key)
{
    struct keymap_node *node = key_find(&loads->in_flight, key);
    return node ? container_of(node, struct load, node) : NULL;
}

/* ---- answering ---- */

/* One for each outcome, so that none is forgotten; a key that can be split in too many ways is
 * refused like one that the database refuses. */
void loads_count_outcome(struct loads *loads, int keyspace, enum load_outcome outcome)
{
    struct load_counters *counters = &loads->options.counters[keyspace];
    counter *const rows[] = {[LOAD_ROW] = &counters->loads_row,
                             [LOAD_ABSENT] = &counters->loads_absent,
                             [LOAD_BUSY] = &counters->loads_busy,
                             [LOAD_CUT] = &counters->loads_cut,
                             [LOAD_TIMEOUT] = &counters->loads_timeout,
                             [LOAD_DOWN] = &counters->loads_down,
                             [LOAD_REFUSED] = &counters->loads_refused,
                             [LOAD_AMBIGUOUS] = &counters->loads_refused,
                             [LOAD_TOO_LARGE] = &counters->loads_too_large};
    counter_add(rows[outcome], 1);
}

const struct keyspace *loads_keyspace(const struct load *load)
{
    return &load->loads->view->config->keyspaces[load->key.keyspace];
}

/* From here on the request is the worker's, and must not be touched. */
void loads_answer(struct load_request *request, enum load_outcome outcome, struct blob *value)
{
    request->outcome = outcome;
    request->value = value ? blob_share(value) : NULL;
    mailbox_return(&request->message);
}

/* Takes all off the load, so that who is put back while they are gone through is not met again. */
static struct load_request *take_waiting(struct load *load)
{
    struct load_request *first = load->waiting;
    load->waiting = load->last = NULL;
    return first;
}

/* To wait for another query. Where little is left of its time, one more would only add to what the
 * database cannot do. */
static bool has_time(const struct load *load, const struct load_request *request)
{
    uint64_t timeout = load->loads->view->config->load_timeout_ms;
    return clock_ms() - request->asked < timeout - timeout / 4;
}

/* Whether another query is to answer the request: this one's answer is too old for who came while
 * it was on its way; or its time is over, or only that of another which its connection was given up
 * for, and the request's is not. That is the bound of how often: the next query goes over another
 * connection, or fails if none is up. */
static bool needs_another(const struct load *load, const struct load_request *request,
                          const struct row_result *result)
{
    enum load_outcome outcome = result->outcome;
    return (outcome == LOAD_ABSENT && request->late) ||
           (outcome == LOAD_ROW && request->late_and_stale) ||
           (outcome == LOAD_TIMEOUT && (request->late || result->early) && has_time(load, request));
}

static bool is_told_to_anybody(const struct load *load, const struct row_result *result)
{
    const struct load_request *request = load->waiting;
    while (request && (loads_is_gone(request) || needs_another(load, request, result)))
        request = request->next;
    return request;
}

/* Those who need another stay. */
static void answer_all(struct load *load, const struct row_result *result)
{
    struct load_request *request = take_waiting(load);
    while (request) {
        struct load_request *next = request->next;
        if (needs_another(load, request, result))
            loads_join(load, request);
        else
            loads_answer(request, result->outcome, result->value);
        request = next;
    }
}

/* ---- the course of a load ---- */

static void on_row(void *arg, const struct row_result *result);

/* Whoever waits now has asked before the query begins: its answer is good enough for all of them.
 */
void loads_ask(struct load *load)
{
    struct loads *loads = load->loads;
    load->stale = load->timed_out = false;
    load->unseen = visibility_has(loads->options.visibility, load->key);
    if (load->unseen)
        visibility_hurry(loads->options.visibility);
    load->asked = uv_hrtime();
    load->generation = loads_generation_of(loads, load->key.keyspace);
    loads->querying++;
    load->place = rows_load(loads->options.rows, load->key, on_row, load);
}

void loads_drop(struct load *load)
{
    if (!load->overtaken)
        keymap_remove(&load->loads->in_flight, &load->node);
    free(load);
}

/* In turn with all others: whoever keeps joining late would else keep a place at the database for
 * ever. */
static void start_again(struct load *load)
{
    struct load_request *request = take_waiting(load);
    load->asked = 0;
    while (request) {
        struct load_request *next = request->next;
        loads_line_up(load, request);
        request = next;
    }
    loads_go_on(load->loads);
}

void loads_end(struct load *load)
{
    blob_release(load->value);
    load->value = NULL;
    watch_drop(load->loads->options.watch, load->key);
    if (load->waiting)
        start_again(load);
    else
        loads_drop(load);
}

/* A row that makes no hash is refused like one that the database cannot read. */
static void account_for(struct load *load, const struct row_result *result)
{
    size_t keyspace = (size_t)load->key.keyspace;
    if (result->outcome == LOAD_REFUSED)
        refusals_add(load->loads->refusals, keyspace, result->error);
    else if (result->outcome == LOAD_ROW || result->outcome == LOAD_TOO_LARGE)
        refusals_end(load->loads->refusals, keyspace);
}

/* Whose durations are kept apart. */
static enum loads_answer answer_of(enum load_outcome outcome)
{
    if (outcome == LOAD_ROW || outcome == LOAD_TOO_LARGE)
        return LOADS_ROW;
    return outcome == LOAD_ABSENT ? LOADS_ABSENT : LOADS_ERROR;
}

/* By how long the database took, the window grows or shrinks; large values say nothing of that. The
 * bytes count against whoever asked for them; those of large ones have done so (loads_pay()). */
static void tell_queue(struct load *load, const struct row_result *result)
{
    struct loads *loads = load->loads;
    uint64_t now = uv_hrtime();
    size_t bytes = result->value ? blob_span(result->value).length : 0;
    loads->querying--;
    histogram_add(&loads->queries[answer_of(result->outcome)], now - load->asked, 1);
    bool is_small = bytes <= ROW_SMALL;
    if (is_small && (result->outcome == LOAD_ROW || result->outcome == LOAD_ABSENT))
        load_window_answered(&loads->window, now, now - load->asked, loads->queue.count > 0);
    if (is_small && load->waiting)
        load_queue_charge(&loads->queue, load->waiting, bytes);
}

/* Of a row that is cached as a hash everybody gets that. A keyspace's `fill` stays as it is for as
 * long as it has its number, so nobody takes one for the other. */
static struct row_result as_cached(const struct load *load, const struct row_result *result)
{
    struct row_result cached = *result;
    if (result->outcome != LOAD_ROW || loads_keyspace(load)->fill != FILL_HASH)
        return cached;
    cached.value = row_hash_create(blob_span(result->value), &cached.error);
    if (!cached.value)
        cached.outcome = LOAD_REFUSED;
    blob_release(result->value);
    return cached;
}

/* The order matters: what is remembered of the key comes before the answers, after which a client
 * may ask again; and the fill comes last, for only what is not stale by then may be written. */
static void take_row(struct load *load, const struct row_result *result)
{
    struct loads *loads = load->loads;
    /* Else that has been counted, or whoever asked has gone, or gets another query. */
    if (result->outcome != LOAD_TIMEOUT || (!load->timed_out && is_told_to_anybody(load, result)))
        loads_count_outcome(loads, load->key.keyspace, result->outcome);
    account_for(load, result);
    if (result->other_spelling.at)
        spellings_add(loads->options.spellings, load->key, result->other_spelling);
    if (result->outcome == LOAD_ABSENT)
        loads_found_absent(load);
    else if (result->outcome == LOAD_ROW || result->outcome == LOAD_TOO_LARGE)
        negative_cache_forget(&loads->absent, load->key);
    answer_all(load, result);
    if (result->outcome == LOAD_ROW && !load->stale && !load->unseen)
        loads_fill(load, result);
    else
        loads_end(load);
    blob_release(result->value);
    loads_go_on(loads);
}

static void on_row(void *arg, const struct row_result *result)
{
    struct load *load = arg;
    tell_queue(load, result);
    struct row_result cached = as_cached(load, result);
    take_row(load, &cached);
}

/* ---- requests ---- */

static bool is_retired(const struct loads *loads, struct key key)
{
    return loads->view->config->keyspaces[key.keyspace].retired;
}

static struct load *start(struct loads *loads, struct key key)
{
    struct load *load = xcalloc(1, sizeof *load + key.text.length);
    load->key = key_copy(key, load->text);
    load->loads = loads;
    load->overtaken = is_retired(loads, key);
    if (!load->overtaken)
        key_insert(&loads->in_flight, &load->node, load->key);
    return load;
}

/* What the load is doing decides: waiting for its turn, filling, or asking the database. A query
 * that took too long for others is joined like any: it may be about to answer, having waited behind
 * slow ones or for the way of large rows, and if not the request's own time will end. */
static void join_flight(struct load *load, struct load_request *request)
{
    counter_add(&load->loads->options.counters[load->key.keyspace].coalesced, 1);
    if (!load->asked) {
        loads_line_up(load, request);
    } else if (load->value) {
        loads_answer(request, LOAD_ROW, load->value);
    } else {
        request->late = true;
        request->late_and_stale = load->stale || load->unseen;
        loads_join(load, request);
        loads_hasten(load, request);
    }
}

/* Answered without a query. */
static void refuse(struct loads *loads, struct load_request *request, enum load_outcome outcome)
{
    loads_count_outcome(loads, request->key.keyspace, outcome);
    loads_answer(request, outcome, NULL);
}

static void overtake(struct load *load)
{
    load->overtaken = true;
    keymap_remove(&load->loads->in_flight, &load->node);
}

/* One that may be joined: it asks by the same rule. */
static struct load *find_same(const struct loads *loads, struct key key)
{
    struct load *load = is_retired(loads, key) ? NULL : find(loads, key);
    if (!load || load->key.keyspace == key.keyspace)
        return load;
    overtake(load);
    return NULL;
}

static void submit(struct loads *loads, struct load_request *request)
{
    struct key key = request->key;
    enum load_outcome foretold = rows_foretell(loads->options.rows, key);
    struct load *load = find_same(loads, key);
    request->line = NULL;
    request->asked = clock_ms();
    if (load) {
        join_flight(load, request);
    } else if (foretold != LOAD_ROW) {
        refuse(loads, request, foretold);
    } else if (loads_deny(loads, key)) {
        counter_add(&loads->options.counters[key.keyspace].known_absent, 1);
        loads_answer(request, LOAD_ABSENT, NULL);
    } else {
        loads_line_up(start(loads, key), request);
    }
}

void loads_submit(struct loads *loads, struct load_request *request)
{
    submit(loads, request);
    loads_go_on(loads);
    loads_cut(loads);
}

static void change(struct load *load)
{
    load->stale = true;
    if (load->value) /* nobody waits for it, and whoever asks now must not wait for its fill */
        overtake(load);
}

void loads_changed(struct loads *loads, struct key key)
{
    struct load *load = find(loads, key);
    negative_cache_forget(&loads->absent, key);
    if (load)
        change(load);
}

void loads_all_changed(struct loads *loads)
{
    struct keymap_node *next;
    negative_cache_clear(&loads->absent);
    for (struct keymap_node *node = loads->in_flight.oldest; node; node = next) {
        next = node->newer;
        change(container_of(node, struct load, node));
    }
}

void loads_revalued(struct loads *loads, int keyspace)
{
    struct keymap_node *next;
    for (struct keymap_node *node = loads->in_flight.oldest; node; node = next) {
        struct load *load = container_of(node, struct load, node);
        next = node->newer;
        if (load->key.keyspace == keyspace)
            change(load);
    }
}

/* The database has its own timeout for each statement; this one counts from each one's asking. A
 * load that was overtaken is not found here: its statement's time ends it. Who had to be told, or
 * has gone, may have been the last to want a large row that others wait behind. */
void loads_check_time(struct loads *loads, uint64_t now)
{
    uint64_t timeout = loads->view->config->load_timeout_ms;
    if (now > timeout)
        loads_refuse_overdue(loads, now - timeout, LOAD_BUSY);
    for (struct keymap_node *node = loads->in_flight.oldest; node; node = node->newer) {
        struct load *load = container_of(node, struct load, node);
        if (load->asked && now > timeout + GRACE_MS)
            loads_time_out(load, now - timeout - GRACE_MS);
    }
    if (loads->options.rows->lane) /* behind the walk: loads may end by it */
        row_lane_go_on(loads->options.rows->lane);
}

void loads_give_up(struct loads *loads)
{
    loads_refuse_overdue(loads, UINT64_MAX, LOAD_TIMEOUT);
    for (struct keymap_node *node = loads->in_flight.oldest; node; node = node->newer)
        loads_time_out(container_of(node, struct load, node), UINT64_MAX);
}

bool loads_in_flight(const struct loads *loads, struct key key)
{
    return find(loads, key) != NULL;
}

const struct refused_load *loads_refusal(const struct loads *loads, size_t keyspace)
{
    return refusals_latest(loads->refusals, keyspace);
}

size_t loads_count(const struct loads *loads)
{
    return loads->querying;
}

struct loads_waits loads_waits(const struct loads *loads)
{
    struct loads_waits waits = {
        loads->queue.count, loads->queue.bytes, (size_t)loads->window.size, {{0}, 0}};
    histogram_read(&loads->turns, &waits.turns);
    return waits;
}

void loads_durations(const struct loads *loads, struct durations to[LOADS_ANSWERS])
{
    for (int i = 0; i < LOADS_ANSWERS; i++)
        histogram_read(&loads->queries[i], &to[i]);
}
