#include "keeper/inquiry.h"

#include "base/memory.h"
#include "check/check_cache.h"
#include "check/check_change.h"

#include <stdlib.h>

struct inquiry {
    uv_work_t work;
    struct inquiry_options options; /* without `done`: it was left */
    struct inquiry_findings found;
    atomic_bool stop;
};

static void on_thread(uv_work_t *work)
{
    struct inquiry *inquiry = work->data;
    const struct inquiry_options *options = &inquiry->options;
    struct inquiry_findings *found = &inquiry->found;
    bool is_another = !options->cache || check_cache_is_another(options->wanted, &found->problems);
    found->of_database = is_another && options->database;
    if (found->of_database)
        check_change(options->running->config, options->wanted, &inquiry->stop, &found->problems);
}

static void on_done(uv_work_t *work, int status)
{
    struct inquiry *inquiry = work->data;
    (void)status;
    if (inquiry->options.done)
        inquiry->options.done(inquiry->options.arg, &inquiry->found);
    else
        config_destroy(inquiry->options.wanted);
    problems_finish(&inquiry->found.problems);
    shared_config_release(inquiry->options.running);
    free(inquiry);
}

struct inquiry *inquiry_begin(uv_loop_t *loop, const struct inquiry_options *options)
{
    struct inquiry *inquiry = xcalloc(1, sizeof *inquiry);
    inquiry->work.data = inquiry;
    inquiry->options = *options;
    if (uv_queue_work(loop, &inquiry->work, on_thread, on_done) < 0) {
        free(inquiry);
        return NULL;
    }
    options->running->references++;
    return inquiry;
}

void inquiry_leave(struct inquiry *inquiry)
{
    inquiry->options.done = NULL;
    atomic_store(&inquiry->stop, true);
}
