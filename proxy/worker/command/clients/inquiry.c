/* Who may ask is the cache's to say: LIST and KILL are asked of it in a form that does nothing, by
 * the connection that the client's commands go over.
 */
#include "worker/command/clients/inquiry.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "cache/vouched.h"
#include "redis/topology/redis_place.h"
#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/client/waits.h"
#include "worker/command/clients/client_words.h"
#include "worker/command/clients/leave.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum { MET_AT_ONCE = 16 }; /* some hundred microseconds */

enum purpose { PURPOSE_LIST, PURPOSE_KILL, PURPOSE_TRANSLATE, PURPOSE_UNBLOCK };

/* Whichever thread has its message has all of it: one worker after the other adds to it, without a
 * lock. */
struct inquiry {
    struct roll_call call;
    enum purpose purpose;
    struct client_filter filter;
    struct reply_slot *slot; /* waits for it, whatever becomes of the asker */
    uint64_t asker;          /* its id */
    struct clients *home;    /* where it is */
    struct buffer lines;     /* of PURPOSE_LIST */
    struct inquiry *behind;  /* the next of clients->inquiries */
    enum kill_form form;
    unsigned killed;             /* how many, with the asker */
    bool kills_asker;            /* who is still to hear of it */
    uint64_t sought, cache_id;   /* an id here, and what the cache calls it; 0: that is not known */
    char run_id[RUN_ID_SIZE];    /* of the server that calls it so */
    struct redis_place node;     /* where that is in a cluster; host "": there is no cluster */
    struct buffer before, after; /* what the command has around the number */
    bool in_own;                 /* it must not go over a connection that others share */
    struct redirection *redirection; /* with in_own: of who is sought, for the asker; NULL */
    bool unblocks, with_error;       /* who is sought: to be unblocked, and how */
    bool counts;                     /* he is in a WAIT that goes on here */
    bool is_unblocked;               /* of PURPOSE_UNBLOCK */
    /* While a worker has it: */
    struct turn_task visit;
    struct clients *clients;
    struct roster_walk walk; /* of PURPOSE_LIST and PURPOSE_KILL */
};

static void destroy(struct inquiry *inquiry)
{
    if (!inquiry)
        return;
    client_filter_finish(&inquiry->filter);
    redirection_end(&inquiry->redirection);
    buffer_finish(&inquiry->lines);
    buffer_finish(&inquiry->before);
    buffer_finish(&inquiry->after);
    free(inquiry);
}

/* The last that its slot has waited for. */
static void end(struct inquiry *inquiry)
{
    struct reply_slot *slot = inquiry->slot;
    destroy(inquiry);
    if (slot)
        reply_slot_answered(slot);
}

/* Before the cache has permitted it, it has no slot. */
void inquiry_drop(struct client *client)
{
    struct inquiry *inquiry = client->inquiry;
    client->inquiry = NULL;
    if (inquiry)
        end(inquiry);
}

/* ---- may it ask? ---- */

static void send_round(struct inquiry *inquiry, struct reply_slot *slot)
{
    inquiry->call = (struct roll_call){.message = {.kind = MESSAGE_ROLL_CALL}};
    inquiry->slot = slot;
    serving_ask_keeper(slot->serving, &inquiry->call.message);
}

/* Any thread. */
static bool is_given_up(const struct inquiry *inquiry)
{
    return atomic_load_explicit(&inquiry->slot->gone, memory_order_relaxed);
}

/* It meets all clients; the others look one up. */
static bool walks(const struct inquiry *inquiry)
{
    return inquiry->purpose == PURPOSE_LIST || inquiry->purpose == PURPOSE_KILL;
}

/* Nobody will read the list. Whom it kills goes all the same. */
static bool is_for_nobody(const struct inquiry *inquiry)
{
    return inquiry->purpose == PURPOSE_LIST && is_given_up(inquiry);
}

/* It takes as long, and a list as much, as there are clients: of each worker's askers one has one
 * at a time, however many ask. */
static void begin_next(struct clients *clients)
{
    struct inquiry *first;
    while ((first = clients->inquiries) && is_for_nobody(first)) {
        clients->inquiries = first->behind;
        end(first);
    }
    if (first)
        send_round(first, first->slot);
}

static void line_up(struct inquiry *inquiry)
{
    struct clients *home = inquiry->home;
    bool waits = home->inquiries;
    *(waits ? &home->last_inquiry->behind : &home->inquiries) = inquiry;
    home->last_inquiry = inquiry;
    if (!waits)
        send_round(inquiry, inquiry->slot);
}

/* Until the cache has spoken the inquiry is the client's, and goes with it; from then on it is the
 * message's, which comes back to its slot whatever becomes of the client. */
static void send_permitted(struct client *client, struct reply_slot *slot)
{
    struct inquiry *inquiry = client->inquiry;
    client->inquiry = NULL;
    slot->waiting++;
    inquiry->slot = slot;
    if (walks(inquiry))
        line_up(inquiry);
    else
        send_round(inquiry, slot);
}

static void take_refusal(struct reply_slot *slot, struct span reply, bool is_answer)
{
    inquiry_drop(client_of(slot->replies));
    request_take_answer(slot, reply, is_answer);
}

/* The list of nobody, or how many nobody is. */
static void permission_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    bool lists = client->inquiry->purpose == PURPOSE_LIST;
    (void)index;
    if (leave_is_given(reply, lists ? reply_is_text(reply) : reply_is_number(reply)))
        send_permitted(client, slot);
    else
        take_refusal(slot, reply, false);
}

static void permission_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    inquiry_drop(client_of(slot->replies));
    request_take_failure(slot, index, why);
}

static const struct reply_slot_kind permission_kind = {.on_cache = permission_reply,
                                                       .on_cache_failure = permission_failure};

/* No client of the cache has the highest number. Nor has one the number 0, but killing that is
 * refused, or before Redis 7.0 means all. */
static void ask(struct client *client, struct inquiry *inquiry, const char *subcommand)
{
    struct span words[] = {span_of("CLIENT"), span_of(subcommand), span_of("ID"),
                           span_of(leave_nobody)};
    struct reply_slot *slot = reply_slot_open(&client->replies, &permission_kind);
    client->inquiry = inquiry;
    resp_write_command(upstream_command(client->upstream, slot, 0), words, 4);
    reply_slot_answered(slot);
    client_settle(client);
}

static struct inquiry *create(const struct client *client, enum purpose purpose)
{
    struct inquiry *inquiry = xmalloc(sizeof *inquiry);
    *inquiry = (struct inquiry){.purpose = purpose, .asker = client->id, .home = client->clients};
    return inquiry;
}

void inquiry_list(struct client *client, struct client_filter *filter)
{
    struct inquiry *inquiry = create(client, PURPOSE_LIST);
    inquiry->filter = *filter;
    ask(client, inquiry, "LIST");
}

void inquiry_kill(struct client *client, struct client_filter *filter, enum kill_form form)
{
    struct inquiry *inquiry = create(client, PURPOSE_KILL);
    inquiry->filter = *filter;
    inquiry->form = form;
    ask(client, inquiry, "KILL");
}

static struct inquiry *create_translation(const struct client *client,
                                          const struct request *request, size_t at)
{
    struct inquiry *inquiry = create(client, PURPOSE_TRANSLATE);
    inquiry->sought = client_words_id(request->arguments[at]);
    resp_write_array(&inquiry->before, request->count);
    for (size_t i = 0; i < request->count; i++) {
        struct span word = request->arguments[i];
        if (i != at)
            resp_write_bulk(i < at ? &inquiry->before : &inquiry->after, word.at, word.length);
    }
    return inquiry;
}

void inquiry_translate(struct client *client, const struct request *request, size_t at,
                       struct reply_slot *slot, bool in_own)
{
    struct inquiry *inquiry = create_translation(client, request, at);
    inquiry->in_own = in_own;
    send_round(inquiry, slot);
    client_settle(client);
}

/* ---- who is in a WAIT ---- */

/* The cache was asked about nobody, and has nothing against it; as in permission_reply(). */
static void unblock_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    (void)index;
    if (client->inquiry && span_is(reply, ":0\r\n"))
        send_permitted(client, slot);
    else
        take_refusal(slot, reply, reply_is_number(reply));
}

static const struct reply_slot_kind unblock_kind = {.on_cache = unblock_reply,
                                                    .on_cache_failure = permission_failure};

void inquiry_unblock(struct client *client, const struct request *request)
{
    struct inquiry *inquiry = create_translation(client, request, 2);
    inquiry->unblocks = true;
    inquiry->with_error = request->count > 3 && span_is_word(request->arguments[3], "error");
    send_round(inquiry, reply_slot_open(&client->replies, &unblock_kind));
    client_settle(client);
}

static void seek_again(struct client *asker, const struct inquiry *inquiry)
{
    asker->inquiry = create(asker, PURPOSE_UNBLOCK);
    asker->inquiry->sought = inquiry->sought;
    asker->inquiry->with_error = inquiry->with_error;
}

static void unblock(struct inquiry *inquiry, const struct clients *clients)
{
    struct client *client = roster_find(clients, inquiry->sought);
    inquiry->is_unblocked |= client && waits_count(client);
    if (client && waits_count(client))
        waits_end_count(client, inquiry->with_error);
}

/* ---- on each worker ---- */

/* The asker itself goes last, when it has its answer, as with Redis. */
static void kill_client(struct inquiry *inquiry, struct client *client)
{
    inquiry->killed++;
    if (client->id == inquiry->asker)
        inquiry->kills_asker = true;
    else
        client_close(client);
}

static void meet(struct inquiry *inquiry, struct client *client)
{
    if (client->state >= CLIENT_CLOSING || !client_filter_matches(&inquiry->filter, client))
        return;
    if (inquiry->purpose == PURPOSE_KILL)
        kill_client(inquiry, client);
    else
        roster_describe(&inquiry->lines, client, client->id == inquiry->asker ? "list" : NULL);
}

/* Returns whether some are left. */
static bool meet_some(struct inquiry *inquiry)
{
    struct client *client = NULL;
    if (is_for_nobody(inquiry))
        return false;
    for (int i = 0; i < MET_AT_ONCE && (client = roster_walk_next(&inquiry->walk)); i++)
        meet(inquiry, client);
    return client;
}

/* An id is of one worker, so one of them finds it, or none. */
static void find(struct inquiry *inquiry, const struct clients *clients)
{
    struct client *client = roster_find(clients, inquiry->sought);
    uint64_t cache_id = client ? roster_cache_id(client) : 0;
    inquiry->counts |= inquiry->unblocks && client && waits_count(client);
    if (!cache_id || inquiry->counts)
        return;
    const struct redis_place *node = upstream_node(client->pinned.own);
    inquiry->cache_id = cache_id;
    if (inquiry->in_own)
        inquiry->redirection = redirection_begin(&client->pinned.redirected);
    snprintf(inquiry->run_id, sizeof inquiry->run_id, "%s", upstream_run_id(client->pinned.own));
    if (node)
        inquiry->node = *node;
}

static void go_on_to_others(struct inquiry *inquiry)
{
    mailbox_post(inquiry->clients->serving->keeper, &inquiry->call.message);
}

static void go_on_walking(struct turn_task *task)
{
    struct inquiry *inquiry = container_of(task, struct inquiry, visit);
    if (meet_some(inquiry)) {
        turn_line_up(&inquiry->clients->serving->turn, task);
        return;
    }
    roster_walk_end(&inquiry->walk);
    go_on_to_others(inquiry);
}

static void walk(struct turn_task *task)
{
    struct inquiry *inquiry = container_of(task, struct inquiry, visit);
    roster_walk_begin(&inquiry->walk, inquiry->clients);
    task->run = go_on_walking;
    go_on_walking(task);
}

static void look_up(struct turn_task *task)
{
    struct inquiry *inquiry = container_of(task, struct inquiry, visit);
    if (inquiry->purpose == PURPOSE_UNBLOCK)
        unblock(inquiry, inquiry->clients);
    else
        find(inquiry, inquiry->clients);
    go_on_to_others(inquiry);
}

/* Behind those whose turn it is: what they have sent before is served first, as far as their turn
 * goes. */
void inquiry_visit(struct roll_call *call, struct clients *clients)
{
    struct inquiry *inquiry = container_of(call, struct inquiry, call);
    inquiry->clients = clients;
    inquiry->visit = (struct turn_task){.run = walks(inquiry) ? walk : look_up, .phase = TURN_READ};
    turn_line_up(&clients->serving->turn, &inquiry->visit);
}

/* ---- the answer ---- */

static bool answer_list(struct inquiry *inquiry, struct reply_slot *slot)
{
    resp_write_text(reply_slot_output(slot), buffer_span(&inquiry->lines), slot->resp3);
    return true;
}

static bool answer_kill(struct inquiry *inquiry, struct reply_slot *slot)
{
    struct buffer *out = reply_slot_output(slot);
    if (inquiry->form == KILL_BY_FILTERS)
        resp_write_integer(out, inquiry->killed);
    else if (inquiry->killed)
        resp_write_status(out, "OK");
    else
        resp_write_error(out, "ERR No such client");
    if (inquiry->kills_asker)
        client_leave(client_of(slot->replies));
    return true;
}

/* A number is that of one server's client, and would be another's anywhere else: so the asker is
 * led there, as far as that is a node of the cluster that it asks. */
static void go_to_sought(struct client *asker, const struct inquiry *inquiry)
{
    struct pool *pool = client_pool(asker);
    if (inquiry->cache_id && inquiry->node.host[0] && pool_is_cluster(pool))
        client_go_to(asker, pool_node_at(pool, &inquiry->node));
}

/* What counts is the process that answers, by the connection that the number goes over: while a
 * cache is left for another, or after a failover, who waits may still be at the one before, and a
 * place may be another server's by now. The highest number that there can be belongs to nobody,
 * wherever that is asked; so it is where a server does not say which it is, for nobody unblocked is
 * less harm than somebody else. */
static uint64_t number_there(const struct client *asker, const struct inquiry *inquiry)
{
    const char *run_id = upstream_run_id(asker->upstream);
    bool is_there = run_id[0] && strcmp(run_id, inquiry->run_id) == 0;
    return inquiry->cache_id && is_there ? inquiry->cache_id : INT64_MAX;
}

static bool answer_unblock(struct inquiry *inquiry, struct reply_slot *slot)
{
    resp_write_integer(reply_slot_output(slot), inquiry->is_unblocked);
    return true;
}

/* The asker's own connection may have been lost meanwhile. What is up and is lost before it has
 * sent the number fails it, so that this reaches no other server. */
static void send_translated(struct inquiry *inquiry, struct reply_slot *slot)
{
    char number[24];
    struct client *asker = client_of(slot->replies);
    if (inquiry->in_own && !asker->pinned.own) {
        slot->kind->on_cache_failure(slot, 0, "NESTGUARD cache down");
        return;
    }
    redirection_move(&asker->pinned.asked_redirection, &inquiry->redirection);
    if (inquiry->counts)
        seek_again(asker, inquiry);
    struct span before = buffer_span(&inquiry->before), after = buffer_span(&inquiry->after);
    snprintf(number, sizeof number, "%llu", (unsigned long long)number_there(asker, inquiry));
    struct buffer *out = upstream_command(asker->upstream, slot, 0);
    buffer_append(out, before.at, before.length);
    resp_write_bulk(out, number, strlen(number));
    buffer_append(out, after.at, after.length);
}

/* Whatever it says: it is known now who does. */
static void up_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *asker = client_of(slot->replies);
    struct inquiry *inquiry = asker->inquiry;
    (void)index;
    (void)reply;
    asker->inquiry = NULL;
    send_translated(inquiry, inquiry->slot);
    end(inquiry);
}

static void up_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)why;
    up_reply(slot, index, (struct span){"", 0});
}

static const struct reply_slot_kind up_kind = {.on_cache = up_reply,
                                               .on_cache_failure = up_failure};

/* One that is still being made has yet to hear whose it is: it is asked for something that changes
 * nothing, and until then the inquiry is the client's. */
static bool translate(struct inquiry *inquiry, struct reply_slot *slot)
{
    struct client *asker = client_of(slot->replies);
    struct span ping = span_of("PING");
    go_to_sought(asker, inquiry);
    const struct upstream *upstream = asker->upstream;
    if (!inquiry->cache_id || upstream_is_up(upstream) || upstream_is_lost(upstream)) {
        send_translated(inquiry, slot);
        return true;
    }
    asker->inquiry = inquiry;
    struct reply_slot *up = reply_slot_open(&asker->replies, &up_kind);
    up->muted = true;
    resp_write_command(upstream_command(asker->upstream, up, 0), &ping, 1);
    reply_slot_answered(up);
    return false;
}

/* Each returns whether that was all. */
void inquiry_returned(struct roll_call *call)
{
    static bool (*const acts[])(struct inquiry *,
                                struct reply_slot *) = {[PURPOSE_LIST] = answer_list,
                                                        [PURPOSE_KILL] = answer_kill,
                                                        [PURPOSE_TRANSLATE] = translate,
                                                        [PURPOSE_UNBLOCK] = answer_unblock};
    struct inquiry *inquiry = container_of(call, struct inquiry, call);
    struct reply_slot *slot = inquiry->slot;
    bool wanted = reply_slot_is_wanted(slot);
    if (wanted && call->state != ROLL_CALL_CUT && !acts[inquiry->purpose](inquiry, slot))
        return;
    if (wanted && call->state == ROLL_CALL_CUT)
        resp_write_error(reply_slot_output(slot),
                         "NESTGUARD ending: not all clients could be asked");
    struct clients *home = walks(inquiry) ? inquiry->home : NULL;
    if (home)
        home->inquiries = inquiry->behind;
    end(inquiry);
    if (home)
        begin_next(home);
}
