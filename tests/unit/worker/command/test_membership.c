/* The commands of RedisBloom about a keyspace's filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"
#include "worker/command/keys/item_limit.h"

/* Inline, as a person would type them; what is forwarded is not. */
#define TRUE3 "#t\r\n"
#define FALSE3 "#f\r\n"

/* What the client types, and what it must get at once, without anything being asked. */
static void must_answer(struct bench *bench, const char *line, const char *wanted)
{
    char typed[300];
    snprintf(typed, sizeof typed, "%s\r\n", line);
    type(bench->client, typed);
    must_reply(bench->client, wanted);
    must_send(bench->shared, "");
    must_not_ask(bench->keeper);
}

static void must_answer_error(struct bench *bench, const char *line, const char *beginning)
{
    char typed[300];
    snprintf(typed, sizeof typed, "%s\r\n", line);
    type(bench->client, typed);
    struct span reply = buffer_span(&bench->client->replies.out);
    assert_true(span_starts(reply, beginning));
    buffer_clear(&bench->client->replies.out);
    must_send(bench->shared, "");
    must_not_ask(bench->keeper);
}

static void items_are_answered_from_the_filter(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_answer(&bench, "BF.EXISTS items 1", ":1\r\n");
    must_answer(&bench, "bf.exists items item:1", ":1\r\n");
    must_answer(&bench, "BF.EXISTS items nothe", ":0\r\n");
    must_answer(&bench, "CF.EXISTS items 99", ":1\r\n");
    must_answer(&bench, "CF.COUNT items 99", ":1\r\n");
    must_answer(&bench, "CF.COUNT items 1000", ":0\r\n");
    must_answer(&bench, "BF.MEXISTS items 1 nothe item:2", "*3\r\n:1\r\n:0\r\n:1\r\n");
    must_answer(&bench, "CF.MEXISTS items 1000", "*1\r\n:0\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, lookups), 10);
    assert_int_equal(COUNTED(&bench, ITEMS, members), 10);
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 4);
    bench_finish(&bench);
}

static void resp3_has_booleans_where_redisbloom_has(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.client->replies.resp3 = true;
    must_answer(&bench, "BF.EXISTS items 1", TRUE3);
    must_answer(&bench, "BF.MEXISTS items 1 nothe", "*2\r\n" TRUE3 FALSE3);
    must_answer(&bench, "CF.COUNT items 1", ":1\r\n");
    bench_finish(&bench);
}

/* More than the filters are asked for at once. */
static void many_items_are_answered_in_order(void **state)
{
    struct bench bench;
    struct buffer line = {0}, wanted = {0};
    (void)state;
    bench_init(&bench, "");
    buffer_printf(&line, "*302\r\n$10\r\nBF.MEXISTS\r\n$5\r\nitems\r\n");
    buffer_printf(&wanted, "*300\r\n");
    for (int i = 0; i < 300; i++) {
        bool is_there = i % 3 != 1; /* of each kind: text, absent, whole key */
        char item[20];
        snprintf(item, sizeof item, i % 3 == 2 ? "item:%d" : "%d", is_there ? i % 100 : i + 1000);
        buffer_printf(&line, "$%zu\r\n%s\r\n", strlen(item), item);
        buffer_printf(&wanted, is_there ? ":1\r\n" : ":0\r\n");
    }
    char *typed = buffer_string(&line), *replies = buffer_string(&wanted);
    type(bench.client, typed);
    must_reply(bench.client, replies);
    free(typed);
    free(replies);
    bench_finish(&bench);
}

static void without_permission_everything_may_exist(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    use_state(&bench.clients.serving, KEYSPACE_PASSING);
    must_answer(&bench, "BF.MEXISTS items 1 nothe", "*2\r\n:1\r\n:1\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 0);
    bench_finish(&bench);
}

/* One that was added to the file a moment ago. */
static void of_a_keyspace_without_a_filter_everything_may_exist(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct filter **at = &bench.clients.serving.generation->filters[ITEMS], *filter = *at;
    *at = NULL;
    use_state(&bench.clients.serving, KEYSPACE_PASSING);
    must_answer(&bench, "BF.EXISTS items 1", ":1\r\n");
    must_answer(&bench, "BF.MEXISTS items 1 nothe", "*2\r\n:1\r\n:1\r\n");
    must_answer_error(&bench, "BF.CARD items", "-NESTGUARD loading: keyspace items has no filter");
    must_answer_error(&bench, "BF.INFO items", "-NESTGUARD loading");
    must_answer_error(&bench, "CF.INFO items", "-NESTGUARD loading");
    *at = filter;
    bench_finish(&bench);
}

/* And some of what would be rejected is looked up, as of GET. */
static void in_shadow_mode_everything_may_exist(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "BF.EXISTS shadows nothe\r\n");
    must_reply(bench.client, ":1\r\n");
    free(next_message(bench.keeper, MESSAGE_FN_CHECK));
    bench.serving->asked--;
    assert_int_equal(COUNTED(&bench, SHADOWS, would_reject), 1);
    bench_finish(&bench);
}

static void entries_outrank_the_filter(void **state)
{
    struct override tombstone = {.kind = OVERRIDE_TOMBSTONE, .until = UINT64_MAX, .sticky = true};
    struct override hint = {.kind = OVERRIDE_HINT, .until = UINT64_MAX};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    overrides_set(&bench.serving->overrides, key_make(ITEMS, span_of("item:1")), tombstone);
    overrides_set(&bench.serving->overrides, key_make(ITEMS, span_of("item:new")), hint);
    must_answer(&bench, "BF.MEXISTS items 1 new item:new 2", "*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n");
    bench_finish(&bench);
}

static void other_names_are_the_caches(void **state)
{
    static const char asks[] = "*3\r\n$9\r\nBF.EXISTS\r\n$5\r\nother\r\n$1\r\n1\r\n";
    static const char adds[] = "*3\r\n$6\r\nBF.ADD\r\n$5\r\nother\r\n$1\r\n1\r\n";
    static const char tells[] = "*2\r\n$7\r\nBF.INFO\r\n$6\r\nitems2\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type_bytes(bench.client, asks, sizeof asks - 1);
    must_send(bench.shared, asks);
    cache_says(bench.shared, ":1\r\n");
    must_reply(bench.client, ":1\r\n");
    type_bytes(bench.client, adds, sizeof adds - 1);
    must_send(bench.shared, adds);
    cache_says(bench.shared, ":1\r\n");
    must_reply(bench.client, ":1\r\n");
    type_bytes(bench.client, tells, sizeof tells - 1);
    must_send(bench.shared, tells);
    cache_says(bench.shared, "-ERR not found\r\n");
    must_reply(bench.client, "-ERR not found\r\n");
    bench_finish(&bench);
}

/* As of a write: whoever has seen the reply finds the key through any worker. */
static void what_is_added_is_admitted_before_the_reply(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "BF.ADD items new\r\n");
    must_send(bench.shared, "");
    must_reply(bench.client, "");
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, ":1\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 1);
    bench_finish(&bench);
}

static void the_next_command_finds_what_was_added(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*3\r\n$6\r\nBF.ADD\r\n$5\r\nitems\r\n$3\r\nnew\r\n"
                       "*3\r\n$9\r\nBF.EXISTS\r\n$5\r\nitems\r\n$3\r\nnew\r\n"
                       "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n");
    must_send(bench.shared, "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n");
    cache_says(bench.shared, "$1\r\nv\r\n");
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, ":1\r\n:1\r\n$1\r\nv\r\n");
    bench_finish(&bench);
}

static void what_is_there_is_not_added_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    must_answer(&bench, "BF.ADD items 1", ":0\r\n");
    must_answer(&bench, "CF.ADDNX items 1", ":0\r\n");
    must_answer(&bench, "CF.ADD items 1", ":1\r\n"); /* RedisBloom adds it once more */
    must_answer(&bench, "CF.INSERT items CAPACITY 10 NOCREATE ITEMS 1 2", "*2\r\n:1\r\n:1\r\n");
    must_answer(&bench, "CF.INSERTNX items ITEMS 1", "*1\r\n:0\r\n");
    bench.client->replies.resp3 = true;
    must_answer(&bench, "BF.INSERT items ERROR 0.1 EXPANSION 2 NONSCALING ITEMS 1",
                "*1\r\n" FALSE3);
    must_answer(&bench, "CF.INSERTNX items ITEMS 1", "*1\r\n:0\r\n");
    must_answer(&bench, "CF.INSERT items ITEMS 1", "*1\r\n" TRUE3);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    bench_finish(&bench);
}

/* The filter may hold it by chance, and the next one not; for it nobody is refused. */
static void without_a_log_what_the_filter_holds_is_a_hint_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "BF.MADD items 1 new\r\n");
    mailbox_return(&next_hint(bench.keeper, "item:1")->message);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "*2\r\n:0\r\n:1\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 2);
    bench_finish(&bench);
}

static void of_items_that_are_held_as_many_are_hints_as_there_is_room_for(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_hints: 3\n");
    must_answer(&bench, "BF.MADD items 1 2", "*2\r\n:0\r\n:0\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    bench_finish(&bench);
}

static void of_several_those_that_are_new_are_told(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    type(bench.client, "BF.MADD items 1 new new more\r\n");
    for (int i = 0; i < 2; i++)
        mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    mailbox_return(&next_hint(bench.keeper, "item:more")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "*4\r\n:0\r\n:1\r\n:0\r\n:1\r\n");
    bench_finish(&bench);
}

/* It may be the key, or a column's text that reads like it. */
static void all_that_an_item_may_mean_is_admitted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "BF.ADD items item:new\r\n");
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    mailbox_return(&next_hint(bench.keeper, "item:item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, ":1\r\n");
    bench_finish(&bench);
}

static void more_than_there_is_room_for_is_refused_as_a_whole(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_hints: 4\n");
    must_answer_error(&bench, "BF.MADD items a b c d", "-NESTGUARD busy: too many keys");
    assert_int_equal(bench.serving->overrides.map.count, 0);
    must_answer(&bench, "BF.EXISTS items a", ":0\r\n");
    bench_finish(&bench);
}

static void only_evidence_removes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_answer_error(&bench, "CF.DEL items 1", "-NESTGUARD evidence: nothing was removed");
    must_answer(&bench, "CF.EXISTS items 1", ":1\r\n");
    must_answer_error(&bench, "BF.RESERVE items 0.01 1000", "-ERR item exists");
    must_answer_error(&bench, "CF.RESERVE items 1000", "-ERR item exists");
    must_answer_error(&bench, "BF.LOADCHUNK items 1 x", "-NESTGUARD unsupported");
    must_answer_error(&bench, "CF.SCANDUMP items 0", "-NESTGUARD unsupported");
    bench_finish(&bench);
}

static void wrong_arguments_are_told_as_redis_does(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_answer(&bench, "BF.EXISTS items",
                "-ERR wrong number of arguments for 'bf.exists' command\r\n");
    must_answer(&bench, "BF.EXISTS items 1 2",
                "-ERR wrong number of arguments for 'bf.exists' command\r\n");
    must_answer_error(&bench, "BF.INSERT items ITEM 1", "-ERR Unknown argument");
    must_answer_error(&bench, "BF.INSERT items CAPACITY 1", "-ERR wrong number");
    must_answer_error(&bench, "CF.INSERT items NOCREATE ITEMS", "-ERR wrong number");
    must_answer(&bench, "BF.INFO items NO", "-ERR Invalid information value\r\n");
    bench_finish(&bench);
}

static void the_filter_tells_of_itself(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_answer(&bench, "BF.CARD items", ":100\r\n");
    must_answer(&bench, "BF.INFO items ITEMS", "*1\r\n:100\r\n");
    must_answer(&bench, "BF.INFO items capacity", "*1\r\n:1000\r\n");
    must_answer_error(&bench, "BF.INFO items", "*10\r\n+Capacity\r\n:1000\r\n+Size\r\n:");
    must_answer_error(&bench, "CF.INFO items", "*16\r\n+Size\r\n:");
    bench.client->replies.resp3 = true;
    must_answer(&bench, "BF.INFO items ITEMS", "%1\r\n+Number of items inserted\r\n:100\r\n");
    must_answer(&bench, "BF.INFO items EXPANSION", "%1\r\n+Expansion rate\r\n_\r\n");
    must_answer_error(&bench, "CF.INFO items", "%8\r\n+Size\r\n:");
    bench_finish(&bench);
}

/* Redis would look for a filter of that name among its own, and perhaps say that nothing is in it.
 */
static void inside_a_transaction_they_are_refused(void **state)
{
    static const char *const lines[] = {"BF.EXISTS items 1\r\n", "BF.ADD items new\r\n",
                                        "BF.CARD items\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI);
    must_send(bench.client->pinned.own, MULTI);
    cache_says(bench.client->pinned.own, "+OK\r\n");
    must_reply(bench.client, "+OK\r\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        type(bench.client, lines[i]);
        must_send(bench.client->pinned.own, "*1\r\n$3\r\nGET\r\n");
        cache_says(bench.client->pinned.own, "-ERR wrong number\r\n");
        struct span reply = buffer_span(&bench.client->replies.out);
        assert_true(span_starts(reply, "-NESTGUARD unsupported: inside MULTI"));
        buffer_clear(&bench.client->replies.out);
    }
    must_not_ask(bench.keeper);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

/* Who tracks would keep a 0 for good. */
static void who_tracks_may_not_ask(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.client->pinned.states = PINNED_TRACKING;
    must_answer_error(&bench, "BF.EXISTS items 1", "-NESTGUARD tracking");
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

static void strangers_are_told_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "password: secret\n");
    bench.client->authenticated = false;
    must_answer(&bench, "BF.EXISTS items 1", "-NOAUTH Authentication required.\r\n");
    must_answer(&bench, "BF.ADD items new", "-NOAUTH Authentication required.\r\n");
    must_answer(&bench, "BF.CARD items", "-NOAUTH Authentication required.\r\n");
    bench_finish(&bench);
}

#define EXISTS_1 "*2\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n"
#define EXISTS_NOTHE "*2\r\n$6\r\nEXISTS\r\n$10\r\nitem:nothe\r\n"

/* What Redis would refuse is refused in its words, whether or not there is a row. */
static void a_user_is_told_what_it_may_read(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.client->replies.no_fallback = true;
    type(bench.client, "BF.MEXISTS items 1 nothe\r\n");
    must_reply(bench.client, "");
    must_send(bench.shared, EXISTS_1 EXISTS_NOTHE);
    cache_says(bench.shared, ":0\r\n");
    cache_says(bench.shared, ":0\r\n");
    must_reply(bench.client, "*2\r\n:1\r\n:0\r\n");
    type(bench.client, "BF.MEXISTS items 1 nothe\r\n");
    must_send(bench.shared, EXISTS_1 EXISTS_NOTHE);
    cache_says(bench.shared, ":0\r\n");
    cache_says(bench.shared, "-NOPERM no\r\n");
    must_reply(bench.client, "-NOPERM no\r\n");
    type(bench.client, "CF.COUNT items nothe\r\n");
    must_send(bench.shared, EXISTS_NOTHE);
    cache_is_lost(bench.shared);
    struct span reply = buffer_span(&bench.client->replies.out);
    assert_true(span_starts(reply, "-"));
    buffer_clear(&bench.client->replies.out);
    must_answer_error(&bench, "BF.ADD items new", "-NOPERM");
    must_answer_error(&bench, "BF.CARD items", "-NOPERM");
    bench.client->replies.no_fallback = false;
    bench_finish(&bench);
}

/* ---- more items than everybody could wait for ---- */

static void type_items(struct bench *bench, const char *command, size_t count)
{
    struct buffer typed = {0};
    resp_write_array(&typed, count + 2);
    resp_write_bulk(&typed, command, strlen(command));
    resp_write_bulk(&typed, "items", 5);
    for (size_t i = 0; i < count; i++)
        resp_write_bulk(&typed, "1", 1);
    type_bytes(bench->client, buffer_span(&typed).at, buffer_length(&typed));
    buffer_finish(&typed);
}

static void must_refuse_items(struct bench *bench, const char *command, size_t count)
{
    type_items(bench, command, count);
    char *wanted = xasprintf("-NESTGUARD items: nothing was done: a command may have 16384 of them "
                             "here, and this one has %zu; send several commands\r\n",
                             count);
    must_reply(bench->client, wanted);
    must_send(bench->shared, "");
    must_not_ask(bench->keeper);
    free(wanted);
}

static void very_many_items_are_not_added_by_one_command(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    must_refuse_items(&bench, "BF.MADD", ITEMS_MAX + 1);
    follow_a_log(&bench);
    type_items(&bench, "BF.MADD", ITEMS_MAX);
    assert_true(span_starts(buffer_span(&bench.client->replies.out), "*16384\r\n:0\r\n"));
    buffer_clear(&bench.client->replies.out);
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static void a_user_is_not_told_of_very_many_items_by_one_command(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.client->replies.no_fallback = true;
    must_refuse_items(&bench, "BF.MEXISTS", ITEMS_MAX + 1);
    type_items(&bench, "BF.MEXISTS", ITEMS_MAX);
    assert_int_equal(bench.shared->count, ITEMS_MAX);
    cache_is_lost(bench.shared);
    assert_true(span_starts(buffer_span(&bench.client->replies.out), "-NESTGUARD cache"));
    buffer_clear(&bench.client->replies.out);
    bench.client->replies.no_fallback = false;
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_answered_from_the_filter),
        cmocka_unit_test(resp3_has_booleans_where_redisbloom_has),
        cmocka_unit_test(many_items_are_answered_in_order),
        cmocka_unit_test(without_permission_everything_may_exist),
        cmocka_unit_test(of_a_keyspace_without_a_filter_everything_may_exist),
        cmocka_unit_test(in_shadow_mode_everything_may_exist),
        cmocka_unit_test(entries_outrank_the_filter),
        cmocka_unit_test(other_names_are_the_caches),
        cmocka_unit_test(what_is_added_is_admitted_before_the_reply),
        cmocka_unit_test(the_next_command_finds_what_was_added),
        cmocka_unit_test(what_is_there_is_not_added_again),
        cmocka_unit_test(without_a_log_what_the_filter_holds_is_a_hint_too),
        cmocka_unit_test(of_items_that_are_held_as_many_are_hints_as_there_is_room_for),
        cmocka_unit_test(of_several_those_that_are_new_are_told),
        cmocka_unit_test(all_that_an_item_may_mean_is_admitted),
        cmocka_unit_test(more_than_there_is_room_for_is_refused_as_a_whole),
        cmocka_unit_test(only_evidence_removes),
        cmocka_unit_test(wrong_arguments_are_told_as_redis_does),
        cmocka_unit_test(the_filter_tells_of_itself),
        cmocka_unit_test(inside_a_transaction_they_are_refused),
        cmocka_unit_test(who_tracks_may_not_ask),
        cmocka_unit_test(strangers_are_told_nothing),
        cmocka_unit_test(a_user_is_told_what_it_may_read),
        cmocka_unit_test(very_many_items_are_not_added_by_one_command),
        cmocka_unit_test(a_user_is_not_told_of_very_many_items_by_one_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
