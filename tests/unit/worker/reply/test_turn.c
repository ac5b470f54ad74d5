/* What is left for the end of a loop turn: in which order it is done, and how often. */
#include "worker/reply/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 4 };

/* A task with a name; when it has run, it may add another. */
struct named {
    struct turn_task task;
    char name;
    struct named *adds;
};

static uv_loop_t loop;
static struct turn turn;
static char ran[100];

static void run(struct turn_task *task)
{
    struct named *named = (struct named *)task;
    struct named *adds = named->adds;
    strncat(ran, &named->name, 1);
    named->adds = NULL; /* once */
    if (adds)
        turn_add(&turn, &adds->task);
}

static struct named task_of(enum turn_phase phase, char name)
{
    return (struct named){.task = {.run = run, .phase = phase}, .name = name};
}

static void must_have_run(const char *names)
{
    assert_string_equal(ran, names);
    ran[0] = '\0';
}

static int open_turn(void **state)
{
    (void)state;
    ran[0] = '\0';
    assert_int_equal(uv_loop_init(&loop), 0);
    return turn_init(&turn, &loop);
}

static int close_turn(void **state)
{
    (void)state;
    turn_close(&turn);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

static void a_task_that_is_added_twice_runs_once(void **state)
{
    struct named task = task_of(TURN_WRITE, 'a');
    (void)state;
    turn_add(&turn, &task.task);
    turn_add(&turn, &task.task);
    assert_true(task.task.queued);
    turn_run(&turn, TURN_WRITE);
    must_have_run("a");
    assert_false(task.task.queued);
    turn_run(&turn, TURN_WRITE);
    must_have_run("");
}

static void tasks_of_earlier_phases_run_first(void **state)
{
    struct named write = task_of(TURN_WRITE, 'w'), serve = task_of(TURN_SERVE, 's'),
                 read = task_of(TURN_READ, 'r');
    (void)state;
    turn_add(&turn, &write.task);
    turn_add(&turn, &serve.task);
    turn_add(&turn, &read.task);
    turn_run(&turn, TURN_WRITE);
    must_have_run("rsw");
}

/* What a reply makes possible is read and served before anything else is written. */
static void what_a_task_adds_to_an_earlier_phase_runs_before_the_next(void **state)
{
    struct named first = task_of(TURN_WRITE, '1'), second = task_of(TURN_WRITE, '2');
    struct named read = task_of(TURN_READ, 'r'), serve = task_of(TURN_SERVE, 's');
    (void)state;
    first.adds = second.adds = &read; /* whichever runs first */
    read.adds = &serve;
    turn_add(&turn, &first.task);
    turn_add(&turn, &second.task);
    turn_run(&turn, TURN_WRITE);
    assert_memory_equal(ran + 1, "rs", 2);
    assert_int_equal(strlen(ran), 5);
    assert_int_equal(ran[4], 'r'); /* the other one added it, too */
}

static void a_task_may_add_itself_while_it_runs(void **state)
{
    struct named task = task_of(TURN_SERVE, 'a');
    (void)state;
    task.adds = &task;
    turn_add(&turn, &task.task);
    turn_run(&turn, TURN_WRITE);
    must_have_run("aa");
}

static void later_phases_are_left_for_later(void **state)
{
    struct named read = task_of(TURN_READ, 'r'), write = task_of(TURN_WRITE, 'w');
    (void)state;
    turn_add(&turn, &write.task);
    turn_add(&turn, &read.task);
    assert_true(turn_has(&turn, TURN_READ));
    turn_run(&turn, TURN_SERVE);
    must_have_run("r");
    assert_false(turn_has(&turn, TURN_SERVE));
    assert_true(turn_has(&turn, TURN_WRITE));
    turn_run(&turn, TURN_WRITE);
    must_have_run("w");
    assert_false(turn_has(&turn, TURN_WRITE));
}

static void a_cancelled_task_does_not_run_and_leaves_the_others(void **state)
{
    struct named tasks[TASKS];
    (void)state;
    for (int gone = 0; gone < TASKS; gone++) {
        for (int i = 0; i < TASKS; i++) {
            tasks[i] = task_of(TURN_SERVE, (char)('a' + i));
            turn_add(&turn, &tasks[i].task);
        }
        turn_cancel(&turn, &tasks[gone].task);
        turn_cancel(&turn, &tasks[gone].task); /* it is not queued any more */
        turn_run(&turn, TURN_WRITE);
        assert_int_equal(strlen(ran), TASKS - 1);
        assert_null(strchr(ran, 'a' + gone));
        ran[0] = '\0';
    }
}

static void a_cancelled_task_may_be_added_again(void **state)
{
    struct named task = task_of(TURN_SERVE, 'a');
    (void)state;
    turn_add(&turn, &task.task);
    turn_cancel(&turn, &task.task);
    turn_add(&turn, &task.task);
    turn_run(&turn, TURN_WRITE);
    must_have_run("a");
}

/* The loop turns once: what an event has added must not wait for the next. */
static void on_event(uv_idle_t *event)
{
    turn_add(&turn, event->data);
    uv_close((uv_handle_t *)event, NULL);
}

static void tasks_run_before_the_loop_waits(void **state)
{
    struct named task = task_of(TURN_WRITE, 'a');
    uv_idle_t event;
    (void)state;
    uv_idle_init(&loop, &event);
    event.data = &task;
    uv_idle_start(&event, on_event);
    uv_run(&loop, UV_RUN_NOWAIT);
    must_have_run("a");
    uv_run(&loop, UV_RUN_NOWAIT);
}

int main(void)
{
#define TURN_TEST(name) cmocka_unit_test_setup_teardown(name, open_turn, close_turn)
    const struct CMUnitTest tests[] = {
        TURN_TEST(a_task_that_is_added_twice_runs_once),
        TURN_TEST(tasks_of_earlier_phases_run_first),
        TURN_TEST(what_a_task_adds_to_an_earlier_phase_runs_before_the_next),
        TURN_TEST(a_task_may_add_itself_while_it_runs),
        TURN_TEST(later_phases_are_left_for_later),
        TURN_TEST(a_cancelled_task_does_not_run_and_leaves_the_others),
        TURN_TEST(a_cancelled_task_may_be_added_again),
        TURN_TEST(tasks_run_before_the_loop_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
