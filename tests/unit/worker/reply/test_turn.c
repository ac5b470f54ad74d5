/* What is left for the end of a loop turn: in which order it is done, and how often. */
#include "worker/reply/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/clock.h"

enum { TASKS = 4, MICROSECOND = 1000 };

/* A task with a name, which takes time and does work; when it has run, it may add another, or line
 * up again so many times. */
struct named {
    struct turn_task task;
    char name;
    struct named *adds;
    int visits;
    uint64_t takes; /* ns */
    size_t arguments;
};

static uv_loop_t loop;
static struct turn turn;
static char ran[100];
static int yields;

/* In the C library's place. */
int sched_yield(void)
{
    yields++;
    return 0;
}

static void run(struct turn_task *task)
{
    struct named *named = (struct named *)task;
    struct named *adds = named->adds;
    strncat(ran, &named->name, 1);
    now_ns += named->takes;
    turn_worked(&turn, named->arguments);
    named->adds = NULL; /* once */
    if (adds)
        turn_add(&turn, &adds->task);
    if (named->visits-- > 0)
        turn_line_up(&turn, task);
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
    yields = 0;
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

static void a_task_that_runs_before_its_time_runs_once_and_the_others_wait(void **state)
{
    struct named first = task_of(TURN_WRITE, '1'), second = task_of(TURN_WRITE, '2');
    (void)state;
    turn_run_now(&turn, &first.task); /* not queued */
    turn_add(&turn, &first.task);
    turn_add(&turn, &second.task);
    turn_run_now(&turn, &first.task);
    must_have_run("1");
    turn_run(&turn, TURN_WRITE);
    must_have_run("2");
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

/* ---- the line ---- */

static void line_up(struct named *tasks, const char *names, const int *visits)
{
    for (int i = 0; names[i]; i++) {
        tasks[i] = task_of(TURN_READ, names[i]);
        tasks[i].visits = visits ? visits[i] : 0;
        turn_line_up(&turn, &tasks[i].task);
    }
}

static void turn_once(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void who_asked_little_is_served_and_answered_before_the_line(void **state)
{
    struct named much[2], little = task_of(TURN_READ, 'l'), reply = task_of(TURN_WRITE, 'w');
    (void)state;
    line_up(much, "AB", NULL);
    little.adds = &reply;
    turn_add(&turn, &little.task);
    turn_once();
    must_have_run("lwAB");
}

static void those_in_line_are_visited_in_turn(void **state)
{
    struct named tasks[3];
    (void)state;
    turn.work = SIZE_MAX;
    line_up(tasks, "ABC", (const int[]){2, 0, 1});
    turn_once();
    must_have_run("ABCACA");
    assert_null(turn.front);
    assert_false(tasks[0].task.queued);
}

/* What a visit leads to is done before the next one, but for what is written. */
static void what_a_visit_gathers_is_served_and_then_all_replies_leave(void **state)
{
    struct named tasks[2], serve = task_of(TURN_SERVE, 's'), write = task_of(TURN_WRITE, 'w');
    (void)state;
    turn.work = SIZE_MAX;
    line_up(tasks, "AB", NULL);
    tasks[0].adds = &serve;
    serve.adds = &write;
    turn_once();
    must_have_run("AsBw");
}

static void the_line_has_a_bounded_part_of_each_turn(void **state)
{
    struct named tasks[2], little = task_of(TURN_READ, 'l');
    (void)state;
    turn.work = 1;
    line_up(tasks, "AB", (const int[]){1, 0});
    turn_once();
    must_have_run("A");
    turn_add(&turn, &little.task); /* has come meanwhile */
    turn_once();
    must_have_run("lB");
    turn_once();
    must_have_run("A");
}

/* Whatever they do: a turn's visits are over when its time is. */
static void a_turn_of_the_line_is_bounded_in_time(void **state)
{
    struct named tasks[3];
    (void)state;
    line_up(tasks, "ABC", (const int[]){3, 3, 3});
    for (int i = 0; i < 3; i++)
        tasks[i].takes = 50 * MICROSECOND;
    turn_once();
    must_have_run("ABC");
    turn_once();
    must_have_run("ABC");
}

static void a_visit_that_takes_long_is_its_turns_last(void **state)
{
    struct named tasks[3], little = task_of(TURN_READ, 'l');
    (void)state;
    line_up(tasks, "ABC", (const int[]){0, 1, 0});
    tasks[1].takes = 30000 * MICROSECOND;
    turn_once();
    must_have_run("AB");
    turn_add(&turn, &little.task); /* has come meanwhile */
    turn_once();
    must_have_run("lCB");
}

/* An MGET of so many keys, of which nobody knows how long it takes. */
static void one_large_command_is_its_turns_last(void **state)
{
    struct named tasks[3];
    (void)state;
    line_up(tasks, "ABC", NULL);
    tasks[1].arguments = 100000;
    turn_once();
    must_have_run("AB");
    turn_once();
    must_have_run("C");
}

static void nobody_starves_in_line_however_many_ask_for_little(void **state)
{
    struct named much[1], little = task_of(TURN_READ, 'l');
    (void)state;
    turn.work = 1;
    line_up(much, "A", (const int[]){1});
    for (int i = 0; i < 2; i++) {
        turn_add(&turn, &little.task);
        turn_once();
        must_have_run("lA");
    }
}

static void the_loop_does_not_wait_while_there_is_a_line(void **state)
{
    struct named tasks[1];
    (void)state;
    turn.work = 1;
    line_up(tasks, "A", (const int[]){1});
    turn_once();
    assert_int_equal(uv_backend_timeout(&loop), 0);
    turn_once();
    must_have_run("AA");
    assert_int_not_equal(uv_backend_timeout(&loop), 0);
}

static void the_loop_waits_again_when_the_last_in_line_has_left(void **state)
{
    struct named tasks[2];
    (void)state;
    turn.work = 1; /* so that one is left */
    line_up(tasks, "ab", NULL);
    turn_once();
    turn_cancel(&turn, &tasks[1].task);
    turn_once();
    must_have_run("a");
    assert_int_not_equal(uv_backend_timeout(&loop), 0);
}

static void only_after_much_work_others_get_the_processor(void **state)
{
    struct named little = task_of(TURN_READ, 'l'), much = task_of(TURN_SERVE, 'm'), line[1];
    (void)state;
    little.arguments = 16; /* a pipeline of eight lookups */
    much.arguments = 1000;
    for (int i = 0; i < 10; i++) {
        turn_add(&turn, &little.task);
        turn_once();
    }
    assert_int_equal(yields, 0);
    turn_add(&turn, &much.task);
    turn_once();
    assert_int_equal(yields, 1);
    line_up(line, "A", NULL);
    line[0].arguments = 1000;
    turn_once();
    assert_int_equal(yields, 2);
    turn_once();
    assert_int_equal(yields, 2);
}

static bool nobody_times_more(void *arg, uint64_t nanoseconds)
{
    (void)nanoseconds;
    *(int *)arg = yields;
    return true;
}

/* What others do meanwhile is no part of it. */
static void a_timed_turn_ends_before_others_get_the_processor(void **state)
{
    struct named much = task_of(TURN_SERVE, 'm');
    int before = -1;
    (void)state;
    much.arguments = 1000;
    turn_time_next(&turn, nobody_times_more, &before);
    turn_once();
    turn_add(&turn, &much.task);
    turn_once();
    assert_int_equal(before, 0);
    assert_int_equal(yields, 1);
}

static void all_of_the_line_can_be_asked_for_now(void **state)
{
    struct named tasks[2], write = task_of(TURN_WRITE, 'w');
    (void)state;
    turn.work = 1;
    line_up(tasks, "AB", (const int[]){1, 0});
    turn_add(&turn, &write.task);
    turn_empty_line(&turn);
    must_have_run("ABA");
    turn_run(&turn, TURN_WRITE);
    must_have_run("w");
}

static void who_leaves_the_line_does_not_break_it(void **state)
{
    struct named tasks[TASKS], last = task_of(TURN_READ, 'Z');
    (void)state;
    for (int gone = 0; gone < TASKS; gone++) {
        line_up(tasks, "ABCD", NULL);
        turn_line_up(&turn, &tasks[gone].task); /* is there already */
        turn_cancel(&turn, &tasks[gone].task);
        turn_line_up(&turn, &last.task);
        turn_empty_line(&turn);
        assert_int_equal(strlen(ran), TASKS);
        assert_null(strchr(ran, 'A' + gone));
        assert_int_equal(ran[TASKS - 1], 'Z');
        ran[0] = '\0';
    }
}

/* Wherever it was: alone, in line, or asked for in this turn. */
static void who_goes_to_the_front_is_visited_first(void **state)
{
    struct named tasks[3], first = task_of(TURN_READ, 'F');
    (void)state;
    turn_line_up_first(&turn, &first.task);
    line_up(tasks, "ABC", NULL);
    turn_line_up_first(&turn, &tasks[2].task);
    turn_empty_line(&turn);
    must_have_run("CFAB");
    turn_add(&turn, &first.task);
    line_up(tasks, "A", NULL);
    turn_line_up_first(&turn, &first.task);
    turn_line_up(&turn, &first.task); /* is there already */
    turn_empty_line(&turn);
    must_have_run("FA");
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

/* ---- timed turns ---- */

static uint64_t told;
static unsigned times_told;

static bool take_time(void *arg, uint64_t nanoseconds)
{
    unsigned *wanted = arg;
    told = nanoseconds;
    return ++times_told == *wanted;
}

/* The end of the turn that is under way has no beginning. */
static void a_whole_turn_is_timed(void **state)
{
    unsigned wanted = 1;
    struct named task = task_of(TURN_WRITE, 'w');
    (void)state;
    told = times_told = 0;
    turn_time_next(&turn, take_time, &wanted);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(times_told, 0);
    turn_add(&turn, &task.task);
    uv_run(&loop, UV_RUN_NOWAIT);
    must_have_run("w");
    assert_int_equal(times_told, 1);
    assert_true(told > 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(times_told, 1);
}

static void what_is_served_before_the_end_of_a_timed_turn_counts(void **state)
{
    enum { MS = 1000000 };
    unsigned wanted = 2;
    (void)state;
    told = times_told = 0;
    assert_int_equal(turn_begin_serving(&turn), 0);
    turn_time_next(&turn, take_time, &wanted);
    uv_run(&loop, UV_RUN_NOWAIT);
    turn_end_serving(&turn, turn_begin_serving(&turn) - 3 * MS);
    turn_end_serving(&turn, turn_begin_serving(&turn) - 4 * MS);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(told >= 7 * MS);
    turn_end_serving(&turn, turn_begin_serving(&turn) - 9 * MS);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(told >= 9 * MS);
    assert_int_equal(turn_begin_serving(&turn), 0);
}

static void turns_are_timed_until_one_is_of_use(void **state)
{
    unsigned wanted = 3;
    (void)state;
    times_told = 0;
    turn_time_next(&turn, take_time, &wanted);
    turn_time_next(&turn, take_time, &wanted);
    for (int i = 0; i < 6; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(times_told, 3);
}

int main(void)
{
#define TURN_TEST(name) cmocka_unit_test_setup_teardown(name, open_turn, close_turn)
    const struct CMUnitTest tests[] = {
        TURN_TEST(a_task_that_is_added_twice_runs_once),
        TURN_TEST(tasks_of_earlier_phases_run_first),
        TURN_TEST(what_a_task_adds_to_an_earlier_phase_runs_before_the_next),
        TURN_TEST(a_task_that_runs_before_its_time_runs_once_and_the_others_wait),
        TURN_TEST(a_task_may_add_itself_while_it_runs),
        TURN_TEST(later_phases_are_left_for_later),
        TURN_TEST(a_cancelled_task_does_not_run_and_leaves_the_others),
        TURN_TEST(who_asked_little_is_served_and_answered_before_the_line),
        TURN_TEST(those_in_line_are_visited_in_turn),
        TURN_TEST(what_a_visit_gathers_is_served_and_then_all_replies_leave),
        TURN_TEST(the_line_has_a_bounded_part_of_each_turn),
        TURN_TEST(a_turn_of_the_line_is_bounded_in_time),
        TURN_TEST(a_visit_that_takes_long_is_its_turns_last),
        TURN_TEST(one_large_command_is_its_turns_last),
        TURN_TEST(nobody_starves_in_line_however_many_ask_for_little),
        TURN_TEST(the_loop_does_not_wait_while_there_is_a_line),
        TURN_TEST(the_loop_waits_again_when_the_last_in_line_has_left),
        TURN_TEST(only_after_much_work_others_get_the_processor),
        TURN_TEST(a_timed_turn_ends_before_others_get_the_processor),
        TURN_TEST(all_of_the_line_can_be_asked_for_now),
        TURN_TEST(who_leaves_the_line_does_not_break_it),
        TURN_TEST(who_goes_to_the_front_is_visited_first),
        TURN_TEST(a_cancelled_task_may_be_added_again),
        TURN_TEST(tasks_run_before_the_loop_waits),
        TURN_TEST(a_whole_turn_is_timed),
        TURN_TEST(what_is_served_before_the_end_of_a_timed_turn_counts),
        TURN_TEST(turns_are_timed_until_one_is_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
