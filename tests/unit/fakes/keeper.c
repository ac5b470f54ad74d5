#include "fakes/keeper.h"

#include "fakes/peer.h"
#include "guard/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void take_message(void *arg, struct message *message)
{
    struct fake_keeper *keeper = arg;
    switch (message->kind) {
    case MESSAGE_VIEW:
        view_release(((struct view_message *)message)->view);
        keeper->orders--;
        free(message);
        break;
    case MESSAGE_OVERRIDE:
        keeper->orders--;
        free(message);
        break;
    case MESSAGE_DRAIN:
        keeper->drained = true;
        free(message);
        break;
    default:
        assert_true(keeper->inbox_count < KEEPER_MESSAGES);
        keeper->inbox[keeper->inbox_count++] = message;
    }
}

void fake_keeper_init(struct fake_keeper *keeper)
{
    *keeper = (struct fake_keeper){.inbox_count = 0};
    assert_int_equal(uv_loop_init(&keeper->loop), 0);
    uv_timer_init(&keeper->loop, &keeper->patience);
    assert_int_equal(mailbox_init(&keeper->mailbox, &keeper->loop, take_message, keeper), 0);
}

void fake_keeper_finish(struct fake_keeper *keeper)
{
    assert_int_equal(keeper->inbox_count, 0);
    mailbox_close(&keeper->mailbox);
    uv_close((uv_handle_t *)&keeper->patience, NULL);
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&keeper->loop), 0);
}

/* ---- waiting ---- */

static void on_patience(uv_timer_t *timer)
{
    (void)timer;
}

static void begin_to_wait(struct fake_keeper *keeper)
{
    uv_update_time(&keeper->loop);
    uv_timer_start(&keeper->patience, on_patience, PATIENCE_MS, 0);
}

/* Until the next message has come. */
static void wait_on(struct fake_keeper *keeper, const char *for_what)
{
    if (!uv_is_active((uv_handle_t *)&keeper->patience))
        fail_msg("%s", for_what);
    uv_run(&keeper->loop, UV_RUN_ONCE);
}

static void end_waiting(struct fake_keeper *keeper)
{
    uv_timer_stop(&keeper->patience);
}

/* ---- what it is asked ---- */

struct message *next_message(struct fake_keeper *keeper, enum message_kind kind)
{
    begin_to_wait(keeper);
    while (!keeper->inbox_count)
        wait_on(keeper, "the keeper was not asked");
    end_waiting(keeper);
    struct message *message = keeper->inbox[0];
    memmove(keeper->inbox, keeper->inbox + 1, --keeper->inbox_count * sizeof message);
    assert_int_equal(message->kind, kind);
    return message;
}

struct load_request *next_load(struct fake_keeper *keeper, const char *key)
{
    struct load_request *request =
        (struct load_request *)(void *)next_message(keeper, MESSAGE_LOAD);
    assert_true(span_is(request->key.text, key));
    return request;
}

struct write_request *next_hint(struct fake_keeper *keeper, const char *key)
{
    struct write_request *hint =
        (struct write_request *)(void *)next_message(keeper, MESSAGE_WRITE);
    assert_true(hint->wants_hint);
    assert_true(span_is(hint->key.text, key));
    return hint;
}

void return_row(struct load_request *request, const char *value)
{
    char *bytes;
    request->outcome = LOAD_ROW;
    request->value = blob_create(strlen(value), &bytes);
    memcpy(bytes, value, strlen(value));
    mailbox_return(&request->message);
}

void return_outcome(struct load_request *request, enum load_outcome outcome)
{
    request->outcome = outcome;
    request->value = NULL;
    mailbox_return(&request->message);
}

void must_not_ask(struct fake_keeper *keeper)
{
    uv_run(&keeper->loop, UV_RUN_NOWAIT);
    assert_int_equal(keeper->inbox_count, 0);
}

/* ---- its orders ---- */

void send_order(struct fake_keeper *keeper, struct mailbox *worker, struct message *message)
{
    message->sender = &keeper->mailbox;
    keeper->orders++;
    mailbox_post(worker, message);
    begin_to_wait(keeper);
    while (keeper->orders)
        wait_on(keeper, "the worker does not obey");
    end_waiting(keeper);
}

void must_drain(struct fake_keeper *keeper)
{
    begin_to_wait(keeper);
    while (!keeper->drained)
        wait_on(keeper, "the worker does not end");
    end_waiting(keeper);
}
