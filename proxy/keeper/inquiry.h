/* What the database says of a configuration that may be taken: asked on a thread of libuv's pool,
 * so that the loop goes on meanwhile. */
#ifndef NESTGUARD_INQUIRY_H
#define NESTGUARD_INQUIRY_H

#include "base/problem.h"
#include "guard/view.h"
#include <uv.h>

struct inquiry;

/* Called once, on the loop, never before inquiry_begin() has returned; the findings, those of
 * check_change(), live until it returns. */
typedef void (*inquiry_done)(void *arg, const struct problems *found);

/* `running` is held until the end; `wanted` stays the caller's, and is neither changed nor freed
 * before `done`. NULL: there is no thread for it. */
struct inquiry *inquiry_begin(uv_loop_t *loop, struct shared_config *running, struct config *wanted,
                              inquiry_done done, void *arg);

/* Nobody wants to know any more: `done` is not called, and `wanted` is freed, on the loop, when the
 * thread has ended, which is soon. */
void inquiry_leave(struct inquiry *inquiry);

#endif
