/* Questions of one client about all: who may ask, what goes round, and what becomes of the answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"
#include "worker/client/pinned.h"
#include "worker/command/clients/inquiry.h"

#define NOBODY "$2\r\nID\r\n$19\r\n9223372036854775807\r\n"
#define LIST "*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n"
#define MAY_LIST "*4\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n" NOBODY
#define KILL(words, rest) "*" words "\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n" rest
#define MAY_KILL "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n" NOBODY
#define KILL_NORMAL KILL("4", "$4\r\nTYPE\r\n$6\r\nnormal\r\n")
#define UNBLOCK_2 "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$1\r\n2\r\n"
#define UNBLOCK_NOBODY "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$19\r\n9223372036854775807\r\n"

#define UNBLOCK_70 "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$2\r\n70\r\n"
#define BLPOP "*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n"

#define REDIRECTED(id)                                                                             \
    "*5\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$8\r\nREDIRECT\r\n" id "\r\n"
#define REDIRECT "*5\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$8\r\nREDIRECT\r\n$1\r\n2\r\n"

static void take(void *arg, struct message *message)
{
    struct bench *bench = arg;
    bench->serving->asked--;
    inquiry_returned((struct roll_call *)(void *)message);
}

static int set_up(void **state)
{
    struct bench *bench = xcalloc(1, sizeof *bench);
    bench_init(bench, "");
    bench->serving->mailbox.deliver = take;
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    bench_finish(*state);
    free(*state);
    return 0;
}

/* The keeper sends it to one worker, this one, and gives it back. */
static void go_round(struct bench *bench, enum roll_call_state end)
{
    struct message *message = next_message(bench->keeper, MESSAGE_ROLL_CALL);
    struct roll_call *call = (struct roll_call *)(void *)message;
    assert_int_equal(call->state, ROLL_CALL_ROUND);
    inquiry_visit(call, &bench->clients.clients);
    turn_empty_line(&bench->serving->turn);
    message = next_message(bench->keeper, MESSAGE_ROLL_CALL);
    call->state = end;
    mailbox_return(message);
    hear_keeper(bench);
}

static void nobody_is_asked_before_the_cache_permits_it(void **state)
{
    struct bench *bench = *state;
    struct client *other = client_add(&bench->clients);
    type(bench->client, KILL_NORMAL PING);
    must_send(bench->shared, MAY_KILL);
    must_not_ask(bench->keeper);
    cache_says(bench->shared, "-NOPERM no\r\n");
    must_not_ask(bench->keeper);
    must_reply(bench->client, "-NOPERM no\r\n");
    assert_int_equal(other->state, CLIENT_OPEN);
    must_send(bench->shared, PING);
    cache_says(bench->shared, "+PONG\r\n");
    must_reply(bench->client, "+PONG\r\n");
}

/* More than are listed at a time, and some go while the question is under way. */
static void all_who_are_there_are_listed_once_the_oldest_first(void **state)
{
    enum { OTHERS = 100 };
    struct bench *bench = *state;
    struct client *others[OTHERS];
    uint64_t last = 0;
    size_t lines = 0;
    for (int i = 0; i < OTHERS; i++)
        others[i] = client_add(&bench->clients);
    type(bench->client, LIST);
    cache_says(bench->shared, "$0\r\n\r\n");
    for (int i = 0; i < OTHERS; i += 10)
        client_close(others[i]);
    go_round(bench, ROLL_CALL_DONE);
    buffer_append(&bench->client->replies.out, "", 1);
    const char *at = buffer_span(&bench->client->replies.out).at;
    for (; (at = strstr(at, "id=")); at += 3) {
        if (at[-1] != '\n')
            continue; /* of lib-id= and the like */
        uint64_t id = strtoull(at + 3, NULL, 10);
        assert_true(id > last);
        last = id;
        lines++;
    }
    assert_int_equal(lines, 1 + OTHERS - OTHERS / 10);
    buffer_clear(&bench->client->replies.out);
    must_send(bench->shared, MAY_LIST);
}

static void others_are_killed_and_the_asker_is_told(void **state)
{
    struct bench *bench = *state;
    struct client *other = client_add(&bench->clients);
    type(bench->client, KILL_NORMAL);
    must_send(bench->shared, MAY_KILL);
    cache_says(bench->shared, ":0\r\n");
    go_round(bench, ROLL_CALL_DONE);
    must_reply(bench->client, ":1\r\n");
    assert_true(other->state >= CLIENT_CLOSING);
}

/* Lists by number there have been only since Redis 6.2. */
static void a_cache_too_old_for_the_question_permits_it(void **state)
{
    struct bench *bench = *state;
    type(bench->client, LIST);
    cache_says(bench->shared, "-ERR syntax error\r\n");
    go_round(bench, ROLL_CALL_DONE);
    assert_true(buffer_length(&bench->client->replies.out) > 0);
    buffer_clear(&bench->client->replies.out);
    must_send(bench->shared, MAY_LIST);
}

static void what_is_no_answer_permits_nothing(void **state)
{
    static const struct {
        const char *command, *asked, *said[5];
    } rows[] = {
        {LIST, MAY_LIST, {"+OK\r\n", ":0\r\n", "*0\r\n", "$-1\r\n", "+QUEUED\r\n"}},
        {KILL_NORMAL, MAY_KILL, {"+OK\r\n", "$1\r\n0\r\n", "*0\r\n", "$-1\r\n", "+QUEUED\r\n"}}};
    struct bench *bench = *state;
    struct client *other = client_add(&bench->clients);
    for (size_t i = 0; i < 10; i++) {
        type(bench->client, rows[i / 5].command);
        must_send(bench->shared, rows[i / 5].asked);
        cache_says(bench->shared, rows[i / 5].said[i % 5]);
        must_not_ask(bench->keeper);
        must_reply(bench->client,
                   "-NESTGUARD cache error: its reply is none that this command has\r\n");
        assert_null(bench->client->inquiry);
    }
    assert_int_equal(other->state, CLIENT_OPEN);
}

static void who_means_itself_leaves_with_the_reply(void **state)
{
    struct bench *bench = *state;
    type(bench->client, KILL("6", "$4\r\nTYPE\r\n$6\r\nnormal\r\n$6\r\nskipme\r\n$2\r\nno\r\n"));
    cache_says(bench->shared, ":0\r\n");
    go_round(bench, ROLL_CALL_DONE);
    assert_int_equal(bench->client->state, CLIENT_LEAVING);
    must_reply(bench->client, ":1\r\n");
    must_send(bench->shared, MAY_KILL);
}

static void an_asker_that_goes_is_answered_no_more(void **state)
{
    struct bench *bench = *state;
    struct client *early = client_add(&bench->clients), *late = client_add(&bench->clients);
    type(early, LIST);
    inquiry_drop(early);
    client_close(early);
    cache_says(bench->shared, "$0\r\n\r\n");
    must_not_ask(bench->keeper);
    type(late, LIST);
    cache_says(bench->shared, "$0\r\n\r\n");
    client_close(late);
    go_round(bench, ROLL_CALL_DONE);
    must_send(bench->shared, MAY_LIST MAY_LIST);
}

/* Each takes memory for all clients. */
static void lists_go_round_one_after_the_other(void **state)
{
    struct bench *bench = *state;
    struct client *askers[4];
    for (int i = 0; i < 4; i++) {
        askers[i] = client_add(&bench->clients);
        type(askers[i], LIST);
        cache_says(bench->shared, "$0\r\n\r\n");
    }
    client_close(askers[1]);
    client_close(askers[2]);
    for (int i = 0; i < 4; i += 3) {
        assert_int_equal(bench->serving->asked, 1);
        go_round(bench, ROLL_CALL_DONE);
        assert_true(buffer_length(&askers[i]->replies.out) > 0);
    }
    must_not_ask(bench->keeper);
    assert_int_equal(bench->serving->asked, 0);
    must_send(bench->shared, MAY_LIST MAY_LIST MAY_LIST MAY_LIST);
}

/* And whoever it means goes, though its asker has gone before. */
static void a_kill_goes_round_behind_a_list(void **state)
{
    enum { OTHERS = 100 };
    struct bench *bench = *state;
    struct client *killer = client_add(&bench->clients), *others[OTHERS];
    type(bench->client, LIST);
    cache_says(bench->shared, "$0\r\n\r\n");
    type(killer, KILL_NORMAL);
    cache_says(bench->shared, ":0\r\n");
    client_close(killer);
    for (int i = 0; i < OTHERS; i++)
        others[i] = client_add(&bench->clients);
    assert_int_equal(bench->serving->asked, 1);
    go_round(bench, ROLL_CALL_DONE);
    assert_int_equal(bench->serving->asked, 1);
    go_round(bench, ROLL_CALL_DONE);
    for (int i = 0; i < OTHERS; i++)
        assert_true(others[i]->state >= CLIENT_CLOSING);
    must_not_ask(bench->keeper);
    must_send(bench->shared, MAY_LIST MAY_KILL);
}

static void a_guard_that_ends_gives_no_half_answer(void **state)
{
    struct bench *bench = *state;
    type(bench->client, LIST);
    cache_says(bench->shared, "$0\r\n\r\n");
    go_round(bench, ROLL_CALL_CUT);
    must_reply(bench->client, "-NESTGUARD ending: not all clients could be asked\r\n");
    must_send(bench->shared, MAY_LIST);
}

static void a_client_without_a_connection_is_nobody_to_the_cache(void **state)
{
    struct bench *bench = *state;
    client_add(&bench->clients);
    type(bench->client, UNBLOCK_2);
    must_send(bench->shared, "");
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, UNBLOCK_NOBODY);
    cache_says(bench->shared, ":0\r\n");
    must_reply(bench->client, ":0\r\n");
}

#define UNBLOCK_2_ERROR "*4\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$1\r\n2\r\n$5\r\nERROR\r\n"
#define UNBLOCK_NOBODY_ERROR                                                                       \
    "*4\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$19\r\n9223372036854775807\r\n$5\r\nERROR\r\n"
#define STANDING                                                                                   \
    "$71\r\nrole:master\r\nslave0:offset=1\r\nmaster_replid:abc\r\nmaster_repl_offset:7\r\n\r\n"

static struct client *add_waiting(struct bench *bench)
{
    struct client *other = client_add(&bench->clients);
    type(other, "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n");
    assert_true(other->pinned.waiting);
    return other;
}

static void count_once_more(struct client *client)
{
    struct upstream *own = client->pinned.own;
    cache_says(own, ":0\r\n");
    cache_says(own, STANDING);
}

static void must_unblock(struct bench *bench, const char *command, const char *nobody)
{
    type(bench->client, command);
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, nobody);
    cache_says(bench->shared, ":0\r\n");
    must_reply(bench->client, "");
    go_round(bench, ROLL_CALL_DONE);
    must_reply(bench->client, ":1\r\n");
}

/* The cache knows nothing of it but a short pause, and only says whether this is for the asker. */
static void who_is_in_a_wait_is_unblocked_with_what_is_counted(void **state)
{
    struct bench *bench = *state;
    struct client *other = add_waiting(bench);
    must_unblock(bench, UNBLOCK_2, UNBLOCK_NOBODY);
    assert_true(other->pinned.waiting);
    count_once_more(other);
    must_reply(other, ":0\r\n");
    assert_false(other->pinned.waiting);
}

static void or_with_an_error(void **state)
{
    struct bench *bench = *state;
    struct client *other = add_waiting(bench);
    must_unblock(bench, UNBLOCK_2_ERROR, UNBLOCK_NOBODY_ERROR);
    count_once_more(other);
    must_reply(other, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
    type(other, "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n");
    count_once_more(other);
    must_reply(other, ""); /* the next one waits again */
    assert_true(other->pinned.waiting);
}

static void nobody_is_unblocked_before_the_cache_permits_it(void **state)
{
    struct bench *bench = *state;
    struct client *other = add_waiting(bench);
    type(bench->client, UNBLOCK_2);
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, UNBLOCK_NOBODY);
    cache_says(bench->shared, "-NOPERM no\r\n");
    must_reply(bench->client, "-NOPERM no\r\n");
    must_not_ask(bench->keeper);
    count_once_more(other);
    must_reply(other, "");
}

static void a_connection_that_others_share_is_never_made_to_track(void **state)
{
    struct bench *bench = *state;
    client_add(&bench->clients);
    type(bench->client, REDIRECT);
    assert_non_null(bench->client->pinned.own);
    cache_is_lost(bench->client->pinned.own); /* while the question goes round */
    assert_null(bench->client->pinned.own);
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, "");
    must_reply(bench->client, "-NESTGUARD cache down\r\n");
}

/* The second client, which the server that `run_id` is of calls number 70. */
static struct client *one_that_waits(struct bench *bench, const char *run_id)
{
    struct client *waiting = client_add(&bench->clients);
    type(waiting, BLPOP);
    waiting->pinned.own->cache_id = 70;
    waiting->pinned.own->run_id = run_id;
    must_send(waiting->pinned.own, BLPOP);
    return waiting;
}

static void must_be_unblocked_as(struct bench *bench, const char *command)
{
    type(bench->client, UNBLOCK_2);
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, command);
    cache_says(bench->shared, ":1\r\n");
    must_reply(bench->client, ":1\r\n");
}

static void a_number_is_one_of_the_server_that_gave_it(void **state)
{
    struct bench *bench = *state;
    one_that_waits(bench, "one");
    bench->shared->run_id = "one";
    must_be_unblocked_as(bench, UNBLOCK_70);
}

/* Another client has that number there. */
static void a_number_of_another_server_is_nobodys(void **state)
{
    struct bench *bench = *state;
    struct client *waiting = one_that_waits(bench, "one");
    bench->shared->run_id = "two";
    must_be_unblocked_as(bench, UNBLOCK_NOBODY);
    bench->shared->run_id = waiting->pinned.own->run_id = NULL;
    must_be_unblocked_as(bench, UNBLOCK_NOBODY);
}

static void who_a_new_connection_leads_to_is_waited_for(void **state)
{
    static const struct {
        const char *run_id, *command;
    } rows[] = {{"one", UNBLOCK_70}, {"two", UNBLOCK_NOBODY}};
    struct bench *bench = *state;
    one_that_waits(bench, "one");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench->shared->dialing = true;
        bench->shared->run_id = rows[i].run_id;
        type(bench->client, UNBLOCK_2 PING);
        go_round(bench, ROLL_CALL_DONE);
        turn_loop(&bench->clients.serving);
        must_send(bench->shared, PING);
        bench->shared->dialing = false;
        cache_says(bench->shared, "+PONG\r\n");
        must_send(bench->shared, rows[i].command);
        cache_says(bench->shared, ":1\r\n");
        must_reply(bench->client, ":1\r\n");
        must_send(bench->shared, PING); /* the asker's */
        cache_says(bench->shared, "+PONG\r\n");
        must_reply(bench->client, "+PONG\r\n");
    }
}

static void one_that_never_comes_up_fails_it(void **state)
{
    struct bench *bench = *state;
    one_that_waits(bench, "one");
    bench->shared->dialing = true;
    type(bench->client, UNBLOCK_2);
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, PING);
    cache_is_lost(bench->shared);
    must_reply(bench->client, "-NESTGUARD cache down\r\n");
}

static void an_asker_that_goes_while_that_is_waited_for_leaves_nothing(void **state)
{
    struct bench *bench = *state;
    struct client *asker = client_add(&bench->clients);
    bench->shared->dialing = true;
    type(bench->client, BLPOP);
    bench->client->pinned.own->cache_id = 70;
    type(asker, "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$1\r\n1\r\n");
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(bench->shared, PING);
    assert_non_null(asker->inquiry);
    client_close(asker);
    inquiry_drop(asker); /* as connection.c does with the socket */
    cache_says(bench->shared, "+PONG\r\n");
    must_send(bench->shared, "");
    must_send(bench->client->pinned.own, BLPOP);
}

static void nobody_is_redirected_to_a_client_of_another_server(void **state)
{
    static const struct {
        const char *run_id, *command;
    } rows[] = {{"one", REDIRECTED("$2\r\n70")}, {"two", REDIRECTED("$19\r\n9223372036854775807")}};
    struct bench *bench = *state;
    one_that_waits(bench, "one");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        type(bench->client, REDIRECT);
        struct upstream *own = bench->client->pinned.own;
        own->dialing = true;
        go_round(bench, ROLL_CALL_DONE);
        turn_loop(&bench->clients.serving);
        must_send(own, PING);
        own->dialing = false;
        own->run_id = rows[i].run_id;
        cache_says(own, "+PONG\r\n");
        must_send(own, rows[i].command);
        cache_says(own, "-ERR no\r\n");
        must_reply(bench->client, "-ERR no\r\n");
        cache_is_lost(own); /* so that the next begins */
    }
}

/* The second client, which needs its connection for nothing of its own. */
static struct client *one_to_redirect_to(struct bench *bench)
{
    struct client *other = one_that_waits(bench, "one");
    type(bench->client, REDIRECT);
    struct upstream *own = bench->client->pinned.own;
    own->run_id = "one";
    go_round(bench, ROLL_CALL_DONE);
    turn_loop(&bench->clients.serving);
    must_send(own, REDIRECTED("$2\r\n70"));
    cache_says(other->pinned.own, "*-1\r\n");
    must_reply(other, "*-1\r\n");
    return other;
}

static void must_be_kept(struct client *other, bool kept)
{
    assert_int_equal(pinned_is_idle(other), !kept);
    other->pinned.used = 0;
    pinned_check(other, clock_ms());
    assert_int_equal(other->pinned.own != NULL, kept);
}

static void untrack(struct bench *bench)
{
    type(bench->client, "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$3\r\nOFF\r\n");
    cache_says(bench->client->pinned.own, "+OK\r\n");
}

static void a_connection_is_kept_while_another_redirects_to_it(void **state)
{
    struct bench *bench = *state;
    struct client *other = one_to_redirect_to(bench);
    must_be_kept(other, true);
    cache_says(bench->client->pinned.own, "+OK\r\n");
    must_reply(bench->client, "+OK\r\n");
    must_be_kept(other, true);
    assert_int_equal(roster_cache_id(other), 70);
    untrack(bench);
    must_reply(bench->client, "+OK\r\n");
    must_be_kept(other, false);
    buffer_clear(&bench->client->pinned.own->out);
}

static void who_redirects_elsewhere_keeps_it_no_more(void **state)
{
    struct bench *bench = *state;
    struct client *other = one_to_redirect_to(bench);
    cache_says(bench->client->pinned.own, "+OK\r\n");
    type(bench->client, "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n");
    must_be_kept(other, true);
    cache_says(bench->client->pinned.own, "+OK\r\n");
    must_reply(bench->client, "+OK\r\n+OK\r\n");
    must_be_kept(other, false);
    untrack(bench);
    buffer_clear(&bench->client->pinned.own->out);
}

static void who_is_refused_keeps_nothing(void **state)
{
    struct bench *bench = *state;
    struct client *other = one_to_redirect_to(bench);
    cache_says(bench->client->pinned.own, "-ERR no\r\n");
    must_reply(bench->client, "-ERR no\r\n");
    must_be_kept(other, false);
}

static void who_goes_keeps_nothing(void **state)
{
    struct bench *bench = *state;
    struct client *other = one_to_redirect_to(bench);
    cache_says(bench->client->pinned.own, "+OK\r\n");
    must_reply(bench->client, "+OK\r\n");
    pinned_finish(bench->client);
    must_be_kept(other, false);
}

/* A client that goes before whoever redirects to it leaves nothing that is used again. */
static void who_is_redirected_to_may_go_first(void **state)
{
    struct bench *bench = *state;
    struct client *other = one_to_redirect_to(bench);
    cache_says(bench->client->pinned.own, "+OK\r\n");
    must_reply(bench->client, "+OK\r\n");
    pinned_reset(other);
    assert_null(other->pinned.own);
    assert_null(other->pinned.redirected);
    untrack(bench);
    must_reply(bench->client, "+OK\r\n");
    buffer_clear(&bench->client->pinned.own->out);
}

#define INQUIRY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INQUIRY_TEST(nobody_is_asked_before_the_cache_permits_it),
        INQUIRY_TEST(all_who_are_there_are_listed_once_the_oldest_first),
        INQUIRY_TEST(others_are_killed_and_the_asker_is_told),
        INQUIRY_TEST(a_cache_too_old_for_the_question_permits_it),
        INQUIRY_TEST(what_is_no_answer_permits_nothing),
        INQUIRY_TEST(who_means_itself_leaves_with_the_reply),
        INQUIRY_TEST(an_asker_that_goes_is_answered_no_more),
        INQUIRY_TEST(lists_go_round_one_after_the_other),
        INQUIRY_TEST(a_kill_goes_round_behind_a_list),
        INQUIRY_TEST(a_guard_that_ends_gives_no_half_answer),
        INQUIRY_TEST(a_client_without_a_connection_is_nobody_to_the_cache),
        INQUIRY_TEST(who_is_in_a_wait_is_unblocked_with_what_is_counted),
        INQUIRY_TEST(or_with_an_error),
        INQUIRY_TEST(nobody_is_unblocked_before_the_cache_permits_it),
        INQUIRY_TEST(a_connection_that_others_share_is_never_made_to_track),
        INQUIRY_TEST(a_number_is_one_of_the_server_that_gave_it),
        INQUIRY_TEST(a_number_of_another_server_is_nobodys),
        INQUIRY_TEST(who_a_new_connection_leads_to_is_waited_for),
        INQUIRY_TEST(one_that_never_comes_up_fails_it),
        INQUIRY_TEST(an_asker_that_goes_while_that_is_waited_for_leaves_nothing),
        INQUIRY_TEST(nobody_is_redirected_to_a_client_of_another_server),
        INQUIRY_TEST(a_connection_is_kept_while_another_redirects_to_it),
        INQUIRY_TEST(who_redirects_elsewhere_keeps_it_no_more),
        INQUIRY_TEST(who_is_refused_keeps_nothing),
        INQUIRY_TEST(who_goes_keeps_nothing),
        INQUIRY_TEST(who_is_redirected_to_may_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
