/* One side of a handover, whose other side the test plays. */
#include "keeper/succession.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"

#include <sys/socket.h>
#include <unistd.h>

struct bench {
    uv_loop_t loop;
    struct outlet outlet;
    struct changes changes;
    struct entries entries;
    struct succession succession;
    int other;
    bool guards, knows;
    uint64_t asked; /* what knows() was asked for last */
    unsigned shared, let_in, alone;
};

static bool is_ready(void *arg)
{
    return ((struct bench *)arg)->guards;
}

static void share(void *arg)
{
    ((struct bench *)arg)->shared++;
}

static bool knows(void *arg, uint64_t time)
{
    struct bench *bench = arg;
    bench->asked = time;
    return bench->knows;
}

static void let_in(void *arg)
{
    ((struct bench *)arg)->let_in++;
}

static void stand_alone(void *arg)
{
    ((struct bench *)arg)->alone++;
}

static void run(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static void bench_init(struct bench *bench)
{
    int pair[2], none;
    memset(bench, 0, sizeof *bench);
    uv_loop_init(&bench->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    bench->other = pair[0];
    entries_init(&bench->entries, &bench->outlet, &bench->changes);
    succession_open(&bench->succession, &(struct succession_options){.loop = &bench->loop,
                                                                     .file = "/dev/null",
                                                                     .predecessor = pair[1],
                                                                     .sockets = &none,
                                                                     .entries = &bench->entries,
                                                                     .is_ready = is_ready,
                                                                     .share = share,
                                                                     .knows = knows,
                                                                     .let_in = let_in,
                                                                     .stand_alone = stand_alone,
                                                                     .arg = bench});
}

static void bench_finish(struct bench *bench)
{
    succession_close(&bench->succession);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    entries_finish(&bench->entries);
}

static void say(struct bench *bench, char kind)
{
    const char frame[] = {kind, 0, 0, 0, 0};
    assert_int_equal(write(bench->other, frame, sizeof frame), sizeof frame);
    run(bench);
}

static void nobody_is_let_in_before_what_was_confirmed_is_known(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    succession_go_on(&bench.succession);
    uint64_t before = clock_ms();
    say(&bench, 'y');
    assert_int_equal(bench.shared, 1);
    assert_true(bench.asked >= before);
    assert_int_equal(bench.let_in, 0);
    bench.knows = true;
    succession_go_on(&bench.succession);
    assert_int_equal(bench.let_in, 1);
    assert_int_equal(bench.alone, 0);
    close(bench.other);
    run(&bench);
    assert_int_equal(bench.alone, 1);
    assert_int_equal(bench.let_in, 1);
    bench_finish(&bench);
}

/* Whether it had given way or not, and did so by a word or by its death. */
static void nor_when_who_confirmed_it_is_no_more(void **state)
{
    (void)state;
    for (int gave_way = 0; gave_way < 2; gave_way++) {
        struct bench bench;
        bench_init(&bench);
        bench.guards = true;
        succession_go_on(&bench.succession);
        uint64_t before = clock_ms();
        if (gave_way)
            say(&bench, 'y');
        close(bench.other);
        run(&bench);
        assert_int_equal(bench.alone, 1); /* commits are its own to confirm */
        assert_true(bench.asked >= before);
        assert_int_equal(bench.let_in, 0);
        assert_true(succession_waits(&bench.succession));
        bench.knows = true;
        succession_go_on(&bench.succession);
        assert_int_equal(bench.let_in, 1);
        assert_false(succession_waits(&bench.succession));
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_let_in_before_what_was_confirmed_is_known),
        cmocka_unit_test(nor_when_who_confirmed_it_is_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
