#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "postgres/pg_resolve.h"

struct bench {
    uv_loop_t loop;
    struct pg_hosts hosts;
    char error[400];
    unsigned calls;
};

static void on_resolved(void *arg, struct pg_hosts *hosts, const char *error)
{
    struct bench *bench = arg;
    bench->calls++;
    if (hosts)
        bench->hosts = *hosts;
    snprintf(bench->error, sizeof bench->error, "%s", error ? error : "");
}

static struct bench *begin(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uv_loop_init(&bench->loop);
    for (const char *const *name =
             (const char *const[]){"PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", NULL};
         *name; name++)
        unsetenv(*name);
    return bench;
}

static void end(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    pg_hosts_finish(&bench->hosts);
    free(bench);
}

static struct pg_resolve *start(struct bench *bench, const char *conninfo, unsigned first)
{
    return pg_resolve_start(&bench->loop, conninfo, first, on_resolved, bench);
}

static void expect(const char *conninfo, unsigned first, const char *host, const char *hostaddr,
                   const char *port)
{
    struct bench *bench = begin();
    assert_non_null(start(bench, conninfo, first));
    assert_int_equal(bench->calls, 0);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->calls, 1);
    assert_string_equal(bench->error, "");
    assert_string_equal(bench->hosts.host, host);
    assert_string_equal(bench->hosts.hostaddr, hostaddr);
    if (port)
        assert_string_equal(bench->hosts.port, port);
    else
        assert_null(bench->hosts.port);
    end(bench);
}

/* As long as another host is left. */
static void a_name_that_nobody_has_is_left_out(void **state)
{
    (void)state;
    expect("host=nobody.invalid,/run/pg port=1,2", 0, "/run/pg", "", "2");
}

static void names_are_found_and_the_rest_is_left(void **state)
{
    struct bench *bench = begin();
    (void)state;
    assert_non_null(start(bench, "host=/run/pg,localhost,10.0.0.1 port=1,2,3", 0));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(strncmp(bench->hosts.host, "/run/pg,localhost,", 18), 0);
    assert_non_null(strstr(bench->hosts.host, ",10.0.0.1"));
    assert_int_equal(bench->hosts.hostaddr[0], ',');
    assert_true(strstr(bench->hosts.hostaddr, "127.0.0.1") || strstr(bench->hosts.hostaddr, "::1"));
    assert_int_equal(bench->hosts.hostaddr[strlen(bench->hosts.hostaddr) - 1], ',');
    assert_int_equal(strncmp(bench->hosts.port, "1,2,", 4), 0);
    end(bench);
}

static void one_port_is_all_hosts(void **state)
{
    struct bench *bench = begin();
    (void)state;
    assert_non_null(start(bench, "postgresql://u@localhost:5/x", 0));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_null(bench->hosts.port);
    assert_int_equal(strncmp(bench->hosts.host, "localhost", 9), 0);
    end(bench);
}

static void another_may_be_the_first(void **state)
{
    struct bench *bench = begin();
    (void)state;
    assert_non_null(start(bench, "host=/run/pg,localhost port=1,2", 1));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(strncmp(bench->hosts.host, "localhost,", 10), 0);
    const char *last = strrchr(bench->hosts.host, ',');
    assert_string_equal(last, ",/run/pg");
    end(bench);
}

static void the_environment_is_asked_for_what_is_not_said(void **state)
{
    struct bench *bench = begin();
    (void)state;
    setenv("PGHOST", "localhost", 1);
    assert_non_null(start(bench, "dbname=x", 0));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(strncmp(bench->hosts.host, "localhost", 9), 0);
    unsetenv("PGHOST");
    end(bench);
}

static void without_a_name_nothing_is_looked_up(void **state)
{
    struct bench *bench = begin();
    static const char *const conninfos[] = {"",
                                            "dbname=x",
                                            "host=/run/pg",
                                            "host=@pg",
                                            "host=127.0.0.1",
                                            "host=::1,10.0.0.1",
                                            "host=localhost hostaddr=127.0.0.1",
                                            "service=x host=localhost",
                                            "host=localhost,localhost port=1,2,3",
                                            "no conninfo"};
    (void)state;
    for (size_t i = 0; i < sizeof conninfos / sizeof *conninfos; i++)
        assert_null(start(bench, conninfos[i], 0));
    end(bench);
}

static void a_name_that_nobody_has_is_an_error(void **state)
{
    struct bench *bench = begin();
    (void)state;
    assert_non_null(start(bench, "host=nobody.invalid", 0));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->calls, 1);
    assert_non_null(strstr(bench->error, "could not translate host name \"nobody.invalid\""));
    end(bench);
}

static void nobody_is_told_of_one_that_was_cancelled(void **state)
{
    struct bench *bench = begin();
    (void)state;
    pg_resolve_cancel(start(bench, "host=localhost,nobody.invalid", 0));
    pg_resolve_cancel(NULL);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->calls, 0);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_nobody_has_is_left_out),
        cmocka_unit_test(names_are_found_and_the_rest_is_left),
        cmocka_unit_test(one_port_is_all_hosts),
        cmocka_unit_test(another_may_be_the_first),
        cmocka_unit_test(the_environment_is_asked_for_what_is_not_said),
        cmocka_unit_test(without_a_name_nothing_is_looked_up),
        cmocka_unit_test(a_name_that_nobody_has_is_an_error),
        cmocka_unit_test(nobody_is_told_of_one_that_was_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
