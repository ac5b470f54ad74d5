/* A connection whose own questions are answered with what is none of their answers: it is out of
 * step, and nothing is asked over it. */
#include "upstream_bench.h"

static void must_be_closed(void)
{
    char byte;
    turn_until_readable(cache);
    assert_int_equal(recv(cache, &byte, 1, MSG_DONTWAIT), 0);
    close(cache);
    cache = -1;
}

static void turn_until_up(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (!is_up() && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(is_up());
}

/* Whatever is asked over it would be answered by another's reply. */
static void an_answer_that_is_none_ends_the_greeting(void **state)
{
    static const char *const others[] = {"+QUEUED\r\n", "$2\r\nOK\r\n", PRIMARY,
                                         OK OK,         OK "*0\r\n",    OK "*1\r\n:1\r\n"};
    (void)state;
    begin(&shared);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        accept_it();
        must_arrive(SELECT LIMITS);
        say(cache, others[i]);
        must_be_closed();
    }
}

#define SELECT_0 "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
#define HELLO "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define NAME "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$3\r\nbob\r\n"
#define SPEAKS(marker, count, proto) marker count "\r\n$5\r\nproto\r\n:" proto "\r\n"

static void each_step_of_the_greeting_has_its_own_answer(void **state)
{
    static const struct upstream_options named = {.resp3 = true, .name = "bob"};
    static const char *const others[] = {OK OK, OK SPEAKS("*", "2", "2"), OK SPEAKS("%", "1", "2"),
                                         OK OK SPEAKS("%", "1", "3"),
                                         OK SPEAKS("%", "1", "3") SPEAKS("%", "1", "3")};
    (void)state;
    begin(&named);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        accept_it();
        must_arrive(SELECT_0 HELLO NAME ROLE LIMITS);
        say(cache, others[i]);
        must_be_closed();
    }
    accept_it();
    must_arrive(SELECT_0 HELLO NAME ROLE LIMITS);
    say(cache, OK SPEAKS("%", "1", "3") OK PRIMARY NO_LIMITS);
    turn_until_up();
}

#define CACHING "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n"

/* Later, too; and that says nothing of what the server is. */
static void an_answer_that_is_none_ends_the_connection(void **state)
{
    static const struct span words[] = {{"CLIENT", 6}, {"CACHING", 7}, {"YES", 3}};
    static const char *const others[] = {OK,       "*0\r\n",       ":1\r\n",
                                         "*0\r\n", "$2\r\nOK\r\n", "+OKAY\r\n"};
    struct upstream *upstream = begin(&shared);
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        greet_it();
        if (i < 3)
            upstream_ask_role(upstream);
        else
            upstream_precede(upstream, words, 3);
        ask(upstream, 1);
        must_arrive(i < 3 ? ROLE "1\r\n" : CACHING "1\r\n");
        say(cache, others[i]);
        must_come("1 failed " DOWN "|");
        must_be_closed();
    }
    assert_int_equal(serving->route->demotions, 0);
}

int main(void)
{
#define UPSTREAM_TEST(name) cmocka_unit_test_setup_teardown(name, open_serving, close_serving)
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(an_answer_that_is_none_ends_the_greeting),
        UPSTREAM_TEST(each_step_of_the_greeting_has_its_own_answer),
        UPSTREAM_TEST(an_answer_that_is_none_ends_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
