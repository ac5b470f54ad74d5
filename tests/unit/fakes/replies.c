#include "fakes/replies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

void bench_init(struct bench *bench)
{
    static const enum keyspace_state states[] = {KEYSPACE_LOADING};
    *bench =
        (struct bench){.serving = xcalloc_aligned(alignof(struct serving), sizeof *bench->serving)};
    bench->shared = shared_config_create(
        config_from_text("cache: redis://127.0.0.1\ndatabase: host=db\nmax_output: 1kb\n"
                         "keyspaces: [{name: a, key: \"a:{b}\", table: c, value: d}]\n"));
    bench->serving->view = view_create(bench->shared, NULL, states, 1);
    serving_update_limits(bench->serving);
    bench->replies.serving = bench->serving;
    bench->replies.task = &bench->task;
}

void bench_finish(struct bench *bench)
{
    assert_null(bench->replies.first);
    assert_int_equal(bench->replies.commands, 0);
    assert_int_equal(bench->replies.held, 0);
    reply_slot_free_store(bench->serving);
    buffer_finish(&bench->replies.out);
    view_release(bench->serving->view);
    shared_config_release(bench->shared);
    free(bench->serving);
}

void must_leave(struct bench *bench, const char *wanted)
{
    struct span out = buffer_span(&bench->replies.out);
    assert_int_equal(out.length, strlen(wanted));
    assert_memory_equal(out.at, wanted, out.length);
    assert_true(bench->task.queued || !out.length);
    buffer_clear(&bench->replies.out);
    turn_cancel(&bench->serving->turn, &bench->task);
}
