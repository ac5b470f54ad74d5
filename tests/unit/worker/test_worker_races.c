/* A worker while the keeper's thread changes the filter under its hands. Also to be run under
 * ThreadSanitizer. The environment's SEED chooses the moments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker_bench.h"

#include <poll.h>

enum { ROUNDS = 1500, BEFORE = 60, SPIN_MAX_NS = 80000 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void spin(unsigned ns)
{
    for (uint64_t until = now_ns() + ns; now_ns() < until;) {
    }
}

/* Many lookups, and behind them a write of a key and a lookup of it, all in one read. */
static void make_pipeline(char *commands, char *to_cache, int round)
{
    for (int i = 0; i < BEFORE; i++)
        commands += sprintf(commands, GET_ABSENT);
    sprintf(to_cache,
            "*3\r\n$3\r\nSET\r\n$9\r\nitem:%04d\r\n$1\r\nv\r\n"
            "*2\r\n$3\r\nGET\r\n$9\r\nitem:%04d\r\n",
            round, round);
    strcpy(commands, to_cache);
}

/* The write may be a hint or not, for the filter may have had the key by then. */
static void return_hints(struct bench *bench, int client)
{
    struct pollfd answered = {.fd = client, .events = POLLIN};
    while (poll(&answered, 1, 0) == 0) {
        uv_run(&bench->keeper.loop, UV_RUN_NOWAIT);
        while (bench->keeper.inbox_count)
            mailbox_return(next_message(&bench->keeper, MESSAGE_WRITE));
    }
}

/* Whenever the log's entry for a key comes, whoever has written the key finds it admitted: by the
 * hint or by the filter. */
static void a_written_key_is_admitted_whenever_the_log_tells_of_it(void **state)
{
    struct bench bench;
    char commands[BEFORE * sizeof GET_ABSENT + 200], to_cache[200], key[24];
    const char *chosen = getenv("SEED");
    unsigned seed = chosen ? (unsigned)strtoul(chosen, NULL, 10) : (unsigned)now_ns();
    (void)state;
    print_message("SEED=%u\n", seed);
    bench_init(&bench);
    int client = connect_client(&bench);
    struct filter *filter = bench.generation->filters[ITEMS];
    for (int round = 1000; round < 1000 + ROUNDS; round++) {
        make_pipeline(commands, to_cache, round);
        snprintf(key, sizeof key, "item:%04d", round);
        uint64_t hash = filter_hash(&bench.generation->seed, key, strlen(key));
        say(client, commands);
        spin((unsigned)rand_r(&seed) % SPIN_MAX_NS);
        assert_int_equal(filter_insert(filter, hash), 0);
        must_hear(bench.cache, to_cache);
        for (int i = 0; i < BEFORE; i++)
            must_hear(client, NIL);
        cache_says(bench.cache, "+OK\r\n$1\r\nv\r\n");
        return_hints(&bench, client);
        must_hear(client, "+OK\r\n$1\r\nv\r\n");
        assert_int_equal(filter_remove(filter, hash), 0);
    }
    close(client);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_key_is_admitted_whenever_the_log_tells_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
