#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/topology/redis_standing.h"

static const char primary[] =
    "# Replication\r\nrole:master\r\nconnected_slaves:3\r\n"
    "slave0:ip=127.0.0.1,port=6380,state=online,offset=700,lag=0\r\n"
    "slave1:ip=::1,port=6381,state=wait_bgsave,offset=0,lag=0\r\n"
    "slave2:ip=fd00::7,port=6382,state=online,offset=690,lag=1,type=replica\r\n"
    "master_failover_state:no-failover\r\n"
    "master_replid:0123456789abcdef0123456789abcdef01234567\r\n"
    "master_replid2:0000000000000000000000000000000000000000\r\n"
    "master_repl_offset:700\r\nsecond_repl_offset:-1\r\n";

static const char replica[] =
    "# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:6379\r\n"
    "master_link_status:up\r\nmaster_last_io_seconds_ago:0\r\nmaster_sync_in_progress:0\r\n"
    "slave_read_repl_offset:720\r\nslave_repl_offset:710\r\n"
    "master_replid:0123456789abcdef0123456789abcdef01234567\r\nmaster_repl_offset:705\r\n";

static void a_primary_says_how_far_it_is(void **state)
{
    (void)state;
    struct redis_standing standing;
    redis_standing_read(&standing, primary);
    assert_int_equal(standing.role, REDIS_PRIMARY);
    assert_int_equal(standing.offset, 700);
    assert_string_equal(standing.history, "0123456789abcdef0123456789abcdef01234567");
}

static void only_those_are_named_that_are_not_being_copied_to(void **state)
{
    (void)state;
    const char *at = primary;
    struct redis_place place;
    assert_true(redis_standing_next(&at, &place));
    assert_string_equal(place.host, "127.0.0.1");
    assert_int_equal(place.port, 6380);
    assert_true(redis_standing_next(&at, &place));
    assert_string_equal(place.host, "fd00::7");
    assert_int_equal(place.port, 6382);
    assert_false(redis_standing_next(&at, &place));
    assert_false(redis_standing_next(&at, &place));
}

static void what_a_replica_has_done_counts_and_not_what_it_has_read(void **state)
{
    (void)state;
    struct redis_standing standing;
    redis_standing_read(&standing, replica);
    assert_int_equal(standing.role, REDIS_REPLICA);
    assert_true(standing.is_linked);
    assert_int_equal(standing.offset, 710);
}

static void those_count_that_are_online_and_have_done_as_much(void **state)
{
    (void)state;
    static const char unclear[] = "slave0:ip=1.2.3.4,port=1,state=online\r\n"
                                  "slave1:ip=1.2.3.4,port=2,state=online,offset=\r\n"
                                  "slave2:ip=1.2.3.4,port=3,state=online,offset=-1\r\n"
                                  "slave3:state=send_bulk,offset=9\r\n";
    assert_int_equal(redis_standing_acknowledged(primary, 0), 2);
    assert_int_equal(redis_standing_acknowledged(primary, 690), 2);
    assert_int_equal(redis_standing_acknowledged(primary, 691), 1);
    assert_int_equal(redis_standing_acknowledged(primary, 700), 1);
    assert_int_equal(redis_standing_acknowledged(primary, 701), 0);
    assert_int_equal(redis_standing_acknowledged(unclear, 0), 0);
    assert_int_equal(redis_standing_acknowledged("", 0), 0);
}

static bool is_linked(const char *text)
{
    struct redis_standing standing;
    redis_standing_read(&standing, text);
    return standing.is_linked;
}

static void one_that_is_cut_off_or_copied_to_is_not_linked(void **state)
{
    (void)state;
    assert_false(
        is_linked("role:slave\r\nmaster_link_status:down\r\nmaster_sync_in_progress:0\r\n"));
    assert_false(is_linked("role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:1\r\n"));
    assert_false(is_linked("role:slave\r\nmaster_link_status:upset\r\n"));
    assert_false(is_linked("role:slave\r\n"));
}

static void what_is_no_such_text_says_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "slave",
                                        "slave0",
                                        "slave0:",
                                        "slave0:\r\n",
                                        "slave0:ip=1.2.3.4\r\nport=1,state=online",
                                        "slave:ip=1.2.3.4,port=1,state=online",
                                        "slave0:ip=,port=1,state=online",
                                        "slave0:ip=1.2.3.4,port=99999,state=online",
                                        "slave0:ip=a b,port=1,state=online",
                                        "slave0:ip=1.2.3.4,port=1,state=online_not",
                                        "master_replid:",
                                        "master_repl_offset:-1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *at = texts[i];
        struct redis_standing standing;
        struct redis_place place;
        assert_false(redis_standing_next(&at, &place));
        redis_standing_read(&standing, texts[i]);
        assert_int_equal(standing.role, REDIS_ROLE_UNKNOWN);
        assert_string_equal(standing.history, "");
        assert_int_equal(standing.offset, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_primary_says_how_far_it_is),
        cmocka_unit_test(only_those_are_named_that_are_not_being_copied_to),
        cmocka_unit_test(those_count_that_are_online_and_have_done_as_much),
        cmocka_unit_test(what_a_replica_has_done_counts_and_not_what_it_has_read),
        cmocka_unit_test(one_that_is_cut_off_or_copied_to_is_not_linked),
        cmocka_unit_test(what_is_no_such_text_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
