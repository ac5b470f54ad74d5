/* How many clients so many open files are enough for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/file_limits.h"

static const struct config plain = {.workers = 2,
                                    .listens = 1,
                                    .cache_connections = 2,
                                    .load_connections = 4,
                                    .build_connections = 2,
                                    .max_clients = 10000,
                                    .own_connections = 1000};

static void who_has_enough_files_keeps_what_the_file_asks_for(void **state)
{
    (void)state;
    struct file_limits limits = file_limits_of(&plain, file_limits_wanted(&plain));
    assert_int_equal(limits.clients, 10000);
    assert_int_equal(limits.own_connections, 1000);
    limits = file_limits_of(&plain, UINT64_MAX);
    assert_int_equal(limits.clients, 10000);
    assert_int_equal(limits.own_connections, 1000);
}

static void clients_and_their_connections_never_reach_the_reserve(void **state)
{
    uint64_t reserve = file_limits_reserve(&plain);
    (void)state;
    for (uint64_t files = 0; files <= file_limits_wanted(&plain) + 10; files++) {
        struct file_limits limits = file_limits_of(&plain, files);
        uint64_t taken = limits.clients + (uint64_t)limits.own_connections * plain.workers;
        assert_true(files <= reserve ? taken == 0 : reserve + taken <= files);
        assert_int_equal(limits.files, files);
    }
}

static void few_files_go_to_clients_first(void **state)
{
    (void)state;
    struct file_limits limits = file_limits_of(&plain, file_limits_reserve(&plain) + 412);
    assert_int_equal(limits.own_connections, 50);
    assert_int_equal(limits.clients, 300);
}

static void one_file_short_is_low(void **state)
{
    struct config config = plain;
    (void)state;
    config.limits = file_limits_of(&config, file_limits_wanted(&config));
    assert_false(file_limits_are_low(&config));
    config.limits = file_limits_of(&config, file_limits_wanted(&config) - 1);
    assert_true(file_limits_are_low(&config));
}

static void a_control_port_and_workers_need_files_of_their_own(void **state)
{
    struct config config = plain;
    uint64_t before = file_limits_reserve(&config);
    (void)state;
    config.has_control = true;
    assert_true(file_limits_reserve(&config) >= before + 256);
    config.workers++;
    assert_true(file_limits_reserve(&config) >= before + 256 + 2 * config.cache_connections);
}

/* What is left when all clients and connections of their own are there. */
static uint64_t kept_of(const struct config *config, uint64_t files)
{
    struct file_limits limits = file_limits_of(config, files);
    return files - limits.clients - (uint64_t)limits.own_connections * config->workers -
           file_limits_reserve(config);
}

static void while_the_cache_moves_workers_have_two_of_each(void **state)
{
    (void)state;
    assert_int_equal(kept_of(&plain, 5000), 2 * 2 * 3); /* and one for large replies */
}

static void nodes_and_replicas_that_are_yet_to_be_found_have_files(void **state)
{
    struct config config = plain;
    (void)state;
    config.cache.is_cluster = true;
    uint64_t nodes = kept_of(&config, 5000); /* to 16 nodes twice, but for the reserve's one */
    assert_true(nodes >= 2 * (2 * 16 - 1) * 2 * config.cache_connections);
    config.cache_reads = CACHE_READS_REPLICA;
    assert_int_equal(kept_of(&config, 5000), nodes + 2 * 2 * 2 * 32);
    config.cache.is_cluster = false;
    assert_int_equal(kept_of(&config, 5000), 12); /* one server's replicas are nobody's */
    config.cache.primary = (char[]){"mymaster"};
    assert_int_equal(kept_of(&config, 5000), 12 + 2 * 2 * 2 * 8);
}

static void no_nodes_that_may_come_keep_a_guard_from_starting(void **state)
{
    struct config config = plain;
    (void)state;
    config.workers = 64;
    config.cache_connections = 16;
    config.cache.is_cluster = true;
    uint64_t reserve = file_limits_reserve(&config);
    assert_int_equal(file_limits_of(&config, reserve + 400).clients +
                         64 * file_limits_of(&config, reserve + 400).own_connections,
                     200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_enough_files_keeps_what_the_file_asks_for),
        cmocka_unit_test(clients_and_their_connections_never_reach_the_reserve),
        cmocka_unit_test(few_files_go_to_clients_first),
        cmocka_unit_test(one_file_short_is_low),
        cmocka_unit_test(a_control_port_and_workers_need_files_of_their_own),
        cmocka_unit_test(while_the_cache_moves_workers_have_two_of_each),
        cmocka_unit_test(nodes_and_replicas_that_are_yet_to_be_found_have_files),
        cmocka_unit_test(no_nodes_that_may_come_keep_a_guard_from_starting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
