#include "redis_loop.h"
#include "allocate.h"

struct watch {
    uv_poll_t poll;
    redisAsyncContext *context; /* NULL: freed, the handle is being closed */
    int events;
    void (*released)(void *arg);
    void *arg;
};

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    if (status < 0) {
        /* hiredis finds out what is wrong when it tries. */
        events = watch->events;
        watch->events = 0;
    }
    if (watch->context && (events & UV_READABLE))
        redisAsyncHandleRead(watch->context);
    if (watch->context && (events & UV_WRITABLE))
        redisAsyncHandleWrite(watch->context);
}

/* hiredis asks again after every read; each real change is a system call or two. */
static void set_events(struct watch *watch, int events)
{
    if (watch->events == events)
        return;
    watch->events = events;
    if (events)
        uv_poll_start(&watch->poll, events, on_socket);
    else
        uv_poll_stop(&watch->poll);
}

static void add_read(void *arg)
{
    struct watch *watch = arg;
    set_events(watch, watch->events | UV_READABLE);
}

static void del_read(void *arg)
{
    struct watch *watch = arg;
    set_events(watch, watch->events & ~UV_READABLE);
}

static void add_write(void *arg)
{
    struct watch *watch = arg;
    set_events(watch, watch->events | UV_WRITABLE);
}

static void del_write(void *arg)
{
    struct watch *watch = arg;
    set_events(watch, watch->events & ~UV_WRITABLE);
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    void (*released)(void *arg) = watch->released;
    void *arg = watch->arg;
    free(watch);
    released(arg);
}

/* hiredis frees the context after this; libuv still has the handle. */
static void cleanup(void *arg)
{
    struct watch *watch = arg;
    watch->context = NULL;
    uv_close((uv_handle_t *)&watch->poll, on_closed);
}

int redis_loop_attach(redisAsyncContext *context, uv_loop_t *loop, void (*released)(void *arg),
                      void *arg)
{
    struct watch *watch = allocate(1, sizeof *watch);
    int rc = uv_poll_init(loop, &watch->poll, context->c.fd);
    if (rc < 0) {
        free(watch);
        return rc;
    }
    watch->poll.data = watch;
    watch->context = context;
    watch->released = released;
    watch->arg = arg;
    context->ev.data = watch;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = cleanup;
    return 0;
}
