/* When a file is believed, of which the test says what is seen of it. */
#include "keeper/parts/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fakes/config_file.h"

#include <errno.h>

static const char text[] = "cache: redis://127.0.0.1\n"
                           "keyspaces:\n"
                           "  - {name: items, key: \"item:{id}\", source: \"file:/keys\",\n"
                           "     on_miss: pass, settle: 300ms}\n";

/* ---- a file ---- */

static struct {
    struct key_file_state state;
    unsigned keys;
    atomic_uint reads;
    uv_sem_t *gate; /* that reading it waits for, or NULL */
} file;

int key_file_look(const char *path, struct key_file_state *state)
{
    (void)path;
    *state = file.state;
    return 0;
}

bool key_file_is_same(const struct key_file_state *one, const struct key_file_state *other)
{
    return one->inode == other->inode;
}

int key_file_read(struct filter **out, struct filter_seed *seed, const struct key_file_state *state,
                  const struct key_file_options *options, struct key_file_error *error)
{
    struct filter_options room = {.capacity = 1000, .false_positive_rate = 0.0001};
    const char *why;
    (void)state, (void)options, (void)error;
    atomic_fetch_add(&file.reads, 1);
    if (file.gate)
        uv_sem_wait(file.gate);
    int status = filter_seed_random(seed);
    if (!status)
        status = filter_create(out, &room, &why);
    for (uint64_t i = 0; !status && i < file.keys; i++)
        status = filter_insert(*out, filter_hash(seed, (const char *)&i, sizeof i));
    return status;
}

/* It was last changed so long ago, by its own clock. */
static void put_file(unsigned keys, int64_t seconds_ago)
{
    clock_gettime(CLOCK_REALTIME, &file.state.changed);
    file.state.changed.tv_sec -= (time_t)seconds_ago;
    file.state.inode++;
    file.keys = keys;
}

/* ---- who watches it ---- */

struct bench {
    uv_loop_t loop;
    struct shared_config *shared;
    struct sources sources;
    struct key_set *set;
    size_t room;
    unsigned taken, refused;
};

static void take(void *arg, size_t keyspace, struct key_set *set)
{
    struct bench *bench = arg;
    (void)keyspace;
    key_set_release(bench->set);
    bench->set = set;
    bench->taken++;
}

static size_t room_of(void *arg, size_t keyspace)
{
    struct bench *bench = arg;
    (void)keyspace;
    return bench->room;
}

static void refuse(void *arg, size_t keyspace, const char *why)
{
    struct bench *bench = arg;
    (void)keyspace;
    if (!bench->room)
        fail_msg("%s", why);
    assert_non_null(strstr(why, "more memory than it is allowed"));
    bench->refused++;
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.shared = shared_config_create(config_from_text(text))};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    sources_open(
        &bench->sources,
        &(struct sources_options){
            .loop = &bench->loop, .room = room_of, .taken = take, .refused = refuse, .arg = bench});
}

static void bench_finish(struct bench *bench)
{
    sources_end(&bench->sources);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    sources_finish(&bench->sources);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    key_set_release(bench->set);
    shared_config_release(bench->shared);
}

/* A round begins. */
static void begin_look(struct bench *bench)
{
    bench->sources.round = 0;
    bench->sources.next = SIZE_MAX;
    sources_watch(&bench->sources, bench->shared, &bench->set, clock_ms());
    assert_non_null(bench->sources.look);
}

static void look(struct bench *bench)
{
    begin_look(bench);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_null(bench->sources.look);
}

static void what_is_old_at_the_start_is_taken_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    put_file(100, 3600);
    look(&bench);
    assert_int_equal(bench.taken, 1);
    look(&bench);
    assert_int_equal(bench.taken, 1);
    bench_finish(&bench);
}

/* As with a file server whose clock is behind, or after the own one was set. */
static void a_file_that_changes_settles_whatever_its_clock_says(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    put_file(100, 3600);
    look(&bench);
    put_file(70, 3600);
    uint64_t begun = clock_ms();
    look(&bench);
    if (clock_ms() - begun < 300)
        assert_int_equal(bench.taken, 1);
    while (bench.taken < 2)
        look(&bench);
    assert_true(clock_ms() - begun >= 300);
    bench_finish(&bench);
}

/* The file's reader was given the room; what others took meanwhile it does not know. */
static void what_has_no_room_any_more_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.room = 1;
    put_file(100, 3600);
    look(&bench);
    look(&bench);
    assert_int_equal(bench.taken, 0);
    assert_int_equal(bench.refused, 1);
    bench.room = 1 << 20;
    sources_retry(&bench.sources);
    while (!bench.taken) /* it settles */
        look(&bench);
    assert_int_equal(bench.refused, 1);
    bench_finish(&bench);
}

static void what_is_being_read_when_all_are_wanted_anew_is_read_again(void **state)
{
    struct bench bench;
    uv_sem_t gate;
    (void)state;
    bench_init(&bench);
    assert_int_equal(uv_sem_init(&gate, 0), 0);
    put_file(100, 3600);
    look(&bench);
    for (uint64_t seen = clock_ms(); clock_ms() - seen < 300;) /* it settles */
        uv_sleep(10);
    unsigned reads = atomic_load(&file.reads);
    file.gate = &gate;
    sources_renew(&bench.sources);
    begin_look(&bench);
    while (atomic_load(&file.reads) == reads)
        ;
    sources_renew(&bench.sources);
    uv_sem_post(&gate);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    file.gate = NULL;
    assert_int_equal(bench.taken, 2);
    uint64_t deadline = clock_ms() + 5000;
    while (bench.taken < 3 && clock_ms() < deadline)
        look(&bench);
    assert_int_equal(atomic_load(&file.reads), reads + 2);
    uv_sem_destroy(&gate);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_old_at_the_start_is_taken_at_once),
        cmocka_unit_test(a_file_that_changes_settles_whatever_its_clock_says),
        cmocka_unit_test(what_has_no_room_any_more_is_refused),
        cmocka_unit_test(what_is_being_read_when_all_are_wanted_anew_is_read_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
