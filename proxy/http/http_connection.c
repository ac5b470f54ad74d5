/* Half a request costs nothing, and libmicrohttpd waits for the rest as long as for an idle client:
 * a few hundred of them would lock the control port. The first to go is who has said nothing whole
 * for longest; a request comes whole in much less than the time that it takes to get there.
 */
#include "http/http_connection.h"

#include "base/memory.h"

#include <stdlib.h>
#include <sys/socket.h>

enum { NEWEST = 32 }; /* so many of the last are let be */

struct http_connection {
    struct http_connection *previous, *next;
    int fd;
    bool busy;  /* a whole request is being answered */
    bool ended; /* shut down, and not closed yet */
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

/* Ends one at most, as each call of this comes with one more that could be. Who is busy, or ending
 * already, is passed over. */
static void make_room(struct http_connections *all)
{
    unsigned place = 0;

    if (all->count - all->ending <= all->most)
        return;
    for (struct http_connection *one = all->first; place + NEWEST < all->count; one = one->next) {
        if (!one->busy && !one->ended) {
            end(all, one);
            return;
        }
        place++;
    }
}

struct http_connection *http_connection_open(struct http_connections *all, int fd)
{
    struct http_connection *connection = xcalloc(1, sizeof(*connection));

    connection->fd = fd;
    append(all, connection);
    all->count++;
    make_room(all);
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

void http_connection_idle(struct http_connections *all, struct http_connection *connection)
{
    connection->busy = false;
    take_out(all, connection);
    append(all, connection);
    make_room(all); /* there may have been none to end while all were busy */
}
