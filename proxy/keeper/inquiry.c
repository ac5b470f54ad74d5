#include "keeper/inquiry.h"

#include "base/memory.h"
#include "check/check_change.h"

#include <stdlib.h>

struct inquiry {
    uv_work_t work;
    struct shared_config *running;
    struct config *wanted;
    struct problems found;
    atomic_bool stop;
    inquiry_done done; /* NULL: it was left */
    void *arg;
};

static void on_thread(uv_work_t *work)
{
    struct inquiry *inquiry = work->data;
    check_change(inquiry->running->config, inquiry->wanted, &inquiry->stop, &inquiry->found);
}

static void on_done(uv_work_t *work, int status)
{
    struct inquiry *inquiry = work->data;
    (void)status;
    if (inquiry->done)
        inquiry->done(inquiry->arg, &inquiry->found);
    else
        config_destroy(inquiry->wanted);
    problems_finish(&inquiry->found);
    shared_config_release(inquiry->running);
    free(inquiry);
}

struct inquiry *inquiry_begin(uv_loop_t *loop, struct shared_config *running, struct config *wanted,
                              inquiry_done done, void *arg)
{
    struct inquiry *inquiry = xcalloc(1, sizeof *inquiry);
    inquiry->work.data = inquiry;
    inquiry->running = running;
    inquiry->wanted = wanted;
    inquiry->done = done;
    inquiry->arg = arg;
    if (uv_queue_work(loop, &inquiry->work, on_thread, on_done) < 0) {
        free(inquiry);
        return NULL;
    }
    running->references++;
    return inquiry;
}

void inquiry_leave(struct inquiry *inquiry)
{
    inquiry->done = NULL;
    atomic_store(&inquiry->stop, true);
}
