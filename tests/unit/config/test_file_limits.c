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
    struct file_limits limits = file_limits_of(&plain, file_limits_reserve(&plain) + 400);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_enough_files_keeps_what_the_file_asks_for),
        cmocka_unit_test(clients_and_their_connections_never_reach_the_reserve),
        cmocka_unit_test(few_files_go_to_clients_first), cmocka_unit_test(one_file_short_is_low),
        cmocka_unit_test(a_control_port_and_workers_need_files_of_their_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
