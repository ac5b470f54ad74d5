/* Each address has a socket of this worker's own, polled by the loop:
 *
 *   polled ─ no open files ─▶ paused ─ PAUSE_MS ─▶ polled      either ─ listeners_close() ─▶ closed
 *
 * One timer ends the pauses of all.
 */
#include "worker/listener.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"
#include "guard/fair_share.h"
#include "worker/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024, /* who may wait in the kernel's queue */
    ACCEPTS = 16,   /* of one socket in a turn; then those who are here already are served */
    PAUSE_MS = 100
};

struct listener {
    uv_poll_t poll;
    struct listeners *all;
    int fd;
    bool tls, is_unix;
    bool paused;
};

static void on_readable(uv_poll_t *poll, int status, int events);

/* ---- who comes when there is no room ---- */

/* Redis' own words, so that clients know what they mean. Where TLS is spoken it would take a
 * handshake to say them. Whoever calls closes the socket. */
static void refuse(const struct listener *listener, int fd, const char *whom)
{
    static const char text[] = "-ERR max number of clients reached\r\n";
    static struct log_pace pace;
    struct serving *serving = listener->all->clients->serving;
    uint64_t left_out;
    if (!listener->tls)
        (void)!send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    counter_add(&serving->counters.connections_refused, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("of %u clients that may be connected (max_clients) all places are taken%s: "
                    "%llu refused",
                    serving_config(serving)->limits.clients, whom,
                    (unsigned long long)left_out + 1);
}

static void start(struct listener *listener)
{
    listener->paused = false;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

static void on_pause_over(uv_timer_t *timer)
{
    struct listeners *listeners = timer->data;
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->at[i].paused)
            start(&listeners->at[i]);
}

/* Whoever waits keeps waiting in the kernel's queue, and is still there when the pause is over. */
static void pause_for(struct listener *listener, int error)
{
    static struct log_pace pace;
    struct listeners *all = listener->all;
    uint64_t left_out;
    listener->paused = true;
    uv_poll_stop(&listener->poll);
    if (!uv_is_active((uv_handle_t *)&all->pause))
        uv_timer_start(&all->pause, on_pause_over, PAUSE_MS, 0);
    counter_add(&all->clients->serving->counters.accept_pauses, 1);
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("accepting a client: %s; trying again in %d ms", strerror(error), PAUSE_MS);
}

/* ---- who comes ---- */

/* One host that takes all it can get leaves some to whoever else comes. */
static bool has_many(const struct client *client)
{
    const struct clients *clients = client->clients;
    const struct config *config = serving_config(clients->serving);
    return fair_share_is_kept(config->limits.clients,
                              atomic_load_explicit(clients->total, memory_order_relaxed),
                              client->host->clients, config->workers);
}

/* A client keeps to one cache connection: its commands stay in order. */
static void welcome(struct listener *listener, int fd)
{
    struct clients *clients = listener->all->clients;
    struct client *client = connection_create(clients, listener->is_unix);
    client->upstream = client_shared(client, false);
    if (stream_open(&client->stream, fd) < 0) {
        close(fd);
        client_close(client);
        return;
    }
    connection_start(client, listener->tls);
    if (has_many(client)) {
        char whom[STREAM_PEER_SIZE + 64];
        snprintf(whom, sizeof whom, ", but for hosts that have fewer than %s", client->address);
        refuse(listener, fd, whom);
        client_close(client);
        return;
    }
    counter_add(&clients->serving->counters.connections, 1);
}

/* Workers count without a lock: of those that come at the same moment each worker may let in one
 * too many. */
static bool has_room(const struct clients *clients)
{
    return atomic_load_explicit(clients->total, memory_order_relaxed) <
           serving_config(clients->serving)->limits.clients;
}

/* The one who was next may have gone again; that says nothing of those behind. */
static bool is_passing(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO || error == EPERM;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    (void)status; /* accept() says it, too */
    (void)events;
    for (unsigned i = 0; i < ACCEPTS; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && has_room(listener->all->clients)) {
            welcome(listener, fd);
        } else if (fd >= 0) {
            refuse(listener, fd, "");
            close(fd);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (!is_passing(errno)) {
            pause_for(listener, errno);
            return;
        }
    }
}

/* ---- life ---- */

static int open_one(struct listener *listener, uv_loop_t *loop)
{
    int status = uv_poll_init(loop, &listener->poll, listener->fd);
    listener->poll.data = listener;
    return status;
}

/* Those that were opened before a failure are counted, so that listeners_close() finds them. */
int listeners_open(struct listeners *listeners, struct clients *clients, const int *fds,
                   const struct address *addresses, size_t count)
{
    uv_loop_t *loop = &clients->serving->loop;
    listeners->clients = clients;
    listeners->at = xcalloc(count, sizeof *listeners->at);
    uv_timer_init(loop, &listeners->pause);
    listeners->pause.data = listeners;
    for (size_t i = 0; i < count; i++) {
        struct listener *listener = &listeners->at[i];
        *listener = (struct listener){.all = listeners,
                                      .fd = fds[i],
                                      .tls = addresses[i].tls,
                                      .is_unix = addresses[i].path != NULL};
        int status = open_one(listener, loop);
        if (status)
            return status;
        listeners->count++;
    }
    return 0;
}

int listeners_accept(struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++) {
        if (listen(listeners->at[i].fd, BACKLOG) < 0)
            return -errno;
        start(&listeners->at[i]);
    }
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    close(listener->fd);
}

/* A poll handle has let go of its socket only when it is closed. */
void listeners_close(struct listeners *listeners)
{
    if (uv_is_closing((uv_handle_t *)&listeners->pause))
        return;
    uv_close((uv_handle_t *)&listeners->pause, NULL);
    for (size_t i = 0; i < listeners->count; i++)
        uv_close((uv_handle_t *)&listeners->at[i].poll, on_closed);
}

void listeners_finish(struct listeners *listeners)
{
    free(listeners->at);
}
