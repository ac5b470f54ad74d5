/* The question for the log's end, asked in its rhythm and beside it: of a database that answers
 * when the test says so. */
#include "follow/wal_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/clock.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"

#include <stdio.h>

enum { COLUMNS = 8 };

struct bench {
    uv_loop_t loop;
    struct config *config;
    struct wal_probe *wal_probe;
    unsigned probed, failed, news;
    struct probe last;
    char fingerprint[40], snapshot[40], values[40], names[40], why[100];
    bool again; /* asks at once from within an answer */
    bool closed;
};

static void on_probed(void *arg, const struct probe *probe)
{
    struct bench *bench = arg;
    bench->probed++;
    bench->last = *probe;
    snprintf(bench->fingerprint, sizeof bench->fingerprint, "%s", probe->fingerprint);
    snprintf(bench->snapshot, sizeof bench->snapshot, "%s", probe->snapshot);
    snprintf(bench->values, sizeof bench->values, "%s", probe->values);
    snprintf(bench->names, sizeof bench->names, "%s", probe->names);
    if (bench->again)
        wal_probe_now(bench->wal_probe);
    bench->again = false;
}

static void on_failed(void *arg, const char *why, bool is_news)
{
    struct bench *bench = arg;
    bench->failed++;
    bench->news += is_news;
    snprintf(bench->why, sizeof bench->why, "%s", why);
}

static void on_closed(void *arg)
{
    ((struct bench *)arg)->closed = true;
}

static void bench_open(struct bench *bench, const char *max_lag)
{
    char text[500];
    const char *error;
    memset(&fake_pool, 0, sizeof fake_pool);
    now_ms = 5000;
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1\ndatabase: postgresql://app@db/shop\nmax_lag: %s\n"
             "keyspaces:\n  - {name: items, key: \"item:{id}\", table: items, value: v}\n",
             max_lag);
    *bench = (struct bench){.config = config_from_text(text)};
    uv_loop_init(&bench->loop);
    assert_int_equal(wal_probe_create(&bench->wal_probe, &bench->loop,
                                      &(struct wal_probe_options){.config = bench->config,
                                                                  .probed = on_probed,
                                                                  .failed = on_failed,
                                                                  .arg = bench},
                                      &error),
                     0);
}

static void bench_close(struct bench *bench)
{
    wal_probe_close(bench->wal_probe, on_closed, bench);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_true(bench->closed);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    config_destroy(bench->config);
}

/* Until a question is on its way. */
static void wait_for_question(struct bench *bench)
{
    for (int i = 0; i < 1000 && !fake_pool.count; i++)
        uv_run(&bench->loop, UV_RUN_ONCE);
    assert_int_equal(fake_pool.count, 1);
}

static void answer(const char *insert, const char *flush)
{
    fake_rows(FAKE_TEXT, (const char *[]){"abc@100", "1", insert, flush, "7:7:", "v", "d", "n"}, 1,
              COLUMNS);
}

/* ---- tests ---- */

static void one_question_is_on_its_way_at_a_time(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    assert_int_equal(fake_pool.options.connections, 1);
    wait_for_question(&bench);
    for (int i = 0; i < 3; i++) /* the rhythm goes on */
        uv_run(&bench.loop, UV_RUN_ONCE);
    assert_int_equal(fake_pool.count, 1);
    answer("300", "200");
    assert_int_equal(bench.probed, 1);
    wait_for_question(&bench);
    bench_close(&bench);
}

/* What is known by it is known as of when it was asked, however long the answer took. */
static void an_answer_is_as_old_as_its_question(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    now_ms = 7000;
    wal_probe_now(bench.wal_probe);
    now_ms = 9000;
    answer("300", "200");
    assert_int_equal(bench.last.time, 7000);
    assert_int_equal(bench.last.end, 300);
    assert_string_equal(bench.fingerprint, "abc@100");
    assert_string_equal(bench.snapshot, "7:7:");
    assert_string_equal(bench.values, "v");
    assert_string_equal(bench.names, "n");
    bench_close(&bench);
}

/* The one on its way was asked before whatever is to be known: it is no answer to this. */
static void who_asks_meanwhile_has_a_question_of_his_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    wal_probe_now(bench.wal_probe);
    wal_probe_now(bench.wal_probe);
    wal_probe_now(bench.wal_probe);
    assert_int_equal(fake_pool.count, 1);
    now_ms = 6000;
    answer("300", "200");
    assert_int_equal(fake_pool.count, 1);
    answer("300", "200");
    assert_int_equal(bench.last.time, 6000);
    assert_int_equal(fake_pool.count, 0);
    bench_close(&bench);
}

static void it_may_be_asked_from_within_an_answer(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    wal_probe_now(bench.wal_probe);
    bench.again = true;
    answer("300", "200");
    assert_int_equal(fake_pool.count, 1);
    answer("300", "200");
    assert_int_equal(bench.probed, 2);
    bench_close(&bench);
}

static void a_failure_is_news_once_until_an_answer(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    for (int i = 0; i < 3; i++) {
        wal_probe_now(bench.wal_probe);
        fake_refusal("57014");
    }
    assert_int_equal(bench.failed, 3);
    assert_int_equal(bench.news, 1);
    assert_string_equal(bench.why, "refused");
    wal_probe_now(bench.wal_probe);
    answer("300", "200");
    wal_probe_now(bench.wal_probe);
    fake_outcome(PG_DOWN);
    assert_int_equal(bench.news, 2);
    assert_string_equal(bench.why, "no answer");
    bench_close(&bench);
}

/* Nothing came back: that says nothing of the log. */
static void an_answer_without_a_row_is_a_failure(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    wal_probe_now(bench.wal_probe);
    fake_rows(FAKE_TEXT, NULL, 0, COLUMNS);
    assert_int_equal(bench.failed, 1);
    assert_int_equal(bench.probed, 0);
    bench_close(&bench);
}

static void nobody_is_told_at_the_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "1s");
    wal_probe_now(bench.wal_probe);
    wal_probe_now(bench.wal_probe);
    bench_close(&bench); /* the question ends without an answer */
    assert_int_equal(bench.failed + bench.probed, 0);
    assert_int_equal(fake_pool.count, 0);
}

static void without_a_log_there_is_nothing_to_close(void **state)
{
    struct bench bench = {.closed = false};
    (void)state;
    wal_probe_close(NULL, on_closed, &bench);
    assert_true(bench.closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_question_is_on_its_way_at_a_time),
        cmocka_unit_test(an_answer_is_as_old_as_its_question),
        cmocka_unit_test(who_asks_meanwhile_has_a_question_of_his_own),
        cmocka_unit_test(it_may_be_asked_from_within_an_answer),
        cmocka_unit_test(a_failure_is_news_once_until_an_answer),
        cmocka_unit_test(an_answer_without_a_row_is_a_failure),
        cmocka_unit_test(nobody_is_told_at_the_end),
        cmocka_unit_test(without_a_log_there_is_nothing_to_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
