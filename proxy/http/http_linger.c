#include "http/http_linger.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOST = 8,       /* they count for the reserve of open files: file_limits.c */
    LONGEST = 5000, /* in milliseconds, as the next */
    EVERY = 20,
    PIECE = 64 * 1024,
    PIECES = 256 /* of each at a time: others wait for this thread */
};

struct http_linger {
    uv_timer_t timer;
    struct http_lingers *all;
    struct http_linger *previous, *next;
    uint64_t until; /* clock_ms() */
    int fd;
};

static void on_closed(uv_handle_t *handle)
{
    struct http_linger *linger = handle->data;
    struct http_lingers *all = linger->all;

    free(linger);
    all->count--;
    all->ended(all->arg);
}

static void end(struct http_linger *linger)
{
    struct http_linger *previous = linger->previous, *next = linger->next;

    *(previous ? &previous->next : &linger->all->first) = next;
    if (next)
        next->previous = previous;
    close(linger->fd);
    uv_close((uv_handle_t *)&linger->timer, on_closed);
}

/* Whether more may come. */
static bool throw_away(int fd)
{
    static char piece[PIECE];

    for (int i = 0; i < PIECES; i++) {
        ssize_t got = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EINTR))
            return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    return true;
}

static void on_time(uv_timer_t *timer)
{
    struct http_linger *linger = timer->data;

    if (!throw_away(linger->fd) || clock_ms() >= linger->until)
        end(linger);
}

void http_linger_begin(struct http_lingers *all, int fd)
{
    int own = all->count < MOST ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    struct http_linger *linger;

    if (own < 0)
        return;
    shutdown(own, SHUT_WR);
    linger = xcalloc(1, sizeof(*linger));
    *linger = (struct http_linger){
        .all = all, .next = all->first, .until = clock_ms() + LONGEST, .fd = own};
    if (linger->next)
        linger->next->previous = linger;
    all->first = linger;
    all->count++;
    uv_timer_init(all->loop, &linger->timer);
    linger->timer.data = linger;
    uv_timer_start(&linger->timer, on_time, 0, EVERY);
}

void http_lingers_end(struct http_lingers *all)
{
    while (all->first)
        end(all->first);
}
