/* What must be asked about a configuration before it may be taken: the database what it has, and
 * the names where the cache is. On a thread of libuv's pool, so that the loop goes on meanwhile. */
#ifndef NESTGUARD_INQUIRY_H
#define NESTGUARD_INQUIRY_H

#include "base/problem.h"
#include "guard/view.h"
#include <uv.h>

struct inquiry;

/* What came of it. The database is not asked about a file that is refused for its cache. */
struct inquiry_findings {
    struct problems problems;
    bool of_database; /* they are those of check_change(), else of check_cache_is_another() */
};

struct inquiry_options {
    struct shared_config *running; /* held until the end */
    struct config *wanted;         /* the caller's; neither changed nor freed before `done` */
    bool cache;                    /* that is another than before */
    bool database;                 /* that is to give more, or is another */
    /* Called once, on the loop, never before inquiry_begin() has returned; the findings live until
     * it returns. */
    void (*done)(void *arg, const struct inquiry_findings *found);
    void *arg;
};

/* NULL: there is no thread for it. */
struct inquiry *inquiry_begin(uv_loop_t *loop, const struct inquiry_options *options);

/* Nobody wants to know any more: `done` is not called, and `wanted` is freed, on the loop, when the
 * thread has ended, which is soon. */
void inquiry_leave(struct inquiry *inquiry);

#endif
