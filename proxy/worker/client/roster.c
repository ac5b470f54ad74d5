/* What the guard does not know or have stands there as 0, so that whoever reads the lines of Redis
 * finds every field.
 */
#include "worker/client/roster.h"

#include "base/clock.h"
#include "resp/command.h"
#include "worker/client/pinned.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum { ADDRESS_SIZE = 128, FLAGS_SIZE = 16, LISTENING = PINNED_SUBSCRIBED | PINNED_LISTENS };

/* ---- addresses ---- */

/* Redis calls both ends of a unix socket by its path, and gives it a port. */
static void write_path(const struct client *client, char text[ADDRESS_SIZE])
{
    char path[ADDRESS_SIZE - 2] = "";
    size_t size = sizeof path;
    if (uv_pipe_getsockname(&client->stream.pipe, path, &size) < 0)
        size = 0;
    snprintf(text, ADDRESS_SIZE, "%.*s:0", (int)size, path);
}

static void write_address(const struct client *client, bool local, char text[ADDRESS_SIZE])
{
    if (client->stream.handle.type == UV_NAMED_PIPE)
        write_path(client, text);
    else if (local)
        stream_local(&client->stream, text);
    else
        stream_peer(&client->stream, text);
}

/* In the form in which CLIENT LIST shows it, since that is where people have it from. */
static bool has_address(const struct client *client, bool local, const char *wanted)
{
    char address[ADDRESS_SIZE] = "";
    if (!wanted)
        return true;
    write_address(client, local, address);
    return strcmp(address, wanted) == 0;
}

/* ---- whom a filter means ---- */

static const char *const type_names[] = {[TYPE_NORMAL] = "normal",
                                         [TYPE_MASTER] = "master",
                                         [TYPE_REPLICA] = "replica",
                                         [TYPE_PUBSUB] = "pubsub"};

enum client_type client_type_of(struct span name)
{
    for (size_t type = TYPE_NORMAL; type < sizeof type_names / sizeof *type_names; type++)
        if (span_is_word(name, type_names[type]))
            return (enum client_type)type;
    return span_is_word(name, "slave") ? TYPE_REPLICA : TYPE_ANY;
}

static enum client_type type_of(const struct client *client)
{
    if (client->pinned.states & PINNED_RELAY)
        return TYPE_REPLICA;
    return client->pinned.states & LISTENING ? TYPE_PUBSUB : TYPE_NORMAL;
}

static const char *user_of(const struct client *client)
{
    return client->self.user ? client->self.user : "default";
}

static uint64_t age_of(const struct client *client)
{
    return (clock_ms() - client->since) / 1000;
}

static bool has_id(const struct client_filter *filter, uint64_t id)
{
    size_t begin = 0, end = filter->id_count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (filter->ids[middle] == id)
            return true;
        if (filter->ids[middle] < id)
            begin = middle + 1;
        else
            end = middle;
    }
    return !filter->ids;
}

bool client_filter_matches(const struct client_filter *filter, const struct client *client)
{
    return client->id != filter->but && has_id(filter, client->id) &&
           (filter->type == TYPE_ANY || filter->type == type_of(client)) &&
           age_of(client) >= filter->least_age &&
           (!filter->user || strcmp(filter->user, user_of(client)) == 0) &&
           has_address(client, false, filter->address) &&
           has_address(client, true, filter->local_address);
}

void client_filter_finish(struct client_filter *filter)
{
    free(filter->ids);
    free(filter->address);
    free(filter->local_address);
    free(filter->user);
    *filter = (struct client_filter){0};
}

/* ---- its line ---- */

/* An upload has a patient request, too, but that waits for its client. */
static bool is_blocked(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    return pinned->own && !(pinned->states & PINNED_UPLOAD) &&
           (pinned->waiting || upstream_is_waiting(pinned->own));
}

/* Redis' letters, in its order. */
static void write_flags(const struct client *client, char flags[FLAGS_SIZE])
{
    unsigned states = client->pinned.states;
    const struct {
        bool is;
        char letter;
    } rows[] = {{states & PINNED_RELAY, 'S'},
                {states & PINNED_MONITOR, 'O'},
                {states & LISTENING, 'P'},
                {states & PINNED_MULTI, 'x'},
                {is_blocked(client), 'b'},
                {states & PINNED_TRACKING, 't'},
                {client->state == CLIENT_LEAVING, 'c'},
                {client->stream.handle.type == UV_NAMED_PIPE, 'U'},
                {client->no_evict, 'e'}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is)
            flags[count++] = rows[i].letter;
    if (!count)
        flags[count++] = 'N';
    flags[count] = '\0';
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void write_who(struct buffer *out, const struct client *client)
{
    char address[ADDRESS_SIZE] = "", local[ADDRESS_SIZE] = "", flags[FLAGS_SIZE];
    uv_os_fd_t fd = -1;
    uv_fileno(&client->stream.handle, &fd);
    write_address(client, false, address);
    write_address(client, true, local);
    write_flags(client, flags);
    buffer_printf(out, "id=%llu addr=%s laddr=%s fd=%d name=%s age=%llu idle=%llu flags=%s",
                  (unsigned long long)client->id, address, local, (int)fd,
                  or_empty(client->self.name), (unsigned long long)age_of(client),
                  (unsigned long long)((uv_now(&client->serving->loop) - client->heard) / 1000),
                  flags);
}

static void write_state(struct buffer *out, const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    bool queues = pinned->states & PINNED_MULTI;
    bool elsewhere = pinned->states & PINNED_OTHER_DB;
    buffer_printf(out, " db=%d sub=%u psub=%u ssub=%u multi=%d",
                  elsewhere ? pinned->db : upstream_route(client->upstream)->config->cache.db,
                  pinned->channels, pinned->patterns, pinned->shards,
                  queues ? (int)pinned->queued : -1);
}

static void write_memory(struct buffer *out, const struct client *client)
{
    const struct replies *replies = &client->replies;
    size_t input = client->in.size, waiting = replies_waiting(replies);
    buffer_printf(out,
                  " qbuf=%zu qbuf-free=%zu argv-mem=0 multi-mem=0 rbs=%zu rbp=0 obl=%zu oll=%zu "
                  "omem=%zu tot-mem=%zu events=%s",
                  buffer_length(&client->in), input - buffer_length(&client->in), replies->out.size,
                  buffer_length(&replies->out), replies->commands, waiting,
                  sizeof *client + input + replies->out.size + replies->unheard.size +
                      client->sending.size + replies->held,
                  replies->sending ? "rw" : "r");
}

/* In lower case, as Redis writes it. */
static void write_command(struct buffer *out, const struct client *client, const char *subcommand)
{
    char name[32];
    span_lower(span_of(client->command ? client->command->name : ""), name, sizeof name);
    if (subcommand)
        buffer_printf(out, " cmd=client|%s", subcommand);
    else
        buffer_printf(out, " cmd=%s", !client->command ? "NULL" : *name ? name : "unknown");
}

static long long redirect_of(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    return pinned->states & PINNED_TRACKING ? (long long)pinned->redirect : -1;
}

void roster_describe(struct buffer *out, const struct client *client, const char *subcommand)
{
    const struct introduction *self = &client->self;
    write_who(out, client);
    write_state(out, client);
    write_memory(out, client);
    write_command(out, client, subcommand);
    buffer_printf(out, " user=%s redir=%lld resp=%d lib-name=%s lib-ver=%s\n", user_of(client),
                  redirect_of(client), client->replies.resp3 ? 3 : 2, or_empty(self->library),
                  or_empty(self->library_version));
}

/* ---- looking for one ---- */

struct client *roster_find(const struct clients *clients, uint64_t id)
{
    struct span key = {(const char *)&id, sizeof id};
    struct keymap_node *node = keymap_find(&clients->ids, key, id);
    struct client *client = node ? container_of(node, struct client, by_id) : NULL;
    return client && client->state < CLIENT_CLOSING ? client : NULL;
}

/* One that is only kept just in case may go at any time. */
uint64_t roster_cache_id(const struct client *client)
{
    bool needed = client->pinned.states & ~(unsigned)PINNED_SKIP || is_blocked(client) ||
                  redirection_is_used(client->pinned.redirected);
    return client->pinned.own && needed ? upstream_cache_id(client->pinned.own) : 0;
}

/* ---- one after the other ---- */

void roster_walk_begin(struct roster_walk *walk, struct clients *clients)
{
    *walk = (struct roster_walk){clients, clients->walks, clients->last, clients->last_id};
    clients->walks = walk;
}

void roster_walk_end(struct roster_walk *walk)
{
    struct roster_walk **at = &walk->clients->walks;
    while (*at != walk)
        at = &(*at)->beside;
    *at = walk->beside;
}

struct client *roster_walk_next(struct roster_walk *walk)
{
    struct client *client = walk->next;
    if (!client || client->id > walk->newest)
        return NULL;
    walk->next = client->previous;
    return client;
}

/* This one is on its way out of the list. */
static void pass_over(const struct clients *clients, const struct client *client)
{
    for (struct roster_walk *walk = clients->walks; walk; walk = walk->beside)
        if (walk->next == client)
            walk->next = client->previous;
}

/* ---- who is there ---- */

void roster_enter(struct clients *clients, struct client *client)
{
    client->following = clients->first;
    *(clients->first ? &clients->first->previous : &clients->last) = client;
    clients->first = client;
    client->by_id.key = (struct span){(const char *)&client->id, sizeof client->id};
    client->by_id.hash = client->id; /* it is ours, not chosen by anybody */
    keymap_insert(&clients->ids, &client->by_id);
    atomic_fetch_add_explicit(clients->total, 1, memory_order_relaxed);
    counter_add(&clients->serving->counters.clients, 1);
}

void roster_leave(struct client *client)
{
    struct clients *clients = client->clients;
    pass_over(clients, client);
    keymap_remove(&clients->ids, &client->by_id);
    *(client->previous ? &client->previous->following : &clients->first) = client->following;
    *(client->following ? &client->following->previous : &clients->last) = client->previous;
    atomic_fetch_sub_explicit(clients->total, 1, memory_order_relaxed);
    counter_add(&clients->serving->counters.clients, (uint64_t)-1); /* one less */
}
