#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "postgres/pg_hosts.h"

static void expect(const char *conninfo, unsigned first, const char *host, const char *hostaddr,
                   const char *port)
{
    struct pg_hosts hosts;
    const char *const wanted[] = {host, hostaddr, port};
    pg_hosts_begin_with(&hosts, conninfo, first);
    const char *const found[] = {hosts.host, hosts.hostaddr, hosts.port};
    for (int i = 0; i < 3; i++)
        if ((wanted[i] == NULL) != (found[i] == NULL) ||
            (wanted[i] && strcmp(wanted[i], found[i]) != 0))
            fail_msg("%s from %u: setting %d is %s, not %s", conninfo, first, i,
                     found[i] ? found[i] : "not there", wanted[i] ? wanted[i] : "left out");
    pg_hosts_finish(&hosts);
    assert_null(hosts.host);
}

static void hosts_are_counted(void **state)
{
    (void)state;
    assert_int_equal(pg_hosts_count(""), 1);
    assert_int_equal(pg_hosts_count("dbname=x port=1,2"), 1);
    assert_int_equal(pg_hosts_count("host=a"), 1);
    assert_int_equal(pg_hosts_count("host=a,b,c port=5"), 3);
    assert_int_equal(pg_hosts_count("postgresql://u@a:1,b:2/x"), 2);
    assert_int_equal(pg_hosts_count("hostaddr=127.0.0.1,127.0.0.2 host=a,b"), 2);
    assert_int_equal(pg_hosts_count("no conninfo"), 1);
}

static void the_first_goes_behind_the_others(void **state)
{
    (void)state;
    expect("host=a,b,c port=1,2,3", 0, NULL, NULL, NULL);
    expect("host=a,b,c port=1,2,3", 1, "b,c,a", NULL, "2,3,1");
    expect("host=a,b,c port=1,2,3", 2, "c,a,b", NULL, "3,1,2");
    expect("host=a,b,c port=1,2,3", 3, NULL, NULL, NULL);
    expect("host=a,b,c port=1,2,3", 4, "b,c,a", NULL, "2,3,1");
    expect("postgresql://u@a,b:2/x", 1, "b,a", NULL, "2,");
    expect("host='/run/pg,' port=1,", 1, ",/run/pg", NULL, ",1");
}

static void what_is_no_list_is_left_alone(void **state)
{
    (void)state;
    expect("", 1, NULL, NULL, NULL);
    expect("host=a port=1", 1, NULL, NULL, NULL);
    expect("host=a,b port=1", 1, "b,a", NULL, NULL);
    expect("host=a hostaddr=1.1.1.1,2.2.2.2 port=1", 1, NULL, "2.2.2.2,1.1.1.1", NULL);
    expect("no conninfo", 1, NULL, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_counted),
        cmocka_unit_test(the_first_goes_behind_the_others),
        cmocka_unit_test(what_is_no_list_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
