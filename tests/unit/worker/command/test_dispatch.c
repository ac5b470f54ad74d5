/* From bytes to decisions: which commands are taken, in which order, and when a client's input has
 * to wait or is its last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/client/pinned.h"

#define OK "+OK\r\n"
#define AUTH "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
#define NOAUTH "-NOAUTH Authentication required.\r\n"
#define QUIT "*1\r\n$4\r\nQUIT\r\n"
#define BAD "*1\r\nPING\r\n"

static int commands(const struct bench *bench)
{
    return (int)counter_read(&bench->serving->counters.commands);
}

/* ---- whole and unfinished commands ---- */

static void commands_are_taken_however_their_bytes_arrive(void **state)
{
    static const char input[] = GET_ABSENT GET_ITEM_1 "get item:x\r\n" PING;
    (void)state;
    for (size_t cut = 1; cut < sizeof input - 1; cut++) {
        struct bench bench;
        bench_init(&bench, "");
        type_bytes(bench.client, input, cut);
        type(bench.client, input + cut);
        must_send(bench.shared, GET_ITEM_1 PING);
        cache_says(bench.shared, "$3\r\none\r\n");
        cache_says(bench.shared, "+PONG\r\n");
        must_reply(bench.client, NIL "$3\r\none\r\n" NIL "+PONG\r\n");
        assert_int_equal(commands(&bench), 4);
        assert_int_equal(buffer_length(&bench.client->in), 0);
        bench_finish(&bench);
    }
}

/* Of a bulk whose length is known nothing is parsed again before it can be whole. */
static void an_unfinished_command_waits_for_as_many_bytes_as_it_takes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*2\r\n$4\r\nECHO\r\n$100\r\nabc");
    assert_int_equal(bench.client->need, strlen("*2\r\n$4\r\nECHO\r\n$100\r\n") + 102);
    type(bench.client, "def");
    assert_int_equal(client_input(bench.client).length, 0);
    assert_int_equal(commands(&bench), 0);
    bench_finish(&bench);
}

/* What was passed is overwritten meanwhile: parsed again it would be a protocol error. Behind it
 * the next command is measured from its own start. */
static void an_unfinished_command_of_many_arguments_is_not_parsed_again(void **state)
{
    enum { KEYS = 400, PIECE = 100 };
    struct bench bench;
    struct buffer command = {0};
    (void)state;
    bench_init(&bench, "");
    resp_write_array(&command, KEYS + 1);
    resp_write_bulk(&command, "EXISTS", 6);
    for (int i = 0; i < KEYS; i++)
        resp_write_bulk(&command, "item:nothing", 12);
    struct span all = buffer_span(&command);
    for (int round = 1; round <= 3; round++) {
        size_t have = PIECE;
        type_bytes(bench.client, all.at, have);
        for (; have + PIECE < all.length; have += PIECE) {
            size_t passed = bench.client->measure.scanned;
            memset(bench.client->in.bytes, '?', passed);
            type_bytes(bench.client, all.at + have, PIECE);
            memcpy(bench.client->in.bytes, all.at, passed);
        }
        assert_in_range(bench.client->measure.scanned, all.length / 2, all.length);
        type_bytes(bench.client, all.at + have, all.length - have);
        must_reply(bench.client, ":0\r\n");
        assert_int_equal(commands(&bench), round);
    }
    buffer_finish(&command);
    bench_finish(&bench);
}

static void a_pipeline_longer_than_a_batch_keeps_its_order(void **state)
{
    enum { GETS = 200 };
    char wanted[GETS * 6 + 1] = "";
    struct buffer input = {0};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int i = 0; i < GETS; i++) {
        if (i % 2)
            buffer_printf(&input, "*2\r\n$3\r\nGET\r\n$9\r\nitem:x%03d\r\n", i);
        else
            buffer_printf(&input, "*2\r\n$3\r\nGET\r\n$6\r\nitem:%d\r\n", i % 10);
    }
    type_bytes(bench.client, buffer_span(&input).at, buffer_length(&input));
    assert_int_equal(commands(&bench), GETS);
    assert_int_equal(bench.shared->count, GETS / 2);
    for (int i = 0; i < GETS; i++) {
        if (i % 2 == 0)
            cache_says(bench.shared, "$0\r\n\r\n");
        strcat(wanted, i % 2 ? NIL : "$0\r\n\r\n");
    }
    must_reply(bench.client, wanted);
    buffer_finish(&input);
    bench_finish(&bench);
}

static void clients_of_one_batch_get_their_own_replies(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct client *other = client_add(&bench.clients);
    client_speak(other, true);
    buffer_append(&bench.client->in, GET_ABSENT, strlen(GET_ABSENT));
    buffer_append(&other->in, GET_ABSENT BAD, strlen(GET_ABSENT BAD));
    turn_add(&bench.serving->turn, &bench.client->input_task);
    turn_add(&bench.serving->turn, &other->input_task);
    must_reply(bench.client, NIL);
    struct span replies = buffer_span(&other->replies.out);
    assert_true(span_starts(replies, "_\r\n-ERR Protocol error"));
    buffer_clear(&other->replies.out);
    assert_int_equal(bench.client->state, CLIENT_OPEN);
    assert_int_equal(other->state, CLIENT_LEAVING);
    bench_finish(&bench);
}

/* Parsing one writes over it; so it must not be parsed again behind one that made the client wait.
 */
static void an_inline_command_behind_a_settling_one_is_whole(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*1\r\n$7\r\nMONITOR\r\nECHO \"a \\\"b\\\" c\"\r\n");
    struct upstream *own = bench.client->pinned.own;
    cache_says(own, "-NOPERM no\r\n");
    must_reply(bench.client, "-NOPERM no\r\n");
    must_send(own, "*1\r\n$7\r\nMONITOR\r\n*2\r\n$4\r\nECHO\r\n$7\r\na \"b\" c\r\n");
    cache_says(own, "$7\r\na \"b\" c\r\n");
    must_reply(bench.client, "$7\r\na \"b\" c\r\n");
    bench_finish(&bench);
}

/* ---- who may ask ---- */

static void before_auth_nothing_is_served(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "password: secret\n");
    type(bench.client, GET_ABSENT GET_ITEM_1 SET_NEW PING);
    must_reply(bench.client, NOAUTH NOAUTH NOAUTH NOAUTH);
    must_send(bench.shared, "");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, lookups), 0);
    bench_finish(&bench);
}

/* As of Redis, which finds these out before it asks for a password. */
static void before_auth_some_errors_come_first(void **state)
{
    static const char *const rows[][2] = {
        {"EXEC\r\n",
         "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n"},
        {"EXEC x\r\n", "-EXECABORT Transaction discarded because of: wrong number of arguments for "
                       "'exec' command\r\n"},
        {"DISCARD\r\n", NOAUTH},
        {"get\r\n", "-ERR wrong number of arguments for 'get' command\r\n"},
        {"RESET x\r\n", "-ERR wrong number of arguments for 'reset' command\r\n"},
        {"NoSuch a b\r\n", "-ERR unknown command 'NoSuch', with args beginning with: 'a' 'b' \r\n"},
        {"NOSUCH \"a\\r\" \"b\\x00c\"\r\n",
         "-ERR unknown command 'NOSUCH', with args beginning with: 'a ' 'b' \r\n"},
        {"MODULE.GET a\r\n", NOAUTH},
        {"SELECT 0\r\n", NOAUTH},
        {"CLIENT ID\r\n", NOAUTH},
        {"SET a b c d e f g h i j k l\r\n", NOAUTH}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;
        bench_init(&bench, "password: secret\n");
        type(bench.client, rows[i][0]);
        must_reply(bench.client, rows[i][1]);
        must_send(bench.shared, "");
        must_not_ask(bench.keeper);
        bench_finish(&bench);
    }
}

static void what_follows_auth_in_a_pipeline_is_served(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "password: secret\n");
    type(bench.client, GET_ABSENT AUTH GET_ABSENT);
    must_reply(bench.client, NOAUTH OK NIL);
    bench_finish(&bench);
}

/* A stranger must not make the guard keep much. */
static void a_stranger_may_not_send_much(void **state)
{
    static const char *const rows[][2] = {
        {"*11\r\n$4\r\nAUTH\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"},
        {"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*2\r\n$4\r\nAUTH\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"},
        {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;
        bench_init(&bench, "password: secret\n");
        type(bench.client, rows[i][0]);
        must_reply(bench.client, rows[i][1]);
        assert_int_equal(bench.client->state, CLIENT_LEAVING);
        bench_finish(&bench);
    }
}

/* A browser that was led to this port: its request line and headers look like inline commands. */
static void a_web_page_gets_no_command_through(void **state)
{
    static const char *const requests[] = {"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bench bench;
        bench_init(&bench, "");
        type(bench.client, requests[i]);
        type(bench.client, "DEL item:1\r\n");
        assert_int_equal(bench.client->state, CLIENT_CLOSED);
        must_not_ask(bench.keeper);
        assert_true(!bench.shared->count || i == 1); /* GET with two words is one for the cache */
        bench_finish(&bench);
    }
}

/* ---- the last command ---- */

static void what_stands_behind_the_end_is_not_served(void **state)
{
    static const char *const ends[] = {QUIT, BAD};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char input[200];
        struct bench bench;
        bench_init(&bench, "");
        snprintf(input, sizeof input, "%s%s%s", GET_ITEM_1, ends[i], GET_ITEM_2);
        type(bench.client, input);
        must_send(bench.shared, GET_ITEM_1);
        assert_int_equal(bench.client->state, CLIENT_LEAVING);
        must_reply(bench.client, "");
        cache_says(bench.shared, "$3\r\none\r\n"); /* what came before has its reply first */
        struct span reply = buffer_span(&bench.client->replies.out);
        assert_true(
            span_starts(reply, i ? "$3\r\none\r\n-ERR Protocol error" : "$3\r\none\r\n+OK\r\n"));
        buffer_clear(&bench.client->replies.out);
        assert_int_equal(counter_read(&bench.serving->counters.protocol_errors), i);
        bench_finish(&bench);
    }
}

/* ---- what is whose to say ---- */

static void wrong_numbers_of_words_are_the_caches_to_refuse(void **state)
{
    static const char *const wrong[] = {
        "*1\r\n$3\r\nGET\r\n", "*3\r\n$3\r\nGET\r\n$6\r\nitem:x\r\n$6\r\nitem:y\r\n",
        "*2\r\n$3\r\nSET\r\n$8\r\nitem:new\r\n", "*1\r\n$4\r\nMGET\r\n", "*1\r\n$6\r\nEXISTS\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        type(bench.client, wrong[i]);
        must_send(bench.shared, wrong[i]);
        cache_says(bench.shared, "-ERR wrong number\r\n");
        must_reply(bench.client, "-ERR wrong number\r\n");
    }
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* Over a connection of the client's own: what it would do to those who share one nobody knows. */
static void a_command_that_nobody_knows_is_the_caches(void **state)
{
    static const char unknown[] = "*2\r\n$6\r\nBANANA\r\n$6\r\nitem:x\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, unknown);
    must_send(bench.shared, "");
    must_send(bench.client->pinned.own, unknown);
    cache_says(bench.client->pinned.own, "-ERR unknown command\r\n");
    must_reply(bench.client, "-ERR unknown command\r\n");
    bench_finish(&bench);
}

static void the_command_after_a_skip_gets_no_reply_and_is_done(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n" PING GET_ABSENT);
    must_send(bench.shared, PING);
    cache_says(bench.shared, "+PONG\r\n");
    must_reply(bench.client, NIL);
    assert_int_equal(bench.client->pinned.states, 0);
    bench_finish(&bench);
}

/* ---- when input has to wait ---- */

static void input_waits_while_the_cache_is_congested(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.shared->congested = true;
    type(bench.client, GET_ABSENT);
    must_reply(bench.client, "");
    bench.shared->congested = false;
    client_resume(bench.client);
    must_reply(bench.client, NIL);
    bench_finish(&bench);
}

static void input_waits_while_too_much_is_under_way(void **state)
{
    enum { MOST = 1024 };
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int i = 0; i < MOST; i++)
        type(bench.client, PING);
    type(bench.client, GET_ABSENT);
    assert_int_equal(commands(&bench), MOST);
    cache_says(bench.shared, "+PONG\r\n");
    must_reply(bench.client, "+PONG\r\n");
    assert_int_equal(commands(&bench), MOST + 1);
    for (int i = 1; i < MOST; i++)
        cache_says(bench.shared, ":0\r\n");
    buffer_clear(&bench.client->replies.out);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_taken_however_their_bytes_arrive),
        cmocka_unit_test(an_unfinished_command_waits_for_as_many_bytes_as_it_takes),
        cmocka_unit_test(an_unfinished_command_of_many_arguments_is_not_parsed_again),
        cmocka_unit_test(a_pipeline_longer_than_a_batch_keeps_its_order),
        cmocka_unit_test(clients_of_one_batch_get_their_own_replies),
        cmocka_unit_test(an_inline_command_behind_a_settling_one_is_whole),
        cmocka_unit_test(before_auth_nothing_is_served),
        cmocka_unit_test(before_auth_some_errors_come_first),
        cmocka_unit_test(what_follows_auth_in_a_pipeline_is_served),
        cmocka_unit_test(a_stranger_may_not_send_much),
        cmocka_unit_test(a_web_page_gets_no_command_through),
        cmocka_unit_test(what_stands_behind_the_end_is_not_served),
        cmocka_unit_test(wrong_numbers_of_words_are_the_caches_to_refuse),
        cmocka_unit_test(a_command_that_nobody_knows_is_the_caches),
        cmocka_unit_test(the_command_after_a_skip_gets_no_reply_and_is_done),
        cmocka_unit_test(input_waits_while_the_cache_is_congested),
        cmocka_unit_test(input_waits_while_too_much_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
