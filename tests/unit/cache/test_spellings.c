/* The account of keys that were asked for in another spelling than their row's. */
#include "cache/spellings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "fakes/config_file.h"

static const char text[] = "cache: redis://127.0.0.1\n"
                           "database: postgresql://app@db/shop\n"
                           "sync: none\n"
                           "keyspaces:\n"
                           "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
                           "  - {name: users, key: \"user:{id}\", table: users, value: v}\n";

enum { ITEMS, USERS, KEYSPACES };

static uint64_t now_ms = 5;

uint64_t clock_ms(void)
{
    return now_ms;
}

static struct {
    unsigned count;
    char latest[3000];
} lines;

void log_line(enum log_level level, const char *format, ...)
{
    va_list list;
    assert_int_equal(level, LOG_LEVEL_WARNING);
    lines.count++;
    va_start(list, format);
    vsnprintf(lines.latest, sizeof lines.latest, format, list);
    va_end(list);
}

struct bench {
    struct config *config;
    struct load_counters counters[KEYSPACES];
    struct spellings *spellings;
};

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.config = config_from_text(text)};
    bench->spellings = spellings_create(bench->config, bench->counters);
    lines.count = 0;
}

static void bench_finish(struct bench *bench)
{
    spellings_destroy(bench->spellings);
    config_destroy(bench->config);
}

static void add(struct bench *bench, int keyspace, const char *asked, const char *own)
{
    spellings_add(bench->spellings, key_make(keyspace, span_of(asked)), span_of(own));
}

static void each_is_counted_and_the_latest_kept(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    assert_string_equal(spellings_latest(bench.spellings, ITEMS)->asked, "");
    add(&bench, ITEMS, "item:042", "item:42");
    add(&bench, ITEMS, "item:+7", "item:7");
    assert_int_equal(counter_read(&bench.counters[ITEMS].other_spellings), 2);
    assert_string_equal(spellings_latest(bench.spellings, ITEMS)->asked, "item:+7");
    assert_string_equal(spellings_latest(bench.spellings, ITEMS)->own, "item:7");
    assert_int_equal(counter_read(&bench.counters[USERS].other_spellings), 0);
    assert_string_equal(spellings_latest(bench.spellings, USERS)->own, "");
    bench_finish(&bench);
}

static void a_long_key_is_cut_off(void **state)
{
    struct bench bench;
    char asked[5000], own[5000];
    (void)state;
    bench_init(&bench);
    memset(asked, '0', sizeof asked);
    memset(own, '1', sizeof own);
    spellings_add(bench.spellings, key_make(ITEMS, (struct span){asked, sizeof asked}),
                  (struct span){own, sizeof own});
    const struct spelling *latest = spellings_latest(bench.spellings, ITEMS);
    assert_int_equal(strlen(latest->asked), sizeof latest->asked - 1);
    assert_memory_equal(latest->asked, asked, sizeof latest->asked - 1);
    assert_memory_equal(latest->own, own, sizeof latest->own - 1);
    add(&bench, ITEMS, "item:", "item:1"); /* nothing of the longer one stays */
    assert_string_equal(latest->asked, "item:");
    bench_finish(&bench);
}

static void the_log_has_one_a_minute_of_each_keyspace(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    add(&bench, ITEMS, "item:042", "item:42");
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.latest, "keyspace items: "));
    assert_non_null(strstr(lines.latest, "\"item:042\""));
    assert_non_null(strstr(lines.latest, "\"item:42\""));
    now_ms += 59999;
    add(&bench, ITEMS, "item:043", "item:43");
    assert_int_equal(lines.count, 1);
    add(&bench, USERS, "user:A", "user:a");
    assert_int_equal(lines.count, 2);
    now_ms++;
    add(&bench, ITEMS, "item:\n44", "item:44");
    assert_int_equal(lines.count, 3);
    assert_non_null(strstr(lines.latest, "\"item:\\x0a44\""));
    bench_finish(&bench);
}

static void without_an_account_nothing_happens(void **state)
{
    (void)state;
    lines.count = 0;
    spellings_add(NULL, key_make(ITEMS, span_of("item:042")), span_of("item:42"));
    spellings_destroy(NULL);
    assert_int_equal(lines.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_counted_and_the_latest_kept),
        cmocka_unit_test(a_long_key_is_cut_off),
        cmocka_unit_test(the_log_has_one_a_minute_of_each_keyspace),
        cmocka_unit_test(without_an_account_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
