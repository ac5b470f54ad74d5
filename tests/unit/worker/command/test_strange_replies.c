/* A reply that is neither what its command answers nor an error is another's: nothing follows from
 * it, and the client is not told that it does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"

#define OK "+OK\r\n"
#define STRANGE "-NESTGUARD cache error: its reply is none that this command has\r\n"
#define HELLO_2 "*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:99\r\n"
#define HELLO_3 "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:99\r\n"
/* As a debugger says it, a shifted reply, and what merely begins like the right one. */
#define OTHERS                                                                                     \
    ":1\r\n", "$2\r\nOK\r\n", NIL, "*1\r\n+OK\r\n", "*2\r\n$5\r\nproto\r\n:9\r\n", "+QUEUED\r\n",  \
        "+OKAY\r\n", "+1699.1 [0 lua] \"x\"\r\n", "*-1\r\n", "%0\r\n"
static const char *const others[] = {OTHERS};
enum { COUNT = sizeof others / sizeof *others };

static void begin(struct bench *bench)
{
    bench_init(bench, "password: sesame\n");
    type(bench->client, "AUTH sesame\r\n");
    must_reply(bench->client, OK);
}

static struct upstream *own(struct bench *bench)
{
    assert_non_null(bench->client->pinned.own);
    buffer_clear(&bench->client->pinned.own->out);
    return bench->client->pinned.own;
}

static void end(struct bench *bench)
{
    bench->client->pinned.states = 0;
    buffer_clear(&bench->shared->out);
    bench_finish(bench);
}

/* Its reply is said, and the client told of nothing but that. */
static void must_be_strange(struct bench *bench, const char *line, const char *said)
{
    type(bench->client, line);
    cache_says(own(bench), said);
    must_reply(bench->client, STRANGE);
    assert_int_equal(bench->client->state, CLIENT_LEAVING);
}

static void nobody_is_logged_in_by_it(void **state)
{
    static const char *const logins[] = {"AUTH alice pw\r\n", "HELLO 3 AUTH alice pw\r\n"};
    (void)state;
    for (size_t i = 0; i < 2 * COUNT; i++) {
        struct bench bench;
        bench_init(&bench, "password: sesame\n");
        must_be_strange(&bench, logins[i % 2], others[i / 2]);
        assert_false(bench.client->authenticated);
        assert_false(bench.client->pinned.states & PINNED_USER);
        assert_null(bench.client->self.user);
        assert_false(bench.client->replies.resp3);
        end(&bench);
    }
}

static void who_the_cache_takes_is(void **state)
{
    static const struct {
        const char *line, *said;
    } rows[] = {{"AUTH alice pw\r\n", OK},
                {"HELLO 3 AUTH alice pw\r\n", HELLO_3},
                {"HELLO 2 AUTH alice pw\r\n", HELLO_2}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bench bench;
        bench_init(&bench, "password: sesame\n");
        type(bench.client, rows[i].line);
        cache_says(own(&bench), rows[i].said);
        assert_true(bench.client->authenticated);
        assert_true(bench.client->pinned.states & PINNED_USER);
        assert_string_equal(bench.client->self.user, "alice");
        assert_int_equal(bench.client->replies.resp3, i == 1);
        buffer_clear(&bench.client->replies.out);
        end(&bench);
    }
}

static void log_in(struct bench *bench)
{
    begin(bench);
    type(bench->client, "AUTH alice pw\r\n");
    cache_says(own(bench), OK);
    must_reply(bench->client, OK);
}

static void a_user_stays_one(void **state)
{
    static const char *const lines[] = {"AUTH default sesame\r\n",
                                        "HELLO 2 AUTH default sesame\r\n"};
    (void)state;
    for (size_t i = 0; i < 2 * COUNT; i++) {
        struct bench bench;
        log_in(&bench);
        must_be_strange(&bench, lines[i % 2], others[i / 2]);
        assert_true(bench.client->pinned.states & PINNED_USER);
        assert_true(bench.client->replies.no_fallback);
        end(&bench);
    }
}

/* What is told of a user's own connection is told with the cache's leave. */
static void it_gives_no_leave(void **state)
{
    static const struct {
        const char *line, *said[4];
    } rows[] = {{"CLIENT GETNAME\r\n", {":1\r\n", OK, "*0\r\n", "%0\r\n"}},
                {"CLIENT ID\r\n", {"$1\r\n1\r\n", OK, "*0\r\n", NIL}},
                {"CLIENT INFO\r\n", {":1\r\n", OK, "*0\r\n", NIL}},
                {"CLIENT GETREDIR\r\n", {"$1\r\n1\r\n", OK, "*0\r\n", NIL}},
                {"CLIENT SETNAME bob\r\n", {":1\r\n", "+OKAY\r\n", "*0\r\n", NIL}},
                {"CLIENT SETINFO lib-name bob\r\n", {":1\r\n", "+QUEUED\r\n", "*0\r\n", NIL}},
                {"CLIENT LIST\r\n", {":1\r\n", OK, "*0\r\n", NIL}},
                {"CLIENT KILL TYPE normal\r\n", {"$1\r\n1\r\n", OK, "*0\r\n", NIL}},
                {"BF.EXISTS items 1\r\n", {"$1\r\n1\r\n", OK, "*0\r\n", NIL}}};
    struct bench bench;
    (void)state;
    log_in(&bench);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 4 && rows[i].said[j]; j++) {
            type(bench.client, rows[i].line);
            cache_says(own(&bench), rows[i].said[j]);
            must_reply(bench.client, STRANGE);
            must_not_ask(bench.keeper);
            assert_null(bench.client->self.name);
            assert_null(bench.client->self.library);
            assert_int_equal(bench.client->state, CLIENT_OPEN);
        }
    end(&bench);
}

/* Who may not is refused before a server looks at words that it does not know. */
static void a_server_that_does_not_know_the_words_gives_it(void **state)
{
    static const struct {
        const char *line, *said, *reply;
    } rows[] = {
        {"CLIENT ID\r\n", ":7\r\n", ":1\r\n"},
        {"CLIENT GETNAME\r\n", NIL, NIL},
        {"CLIENT GETREDIR\r\n",
         "-ERR Unknown subcommand or wrong number of arguments for 'GETREDIR'. Try CLIENT "
         "HELP.\r\n",
         ":-1\r\n"},
        {"CLIENT SETINFO lib-name bob\r\n",
         "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n", OK},
        {"CLIENT ID\r\n", "-NOPERM no\r\n", "-NOPERM no\r\n"},
        {"CLIENT ID\r\n", "-ERR unknown command `CLIENT`\r\n", "-ERR unknown command `CLIENT`\r\n"},
        {"CLIENT ID\r\n", "-ERR something else\r\n", "-ERR something else\r\n"}};
    struct bench bench;
    (void)state;
    log_in(&bench);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        type(bench.client, rows[i].line);
        cache_says(own(&bench), rows[i].said);
        must_reply(bench.client, rows[i].reply);
    }
    assert_string_equal(bench.client->self.library, "bob");
    end(&bench);
}

static void no_protocol_is_spoken_by_it(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench);
    type(bench.client, "HELLO 3\r\n");
    cache_says(last_upstream, "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
    must_reply(bench.client, STRANGE);
    assert_false(bench.client->replies.resp3);
    assert_int_equal(bench.client->state, CLIENT_LEAVING);
    end(&bench);
}

static const char *const watch = "WATCH a\r\n";

static void must_change_nothing(const char *line, const char *said, unsigned states)
{
    struct bench bench;
    begin(&bench);
    type(bench.client, watch);
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    must_be_strange(&bench, line, said);
    assert_int_equal(bench.client->pinned.states, states);
    assert_false(bench.client->no_evict);
    end(&bench);
}

static void no_state_of_a_connection_follows_from_it(void **state)
{
    static const char *const lines[] = {"SELECT 5\r\n", "RESET\r\n", "CLIENT NO-EVICT ON\r\n",
                                        "CLIENT TRACKING ON BCAST\r\n", "CLIENT TRACKING OFF\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t j = 0; j < COUNT; j++)
            must_change_nothing(lines[i], others[j], PINNED_WATCH);
    must_change_nothing("RESET\r\n", OK, PINNED_WATCH);
    must_change_nothing("WATCH b\r\n", ":1\r\n", PINNED_WATCH);
}

/* The client is told that there was none, and has its transaction still. */
static void a_refused_reset_is_none(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench);
    type(bench.client, MULTI "RESET\r\n");
    cache_says(own(&bench), OK);
    cache_says(own(&bench), "-ERR unknown command `RESET`\r\n");
    must_reply(bench.client, OK "-ERR unknown command `RESET`\r\n");
    assert_int_equal(bench.client->pinned.states, PINNED_MULTI);
    assert_true(bench.client->authenticated);
    end(&bench);
}

static void a_transaction_is_not_given_up_by_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        struct bench bench;
        begin(&bench);
        type(bench.client, MULTI GET_ITEM_1);
        cache_says(own(&bench), OK);
        cache_says(own(&bench), QUEUED);
        must_reply(bench.client, OK QUEUED);
        own(&bench)->doubted = i % 2; /* then the guard itself gives it up */
        must_be_strange(&bench, i % 2 ? EXEC : "DISCARD\r\n", others[i]);
        end(&bench);
    }
}

/* ---- lookups ---- */

static void a_lookup_is_answered_by_the_row(void **state)
{
    static const char *const said[] = {":1\r\n", OK, "+QUEUED\r\n", "*1\r\n$1\r\n1\r\n"};
    struct bench bench;
    (void)state;
    begin(&bench);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        type(bench.client, GET_ITEM_1);
        cache_says(bench.shared, said[i]);
        load_row(&bench, "item:1", "one");
        must_reply(bench.client, "$3\r\none\r\n");
    }
    end(&bench);
}

static void none_is_counted_by_it(void **state)
{
    static const char *const said[] = {"$1\r\n1\r\n", OK, "+QUEUED\r\n", "*1\r\n:1\r\n", NIL};
    struct bench bench;
    (void)state;
    begin(&bench);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        type(bench.client, "EXISTS item:1 other\r\n");
        cache_says(bench.shared, said[i]);
        cache_says(bench.shared, ":1\r\n");
        load_row(&bench, "item:1", "one");
        must_reply(bench.client, ":2\r\n");
        type(bench.client, "EXISTS item:1 other\r\n");
        cache_says(bench.shared, ":1\r\n");
        cache_says(bench.shared, said[i]);
        must_reply(bench.client, STRANGE);
    }
    end(&bench);
}

/* Nor is what was somebody else's told. */
static void no_element_is_taken_from_it(void **state)
{
    static const char *const said[] = {"$6\r\nsecret\r\n", "*1\r\n$6\r\nsecret\r\n",
                                       "*3\r\n" NIL NIL "$6\r\nsecret\r\n", "*2\r\n:1\r\n*0\r\n"};
    struct bench bench;
    (void)state;
    begin(&bench);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        type(bench.client, "MGET item:1 other\r\n");
        cache_says(bench.shared, said[i]);
        load_row(&bench, "item:1", "one");
        must_reply(bench.client, "*2\r\n$3\r\none\r\n" STRANGE);
    }
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_logged_in_by_it),
        cmocka_unit_test(who_the_cache_takes_is),
        cmocka_unit_test(a_user_stays_one),
        cmocka_unit_test(it_gives_no_leave),
        cmocka_unit_test(a_server_that_does_not_know_the_words_gives_it),
        cmocka_unit_test(no_protocol_is_spoken_by_it),
        cmocka_unit_test(no_state_of_a_connection_follows_from_it),
        cmocka_unit_test(a_refused_reset_is_none),
        cmocka_unit_test(a_transaction_is_not_given_up_by_it),
        cmocka_unit_test(a_lookup_is_answered_by_the_row),
        cmocka_unit_test(none_is_counted_by_it),
        cmocka_unit_test(no_element_is_taken_from_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
