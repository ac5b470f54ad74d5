/* Writes and deletions: of which the keeper hears, and what their replies wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"

#define OK "+OK\r\n"
#define SET_ITEM_1 "*3\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n$1\r\nv\r\n"
#define DEL_ITEM_1 "*2\r\n$3\r\nDEL\r\n$6\r\nitem:1\r\n"
#define GET_NEW "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n"

static bool is_admitted(struct bench *bench, const char *key)
{
    struct override entry =
        overrides_find(&bench->serving->overrides, key_make(ITEMS, span_of(key)), clock_ms());
    return entry.kind == OVERRIDE_HINT || entry.writes;
}

static void must_forward_untold(struct bench *bench, const char *command)
{
    type(bench->client, command);
    must_send(bench->shared, command);
    must_not_ask(bench->keeper);
    cache_says(bench->shared, OK);
    must_reply(bench->client, OK);
}

static void of_a_key_that_the_filter_holds_nobody_hears_where_a_log_is_followed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    must_forward_untold(&bench, SET_ITEM_1);
    must_forward_untold(&bench, DEL_ITEM_1);
    must_forward_untold(&bench, "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nv\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    bench_finish(&bench);
}

/* The filter may hold it by chance, and the next one not. */
static void without_a_log_a_key_that_the_filter_holds_is_a_hint_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_ITEM_1);
    must_send(bench.shared, SET_ITEM_1);
    cache_says(bench.shared, OK);
    mailbox_return(&next_hint(bench.keeper, "item:1")->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    must_forward_untold(&bench, DEL_ITEM_1);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 1);
    bench_finish(&bench);
}

static void of_keys_that_are_held_as_many_are_hints_as_there_is_room_for(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_hints: 3\n");
    must_forward_untold(&bench, SET_ITEM_1);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    bench_finish(&bench);
}

/* Places are bytes, too: half of ten are five, and this would be six. */
static void a_key_too_long_for_the_clients_share_is_refused_before_it_is_sent(void **state)
{
    enum { LENGTH = 1280 };
    struct bench bench;
    char command[LENGTH + 100];
    (void)state;
    bench_init(&bench, "max_hints: 10\n");
    snprintf(command, sizeof command, "SET item:%0*d v\r\n", LENGTH - 5, 0);
    type(bench.client, command);
    must_reply(bench.client, "-NESTGUARD busy: too many keys that no row is known for were written "
                             "(max_hints), try again later\r\n");
    must_send(bench.shared, "");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* Whoever has seen the reply may read the key through any worker. */
static void the_reply_waits_until_every_worker_admits_a_new_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW);
    must_send(bench.shared, SET_NEW);
    must_not_ask(bench.keeper);
    cache_says(bench.shared, OK);
    struct write_request *hint = next_hint(bench.keeper, "item:new");
    must_reply(bench.client, "");
    mailbox_return(&hint->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 1);
    bench_finish(&bench);
}

/* Another worker may not have it yet, though this one has. The place that it takes is taken. */
static void nor_does_one_leave_before_that_which_anothers_new_hint_covers(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    uint64_t now = clock_ms();
    struct override hint = {
        .kind = OVERRIDE_HINT, .since = now, .until = now + 60000, .sticky = true, .epoch = now};
    struct key key = key_make(ITEMS, span_of("item:new"));
    overrides_set(&bench.serving->overrides, key, hint);
    type(bench.client, SET_NEW);
    must_send(bench.shared, SET_NEW);
    cache_says(bench.shared, OK);
    struct write_request *write =
        (struct write_request *)(void *)next_message(bench.keeper, MESSAGE_WRITE);
    assert_true(write->shares_hint && !write->wants_hint);
    must_reply(bench.client, "");
    mailbox_return(&write->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    assert_int_equal(bench.client->hints.count, 0);
    assert_int_equal(bench.client->host->hints.count, 0);
    hint.since -= 60000;
    overrides_set(&bench.serving->overrides, key, hint);
    must_forward_untold(&bench, SET_NEW);
    bench_finish(&bench);
}

/* Refused it would be, if it did: there is none left. */
static void a_key_that_has_its_hint_takes_no_place(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_hints: 1\n");
    uint64_t now = clock_ms();
    struct override hint = {
        .kind = OVERRIDE_HINT, .since = now, .until = now + 60000, .sticky = true, .epoch = now};
    struct key key = key_make(ITEMS, span_of("item:new"));
    overrides_set(&bench.serving->overrides, key, hint);
    for (size_t i = 0; i < 2; i++) { /* the second is not covered any more when it is done */
        type(bench.client, SET_NEW);
        must_send(bench.shared, SET_NEW);
        assert_int_equal(bench.client->hints.count, 0);
        hint.sticky = !i;
        hint.until = i ? now : hint.until;
        overrides_set(&bench.serving->overrides, key, hint);
        cache_says(bench.shared, OK);
        struct write_request *write =
            (struct write_request *)(void *)next_message(bench.keeper, MESSAGE_WRITE);
        assert_int_equal(write->wants_hint, i);
        mailbox_return(&write->message);
        hear_keeper(&bench);
        must_reply(bench.client, OK);
        assert_int_equal(bench.client->hints.count, i);
        assert_int_equal(bench.client->host->hints.count, i);
    }
    bench_finish(&bench);
}

/* What the cache has refused has made no key: nobody hears of it, and it is rejected again. */
static void a_refused_write_leaves_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW);
    must_send(bench.shared, SET_NEW);
    assert_true(is_admitted(&bench, "item:new"));
    cache_says(bench.shared, "-OOM no\r\n");
    must_reply(bench.client, "-OOM no\r\n");
    must_not_ask(bench.keeper);
    assert_false(is_admitted(&bench, "item:new"));
    type(bench.client, GET_NEW);
    must_reply(bench.client, NIL);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    bench_finish(&bench);
}

/* In one pipeline: the lookup must not be rejected by what was known before the write. */
static void the_writers_next_command_finds_its_key_admitted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW GET_NEW);
    must_send(bench.shared, SET_NEW GET_NEW);
    assert_true(is_admitted(&bench, "item:new"));
    cache_says(bench.shared, OK);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    cache_says(bench.shared, "$1\r\nv\r\n");
    must_reply(bench.client, OK "$1\r\nv\r\n");
    bench_finish(&bench);
}

/* Where no log is followed a hint holds until a generation has its row, and a worker's own does
 * not: only the keeper's word makes it stick. */
static void a_hint_is_given_until_the_keeper_has_made_it_stick(void **state)
{
    struct override sticky = {
        .kind = OVERRIDE_HINT, .until = UINT64_MAX, .sticky = true, .epoch = 1000};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW SET_NEW);
    cache_says(bench.shared, OK);
    cache_says(bench.shared, OK);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK OK);
    must_send(bench.shared, SET_NEW SET_NEW);
    overrides_set(&bench.serving->overrides, key_make(ITEMS, span_of("item:new")), sticky);
    must_forward_untold(&bench, SET_NEW);
    bench_finish(&bench);
}

/* The next word to the keeper, and its answer. */
static void hear_of(struct bench *bench, bool done, bool deletes)
{
    struct write_request *write =
        (struct write_request *)(void *)next_message(bench->keeper, MESSAGE_WRITE);
    assert_false(write->wants_hint);
    assert_int_equal(write->done, done);
    assert_int_equal(write->deletes, deletes);
    mailbox_return(&write->message);
}

/* When it was run: what the cache refuses makes nothing stale. */
static void of_a_watched_key_the_keeper_hears_of_every_change(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    watch_add(bench.clients.serving.watch, key_make(ITEMS, span_of("item:1")));
    type(bench.client, SET_ITEM_1 DEL_ITEM_1);
    must_not_ask(bench.keeper);
    cache_says(bench.shared, OK);
    cache_says(bench.shared, ":1\r\n");
    must_reply(bench.client, "");
    hear_of(&bench, true, false);
    hear_of(&bench, true, true);
    hear_keeper(&bench);
    must_reply(bench.client, OK ":1\r\n");
    type(bench.client, SET_ITEM_1 DEL_ITEM_1);
    cache_says(bench.shared, "-NOPERM no\r\n");
    cache_says(bench.shared, "-NOPERM no\r\n");
    must_not_ask(bench.keeper);
    must_reply(bench.client, "-NOPERM no\r\n-NOPERM no\r\n");
    type(bench.client, "*4\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n$1\r\nv\r\n$2\r\nXX\r\n");
    cache_says(bench.shared, NIL);
    hear_of(&bench, false, false);
    hear_keeper(&bench);
    must_reply(bench.client, NIL);
    watch_drop(bench.clients.serving.watch, key_make(ITEMS, span_of("item:1")));
    bench_finish(&bench);
}

/* That the filter lacks it is no reason to tell of its deletion. */
static void a_deletion_is_no_hint(void **state)
{
    static const char del[] = "*2\r\n$3\r\nDEL\r\n$8\r\nitem:new\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_forward_untold(&bench, del);
    assert_false(is_admitted(&bench, "item:new"));
    bench_finish(&bench);
}

static void a_lost_cache_is_an_error_when_the_keeper_has_come_back(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW);
    cache_is_lost(bench.shared);
    must_reply(bench.client, "");
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "-NESTGUARD cache down\r\n");
    bench_finish(&bench);
}

static void the_keepers_answer_may_outlive_the_client(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW);
    cache_says(bench.shared, OK);
    struct write_request *hint = next_hint(bench.keeper, "item:new");
    client_close(bench.client);
    must_reply(bench.client, "");
    mailbox_return(&hint->message);
    hear_keeper(&bench);
    assert_int_equal(bench.serving->free_slot_count, 1);
    bench_finish(&bench);
}

/* Refused, it leaves nothing: nor do others of its host lack a place for it. */
static void of_a_client_that_has_gone_the_host_gets_its_places_back(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    const struct host *host = bench.client->host;
    type(bench.client, SET_NEW);
    client_close(bench.client);
    must_reply(bench.client, "");
    assert_int_equal(host->hints.count, 1);
    cache_says(bench.shared, "-OOM no\r\n");
    must_not_ask(bench.keeper);
    assert_false(is_admitted(&bench, "item:new"));
    assert_int_equal(host->hints.count, 0);
    bench_finish(&bench);
}

/* ---- all keys ---- */

#define FLUSHALL "*1\r\n$8\r\nFLUSHALL\r\n"

/* The next word to the keeper, and its answer. */
static void must_ask_to_clear(struct bench *bench, enum clearing_step step)
{
    struct clearing_request *request =
        (struct clearing_request *)(void *)next_message(bench->keeper, MESSAGE_CLEARING);
    assert_int_equal(request->step, step);
    must_not_ask(bench->keeper);
    mailbox_return(&request->message);
    hear_keeper(bench);
}

static void refused_it_is_said_to_have_changed_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, FLUSHALL);
    must_ask_to_clear(&bench, CLEARING_ASKED);
    cache_says(bench.shared, "-NOPERM no\r\n");
    must_ask_to_clear(&bench, CLEARING_REFUSED);
    must_reply(bench.client, "-NOPERM no\r\n");
    bench_finish(&bench);
}

static void of_a_client_that_has_gone_it_is_not_sent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, FLUSHALL);
    client_close(bench.client);
    must_ask_to_clear(&bench, CLEARING_ASKED);
    must_send(bench.shared, "");
    must_ask_to_clear(&bench, CLEARING_REFUSED);
    bench_finish(&bench);
}

static void a_cache_that_is_lost_may_have_done_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, FLUSHALL);
    must_ask_to_clear(&bench, CLEARING_ASKED);
    cache_is_lost(bench.shared);
    must_ask_to_clear(&bench, CLEARING_DONE);
    must_reply(bench.client, "-NESTGUARD cache down\r\n");
    bench_finish(&bench);
}

/* While the keeper has it the client may be led to another connection, over which it would overtake
 * what was sent over this one. */
static void what_deletes_all_keys_waits_for_what_is_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SET_NEW FLUSHALL);
    must_not_ask(bench.keeper);
    cache_says(bench.shared, "-OOM no\r\n");
    must_reply(bench.client, "-OOM no\r\n");
    must_ask_to_clear(&bench, CLEARING_ASKED);
    must_send(bench.shared, SET_NEW FLUSHALL);
    cache_says(bench.shared, OK);
    must_reply(bench.client, "");
    must_ask_to_clear(&bench, CLEARING_DONE);
    must_reply(bench.client, OK);
    bench_finish(&bench);
}

/* ---- where keys stand ---- */

static void must_hint(struct bench *bench, const char *command, const char *keys)
{
    char copy[100], *rest = copy, *key;
    snprintf(copy, sizeof copy, "%s", keys);
    type(bench->client, command);
    must_not_ask(bench->keeper);
    cache_says(bench->shared, OK);
    while ((key = strtok_r(rest, " ", &rest)))
        mailbox_return(&next_hint(bench->keeper, key)->message);
    must_not_ask(bench->keeper);
    hear_keeper(bench);
    must_reply(bench->client, OK);
}

static void each_key_that_a_command_makes_is_a_hint(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    must_hint(&bench,
              "*7\r\n$4\r\nMSET\r\n$6\r\nitem:a\r\n$6\r\nitem:x\r\n$6\r\nitem:1\r\n$1\r\nv\r\n"
              "$6\r\nitem:b\r\n$1\r\nv\r\n",
              "item:a item:b"); /* not its values, and not those that are known */
    must_hint(&bench, "*3\r\n$6\r\nRENAME\r\n$6\r\nitem:c\r\n$6\r\nitem:d\r\n", "item:d");
    bench_finish(&bench);
}

static void a_key_behind_store_is_a_hint(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_hint(&bench,
              "*6\r\n$4\r\nSORT\r\n$6\r\nitem:l\r\n$5\r\nSTORE\r\n$6\r\nitem:e\r\n$5\r\nstore\r\n"
              "$6\r\nitem:f\r\n",
              "item:f"); /* the last one counts */
    must_hint(&bench,
              "*9\r\n$4\r\nSORT\r\n$6\r\nitem:l\r\n$5\r\nSTORE\r\n$6\r\nitem:g\r\n$2\r\nBY\r\n"
              "$5\r\nstore\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n$1\r\n9\r\n",
              "item:g"); /* a pattern that is called so */
    must_hint(&bench, "*2\r\n$4\r\nSORT\r\n$6\r\nitem:l\r\n", "");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_key_that_the_filter_holds_nobody_hears_where_a_log_is_followed),
        cmocka_unit_test(without_a_log_a_key_that_the_filter_holds_is_a_hint_too),
        cmocka_unit_test(of_keys_that_are_held_as_many_are_hints_as_there_is_room_for),
        cmocka_unit_test(a_key_too_long_for_the_clients_share_is_refused_before_it_is_sent),
        cmocka_unit_test(the_reply_waits_until_every_worker_admits_a_new_key),
        cmocka_unit_test(nor_does_one_leave_before_that_which_anothers_new_hint_covers),
        cmocka_unit_test(a_key_that_has_its_hint_takes_no_place),
        cmocka_unit_test(a_refused_write_leaves_nothing),
        cmocka_unit_test(the_writers_next_command_finds_its_key_admitted),
        cmocka_unit_test(a_hint_is_given_until_the_keeper_has_made_it_stick),
        cmocka_unit_test(of_a_watched_key_the_keeper_hears_of_every_change),
        cmocka_unit_test(a_deletion_is_no_hint),
        cmocka_unit_test(a_lost_cache_is_an_error_when_the_keeper_has_come_back),
        cmocka_unit_test(the_keepers_answer_may_outlive_the_client),
        cmocka_unit_test(of_a_client_that_has_gone_the_host_gets_its_places_back),
        cmocka_unit_test(what_deletes_all_keys_waits_for_what_is_under_way),
        cmocka_unit_test(refused_it_is_said_to_have_changed_nothing),
        cmocka_unit_test(of_a_client_that_has_gone_it_is_not_sent),
        cmocka_unit_test(a_cache_that_is_lost_may_have_done_it),
        cmocka_unit_test(each_key_that_a_command_makes_is_a_hint),
        cmocka_unit_test(a_key_behind_store_is_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
