/* The way to the rows, with a database and a cache that answer when the test says so. */
#include "keeper/parts/loading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"
#include "fakes/redis.h"

#include <stdio.h>

enum { ITEMS, ORDERS, KEYSPACES };

struct bench {
    uv_loop_t loop;
    struct mailbox mailbox;
    struct view *view;
    struct load_counters counters[KEYSPACES];
    struct loading loading;
    unsigned answers, fillings;
    enum load_outcome outcome;
    bool closed;
};

static void on_answer(void *arg, struct message *message)
{
    struct bench *bench = arg;
    struct load_request *request = (struct load_request *)(void *)message;
    bench->answers++;
    bench->outcome = request->outcome;
    blob_release(request->value);
    free(request);
}

static void on_filling(void *arg, struct key key)
{
    struct bench *bench = arg;
    assert_int_equal(key.keyspace, ITEMS);
    bench->fillings++;
}

static struct view *view_of(const char *database, const char *sync, const char *timeout)
{
    char text[1000];
    enum keyspace_state states[KEYSPACES] = {KEYSPACE_LOADING, KEYSPACE_LOADING};
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1\ndatabase: %s\nsync: %s\nload_timeout: %s\n"
             "load_connections: 3\nkeyspaces:\n"
             "  - {name: items, key: \"item:{id}\", table: items, value: v, ttl: 10s}\n"
             "  - {name: orders, key: \"order:{id}\", table: orders, value: v}\n",
             database, sync, timeout);
    struct shared_config *shared = shared_config_create(config_from_text(text));
    struct view *view = view_create(shared, NULL, states, 1);
    shared_config_release(shared);
    return view;
}

static void bench_open(struct bench *bench, const char *database, const char *sync)
{
    memset(&fake_pool, 0, sizeof fake_pool);
    fake_pool.params = 1;
    fake_redis_reset();
    *bench = (struct bench){.view = view_of(database, sync, "2s")};
    uv_loop_init(&bench->loop);
    mailbox_init(&bench->mailbox, &bench->loop, on_answer, bench);
    assert_int_equal(loading_open(&bench->loading,
                                  &(struct loading_options){.loop = &bench->loop,
                                                            .config = bench->view->config,
                                                            .counters = bench->counters,
                                                            .filling = on_filling,
                                                            .arg = bench},
                                  bench->view),
                     0);
}

static void on_closed(void *arg)
{
    ((struct bench *)arg)->closed = true;
}

static void bench_close(struct bench *bench)
{
    loading_close(&bench->loading, on_closed, bench);
    assert_true(bench->closed);
    loading_finish(&bench->loading);
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    mailbox_close(&bench->mailbox);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    view_release(bench->view);
}

static struct key item(const char *text)
{
    return key_make(ITEMS, span_of(text));
}

static void ask(struct bench *bench, const char *key)
{
    struct load_request *request = xcalloc(1, sizeof *request + strlen(key));
    request->message = (struct message){.kind = MESSAGE_LOAD, .sender = &bench->mailbox};
    request->key = key_copy(item(key), request->text);
    loads_submit(bench->loading.loads, request);
}

static void must_answer(struct bench *bench, unsigned answers, enum load_outcome outcome)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(bench->answers, answers);
    assert_int_equal(bench->outcome, outcome);
}

static struct report report_of(struct bench *bench, struct keyspace_report *keyspaces)
{
    struct report report = {.count = KEYSPACES, .keyspaces = keyspaces};
    memset(keyspaces, 0, KEYSPACES * sizeof *keyspaces);
    loading_report(&bench->loading, &report);
    return report;
}

/* ---- tests ---- */

static void a_row_is_read_over_the_pool_and_filled(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "postgresql://app@db/shop", "none");
    assert_int_equal(fake_pool.options.connections, 3);
    assert_int_equal(fake_pool.options.timeout_ms, 2000);
    assert_int_equal(fake_pool.options.statement_count, bench.loading.statements.count);
    ask(&bench, "item:1");
    fake_row(FAKE_TEXT, (const char *[]){"v", "1"}, 2);
    must_answer(&bench, 1, LOAD_ROW);
    assert_int_equal(bench.fillings, 1);
    fake_redis_ends(REDIS_DONE);
    bench_close(&bench);
}

/* Told of while its query is on its way: the row may be the one before. */
static void a_change_makes_what_is_on_its_way_old(void **state)
{
    static const enum cause causes[] = {CAUSE_UPDATED, CAUSE_TRUNCATED};
    (void)state;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        struct bench bench;
        bench_open(&bench, "postgresql://app@db/shop", "none");
        ask(&bench, "item:1");
        struct key_change change =
            i ? change_of_keyspace(causes[i], ITEMS) : change_of_key(causes[i], item("item:1"));
        loading_age(&bench.loading, &change);
        fake_row(FAKE_TEXT, (const char *[]){"v", "1"}, 2);
        must_answer(&bench, 1, LOAD_ROW);
        assert_int_equal(bench.fillings, 0);
        bench_close(&bench);
    }
}

static void what_queries_may_not_see_yet_is_not_filled_either(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "postgresql://app@db/shop", "none");
    struct key_change change = change_of_key(CAUSE_UPDATED, item("item:1"));
    change.xid = 700;
    loading_unsee(&bench.loading, &change);
    ask(&bench, "item:1");
    fake_row(FAKE_TEXT, (const char *[]){"v", "1"}, 2);
    must_answer(&bench, 1, LOAD_ROW);
    assert_int_equal(bench.fillings, 0);
    assert_false(visibility_has(bench.loading.visibility, item("item:2")));
    change = change_of_keyspace(CAUSE_TRUNCATED, ITEMS);
    change.xid = 701;
    loading_unsee(&bench.loading, &change);
    assert_true(visibility_has(bench.loading.visibility, item("item:2")));
    bench_close(&bench);
}

/* Each setting of it is a statement to the server. */
static void the_pool_is_told_of_a_timeout_that_changes_and_of_no_other(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "postgresql://app@db/shop", "none");
    loading_use_view(&bench.loading, bench.view);
    assert_int_equal(fake_pool.timeout_ms, 0);
    struct view *fresh = view_of("postgresql://app@db/shop", "none", "3s");
    loading_use_view(&bench.loading, fresh);
    assert_int_equal(fake_pool.timeout_ms, 3000);
    assert_ptr_equal(bench.loading.rows.config, fresh->config);
    bench_close(&bench);
    view_release(fresh);
}

static void a_view_before_the_start_is_no_harm(void **state)
{
    struct loading loading = {0};
    struct view *view = view_of("postgresql://app@db/shop", "none", "2s");
    (void)state;
    loading_use_view(&loading, view);
    loading_finish(&loading);
    view_release(view);
}

static void the_report_says_how_many_connections_are_up_and_why_not_more(void **state)
{
    struct bench bench;
    struct keyspace_report keyspaces[KEYSPACES];
    (void)state;
    bench_open(&bench, "postgresql://app@db/shop", "none");
    fake_pool.live = 3;
    struct report report = report_of(&bench, keyspaces);
    assert_int_equal(report.database_connections, 3);
    assert_null(report.database_error);
    fake_pool.live = 2;
    pg_error_say(&fake_pool.error, "no route");
    ask(&bench, "item:1");
    report = report_of(&bench, keyspaces);
    assert_int_equal(report.database_connections, 2);
    assert_string_equal(report.database_error, "no route");
    assert_int_equal(report.loads, 1);
    assert_string_equal(keyspaces[ITEMS].spelling->own, "");
    fake_outcome(PG_DOWN);
    must_answer(&bench, 1, LOAD_DOWN);
    bench_close(&bench);
}

static void a_query_without_an_answer_ends_with_the_pool(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "postgresql://app@db/shop", "none");
    ask(&bench, "item:1");
    loading_close(&bench.loading, on_closed, &bench);
    must_answer(&bench, 1, LOAD_DOWN);
    bench_close(&bench);
}

/* A load on a standby would not see what the primary's log tells. */
static void of_several_hosts_the_primary_is_taken_where_a_log_is_followed(void **state)
{
    static const struct {
        const char *database, *sync, *wanted;
    } cases[] = {{"postgresql://app@one,two/shop", "replication", "primary"},
                 {"postgresql://app@one,two/shop", "poll", NULL},
                 {"postgresql://app@one/shop", "replication", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench bench;
        unsetenv("PGTARGETSESSIONATTRS");
        bench_open(&bench, cases[i].database, cases[i].sync);
        const char *found = getenv("PGTARGETSESSIONATTRS");
        assert_int_equal(found != NULL, cases[i].wanted != NULL);
        if (found)
            assert_string_equal(found, cases[i].wanted);
        bench_close(&bench);
    }
    unsetenv("PGTARGETSESSIONATTRS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_read_over_the_pool_and_filled),
        cmocka_unit_test(a_change_makes_what_is_on_its_way_old),
        cmocka_unit_test(what_queries_may_not_see_yet_is_not_filled_either),
        cmocka_unit_test(the_pool_is_told_of_a_timeout_that_changes_and_of_no_other),
        cmocka_unit_test(a_view_before_the_start_is_no_harm),
        cmocka_unit_test(the_report_says_how_many_connections_are_up_and_why_not_more),
        cmocka_unit_test(a_query_without_an_answer_ends_with_the_pool),
        cmocka_unit_test(of_several_hosts_the_primary_is_taken_where_a_log_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
