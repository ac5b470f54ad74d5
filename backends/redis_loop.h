/* hiredis on libuv. The adapter that hiredis 0.14 brings along returns at once when libuv reports a
 * socket error, and libuv has stopped watching by then: a connection that is refused or reset would
 * never be noticed. (hiredis 1.0 mended its adapter; this one does the same.) Private to backends/.
 */
#ifndef NESTGUARD_REDIS_LOOP_H
#define NESTGUARD_REDIS_LOOP_H

#include <hiredis.h>

#include <async.h>
#include <uv.h>

/* Has the loop drive the context. `released` is called when the context has been freed and its
 * handle is gone. 0 or a negative errno; then `released` is not called. */
int redis_loop_attach(redisAsyncContext *context, uv_loop_t *loop, void (*released)(void *arg),
                      void *arg);

#endif
