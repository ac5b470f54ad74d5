/* Against a server. What may be rejected meanwhile is the keeper's business: see
 * tests/e2e/test_follow_commits.py. */
#include "fakes/receiver.h"

#include "base/log/log.h"
#include "follow/confirmer.h"

static struct confirmer *confirmer;
static struct config config;
static PGconn *writer;

static void begin_named(const char *names)
{
    name_standbys(names);
    confirmer_begin(confirmer);
}

static void cancel_waiting(void)
{
    char error[256];
    PGcancel *cancel = PQgetCancel(writer);
    assert_int_equal(PQcancel(cancel, error, sizeof error), 1);
    PQfreeCancel(cancel);
}

/* From now on no commit returns but for the confirmer. */
static void begin_waited_for(const char *names)
{
    name_standbys(names);
    insert_until_one_waits(writer);
    cancel_waiting(); /* it is committed, with a warning */
    finish_insert(writer);
    confirmer_begin(confirmer);
}

static void run_until_at_work(bool wanted)
{
    for (uint64_t until = now_ms() + PATIENCE_MS; confirmer_is_at_work(confirmer) != wanted;) {
        uv_run(&loop, UV_RUN_ONCE);
        assert_true(now_ms() < until);
    }
}

static void insert(void)
{
    start_insert(writer);
    finish_insert(writer);
}

static int setup(void **state)
{
    open_loop(state);
    run_until_sql("SELECT count(*) FROM pg_stat_replication", "0"); /* of the test before */
    writer = PQconnectdb(conninfo("options='-c statement_timeout=0'"));
    config.database = strdup(conninfo("application_name=guard"));
    confirmer = confirmer_create(&loop, &config);
    return 0;
}

static int teardown(void **state)
{
    name_standbys("");
    confirmer_destroy(confirmer);
    close_loop(state);
    PQfinish(writer);
    free(config.database);
    return 0;
}

static void commits_return_and_what_was_confirmed_is_told(void **state)
{
    (void)state;
    uint64_t before = lsn_of(sql("SELECT pg_current_wal_flush_lsn()"));
    begin_waited_for("ANY 1 (guard)");
    for (int i = 0; i < 50; i++)
        insert();
    assert_true(confirmer_is_at_work(confirmer));
    uint64_t confirmed = confirmer_end(confirmer);
    assert_true(confirmed > before);
    assert_true(confirmed <= lsn_of(sql("SELECT pg_current_wal_flush_lsn()")));
}

static void a_commit_that_waits_already_returns(void **state)
{
    (void)state;
    name_standbys("guard");
    insert_until_one_waits(writer);
    confirmer_begin(confirmer);
    finish_insert(writer);
}

/* The position told is an upper bound of what the server was told. */
static void nothing_is_confirmed_after_its_end(void **state)
{
    (void)state;
    begin_waited_for("guard");
    insert();
    confirmer_end(confirmer);
    run_until_sql("SELECT count(*) FROM pg_stat_replication", "0");
    start_insert(writer);
    for (uint64_t until = now_ms() + PATIENCE_MS; !waits_for_standby(writer); run_for(STEP_MS))
        assert_true(now_ms() < until);
    run_for(1000);
    assert_true(is_busy(writer));
    confirmer_begin(confirmer);
    finish_insert(writer);
}

static void it_is_no_standby_where_nobody_waits_for_it(void **state)
{
    static const char *const others[] = {"", "ANY 2 (a, gua_rd)", "uard"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        begin_named(others[i]);
        for (uint64_t until = now_ms() + 700; now_ms() < until; run_for(STEP_MS)) {
            assert_false(confirmer_is_at_work(confirmer));
            assert_string_equal(sql("SELECT count(*) FROM pg_stat_replication"), "0");
        }
        assert_int_equal(confirmer_end(confirmer), 0);
    }
}

static void it_is_found_in_a_list(void **state)
{
    static const char *const lists[] = {"*", "a, GUARD", "FIRST 1 (\"Guard\", b)"};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        begin_waited_for(lists[i]);
        insert();
        assert_true(confirmer_end(confirmer) > 0);
    }
}

static void a_lost_connection_is_made_again(void **state)
{
    (void)state;
    begin_waited_for("guard");
    run_until_at_work(true);
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    run_until_at_work(false);
    insert();
    restart_server(SIGKILL); /* in order, it would wait for the loop's answers */
    PQreset(writer);
    insert();
    assert_true(confirmer_end(confirmer) > 0);
}

/* Each end may meet it at another point of its connecting. */
static void it_may_be_ended_and_begun_again_at_any_time(void **state)
{
    (void)state;
    begin_waited_for("guard");
    for (unsigned i = 0; i < 60; i++) {
        confirmer_begin(confirmer);
        run_for(i % 30);
        if (i % 3)
            confirmer_end(confirmer);
        if (i % 5 == 0)
            confirmer_end(confirmer);
    }
    confirmer_begin(confirmer);
    insert();
    confirmer_end(confirmer);
    run_until_sql("SELECT count(*) FROM pg_stat_replication", "0");
    assert_int_equal(confirmer_end(confirmer), 0);
}

static void it_may_be_destroyed_while_it_connects(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        begin_named(i % 2 ? "guard" : "");
        run_for(i);
        confirmer_destroy(confirmer);
        confirmer = confirmer_create(&loop, &config);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(commits_return_and_what_was_confirmed_is_told),
        test(a_commit_that_waits_already_returns),
        test(nothing_is_confirmed_after_its_end),
        test(it_is_no_standby_where_nobody_waits_for_it),
        test(it_is_found_in_a_list),
        test(a_lost_connection_is_made_again),
        test(it_may_be_ended_and_begun_again_at_any_time),
        test(it_may_be_destroyed_while_it_connects),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
