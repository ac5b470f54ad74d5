/* Commands that change the state of their connection: where they go, and what any command gets
 * while there is such a state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"

#define OK "+OK\r\n"
#define GET_NEW "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n"
#define SUBSCRIBE "*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n"
#define SUBSCRIBED(name, count) "*3\r\n$9\r\nsubscribe\r\n$1\r\n" name "\r\n:" count "\r\n"
#define UNSUBSCRIBED(name, count) "*3\r\n$11\r\nunsubscribe\r\n$1\r\n" name "\r\n:" count "\r\n"
#define MONITOR "*1\r\n$7\r\nMONITOR\r\n"
#define BLPOP "*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n"
#define WATCH "*2\r\n$5\r\nWATCH\r\n$6\r\nitem:1\r\n"

static struct upstream *own(struct bench *bench)
{
    assert_non_null(bench->client->pinned.own);
    return bench->client->pinned.own;
}

static unsigned states_of(const struct bench *bench)
{
    return bench->client->pinned.states;
}

/* ---- transactions ---- */

static void nothing_is_answered_here_inside_a_transaction(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI GET_ABSENT GET_ITEM_1 EXEC);
    must_send(own(&bench), MULTI GET_ABSENT GET_ITEM_1 EXEC);
    must_send(bench.shared, "");
    cache_says(own(&bench), OK);
    cache_says(own(&bench), QUEUED);
    cache_says(own(&bench), QUEUED);
    cache_says(own(&bench), "*2\r\n" NIL NIL);
    must_reply(bench.client, OK QUEUED QUEUED "*2\r\n" NIL NIL);
    must_not_ask(bench.keeper);
    assert_int_equal(states_of(&bench), 0);
    assert_int_equal(COUNTED(&bench, ITEMS, lookups), 0);
    bench_finish(&bench);
}

#define DISCARD "*1\r\n$7\r\nDISCARD\r\n"
#define WITHHELD                                                                                   \
    "-NESTGUARD cache started anew: what it may have forgotten to delete is being deleted, and "   \
    "the transaction may tell of it; nothing of it was done, try again\r\n"

/* Queued at a server that was believed: what is read is read by EXEC. */
static void what_tells_of_rows_is_given_up_at_a_server_that_is_doubted_by_then(void **state)
{
    static const char *const tells[] = {GET_ITEM_1, "*2\r\n$6\r\nGETDEL\r\n$6\r\nitem:1\r\n",
                                        "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$6\r\nitem:1\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof tells / sizeof *tells; i++) {
        type(bench.client, MULTI);
        type(bench.client, tells[i]);
        buffer_clear(&own(&bench)->out);
        cache_says(own(&bench), OK);
        cache_says(own(&bench), QUEUED);
        own(&bench)->doubted = true;
        type(bench.client, EXEC PING);
        must_send(own(&bench), DISCARD);
        cache_says(own(&bench), OK);
        must_reply(bench.client, OK QUEUED WITHHELD);
        must_send(own(&bench), PING);
        cache_says(own(&bench), "+PONG\r\n");
        must_reply(bench.client, "+PONG\r\n");
        assert_int_equal(states_of(&bench), 0);
        own(&bench)->doubted = false;
    }
    bench_finish(&bench);
}

static void what_tells_of_none_is_done_there(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI GET_ITEM_1 DISCARD MULTI SET_NEW PING);
    must_send(own(&bench), MULTI GET_ITEM_1 DISCARD);
    cache_says(own(&bench), OK);
    cache_says(own(&bench), QUEUED);
    cache_says(own(&bench), OK);
    own(&bench)->doubted = true;
    type(bench.client, EXEC);
    must_send(own(&bench), MULTI SET_NEW PING EXEC);
    bench_finish(&bench);
}

/* Should MULTI be refused, the lookups behind it ran at once, without their verdicts: a nil of
 * those is no answer. */
static void a_lookup_behind_a_refused_multi_is_not_believed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI GET_ITEM_1);
    cache_says(own(&bench), "-ERR no\r\n");
    assert_int_equal(states_of(&bench), 0);
    cache_says(own(&bench), NIL);
    struct span reply = buffer_span(&bench.client->replies.out);
    assert_true(span_starts(reply, "-ERR no\r\n-NESTGUARD transaction"));
    buffer_clear(&bench.client->replies.out);
    type(bench.client, GET_ABSENT); /* there is no transaction */
    must_reply(bench.client, NIL);
    bench_finish(&bench);
}

/* A second one has begun when the reply to the first, refused, comes. */
static void a_late_refusal_does_not_end_the_next_transaction(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI EXEC MULTI);
    cache_says(own(&bench), "-ERR no\r\n");
    assert_int_equal(states_of(&bench), PINNED_MULTI);
    cache_says(own(&bench), "-ERR no MULTI\r\n");
    cache_says(own(&bench), OK);
    must_reply(bench.client, "-ERR no\r\n-ERR no MULTI\r\n" OK);
    assert_int_equal(states_of(&bench), PINNED_MULTI);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

static bool is_being_written(struct bench *bench)
{
    struct key key = key_make(ITEMS, span_of("item:new"));
    return overrides_find(&bench->serving->overrides, key, clock_ms()).writes;
}

/* A write inside a transaction, up to where EXEC is awaited. */
static void queue_new(struct bench *bench)
{
    type(bench->client, MULTI SET_NEW);
    cache_says(own(bench), OK);
    cache_says(own(bench), QUEUED);
    must_reply(bench->client, OK QUEUED);
}

static size_t hints_of(const struct client *client)
{
    assert_int_equal(client->hints.count, client->host->hints.count);
    return client->hints.count;
}

static void a_write_inside_a_transaction_is_a_hint_once_it_is_executed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    queue_new(&bench);
    must_not_ask(bench.keeper);
    assert_true(is_being_written(&bench));
    type(bench.client, EXEC);
    cache_says(own(&bench), "*1\r\n" OK);
    must_reply(bench.client, "");
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "*1\r\n" OK);
    assert_false(is_being_written(&bench));
    assert_int_equal(hints_of(bench.client), 1);
    bench_finish(&bench);
}

static void what_stands_behind_a_transaction_finds_what_that_is_to_write(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI SET_NEW EXEC GET_NEW);
    must_send(own(&bench), MULTI SET_NEW EXEC GET_NEW);
    cache_says(own(&bench), OK);
    cache_says(own(&bench), QUEUED);
    assert_true(is_being_written(&bench));
    cache_says(own(&bench), "*1\r\n" OK);
    assert_true(is_being_written(&bench));
    cache_says(own(&bench), "$1\r\nv\r\n");
    must_reply(bench.client, OK QUEUED);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "*1\r\n" OK "$1\r\nv\r\n");
    bench_finish(&bench);
}

static void what_is_not_executed_leaves_no_hint(void **state)
{
    static const char *const ends[][2] = {{MULTI SET_NEW DISCARD, OK},
                                          {MULTI SET_NEW EXEC, "*-1\r\n"},
                                          {MULTI SET_NEW EXEC, "-EXECABORT no\r\n"}};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        type(bench.client, ends[i][0]);
        assert_int_equal(hints_of(bench.client), i > 0);
        cache_says(own(&bench), OK);
        cache_says(own(&bench), QUEUED);
        cache_says(own(&bench), ends[i][1]);
        must_not_ask(bench.keeper);
        assert_false(is_being_written(&bench));
        assert_int_equal(hints_of(bench.client), 0);
        buffer_clear(&bench.client->replies.out);
    }
    bench_finish(&bench);
}

/* Commands in a transaction, what EXEC is told, and which keys are hints then. */
struct executed {
    const char *commands, *reply, *hints;
};

static void must_judge(const struct executed *executed)
{
    struct bench bench;
    char hints[100], *rest = hints, *key;
    bench_init(&bench, "");
    type(bench.client, MULTI);
    type(bench.client, executed->commands);
    type(bench.client, EXEC);
    size_t replies = bench.client->replies.commands;
    if (!hints_of(bench.client))
        fail_msg("%s", executed->commands);
    cache_says(own(&bench), OK);
    for (size_t i = 2; i < replies; i++)
        cache_says(own(&bench), QUEUED);
    cache_says(own(&bench), executed->reply);
    snprintf(hints, sizeof hints, "%s", executed->hints);
    size_t hinted = 0;
    for (; (key = strtok_r(rest, " ", &rest)); hinted++)
        mailbox_return(&next_hint(bench.keeper, key)->message);
    must_not_ask(bench.keeper);
    hear_keeper(&bench);
    assert_false(is_being_written(&bench));
    assert_int_equal(hints_of(bench.client), hinted);
    bench_finish(&bench);
}

static void a_write_that_exec_was_refused_leaves_no_hint(void **state)
{
    static const struct executed refused[] = {
        {"SET item:new v\r\n", "*1\r\n-OOM no\r\n", ""},
        {"SET item:new v\r\nPING\r\nSET item:two v\r\n", "*3\r\n-OOM no\r\n+PONG\r\n" OK,
         "item:two"},
        {"SET item:new v\r\nDEL x\r\nSET item:two v\r\n", "*3\r\n" OK ":0\r\n-NOPERM no\r\n",
         "item:new"},
        {"LRANGE l 0 1\r\nSET item:new v XX\r\n", "*2\r\n*2\r\n" OK OK NIL, ""},
        {"ZADD item:new XX 1 a\r\n", "*1\r\n:0\r\n", ""},
        {"MSET item:new v item:two v\r\n", "*1\r\n-OOM no\r\n", ""},
        {"UNWATCH\r\nBLMOVE a b LEFT LEFT 1\r\nSET item:new v\r\n", "*3\r\n" OK NIL "-OOM no\r\n",
         ""}};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        must_judge(&refused[i]);
}

static void a_key_that_exec_has_made_by_any_command_is_a_hint(void **state)
{
    static const struct executed done[] = {
        {"SET item:new v XX\r\nSET item:new v\r\n", "*2\r\n" NIL OK, "item:new"},
        {"SET item:new v\r\nINCR item:new\r\n", "*2\r\n" OK "-ERR no\r\n", "item:new"},
        {"SET item:new v GET\r\n", "*1\r\n" NIL, "item:new"}};
    (void)state;
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        must_judge(&done[i]);
}

/* It has other commands than were counted. */
static void an_exec_that_is_not_understood_has_done_all(void **state)
{
    static const struct executed strange[] = {
        {"SET item:new v\r\n", "*2\r\n-OOM no\r\n-OOM no\r\n", "item:new"},
        {"SET item:new v\r\nPING\r\n", "*1\r\n-OOM no\r\n", "item:new"}};
    (void)state;
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        must_judge(&strange[i]);
}

/* By then the filter may be another, and the key's row not be there yet. */
static void what_a_command_waits_to_make_is_judged_when_it_is_made(void **state)
{
    static const char make[] = "BLMOVE list item:1 LEFT LEFT 0\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    follow_a_log(&bench);
    type(bench.client, make);
    must_not_ask(bench.keeper);
    assert_int_equal(hints_of(bench.client), 1);
    ((struct view *)bench.serving->view)->building = true;
    ((struct config *)serving_config(bench.serving))->sync = SYNC_POLL;
    cache_says(own(&bench), "$1\r\nv\r\n");
    mailbox_return(&next_hint(bench.keeper, "item:1")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "$1\r\nv\r\n");
    bench_finish(&bench);
}

static void who_goes_before_exec_leaves_no_hint(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    queue_new(&bench);
    client_close(bench.client);
    must_reply(bench.client, "");
    must_not_ask(bench.keeper);
    assert_false(is_being_written(&bench));
    bench_finish(&bench);
}

/* What EXEC did nobody knows. */
static void who_goes_behind_exec_leaves_a_hint(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    queue_new(&bench);
    type(bench.client, EXEC);
    cache_is_lost(own(&bench));
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, "-NESTGUARD cache down\r\n");
    bench_finish(&bench);
}

/* Each by its own word; the first is refused by it. */
static void behind_a_refused_multi_writes_are_hints_by_themselves(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI SET_NEW SET_NEW EXEC);
    cache_says(own(&bench), "-NOPERM no\r\n");
    cache_says(own(&bench), "-NOPERM no\r\n");
    must_not_ask(bench.keeper);
    cache_says(own(&bench), OK);
    struct write_request *hint = next_hint(bench.keeper, "item:new");
    cache_says(own(&bench), "-ERR EXEC without MULTI\r\n");
    must_not_ask(bench.keeper);
    mailbox_return(&hint->message);
    hear_keeper(&bench);
    must_reply(bench.client, "-NOPERM no\r\n-NOPERM no\r\n" OK "-ERR EXEC without MULTI\r\n");
    assert_false(is_being_written(&bench));
    assert_int_equal(hints_of(bench.client), 1);
    bench_finish(&bench);
}

/* Too much to be admitted until then: it has its places, and EXEC's reply is waited for all the
 * same. */
static void very_much_that_is_queued_is_a_hint_once_it_is_executed(void **state)
{
    enum { LENGTH = 9000 };
    char command[LENGTH + 100], key[LENGTH + 1];
    size_t places = override_places(LENGTH);
    (void)state;
    snprintf(key, sizeof key, "item:%0*d", LENGTH - 5, 0);
    snprintf(command, sizeof command, "SET %s v\r\n", key);
    for (int executed = 0; executed < 2; executed++) {
        struct bench bench;
        bench_init(&bench, "");
        type(bench.client, MULTI);
        type(bench.client, command);
        cache_says(own(&bench), OK);
        cache_says(own(&bench), QUEUED);
        must_not_ask(bench.keeper);
        must_reply(bench.client, OK QUEUED);
        assert_int_equal(hints_of(bench.client), places);
        type(bench.client, executed ? EXEC : DISCARD);
        cache_says(own(&bench), executed ? "*1\r\n" OK : OK);
        if (executed)
            mailbox_return(&next_hint(bench.keeper, key)->message);
        hear_keeper(&bench);
        must_reply(bench.client, executed ? "*1\r\n" OK : OK);
        must_not_ask(bench.keeper);
        assert_int_equal(hints_of(bench.client), executed ? places : 0);
        assert_int_equal(overrides_count(&bench.serving->overrides), 0);
        bench_finish(&bench);
    }
}

static void inside_a_transaction_nothing_may_change_the_connection(void **state)
{
    static const char *const commands[] = {SUBSCRIBE, MONITOR, "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI);
    must_send(own(&bench), MULTI);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        type(bench.client, commands[i]);
        must_send(own(&bench), "*1\r\n$3\r\nGET\r\n"); /* so that the cache gives it up */
        cache_says(own(&bench), "-ERR wrong number\r\n");
        must_reply(bench.client, "-NESTGUARD unsupported: inside MULTI nothing may change the "
                                 "connection\r\n");
    }
    type(bench.client, EXEC);
    cache_says(own(&bench), "-EXECABORT\r\n");
    must_reply(bench.client, "-EXECABORT\r\n");
    bench_finish(&bench);
}

/* Outside of one, lookups are answered as ever, though the connection is the client's own. */
static void a_watching_client_is_guarded(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, WATCH GET_ABSENT);
    must_send(own(&bench), WATCH);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK NIL);
    assert_int_equal(states_of(&bench), PINNED_WATCH);
    type(bench.client, "*1\r\n$7\r\nUNWATCH\r\n");
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    assert_int_equal(states_of(&bench), 0);
    bench_finish(&bench);
}

#define CROSSSLOT "-CROSSSLOT no\r\n"

static void a_watch_that_is_refused_holds_nothing_whatever_is_asked_behind_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, WATCH PING);
    cache_says(own(&bench), CROSSSLOT);
    assert_int_equal(states_of(&bench), 0);
    cache_says(own(&bench), "+PONG\r\n");
    must_reply(bench.client, CROSSSLOT "+PONG\r\n");
    bench_finish(&bench);
}

/* One of another spell, or one of several, says nothing of the others. */
static void what_another_watch_has_begun_stays(void **state)
{
    static const char *const spells[] = {WATCH "*1\r\n$7\r\nUNWATCH\r\n" WATCH, WATCH PING WATCH};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bench bench;
        bench_init(&bench, "");
        type(bench.client, spells[i]);
        cache_says(own(&bench), CROSSSLOT);
        cache_says(own(&bench), OK);
        assert_int_equal(states_of(&bench), PINNED_WATCH);
        cache_says(own(&bench), OK);
        assert_int_equal(states_of(&bench), PINNED_WATCH);
        bench.client->pinned.states = 0;
        bench_finish(&bench);
    }
}

/* What was sent before over the shared connection is done before the first command on the own. */
static void the_own_connection_waits_for_what_was_sent_before(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1 MULTI);
    assert_true(own(&bench)->held);
    cache_says(bench.shared, "$3\r\none\r\n");
    must_reply(bench.client, "$3\r\none\r\n");
    assert_false(own(&bench)->held);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

/* Behind a MULTI nothing is done: it was meant for the transaction. */
static void without_room_for_a_connection_it_is_an_error(void **state)
{
    static const char busy[] = "-NESTGUARD busy: own_connections are used up\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "own_connections: 1\n");
    struct client *other = client_add(&bench.clients);
    type(other, MULTI);
    type(bench.client, BLPOP);
    must_reply(bench.client, busy);
    assert_int_equal(bench.client->state, CLIENT_OPEN);
    size_t asked = bench.shared->count;
    type(bench.client, MULTI SET_NEW EXEC);
    must_reply(bench.client, busy);
    assert_int_equal(bench.client->state, CLIENT_LEAVING);
    assert_int_equal(bench.shared->count, asked);
    assert_int_equal(states_of(&bench), 0);
    other->pinned.states = 0;
    bench_finish(&bench);
}

/* ---- what waits ---- */

static void a_blocking_command_may_take_as_long_as_it_likes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, BLPOP GET_ABSENT);
    must_send(own(&bench), BLPOP);
    assert_true(upstream_is_waiting(own(&bench)));
    must_reply(bench.client, "");
    cache_says(own(&bench), "*-1\r\n");
    must_reply(bench.client, "*-1\r\n" NIL);
    assert_int_equal(states_of(&bench), 0);
    bench_finish(&bench);
}

/* It is only queued there. */
static void a_blocking_command_in_a_transaction_does_not_wait(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI BLPOP);
    cache_says(own(&bench), OK);
    assert_false(upstream_is_waiting(own(&bench)));
    cache_says(own(&bench), QUEUED);
    must_reply(bench.client, OK QUEUED);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

/* ---- subscriptions ---- */

static void behind_a_subscription_nothing_is_served_before_its_reply(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SUBSCRIBE GET_ABSENT);
    must_send(own(&bench), SUBSCRIBE);
    cache_says(own(&bench), SUBSCRIBED("a", "1"));
    must_reply(bench.client, SUBSCRIBED("a", "1"));
    cache_says(own(&bench), SUBSCRIBED("b", "2"));
    must_reply(bench.client, SUBSCRIBED("b", "2"));
    must_send(own(&bench), GET_ABSENT); /* the cache's to refuse, in RESP2 */
    cache_says(own(&bench), "-ERR Can't execute 'get'\r\n");
    must_reply(bench.client, "-ERR Can't execute 'get'\r\n");
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

static void the_last_unsubscription_ends_the_state(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SUBSCRIBE);
    cache_says(own(&bench), SUBSCRIBED("a", "1"));
    cache_says(own(&bench), SUBSCRIBED("b", "2"));
    assert_int_equal(states_of(&bench), PINNED_SUBSCRIBED);
    type(bench.client, "*1\r\n$11\r\nUNSUBSCRIBE\r\n" GET_ABSENT); /* of both */
    cache_says(own(&bench), UNSUBSCRIBED("a", "1"));
    assert_int_equal(states_of(&bench), PINNED_SUBSCRIBED);
    cache_says(own(&bench), UNSUBSCRIBED("b", "0"));
    assert_int_equal(states_of(&bench), 0);
    must_reply(bench.client, SUBSCRIBED("a", "1") SUBSCRIBED("b", "2") UNSUBSCRIBED("a", "1")
                                 UNSUBSCRIBED("b", "0") NIL);
    bench_finish(&bench);
}

static void a_refused_subscription_leaves_no_state(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, SUBSCRIBE GET_ABSENT);
    cache_says(own(&bench), "-NOPERM no\r\n");
    must_reply(bench.client, "-NOPERM no\r\n" NIL);
    assert_int_equal(states_of(&bench), 0);
    bench_finish(&bench);
}

static void a_monitor_is_one_when_the_cache_says_so(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MONITOR GET_ABSENT);
    cache_says(own(&bench), "-NOPERM no\r\n");
    must_reply(bench.client, "-NOPERM no\r\n" NIL);
    assert_int_equal(states_of(&bench), 0);
    type(bench.client, MONITOR);
    cache_says(own(&bench), OK);
    assert_int_equal(states_of(&bench), PINNED_MONITOR);
    cache_says(own(&bench), "+1700000000.1 [0 1:1] \"PING\"\r\n");
    must_reply(bench.client, OK "+1700000000.1 [0 1:1] \"PING\"\r\n");
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

/* ---- other states ---- */

static void a_tracking_client_may_not_read_guarded_keys(void **state)
{
    static const char track[] = "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n";
    static const char mget[] = "*3\r\n$4\r\nMGET\r\n$5\r\nother\r\n$6\r\nitem:1\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, track);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    must_send(own(&bench), track);
    for (int i = 0; i < 2; i++) {
        type(bench.client, i ? mget : GET_ITEM_1);
        struct span reply = buffer_span(&bench.client->replies.out);
        assert_true(span_starts(reply, "-NESTGUARD tracking"));
        buffer_clear(&bench.client->replies.out);
    }
    must_send(own(&bench), "");
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

static void another_database_has_other_keys(void **state)
{
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, select);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    must_send(own(&bench), select);
    type(bench.client, GET_ABSENT SET_NEW);
    must_send(own(&bench), GET_ABSENT SET_NEW);
    must_not_ask(bench.keeper);
    cache_says(own(&bench), NIL); /* its word there */
    cache_says(own(&bench), OK);
    must_reply(bench.client, NIL OK);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

/* What it was to end went with the connection. */
static void reset_never_fails(void **state)
{
    static const char *const before[] = {MULTI, "*2\r\n$5\r\nWATCH\r\n$1\r\nk\r\n"};
    struct bench bench;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bench_init(&bench, "");
        type(bench.client, before[i]);
        cache_says(own(&bench), OK);
        must_reply(bench.client, OK);
        struct upstream *had = own(&bench);
        type(bench.client, "*1\r\n$5\r\nRESET\r\n" GET_ABSENT);
        cache_is_lost(had);
        must_reply(bench.client, "+RESET\r\n" NIL);
        assert_int_equal(bench.client->state, CLIENT_OPEN);
        assert_ptr_equal(bench.client->upstream, bench.shared);
        bench_finish(&bench);
    }
}

static void reset_ends_every_state(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, MULTI);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    struct upstream *had = own(&bench);
    type(bench.client, "*1\r\n$5\r\nRESET\r\n" GET_ABSENT);
    must_reply(bench.client, ""); /* the cache has not said so yet */
    cache_says(had, "+RESET\r\n");
    must_reply(bench.client, "+RESET\r\n" NIL);
    assert_true(had->closed);
    assert_null(bench.client->pinned.own);
    assert_ptr_equal(bench.client->upstream, bench.shared);
    bench_finish(&bench);
}

/* Whether the cache has agreed to a replica or not. */
static void a_relay_passes_what_a_replica_says_and_bytes_of_any_kind_back(void **state)
{
    static const char psync[] = "*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n";
    static const char ack[] = "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, psync);
    must_send(own(&bench), psync);
    assert_true(own(&bench)->relays);
    cache_says(own(&bench), "no reply");
    must_reply(bench.client, "no reply");
    type(bench.client, ack);
    must_send(own(&bench), ack);
    type(bench.client, "\r\n");
    must_send(own(&bench), "\n");
    type(bench.client, "*1\r\n$4\r\nPING\r\n");
    must_send(own(&bench), "");
    must_reply(bench.client,
               "-NESTGUARD unsupported: behind SYNC and PSYNC only REPLCONF is passed "
               "on; connect anew\r\n");
    assert_int_equal(bench.client->state, CLIENT_LEAVING);
    bench.client->pinned.states = 0;
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_answered_here_inside_a_transaction),
        cmocka_unit_test(what_tells_of_rows_is_given_up_at_a_server_that_is_doubted_by_then),
        cmocka_unit_test(what_tells_of_none_is_done_there),
        cmocka_unit_test(a_lookup_behind_a_refused_multi_is_not_believed),
        cmocka_unit_test(a_late_refusal_does_not_end_the_next_transaction),
        cmocka_unit_test(a_write_inside_a_transaction_is_a_hint_once_it_is_executed),
        cmocka_unit_test(what_stands_behind_a_transaction_finds_what_that_is_to_write),
        cmocka_unit_test(what_is_not_executed_leaves_no_hint),
        cmocka_unit_test(a_write_that_exec_was_refused_leaves_no_hint),
        cmocka_unit_test(a_key_that_exec_has_made_by_any_command_is_a_hint),
        cmocka_unit_test(an_exec_that_is_not_understood_has_done_all),
        cmocka_unit_test(what_a_command_waits_to_make_is_judged_when_it_is_made),
        cmocka_unit_test(who_goes_before_exec_leaves_no_hint),
        cmocka_unit_test(who_goes_behind_exec_leaves_a_hint),
        cmocka_unit_test(behind_a_refused_multi_writes_are_hints_by_themselves),
        cmocka_unit_test(very_much_that_is_queued_is_a_hint_once_it_is_executed),
        cmocka_unit_test(inside_a_transaction_nothing_may_change_the_connection),
        cmocka_unit_test(a_watching_client_is_guarded),
        cmocka_unit_test(a_watch_that_is_refused_holds_nothing_whatever_is_asked_behind_it),
        cmocka_unit_test(what_another_watch_has_begun_stays),
        cmocka_unit_test(the_own_connection_waits_for_what_was_sent_before),
        cmocka_unit_test(without_room_for_a_connection_it_is_an_error),
        cmocka_unit_test(a_blocking_command_may_take_as_long_as_it_likes),
        cmocka_unit_test(a_blocking_command_in_a_transaction_does_not_wait),
        cmocka_unit_test(behind_a_subscription_nothing_is_served_before_its_reply),
        cmocka_unit_test(the_last_unsubscription_ends_the_state),
        cmocka_unit_test(a_refused_subscription_leaves_no_state),
        cmocka_unit_test(a_monitor_is_one_when_the_cache_says_so),
        cmocka_unit_test(a_tracking_client_may_not_read_guarded_keys),
        cmocka_unit_test(another_database_has_other_keys),
        cmocka_unit_test(reset_never_fails),
        cmocka_unit_test(reset_ends_every_state),
        cmocka_unit_test(a_relay_passes_what_a_replica_says_and_bytes_of_any_kind_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
