/* Lookups of many keys by one command: which of them are asked for, and how the reply is put
 * together again from the cache's word, the rows, and the verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/command/keys/lookup_many.h"

#define MGET_FOUR                                                                                  \
    "*5\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n$9\r\nitem:none\r\n$6\r\nitem:2\r\n"
#define MGET_THREE "*4\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n$6\r\nitem:2\r\n"
#define EXISTS_THREE "*4\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n$9\r\nitem:none\r\n$5\r\nother\r\n"
#define EXISTS_ITEM "*2\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n"
#define EXISTS_OTHER "*2\r\n$6\r\nEXISTS\r\n$5\r\nother\r\n"

static void a_multi_key_get_is_answered_key_by_key_in_place(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MGET_FOUR);
    must_send(bench.shared, MGET_THREE); /* without the absent one */
    cache_says(bench.shared, "*3\r\n" NIL "$5\r\nother\r\n$3\r\ntwo\r\n");
    must_reply(bench.client, "");
    load_row(&bench, "item:1", "one");
    must_reply(bench.client, "*4\r\n$3\r\none\r\n$5\r\nother\r\n" NIL "$3\r\ntwo\r\n");
    bench_finish(&bench);
}

static void of_keys_that_are_all_absent_nobody_is_asked(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*3\r\n$4\r\nMGET\r\n$6\r\nitem:x\r\n$6\r\nitem:y\r\n");
    must_reply(bench.client, "*2\r\n" NIL NIL);
    must_send(bench.shared, "");
    bench_finish(&bench);
}

static void without_a_guarded_key_the_command_is_the_caches_alone(void **state)
{
    static const char mget[] = "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, mget);
    must_send(bench.shared, mget);
    cache_says(bench.shared, "*2\r\n" NIL NIL);
    must_reply(bench.client, "*2\r\n" NIL NIL);
    bench_finish(&bench);
}

/* More keys than are asked for together. */
static void keys_beyond_one_probing_are_decided_too(void **state)
{
    char command[8000], wanted[2000] = "*200\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    snprintf(command, sizeof command, "*201\r\n$4\r\nMGET\r\n");
    for (int i = 0; i < 200; i++) {
        snprintf(command + strlen(command), sizeof command - strlen(command), "$8\r\nitem:%03d\r\n",
                 i + 500);
        strcat(wanted, NIL);
    }
    type(bench.client, command);
    must_reply(bench.client, wanted);
    must_send(bench.shared, "");
    bench_finish(&bench);
}

/* A reply that lacks an element says nothing of any key. */
static void a_short_reply_is_loaded_or_an_error(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MGET_THREE);
    cache_says(bench.shared, "*1\r\n$3\r\none\r\n");
    load_row(&bench, "item:1", "1");
    load_row(&bench, "item:2", "2");
    must_reply(bench.client, "*3\r\n$1\r\n1\r\n-NESTGUARD cache error: its reply is none that this "
                             "command has\r\n$1\r\n2\r\n");
    bench_finish(&bench);
}

static void without_the_cache_a_multi_key_get_is_loaded_or_an_error(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MGET_THREE);
    cache_says(bench.shared, "-LOADING it\r\n");
    load_row(&bench, "item:1", "one");
    load_outcome(&bench, "item:2", LOAD_ABSENT);
    must_reply(bench.client, "*3\r\n$3\r\none\r\n-LOADING it\r\n" NIL);
    bench_finish(&bench);
}

/* As with a GET: what it denies is not for the database to tell. */
static void a_multi_key_get_that_the_cache_refuses_is_one_error(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MGET_FOUR);
    must_send(bench.shared, MGET_THREE);
    cache_says(bench.shared, "-NOPERM no\r\n");
    must_not_ask(bench.keeper);
    must_reply(bench.client, "-NOPERM no\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, cache_failures), 0);
    bench_finish(&bench);
}

/* Where each is asked for by itself, the others' answers are there or still to come. */
static void a_key_that_the_cache_refuses_is_the_error_of_all(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct span words[] = {span_of("MGET"), span_of("passed:x"), span_of("item:1"),
                           span_of("item:2")};
    const struct request request = {
        .arguments = words, .count = 4, .command = command_find(words[0])};
    bench.serving->permission = permission_begin(bench.serving->view);
    lookup_each(bench.client, &request);
    cache_says(bench.shared, "*1\r\n" NIL);
    cache_says(bench.shared, "-NOPERM no\r\n");
    must_reply(bench.client, "");
    load_row(&bench, "item:1", "one");
    must_reply(bench.client, "-NOPERM no\r\n");
    buffer_clear(&bench.shared->out);
    bench_finish(&bench);
}

static void existing_keys_are_counted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, EXISTS_THREE);
    must_send(bench.shared, EXISTS_ITEM EXISTS_OTHER);
    cache_says(bench.shared, ":0\r\n"); /* not in the cache; but its row is there */
    cache_says(bench.shared, ":1\r\n");
    load_row(&bench, "item:1", "one");
    must_reply(bench.client, ":2\r\n");
    bench_finish(&bench);
}

static void a_count_that_lacks_a_key_is_an_error(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, EXISTS_THREE);
    cache_says(bench.shared, ":0\r\n");
    cache_says(bench.shared, ":1\r\n");
    load_outcome(&bench, "item:1", LOAD_DOWN);
    must_reply(bench.client, "-NESTGUARD database down\r\n");
    type(bench.client, EXISTS_THREE);
    cache_says(bench.shared, ":1\r\n");
    cache_says(bench.shared, "-ERR no\r\n");
    must_reply(bench.client, "-ERR no\r\n");
    bench_finish(&bench);
}

/* Whatever on_absent is: it takes no value, and an error would hide the others. */
static void an_absent_key_counts_as_none(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*3\r\n$6\r\nEXISTS\r\n$8\r\npassed:x\r\n$6\r\nitem:x\r\n");
    must_reply(bench.client, ":0\r\n");
    must_send(bench.shared, "");
    bench_finish(&bench);
}

static void each_key_is_counted_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MGET_FOUR);
    cache_says(bench.shared, "*3\r\n" NIL "$5\r\nother\r\n$3\r\ntwo\r\n");
    load_outcome(&bench, "item:1", LOAD_ABSENT);
    buffer_clear(&bench.client->replies.out);
    assert_int_equal(COUNTED(&bench, ITEMS, lookups), 3);
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 1);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 1);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 1);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_multi_key_get_is_answered_key_by_key_in_place),
        cmocka_unit_test(of_keys_that_are_all_absent_nobody_is_asked),
        cmocka_unit_test(without_a_guarded_key_the_command_is_the_caches_alone),
        cmocka_unit_test(keys_beyond_one_probing_are_decided_too),
        cmocka_unit_test(a_short_reply_is_loaded_or_an_error),
        cmocka_unit_test(without_the_cache_a_multi_key_get_is_loaded_or_an_error),
        cmocka_unit_test(a_multi_key_get_that_the_cache_refuses_is_one_error),
        cmocka_unit_test(a_key_that_the_cache_refuses_is_the_error_of_all),
        cmocka_unit_test(existing_keys_are_counted),
        cmocka_unit_test(a_count_that_lacks_a_key_is_an_error),
        cmocka_unit_test(an_absent_key_counts_as_none),
        cmocka_unit_test(each_key_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
