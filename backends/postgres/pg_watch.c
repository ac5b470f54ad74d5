/* A watcher is libuv's until its close callback; an event that is already on its way finds it no
 * longer current.
 */
#include "postgres/pg_watch.h"

#include "net/allocate.h"

struct pg_watcher {
    uv_poll_t poll;
    int fd, events;
    struct pg_watch *watch; /* the owner's */
};

static void on_closed(uv_handle_t *handle)
{
    struct pg_watcher *watcher = handle->data;
    struct pg_watch *watch = watcher->watch;
    free(watcher);
    watch->open--;
    watch->closed(watch->arg);
}

void pg_watch_drop(struct pg_watch *watch)
{
    if (watch->watcher)
        uv_close((uv_handle_t *)&watch->watcher->poll, on_closed);
    watch->watcher = NULL;
}

void pg_watch_stop(struct pg_watch *watch)
{
    if (!watch->watcher)
        return;
    uv_poll_stop(&watch->watcher->poll);
    watch->watcher->events = 0;
}

static int make(struct pg_watch *watch, int fd)
{
    struct pg_watcher *watcher = allocate(1, sizeof *watcher);
    *watcher = (struct pg_watcher){.fd = fd, .watch = watch};
    int status = uv_poll_init(watch->loop, &watcher->poll, fd);
    if (status < 0) {
        free(watcher);
        return status;
    }
    watcher->poll.data = watcher;
    watch->watcher = watcher;
    watch->open++;
    return 0;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct pg_watcher *watcher = poll->data;
    struct pg_watch *watch = watcher->watch;
    (void)events;
    if (watch->watcher != watcher)
        return;
    if (status < 0)
        watcher->events = 0; /* libuv stopped it; libpq finds out what is wrong */
    watch->ready(watch->arg);
}

int pg_watch(struct pg_watch *watch, int fd, int events)
{
    int status = 0;
    if (watch->watcher && watch->watcher->fd != fd)
        pg_watch_drop(watch);
    if (!watch->watcher)
        status = make(watch, fd);
    if (status < 0 || watch->watcher->events == events)
        return status;
    watch->watcher->events = events;
    return uv_poll_start(&watch->watcher->poll, events, on_ready);
}
