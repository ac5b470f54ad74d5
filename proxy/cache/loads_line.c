/* Requests on their way to a query: each has a place in the line of its client (loads_queue.h), and
 * one among those who wait for the same key. The first of these whose turn it is takes the others
 * along.
 */
#include "cache/loads_internal.h"

#include "base/clock.h"

#include <stdatomic.h>

/* Of LOADS_QUEUE_BYTES: what is left when more has come. To find out who has most takes a look at
 * every line, which is not to be taken for each request that comes. */
enum { CUT_TO = LOADS_QUEUE_BYTES / 8 * 7 };

enum { WAITING_LARGE = 4096 }; /* for whose memory there is room beside the places' */

void loads_join(struct load *load, struct load_request *request)
{
    request->load = load;
    request->next = NULL;
    request->previous = load->last;
    *(load->last ? &load->last->next : &load->waiting) = request;
    load->last = request;
}

static void leave(struct load_request *request)
{
    struct load *load = request->load;
    *(request->previous ? &request->previous->next : &load->waiting) = request->next;
    *(request->next ? &request->next->previous : &load->last) = request->previous;
}

/* The one who asked first may go before it is his turn; then another may have his. */
void loads_line_up(struct load *load, struct load_request *request)
{
    request->queued = clock_ms();
    request->late = request->late_and_stale = false;
    loads_join(load, request);
    load_queue_push(&load->loads->queue, request);
}

static void count_turn(struct loads *loads, const struct load_request *request, uint64_t now)
{
    histogram_add(&loads->turns, (now - request->queued) * 1000000, 1);
}

/* It has its turn, or somebody who waits for the same key has. */
static void stop_waiting(struct loads *loads, struct load_request *request, uint64_t now)
{
    if (!request->line)
        return;
    load_queue_remove(&loads->queue, request);
    count_turn(loads, request, now);
}

static void begin(struct load *load)
{
    struct loads *loads = load->loads;
    uint64_t now = clock_ms();
    for (struct load_request *request = load->waiting; request; request = request->next)
        stop_waiting(loads, request, now);
    watch_add(loads->options.watch, load->key);
    loads_ask(load);
}

/* Answers one who waits in line, or had just its turn. */
static void dismiss(struct load_request *request, enum load_outcome outcome)
{
    struct load *load = request->load;
    struct loads *loads = load->loads;
    if (request->line)
        load_queue_remove(&loads->queue, request);
    leave(request);
    if (!load->waiting) /* it was not asked, or has ended: nobody else has had a turn since */
        loads_drop(load);
    loads_answer(request, outcome, NULL);
}

/* The client's thread sets it, and nothing hangs on how soon that is seen here. */
bool loads_is_gone(const struct load_request *request)
{
    return request->gone && atomic_load_explicit(request->gone, memory_order_relaxed);
}

/* The first who waits and is still there; NULL: nobody is. */
static struct load_request *asker_of(const struct load *load)
{
    struct load_request *request = load->waiting;
    while (request && loads_is_gone(request))
        request = request->next;
    return request;
}

bool loads_wants(const void *load)
{
    return asker_of(load);
}

struct row_lane_asker loads_asker_of(const void *load)
{
    const struct load_request *request = asker_of(load);
    return request ? (struct row_lane_asker){request->origin, request->client}
                   : (struct row_lane_asker){0};
}

/* Who joins need not wait behind all that somebody else has asked for. */
void loads_hasten(struct load *load, const struct load_request *request)
{
    struct row_lane *lane = load->loads->options.rows->lane;
    if (lane)
        row_lane_join(lane, load->place, (struct row_lane_asker){request->origin, request->client});
}

/* It is wanted, but whoever wants it may go in this very moment: then nobody pays. Nor does who has
 * paid, and has it read once more because a connection was given up for another's time. */
void loads_pay(void *arg, const void *load, size_t bytes)
{
    struct loads *loads = arg;
    struct load_request *request = asker_of(load);
    if (!request || request->paid)
        return;
    request->paid = true;
    load_queue_bill(&loads->queue, request, bytes);
}

/* Whoever waits for the way of large rows holds no place that another could have: with some rows
 * of max_value anybody could else have all the others wait. Nor does who is on that way, which has
 * a bound of its own: whose turn it is there asks nobody for a place. */
static size_t at_database(const struct loads *loads)
{
    const struct row_lane *lane = loads->options.rows->lane;
    size_t waiting = lane ? lane->waiting : 0, inside = lane ? lane->inside : 0;
    return loads->querying - inside - (waiting < WAITING_LARGE ? waiting : WAITING_LARGE);
}

void loads_go_on(struct loads *loads)
{
    struct load_request *request;
    while (load_window_has_room(&loads->window, at_database(loads)) &&
           (request = load_queue_next(&loads->queue))) {
        if (loads_is_gone(request)) {
            dismiss(request, LOAD_BUSY);
            continue;
        }
        count_turn(loads, request, clock_ms());
        begin(request->load);
    }
}

void loads_have_place(void *loads)
{
    loads_go_on(loads);
}

static void refuse_waiting(struct loads *loads, struct load_request *request,
                           enum load_outcome outcome)
{
    if (!loads_is_gone(request))
        loads_count_outcome(loads, request->key.keyspace, outcome);
    dismiss(request, outcome);
}

struct refusal {
    struct loads *loads;
    enum load_outcome outcome;
};

static void refuse_one(void *arg, struct load_request *request)
{
    const struct refusal *refusal = arg;
    refuse_waiting(refusal->loads, request, refusal->outcome);
}

void loads_cut(struct loads *loads)
{
    struct refusal refusal = {loads, LOAD_CUT};
    if (loads->queue.bytes > LOADS_QUEUE_BYTES)
        load_queue_shrink(&loads->queue, CUT_TO, refuse_one, &refusal);
}

void loads_refuse_overdue(struct loads *loads, uint64_t time, enum load_outcome outcome)
{
    struct refusal refusal = {loads, outcome};
    load_queue_each_overdue(&loads->queue, time, refuse_one, &refusal);
}

static void count_timeout(struct load *load)
{
    if (!load->timed_out)
        loads_count_outcome(load->loads, load->key.keyspace, LOAD_TIMEOUT);
    load->timed_out = true;
}

/* The first who waits has waited longest. The load stays, whoever does: its query ends it. */
void loads_time_out(struct load *load, uint64_t time)
{
    struct load_request *request;
    while ((request = load->waiting) && request->asked <= time) {
        count_timeout(load);
        leave(request);
        loads_answer(request, LOAD_TIMEOUT, NULL);
    }
}
