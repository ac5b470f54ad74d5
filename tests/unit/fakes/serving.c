#include "fakes/serving.h"

#include "traffic/ledger.h"
#include "worker/reply/reply_slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void deliver_nothing(void *arg, struct message *message)
{
    (void)arg;
    (void)message;
    fail_msg("the keeper's answer was not expected");
}

static void do_nothing(struct turn_task *task)
{
    (void)task;
}

void fake_serving_init(struct fake_serving *fake, uint16_t cache_port, const char *settings,
                       mailbox_deliver deliver, void *arg)
{
    struct serving *serving = xcalloc_aligned(alignof(struct serving), sizeof *serving);
    *fake = (struct fake_serving){.serving = serving};
    fake->shared = keyspaces_config(cache_port, settings);
    fake->generation = keyspaces_generation();
    fake->watch = watch_create(100);
    fake_keeper_init(&fake->keeper);
    serving->keeper = &fake->keeper.mailbox;
    serving->watch = fake->watch;
    fake->route = (struct cache_route){.config = fake->shared->config};
    serving->route = &fake->route;
    serving->hosts = &fake->hosts;
    serving->relief = (struct turn_task){.run = do_nothing, .phase = TURN_WRITE};
    serving->weighing = (struct turn_task){.run = do_nothing, .phase = TURN_WRITE};
    serving->keyspaces = xcalloc_aligned(CACHE_LINE, KEYSPACES * sizeof(struct keyspace_counters));
    serving->ledger = ledger_create();
    overrides_init(&serving->overrides);
    assert_int_equal(uv_loop_init(&serving->loop), 0);
    assert_int_equal(
        mailbox_init(&serving->mailbox, &serving->loop, deliver ? deliver : deliver_nothing, arg),
        0);
    assert_int_equal(turn_init(&serving->turn, &serving->loop), 0);
    use_state(fake, KEYSPACE_GUARDING);
}

void use_state(struct fake_serving *fake, enum keyspace_state state)
{
    struct view *replaced = fake->serving->view;
    struct generation *generation = state == KEYSPACE_LOADING ? NULL : fake->generation;
    fake->serving->view = keyspaces_view(fake->shared, generation, state, 1);
    fake->serving->permission = permission_begin(fake->serving->view);
    serving_update_limits(fake->serving);
    if (replaced)
        view_release(replaced);
}

void turn_loop(struct fake_serving *fake)
{
    uv_run(&fake->serving->loop, UV_RUN_NOWAIT);
}

static void free_serving(struct serving *serving)
{
    overrides_finish(&serving->overrides);
    ledger_destroy(serving->ledger);
    reply_slot_free_store(serving);
    resp_arguments_finish(&serving->arguments);
    view_release(serving->view);
    free(serving->keyspaces);
    free(serving);
}

void fake_serving_finish(struct fake_serving *fake)
{
    struct serving *serving = fake->serving;
    turn_loop(fake);
    assert_int_equal(serving->asked, 0);
    assert_int_equal(serving->own_connections, 0);
    turn_close(&serving->turn);
    mailbox_close(&serving->mailbox);
    uv_run(&serving->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&serving->loop), 0);
    hosts_finish(&fake->hosts);
    free_serving(serving);
    fake_keeper_finish(&fake->keeper);
    watch_destroy(fake->watch);
    generation_release(fake->generation);
    shared_config_release(fake->shared);
}
