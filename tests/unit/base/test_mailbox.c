/* Mailboxes between threads; also to be run under ThreadSanitizer. */
#include "base/mailbox.h"

#include "fakes/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

enum { MANY = 20000, SENDERS = 4 };

struct note {
    struct message message;
    unsigned sender, number;
    unsigned answer; /* filled by the receiver, without a lock */
};

/* A thread with a loop that answers notes until it has seen as many as it was told. */
struct echo {
    uv_loop_t loop;
    uv_thread_t thread;
    struct mailbox mailbox;
    unsigned expected, seen;
    unsigned next[SENDERS];
    int closed; /* status of uv_loop_close() */
};

static void answer_note(void *arg, struct message *message)
{
    struct echo *echo = arg;
    struct note *note = (struct note *)message;
    if (note->number != echo->next[note->sender]++)
        abort(); /* out of order */
    note->answer = note->number * 2 + 1;
    mailbox_return(message);
    if (++echo->seen == echo->expected)
        mailbox_close(&echo->mailbox);
}

static void run_echo(void *arg)
{
    struct echo *echo = arg;
    uv_run(&echo->loop, UV_RUN_DEFAULT);
    echo->closed = uv_loop_close(&echo->loop);
}

static void echo_start(struct echo *echo, unsigned expected)
{
    *echo = (struct echo){.expected = expected, .closed = 1};
    assert_int_equal(uv_loop_init(&echo->loop), 0);
    assert_int_equal(mailbox_init(&echo->mailbox, &echo->loop, answer_note, echo), 0);
    assert_int_equal(uv_thread_create(&echo->thread, run_echo, echo), 0);
}

static void echo_end(struct echo *echo)
{
    uv_thread_join(&echo->thread);
    assert_int_equal(echo->seen, echo->expected);
    assert_int_equal(echo->closed, 0);
}

/* One who posts notes from a loop of its own and takes the answers. */
struct sender {
    uv_loop_t loop;
    uv_thread_t thread;
    struct mailbox mailbox;
    struct mailbox *to;
    unsigned index, window, total;
    unsigned posted, returned;
    int closed;
};

static void post_note(struct sender *sender)
{
    struct note *note = calloc(1, sizeof *note);
    note->message = (struct message){.sender = &sender->mailbox};
    note->sender = sender->index;
    note->number = sender->posted++;
    mailbox_post(sender->to, &note->message);
}

static void take_answer(void *arg, struct message *message)
{
    struct sender *sender = arg;
    struct note *note = (struct note *)message;
    if (note->number != sender->returned++ || note->answer != note->number * 2 + 1)
        abort();
    free(note);
    if (sender->posted < sender->total)
        post_note(sender);
    else if (sender->returned == sender->total)
        mailbox_close(&sender->mailbox);
}

static void run_sender(void *arg)
{
    struct sender *sender = arg;
    while (sender->posted < sender->window)
        post_note(sender);
    uv_run(&sender->loop, UV_RUN_DEFAULT);
    sender->closed = uv_loop_close(&sender->loop);
}

static void sender_init(struct sender *sender, struct mailbox *to, unsigned index, unsigned total)
{
    *sender = (struct sender){.to = to, .index = index, .total = total, .closed = 1};
    assert_int_equal(uv_loop_init(&sender->loop), 0);
    assert_int_equal(mailbox_init(&sender->mailbox, &sender->loop, take_answer, sender), 0);
}

static void check_sender(const struct sender *sender)
{
    assert_int_equal(sender->returned, sender->total);
    assert_int_equal(sender->closed, 0);
}

/* With one message under way at a time, a lost wake-up would hang here. */
static void round_trips_lose_no_wake_up(void **state)
{
    struct echo echo;
    struct sender sender;
    (void)state;
    echo_start(&echo, MANY);
    sender_init(&sender, &echo.mailbox, 0, MANY);
    sender.window = 1;
    run_sender(&sender);
    check_sender(&sender);
    echo_end(&echo);
}

static void many_messages_arrive_once_and_in_order(void **state)
{
    struct echo echo;
    struct sender sender;
    (void)state;
    echo_start(&echo, MANY);
    sender_init(&sender, &echo.mailbox, 0, MANY);
    sender.window = MANY;
    run_sender(&sender);
    check_sender(&sender);
    echo_end(&echo);
}

static void several_threads_may_post_at_the_same_time(void **state)
{
    struct echo echo;
    struct sender senders[SENDERS];
    (void)state;
    echo_start(&echo, SENDERS * MANY);
    for (unsigned i = 0; i < SENDERS; i++) {
        sender_init(&senders[i], &echo.mailbox, i, MANY);
        senders[i].window = 100;
        assert_int_equal(uv_thread_create(&senders[i].thread, run_sender, &senders[i]), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        uv_thread_join(&senders[i].thread);
        check_sender(&senders[i]);
    }
    echo_end(&echo);
}

/* ---- one loop, one thread ---- */

struct log {
    struct mailbox mailbox;
    struct message *seen[8];
    unsigned count;
    struct message *again; /* posted from inside the delivery */
    struct mailbox *to;
};

static void log_message(void *arg, struct message *message)
{
    struct log *log = arg;
    log->seen[log->count++] = message;
    if (log->again) {
        struct message *again = log->again;
        log->again = NULL;
        mailbox_post(log->to, again);
    }
}

static void posting_never_delivers_before_it_returns(void **state)
{
    uv_loop_t loop;
    struct log log = {0};
    struct message first = {0}, second = {0};
    (void)state;
    uv_loop_init(&loop);
    mailbox_init(&log.mailbox, &loop, log_message, &log);
    mailbox_post(&log.mailbox, &first);
    mailbox_post(&log.mailbox, &second);
    assert_int_equal(log.count, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(log.count, 2);
    assert_ptr_equal(log.seen[0], &first);
    assert_ptr_equal(log.seen[1], &second);
    mailbox_close(&log.mailbox);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* A delivery may post to the mailbox that is being emptied, also the same message anew. */
static void a_delivery_may_post_to_its_own_mailbox(void **state)
{
    uv_loop_t loop;
    struct log log = {0};
    struct message first = {0}, second = {0};
    (void)state;
    uv_loop_init(&loop);
    mailbox_init(&log.mailbox, &loop, log_message, &log);
    log.to = &log.mailbox;
    log.again = &first;
    mailbox_post(&log.mailbox, &first);
    mailbox_post(&log.mailbox, &second);
    while (log.count < 3)
        uv_run(&loop, UV_RUN_ONCE);
    assert_ptr_equal(log.seen[0], &first);
    assert_ptr_equal(log.seen[1], &second);
    assert_ptr_equal(log.seen[2], &first);
    mailbox_close(&log.mailbox);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- messages that take their time ---- */

enum { PACE = 1000, QUICK = PACE / 2, SLOW = 3 * PACE };

struct slow_log {
    struct log log;
    uint64_t each; /* nanoseconds that a delivery takes */
    unsigned closes_at;
};

static void take_time(void *arg, struct message *message)
{
    struct slow_log *slow = arg;
    now_ns += slow->each;
    log_message(&slow->log, message);
    if (slow->log.count == slow->closes_at)
        mailbox_close(&slow->log.mailbox);
}

static void slow_log_init(struct slow_log *slow, uv_loop_t *loop, uint64_t each)
{
    *slow = (struct slow_log){.each = each};
    uv_loop_init(loop);
    mailbox_init(&slow->log.mailbox, loop, take_time, slow);
    mailbox_pace(&slow->log.mailbox, PACE);
}

static void post_all(struct slow_log *slow, struct message *messages, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        mailbox_post(&slow->log.mailbox, &messages[i]);
}

static void must_have_seen(const struct slow_log *slow, struct message *messages, unsigned count)
{
    assert_int_equal(slow->log.count, count);
    for (unsigned i = 0; i < count; i++)
        assert_ptr_equal(slow->log.seen[i], &messages[i]);
}

static void slow_log_finish(struct slow_log *slow, uv_loop_t *loop)
{
    if (!slow->closes_at)
        mailbox_close(&slow->log.mailbox);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void count_turn(uv_prepare_t *prepare)
{
    ++*(unsigned *)prepare->data;
}

/* Replies are written, and timers run, in the turns between. */
static void what_takes_long_is_delivered_over_several_turns(void **state)
{
    struct message messages[5] = {0};
    struct slow_log slow;
    uv_loop_t loop;
    uv_prepare_t prepare;
    unsigned turns = 0;
    (void)state;
    slow_log_init(&slow, &loop, SLOW);
    uv_prepare_init(&loop, &prepare);
    prepare.data = &turns;
    uv_prepare_start(&prepare, count_turn);
    post_all(&slow, messages, 5);
    for (unsigned i = 1; i <= 5; i++) {
        uv_run(&loop, UV_RUN_ONCE); /* which waits for nothing else */
        must_have_seen(&slow, messages, i);
        assert_int_equal(turns, i);
    }
    uv_close((uv_handle_t *)&prepare, NULL);
    slow_log_finish(&slow, &loop);
}

static void what_takes_little_is_delivered_together(void **state)
{
    struct message messages[6] = {0};
    struct slow_log slow;
    uv_loop_t loop;
    (void)state;
    slow_log_init(&slow, &loop, QUICK);
    post_all(&slow, messages, 6);
    for (unsigned i = 2; i <= 6; i += 2) {
        uv_run(&loop, UV_RUN_ONCE);
        must_have_seen(&slow, messages, i);
    }
    slow_log_finish(&slow, &loop);
}

/* It wakes the loop while others are before it. */
static void what_comes_meanwhile_is_delivered_behind_what_was_left(void **state)
{
    struct message messages[5] = {0};
    struct slow_log slow;
    uv_loop_t loop;
    (void)state;
    slow_log_init(&slow, &loop, SLOW);
    post_all(&slow, messages, 2);
    uv_run(&loop, UV_RUN_ONCE);
    must_have_seen(&slow, messages, 1);
    post_all(&slow, messages + 2, 3);
    while (slow.log.count < 5)
        uv_run(&loop, UV_RUN_ONCE);
    must_have_seen(&slow, messages, 5);
    slow_log_finish(&slow, &loop);
}

static void a_mailbox_that_is_closed_meanwhile_gets_the_rest_at_once(void **state)
{
    struct message messages[4] = {0};
    struct slow_log slow;
    uv_loop_t loop;
    (void)state;
    slow_log_init(&slow, &loop, SLOW);
    slow.closes_at = 2;
    post_all(&slow, messages, 4);
    uv_run(&loop, UV_RUN_ONCE);
    must_have_seen(&slow, messages, 1);
    uv_run(&loop, UV_RUN_ONCE);
    must_have_seen(&slow, messages, 4);
    slow_log_finish(&slow, &loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips_lose_no_wake_up),
        cmocka_unit_test(many_messages_arrive_once_and_in_order),
        cmocka_unit_test(several_threads_may_post_at_the_same_time),
        cmocka_unit_test(posting_never_delivers_before_it_returns),
        cmocka_unit_test(a_delivery_may_post_to_its_own_mailbox),
        cmocka_unit_test(what_takes_long_is_delivered_over_several_turns),
        cmocka_unit_test(what_takes_little_is_delivered_together),
        cmocka_unit_test(what_comes_meanwhile_is_delivered_behind_what_was_left),
        cmocka_unit_test(a_mailbox_that_is_closed_meanwhile_gets_the_rest_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
