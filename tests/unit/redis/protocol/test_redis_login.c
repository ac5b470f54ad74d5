#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "redis/protocol/redis_login.h"

/* All steps as one text: "AUTH user pass; SELECT 3". */
static void expect(const struct redis_login *login, const char *wanted)
{
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    size_t count = redis_login_steps(steps, login);
    char text[200] = "";
    for (size_t i = 0; i < count; i++)
        for (size_t word = 0; word < steps[i].count; word++) {
            strcat(text, word ? " " : i ? "; " : "");
            strcat(text, steps[i].words[word]);
        }
    assert_string_equal(text, wanted);
}

static void only_what_is_wanted_is_said(void **state)
{
    (void)state;
    expect(&(struct redis_login){0}, "");
    expect(&(struct redis_login){.db = 3}, "SELECT 3");
    expect(&(struct redis_login){.selects_always = true}, "SELECT 0");
    expect(&(struct redis_login){.password = "p"}, "AUTH p");
    expect(&(struct redis_login){.user = "u"}, "");
}

static void all_of_it_is_said_in_order(void **state)
{
    const struct redis_login login = {
        .user = "u", .password = "p", .db = 2147483647, .resp3 = true, .name = "n"};
    (void)state;
    expect(&login, "AUTH u p; SELECT 2147483647; HELLO 3; CLIENT SETNAME n");
}

static void a_default_user_is_logged_in_without_a_password(void **state)
{
    struct redis_login_step step;
    (void)state;
    redis_login_auth(&step, &(struct redis_login){0});
    assert_int_equal(step.count, 3);
    assert_string_equal(step.words[1], "default");
    assert_string_equal(step.words[2], "");
}

static int judged(bool resp3, const char *error)
{
    const struct redis_login login = {.resp3 = resp3};
    return redis_login_judge(&login, error, error ? strlen(error) : 0);
}

static void an_error_is_a_refusal_and_an_old_server_is_told_from_it(void **state)
{
    (void)state;
    assert_int_equal(judged(true, NULL), 0);
    assert_int_equal(judged(true, "WRONGPASS no"), -EACCES);
    assert_int_equal(judged(true, "ERR unknown command `HELLO`"), -EPROTONOSUPPORT);
    assert_int_equal(judged(true, "NOPROTO unsupported"), -EPROTONOSUPPORT);
    assert_int_equal(judged(false, "ERR unknown command `SELECT`"), -EACCES);
    assert_int_equal(judged(true, ""), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_wanted_is_said),
        cmocka_unit_test(all_of_it_is_said_in_order),
        cmocka_unit_test(a_default_user_is_logged_in_without_a_password),
        cmocka_unit_test(an_error_is_a_refusal_and_an_old_server_is_told_from_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
