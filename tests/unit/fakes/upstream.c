#include "fakes/upstream.h"

#include "base/memory.h"
#include "worker/reply/at_replica.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct upstream *last_upstream;
bool upstreams_begin_down;

/* ---- what the worker does ---- */

struct upstream *upstream_create(struct serving *serving, const struct upstream_options *options)
{
    struct upstream *upstream = xcalloc(1, sizeof *upstream);
    assert_non_null(serving);
    upstream->options = *options;
    upstream->options.route = options->route ? options->route : serving->route;
    if (options->name)
        upstream->options.name = xstrdup(options->name);
    upstream->down = upstreams_begin_down;
    upstream->previous = last_upstream;
    last_upstream = upstream;
    return upstream;
}

struct buffer *upstream_command(struct upstream *upstream, struct reply_slot *slot, unsigned index)
{
    assert_false(upstream->closed || upstream->relays);
    if (upstream->count == upstream->room) {
        upstream->room = 2 * upstream->room + 8;
        upstream->in_flight =
            xrealloc(upstream->in_flight, upstream->room * sizeof *upstream->in_flight);
    }
    upstream->in_flight[upstream->count++] = (struct fake_request){.slot = slot, .index = index};
    slot->waiting++;
    return &upstream->out;
}

void upstream_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                   struct span bytes)
{
    buffer_append(upstream_command(upstream, slot, index), bytes.at, bytes.length);
}

bool upstream_has_room(struct upstream *upstream, size_t bytes)
{
    return buffer_try_reserve(&upstream->out, bytes);
}

bool upstream_has_gathered(const struct upstream *upstream)
{
    return buffer_length(&upstream->out);
}

bool upstream_try_send(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct span bytes)
{
    bool has = upstream_has_room(upstream, bytes.length);
    if (has)
        upstream_send(upstream, slot, index, bytes);
    return has;
}

bool upstream_try_pour(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                       struct buffer *bytes)
{
    return upstream_try_send(upstream, slot, index, buffer_span(bytes));
}

void upstream_append(struct upstream *upstream, struct span bytes)
{
    assert_false(upstream->closed);
    buffer_append(&upstream->out, bytes.at, bytes.length);
}

void upstream_be_patient(struct upstream *upstream, bool patient)
{
    if (upstream->count)
        upstream->in_flight[upstream->count - 1].patient = patient;
}

uint64_t upstream_cache_id(const struct upstream *upstream)
{
    return upstream->cache_id;
}

const char *upstream_run_id(const struct upstream *upstream)
{
    return upstream->run_id && !upstream->dialing ? upstream->run_id : "";
}

bool upstream_is_waiting(const struct upstream *upstream)
{
    return upstream->count && upstream->in_flight[0].patient;
}

size_t upstream_memory(const struct upstream *upstream)
{
    return upstream->out.size;
}

size_t upstream_unanswered(const struct upstream *upstream)
{
    return buffer_length(&upstream->out);
}

/* A test takes what is sent from `out`. */
bool upstream_awaits_reply(const struct upstream *upstream)
{
    return !buffer_length(&upstream->out);
}

struct reply_slot *upstream_next_slot(const struct upstream *upstream)
{
    return upstream->count ? upstream->in_flight[0].slot : NULL;
}

struct reply_slot *upstream_waiting_slot(const struct upstream *upstream)
{
    return upstream_is_waiting(upstream) ? upstream->in_flight[upstream->count - 1].slot : NULL;
}

struct reply_slot *upstream_first_slot(const struct upstream *upstream)
{
    return upstream_next_slot(upstream);
}

void upstream_set_urgent(struct upstream *upstream)
{
    (void)upstream;
}

void upstream_hold(struct upstream *upstream, bool hold)
{
    upstream->held = hold;
}

void upstream_read(struct upstream *upstream, bool wanted)
{
    upstream->unread = !wanted;
}

void upstream_relay(struct upstream *upstream, struct span bytes)
{
    upstream->relays = true;
    upstream_append(upstream, bytes);
}

/* Written, and nobody's request: it is not answered. */
void upstream_precede(struct upstream *upstream, const struct span *words, size_t count)
{
    resp_write_command(&upstream->out, words, count);
}

void upstream_tell(struct upstream *upstream, const struct span *words, size_t count)
{
    upstream_precede(upstream, words, count);
}

const struct redis_place *upstream_node(const struct upstream *upstream)
{
    return upstream->options.node;
}

struct upstream *upstream_beside(struct upstream *upstream)
{
    return upstream;
}

bool upstream_is_nowhere(const struct upstream *upstream)
{
    return upstream->options.nowhere;
}

bool upstream_is_up(const struct upstream *upstream)
{
    return !upstream->down && !upstream->dialing;
}

bool upstream_is_doubted(const struct upstream *upstream)
{
    return upstream->doubted;
}

bool upstream_is_idle(const struct upstream *upstream)
{
    return !upstream->count;
}

size_t upstream_window(const struct upstream *upstream)
{
    (void)upstream;
    return 1;
}

bool upstream_is_lost(const struct upstream *upstream)
{
    return upstream->down;
}

void upstream_set_waiting(struct upstream *upstream, bool waiting)
{
    upstream->congested = waiting;
}

void upstream_check_progress(struct upstream *upstream)
{
    assert_false(upstream->closed);
}

/* The server has nothing to say to that. */
void upstream_ask_role(struct upstream *upstream)
{
    assert_false(upstream->closed);
}

void upstream_ask_standing(struct upstream *upstream, upstream_standing_cb hear, void *arg)
{
    assert_false(upstream->closed);
    upstream->hear = hear;
    upstream->hear_arg = arg;
}

void upstream_set_fresh(struct upstream *upstream, uint64_t fresh)
{
    upstream->fresh = fresh;
}

uint64_t upstream_fresh(const struct upstream *upstream)
{
    return upstream->fresh;
}

struct cache_route *upstream_route(const struct upstream *upstream)
{
    return upstream->options.route;
}

void upstream_give_up(struct upstream *upstream, const char *why)
{
    (void)why;
    cache_is_lost(upstream);
}

bool upstream_is_congested(const struct upstream *upstream)
{
    return upstream->congested;
}

void upstream_close(struct upstream *upstream)
{
    assert_false(upstream->closed);
    upstream->closed = true;
}

/* ---- what the cache does ---- */

void must_send(struct upstream *upstream, const char *bytes)
{
    struct span out = buffer_span(&upstream->out);
    if (out.length != strlen(bytes) || memcmp(out.at, bytes, out.length) != 0)
        fail_msg("not \"%s\" was sent, but \"%.*s\"", bytes, (int)out.length, out.at);
    buffer_clear(&upstream->out);
}

static struct fake_request pop(struct upstream *upstream)
{
    struct fake_request oldest = upstream->in_flight[0];
    assert_true(upstream->count > 0);
    upstream->count--;
    memmove(upstream->in_flight, upstream->in_flight + 1, upstream->count * sizeof oldest);
    return oldest;
}

/* The owner's, or a push between the replies of a shared connection. */
static bool goes_beside(struct upstream *upstream, struct span frame)
{
    struct reply_slot *next = upstream_next_slot(upstream);
    if (upstream->options.owner)
        return upstream->options.owner->takes(upstream->options.client, upstream, frame);
    if (!upstream->options.resp3 || frame.at[0] != '>')
        return false;
    if (next && next->replies)
        replies_push(next->replies, next, frame);
    return true;
}

void cache_says(struct upstream *upstream, const char *reply)
{
    struct span frame = span_of(reply);
    assert_false(upstream->held || upstream->closed);
    if (goes_beside(upstream, frame))
        return;
    struct fake_request request = pop(upstream);
    if (upstream->options.replica)
        at_replica_reply(request.slot, request.index, frame);
    else
        reply_slot_cache_reply(request.slot, request.index, frame);
}

void cache_stands(struct upstream *upstream, const char *text, uint64_t asked)
{
    upstream_standing_cb hear = upstream->hear;
    assert_non_null(hear);
    upstream->hear = NULL;
    hear(upstream->hear_arg, upstream, text, asked);
}

void cache_begins(struct upstream *upstream, const char *part)
{
    assert_true(upstream->count > 0);
    reply_slot_cache_part(upstream->in_flight[0].slot, span_of(part));
}

static void fail_all(struct upstream *upstream)
{
    while (upstream->count) {
        struct fake_request request = pop(upstream);
        if (upstream->options.replica)
            at_replica_failure(request.slot, request.index, "NESTGUARD cache down");
        else
            reply_slot_cache_failure(request.slot, request.index, "NESTGUARD cache down");
    }
}

void cache_is_lost(struct upstream *upstream)
{
    fail_all(upstream);
    buffer_clear(&upstream->out);
    if (upstream->options.owner && !upstream->closed)
        upstream->options.owner->lost(upstream->options.client, upstream);
}

void upstreams_finish(void)
{
    while (last_upstream) {
        struct upstream *upstream = last_upstream;
        fail_all(upstream);
        last_upstream = upstream->previous;
        buffer_finish(&upstream->out);
        free((char *)(size_t)upstream->options.name);
        free(upstream->in_flight);
        free(upstream);
    }
}
