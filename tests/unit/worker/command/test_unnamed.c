/* Commands that the table does not name, in a cluster: what is asked of them, and where they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "fakes/cluster.h"
#include "worker/upstream/pool.h"

#define MOD(key) "*2\r\n$3\r\nMOD\r\n$1\r\n" key "\r\n"
#define ASK_INFO "*3\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$3\r\nMOD\r\n"
#define ASK_KEYS(key) "*4\r\n$7\r\nCOMMAND\r\n$7\r\nGETKEYS\r\n$3\r\nMOD\r\n$1\r\n" key "\r\n"
#define INFO(flags, first) "*1\r\n*6\r\n$3\r\nmod\r\n:-2\r\n" flags ":" first "\r\n:1\r\n:1\r\n"
#define PLAIN "*0\r\n"
#define FIRST_WORD INFO(PLAIN, "1")
#define NO_KEY INFO(PLAIN, "0")
#define HIDDEN INFO("*1\r\n+movablekeys\r\n", "0")
#define WAITS INFO("*1\r\n+blocking\r\n", "1")
#define UNKNOWN "*1\r\n*-1\r\n"
#define OK "+OK\r\n"

enum { HOME, OTHER }; /* nodes: the client's own, and the other one */

struct fleet {
    struct bench bench;
    struct redis_cluster cluster;
    struct client *client;
};

static struct upstream *shared(struct fleet *fleet, int node)
{
    return pool_shared(fleet->bench.serving->pool, node, false, fleet->client->id);
}

static void begin(struct fleet *fleet, const char *settings)
{
    struct bench *bench = &fleet->bench;
    bench_init(bench, settings);
    pool_close_idle(bench->serving->pool); /* it led to one server */
    fake_cluster_init(&fleet->cluster);
    bench->serving->route->cluster = &fleet->cluster;
    pool_follow(bench->serving->pool);
    fleet->client = client_add(&bench->clients);
    assert_int_equal(pool_node_for(bench->serving->pool, fleet->client->id), HOME);
    shared(fleet, OTHER);
}

static void end(struct fleet *fleet)
{
    bench_finish(&fleet->bench);
    fake_cluster_finish(&fleet->cluster);
}

/* What the cache answers to the question that it must have been asked. */
static void tell(struct fleet *fleet, const char *question, const char *answer)
{
    must_reply(fleet->client, "");
    must_send(shared(fleet, HOME), question);
    cache_says(shared(fleet, HOME), answer);
    must_reply(fleet->client, "");
}

/* It must have been sent there, over a connection of the client's own, and is answered. */
static struct upstream *serve_at(struct fleet *fleet, int node, const char *command)
{
    const struct redis_place *place = pool_place(fleet->bench.serving->pool, node);
    struct upstream *own = fleet->client->pinned.own;
    assert_non_null(own);
    assert_true(redis_place_equal(upstream_node(own), place));
    must_send(own, command);
    must_send(shared(fleet, HOME), "");
    must_send(shared(fleet, OTHER), "");
    cache_says(own, OK);
    must_reply(fleet->client, OK);
    return own;
}

static void it_goes_where_its_key_is_and_the_cache_is_asked_once(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, FIRST_WORD);
    struct upstream *own = serve_at(&fleet, OTHER, MOD("a"));
    type(fleet.client, MOD("d"));
    assert_ptr_equal(serve_at(&fleet, OTHER, MOD("d")), own);
    type(fleet.client, MOD("b"));
    assert_ptr_not_equal(serve_at(&fleet, HOME, MOD("b")), own);
    assert_true(own->closed);
    end(&fleet);
}

static void without_a_key_it_goes_anywhere(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, NO_KEY);
    serve_at(&fleet, HOME, MOD("a"));
    type(fleet.client, MOD("a"));
    serve_at(&fleet, HOME, MOD("a"));
    end(&fleet);
}

/* The key that it should have is not there: any node says so. */
static void with_too_few_words_it_goes_anywhere(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, "*1\r\n$3\r\nMOD\r\n");
    tell(&fleet, ASK_INFO, FIRST_WORD);
    serve_at(&fleet, HOME, "*1\r\n$3\r\nMOD\r\n");
    end(&fleet);
}

static void keys_that_only_the_cache_finds_are_asked_for_each_time(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, HIDDEN);
    for (int i = 0; i < 2; i++) {
        tell(&fleet, ASK_KEYS("a"), "*1\r\n$1\r\na\r\n");
        serve_at(&fleet, OTHER, MOD("a"));
        type(fleet.client, i ? MOD("b") : MOD("a"));
    }
    tell(&fleet, ASK_KEYS("b"), "-ERR The command has no key arguments\r\n");
    serve_at(&fleet, OTHER, MOD("b")); /* any will do: the one that it has */
    type(fleet.client, "*1\r\n$3\r\nMOD\r\n");
    serve_at(&fleet, OTHER, "*1\r\n$3\r\nMOD\r\n");
    end(&fleet);
}

/* A module may be loaded later. */
static void that_the_cache_does_not_know_it_is_not_kept(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    for (int i = 0; i < 2; i++) {
        type(fleet.client, MOD("a"));
        tell(&fleet, ASK_INFO, UNKNOWN);
        serve_at(&fleet, HOME, MOD("a"));
    }
    end(&fleet);
}

static void it_is_asked_anew_when_nodes_are_others(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, NO_KEY);
    serve_at(&fleet, HOME, MOD("a"));
    pool_tell_changed(fleet.bench.serving->pool);
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, FIRST_WORD);
    serve_at(&fleet, OTHER, MOD("a"));
    end(&fleet);
}

static void what_stands_behind_it_is_served_behind_it(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, PING MOD("a") MOD("b") PING);
    must_send(shared(&fleet, HOME), PING ASK_INFO);
    cache_says(shared(&fleet, HOME), "+PONG\r\n");
    must_reply(fleet.client, "+PONG\r\n");
    cache_says(shared(&fleet, HOME), FIRST_WORD);
    must_reply(fleet.client, "");
    serve_at(&fleet, OTHER, MOD("a"));
    serve_at(&fleet, HOME, MOD("b"));
    must_send(shared(&fleet, HOME), PING);
    end(&fleet);
}

static void one_that_waits_may_do_so_for_ever(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a") PING);
    tell(&fleet, ASK_INFO, WAITS);
    assert_true(upstream_is_waiting(fleet.client->pinned.own));
    assert_false(client_wants_input(fleet.client));
    serve_at(&fleet, OTHER, MOD("a"));
    end(&fleet);
}

/* And it is asked again. */
static void a_question_that_is_not_answered_is_the_commands_error(void **state)
{
    static const char *const answers[][2] = {
        {NULL, "-NESTGUARD cache down\r\n"},
        {"-NOPERM no\r\n", "-NESTGUARD cache error: it does not say which of this command's words "
                           "are keys: NOPERM no\r\n"},
        {OK, "-NESTGUARD cache error: it does not say which of this command's words are keys\r\n"}};
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        type(fleet.client, MOD("a") MOD("a"));
        must_send(shared(&fleet, HOME), ASK_INFO);
        if (answers[i][0])
            cache_says(shared(&fleet, HOME), answers[i][0]);
        else
            cache_is_lost(shared(&fleet, HOME));
        must_reply(fleet.client, answers[i][1]);
        tell(&fleet, ASK_INFO, UNKNOWN);
        serve_at(&fleet, HOME, MOD("a"));
    }
    end(&fleet);
}

static void so_it_is_of_its_keys(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    tell(&fleet, ASK_INFO, HIDDEN);
    must_send(shared(&fleet, HOME), ASK_KEYS("a"));
    cache_is_lost(shared(&fleet, HOME));
    must_reply(fleet.client, "-NESTGUARD cache down\r\n");
    assert_null(fleet.client->pinned.own);
    end(&fleet);
}

static void a_transaction_begins_where_its_key_is(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MULTI MOD("a"));
    must_reply(fleet.client, OK);
    tell(&fleet, ASK_INFO, FIRST_WORD);
    must_send(fleet.client->pinned.own, MULTI MOD("a"));
    cache_says(fleet.client->pinned.own, OK);
    cache_says(fleet.client->pinned.own, "+QUEUED\r\n");
    must_reply(fleet.client, "+QUEUED\r\n");
    type(fleet.client, MOD("b"));
    must_send(fleet.client->pinned.own, "*1\r\n$3\r\nGET\r\n");
    cache_says(fleet.client->pinned.own, "-ERR wrong\r\n");
    must_reply(fleet.client, "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
    end(&fleet);
}

static void a_transaction_is_given_up_when_the_cache_does_not_say(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MULTI MOD("a"));
    must_reply(fleet.client, OK);
    tell(&fleet, ASK_INFO, "-NOPERM no\r\n");
    must_send(fleet.client->pinned.own, MULTI "*1\r\n$3\r\nGET\r\n");
    cache_says(fleet.client->pinned.own, OK);
    cache_says(fleet.client->pinned.own, "-ERR wrong\r\n");
    must_reply(
        fleet.client,
        "-NESTGUARD cache error: it does not say which of this command's words are keys\r\n");
    end(&fleet);
}

/* As with one server: neither verdict nor hint. */
static void nothing_is_made_of_a_guarded_key(void **state)
{
    static const char command[] = "*2\r\n$3\r\nMOD\r\n$8\r\nitem:new\r\n";
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    int node = pool_node_of(fleet.bench.serving->pool, span_of("item:new"));
    type(fleet.client, command);
    tell(&fleet, ASK_INFO, FIRST_WORD);
    serve_at(&fleet, node, command);
    must_not_ask(fleet.bench.keeper);
    assert_int_equal(COUNTED(&fleet.bench, ITEMS, lookups), 0);
    end(&fleet);
}

static void one_that_is_typed_is_parsed_again(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, "MOD  a\r\n");
    tell(&fleet, ASK_INFO, FIRST_WORD);
    serve_at(&fleet, OTHER, MOD("a"));
    type(fleet.client, "MOD \"b\"\r\n");
    serve_at(&fleet, HOME, MOD("b"));
    end(&fleet);
}

/* Its bytes are others by then. */
static void with_quotes_it_cannot_be_and_is_refused(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, "MOD 'a'\r\n");
    must_reply(fleet.client, "-NESTGUARD unsupported: in a cluster an inline command that "
                             "nestguard does not know must be without quotes\r\n");
    must_send(shared(&fleet, HOME), "");
    end(&fleet);
}

static void before_auth_nothing_is_asked(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "password: secret\n");
    type(fleet.client, MOD("a"));
    must_reply(fleet.client, "-ERR unknown command 'MOD', with args beginning with: 'a' \r\n");
    must_send(shared(&fleet, HOME), "");
    end(&fleet);
}

static void who_has_gone_is_not_told(void **state)
{
    struct fleet fleet;
    (void)state;
    begin(&fleet, "");
    type(fleet.client, MOD("a"));
    must_send(shared(&fleet, HOME), ASK_INFO);
    client_close(fleet.client);
    cache_says(shared(&fleet, HOME), FIRST_WORD);
    assert_null(learned_find(pool_learned(fleet.bench.serving->pool), span_of("mod")));
    end(&fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_where_its_key_is_and_the_cache_is_asked_once),
        cmocka_unit_test(without_a_key_it_goes_anywhere),
        cmocka_unit_test(with_too_few_words_it_goes_anywhere),
        cmocka_unit_test(keys_that_only_the_cache_finds_are_asked_for_each_time),
        cmocka_unit_test(that_the_cache_does_not_know_it_is_not_kept),
        cmocka_unit_test(it_is_asked_anew_when_nodes_are_others),
        cmocka_unit_test(what_stands_behind_it_is_served_behind_it),
        cmocka_unit_test(one_that_waits_may_do_so_for_ever),
        cmocka_unit_test(a_question_that_is_not_answered_is_the_commands_error),
        cmocka_unit_test(so_it_is_of_its_keys),
        cmocka_unit_test(a_transaction_begins_where_its_key_is),
        cmocka_unit_test(a_transaction_is_given_up_when_the_cache_does_not_say),
        cmocka_unit_test(nothing_is_made_of_a_guarded_key),
        cmocka_unit_test(one_that_is_typed_is_parsed_again),
        cmocka_unit_test(with_quotes_it_cannot_be_and_is_refused),
        cmocka_unit_test(before_auth_nothing_is_asked),
        cmocka_unit_test(who_has_gone_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
