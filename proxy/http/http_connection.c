/* Half a request costs nothing, and libmicrohttpd waits for the rest as long as for an idle client:
 * a few hundred of them would lock the control port. The first to go is who has said nothing whole
 * for longest; a request comes whole in much less than the time that it takes to get there. Then
 * who does not take its answer, of which more is left than the system keeps for it.
 */
#include "http/http_connection.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <sys/socket.h>

enum {
    NEWEST = 32,           /* so many of the last are let be */
    PATIENCE_MS = 5 * 1000 /* with one that was given its answer */
};

struct http_connection {
    struct http_connection *previous, *next;
    int fd;
    bool busy;         /* a whole request is being answered */
    bool ended;        /* shut down, and not closed yet */
    uint64_t answered; /* its answer was given, and is not all sent: clock_ms(); 0: none was */
    bool answered_early;
};

/* The list has them in the order in which they came, or were last answered. */
static void append(struct http_connections *all, struct http_connection *connection)
{
    connection->previous = all->last;
    connection->next = NULL;
    *(all->last ? &all->last->next : &all->first) = connection;
    all->last = connection;
}

static void take_out(struct http_connections *all, struct http_connection *connection)
{
    struct http_connection *previous = connection->previous, *next = connection->next;

    *(previous ? &previous->next : &all->first) = next;
    *(next ? &next->previous : &all->last) = previous;
}

/* Not closed: the descriptor is libmicrohttpd's, which finds it ended, and closes it by its own
 * way.
 */
static void end(struct http_connections *all, struct http_connection *connection)
{
    connection->ended = true;
    all->ending++;
    shutdown(connection->fd, SHUT_RDWR);
}

static bool is_idle(const struct http_connection *connection)
{
    return !connection->busy;
}

static bool is_slow(const struct http_connection *connection)
{
    return connection->answered && clock_ms() - connection->answered > PATIENCE_MS;
}

/* The first such, but for the newest and those that end already. */
static struct http_connection *find(const struct http_connections *all,
                                    bool (*is_such)(const struct http_connection *connection))
{
    struct http_connection *one = all->first;

    for (unsigned place = 0; place + NEWEST < all->count; place++, one = one->next)
        if (!one->ended && is_such(one))
            return one;
    return NULL;
}

bool http_connections_make_room(struct http_connections *all)
{
    while (all->count - all->ending > all->most) {
        struct http_connection *one = find(all, is_idle);

        if (!one)
            one = find(all, is_slow);
        if (!one)
            return false;
        end(all, one);
    }
    return true;
}

struct http_connection *http_connection_open(struct http_connections *all, int fd)
{
    struct http_connection *connection = xcalloc(1, sizeof(*connection));

    connection->fd = fd;
    append(all, connection);
    all->count++;
    http_connections_make_room(all);
    return connection;
}

void http_connection_close(struct http_connections *all, struct http_connection *connection)
{
    take_out(all, connection);
    all->count--;
    all->ending -= connection->ended;
    free(connection);
}

void http_connection_answered_early(struct http_connection *connection)
{
    connection->answered_early = true;
}

bool http_connection_is_answered_early(const struct http_connection *connection)
{
    return connection->answered_early;
}

void http_connection_busy(struct http_connection *connection)
{
    connection->busy = true;
}

void http_connection_answered(struct http_connection *connection)
{
    connection->answered = clock_ms();
}

void http_connection_idle(struct http_connections *all, struct http_connection *connection)
{
    connection->busy = false;
    connection->answered = 0;
    take_out(all, connection);
    append(all, connection);
    http_connections_make_room(all); /* there may have been none to end while all were busy */
}
