/* Memory that runs out for what is as large as a client or a configuration likes: the call fails,
 * in words, and the server goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fakes/allocator.h"
#include "raw_http.h"

enum { KEY = 20000 };

/* Of the allocations for the call that are large, the nth fails. */
static unsigned ask_for_a_long_key(unsigned nth)
{
    static char line[KEY + 100];
    int length = snprintf(line, sizeof(line), "GET /v1/keys/");

    memset(line + length, 'x', KEY);
    line[length + KEY] = '\0';
    allocator_fail(KEY, nth);
    return ask(line, "");
}

static void go_on(void)
{
    assert_true(allocator_failed());
    allocator_fail(0, 0);
    assert_int_equal(ask("GET /now", ""), 200);
}

static void a_target_that_cannot_be_kept_ends_its_connection(void **state)
{
    (void)state;
    assert_int_equal(ask_for_a_long_key(1), 0);
    assert_int_equal(reply.length, 0);
    go_on();
}

static void a_target_that_cannot_be_taken_apart_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(ask_for_a_long_key(2), 503);
    assert_reply_has("no memory for the request's target");
    go_on();
}

/* The third is the handler's own here. */
static void json_is_whole_without_its_last_newline(void **state)
{
    (void)state;
    assert_int_equal(ask_for_a_long_key(4), 200);
    assert_string_equal(body() + strlen(body()) - 2, "\n}");
    go_on();
}

static void a_text_that_there_is_no_memory_for_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(ask("GET /large", ""), 200);
    assert_int_equal(strlen(body()), 50000);
    allocator_fail(50000, 1);
    assert_int_equal(ask("GET /large", ""), 503);
    assert_reply_has("no memory for an answer of 50000 bytes");
    go_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(a_target_that_cannot_be_kept_ends_its_connection),
        PLAIN(a_target_that_cannot_be_taken_apart_is_an_error),
        PLAIN(json_is_whole_without_its_last_newline),
        PLAIN(a_text_that_there_is_no_memory_for_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
