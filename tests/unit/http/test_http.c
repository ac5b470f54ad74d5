#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "raw_http.h"

#include <poll.h>

static void a_call_is_answered_at_once_or_later(void **state)
{
    (void)state;
    assert_int_equal(ask("GET /now", ""), 200);
    assert_string_equal(body(), "now\n");
    assert_reply_has("Content-Type: text/plain; charset=utf-8\r\n");
    assert_reply_has("Cache-Control: no-store\r\n");
    assert_int_equal(ask("GET /later", ""), 200);
    assert_string_equal(body(), "{\n  \"when\": \"later\"\n}\n");
    assert_reply_has("Content-Type: application/json\r\n");
}

static void a_connection_serves_many_calls(void **state)
{
    int fd = dial();

    (void)state;
    for (int i = 0; i < 200; i++) {
        put(fd, i % 50 ? "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"
                       : "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
        read_until(fd, i % 50 ? "now\n" : "}\n");
        assert_int_equal(status_of(reply.text), 200);
    }
    close(fd);
}

static void pipelined_calls_are_answered_in_their_order(void **state)
{
    int fd = dial();
    const char *at;

    (void)state;
    put(fd, "GET /v1/keys/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "PUT /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
            "GET /v1/keys/2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /v1/keys/3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    wait_for(&stub->holding, 1);
    tell(&stub->release);
    read_until(fd, NULL);
    close(fd);
    at = strstr(reply.text, "\"key\": \"31\"");
    assert_non_null(at);
    assert_non_null(at = strstr(at, "later"));
    assert_non_null(at = strstr(at, "held"));
    assert_non_null(at = strstr(at, "\"key\": \"32\""));
    assert_non_null(at = strstr(at, "later"));
    assert_non_null(strstr(at, "\"key\": \"33\""));
}

static void head_is_get_without_a_body(void **state)
{
    (void)state;
    assert_int_equal(ask("HEAD /now", ""), 200);
    assert_reply_has("Content-Length: 4\r\n");
    assert_string_equal(body(), "");
    assert_int_equal(ask("HEAD /later", ""), 200);
    assert_string_equal(body(), "");
    assert_int_equal(stub->logged, 0);
}

static void an_answer_may_have_no_body(void **state)
{
    (void)state;
    assert_int_equal(ask("DELETE /v1/keys/a?row=delete", ""), 204);
    assert_string_equal(body(), "");
    assert_null(strstr(reply.text, "Content-Type"));
}

static void what_json_cannot_say_is_no_empty_success(void **state)
{
    (void)state;
    assert_int_equal(ask("GET /unspeakable", ""), 500);
    assert_non_null(strstr(body(), "could not be written as JSON"));
}

static void the_index_and_an_unknown_path_list_the_calls(void **state)
{
    static const char *const paths[] = {"GET /v1", "GET /v2/status", "POST /nowhere", "GET /now/"};

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        json_t *answer, *calls;

        assert_int_equal(ask(paths[i], ""), i == 0 ? 200 : 404);
        answer = json_loads(body(), 0, NULL);
        calls = json_object_get(answer, "calls");
        assert_int_equal(json_array_size(calls), sizeof(stub_routes) / sizeof(stub_routes[0]) - 1);
        assert_string_equal(json_string_value(json_object_get(json_array_get(calls, 8), "path")),
                            "/v1/keys/*");
        json_decref(answer);
    }
}

static void keys_and_queries_hold_any_byte(void **state)
{
    (void)state;
    assert_int_equal(ask("GET /v1/keys/a%2fb%3Fc%25d%20e+f%00%ff?q=x%20y", ""), 200);
    assert_reply_has("\"key\": \"612f623f63256420652b6600ff\"");
    assert_reply_has("\"q\": \"x y\"");
    assert_reply_has("\"rate\": 0.1\n");
    assert_int_equal(ask("GET /v1/keys/", ""), 200);
    assert_reply_has("\"key\": \"\"");
    assert_reply_has("\"q\": null");
    assert_int_equal(ask("GET /v1/%6Beys/..%2F", ""), 200);
    assert_reply_has("\"key\": \"2e2e2f\"");
    assert_int_equal(ask("GET http://guard:6390/v1/keys/k", ""), 200);
    assert_reply_has("\"key\": \"6b\"");
}

static void a_client_that_leaves_does_not_end_its_call(void **state)
{
    int fd = dial();

    (void)state;
    put(fd, "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(&stub->holding, 1);
    close(fd);
    fd = dial();
    put(fd, "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(&stub->holding, 2);
    tell(&stub->release);
    read_until(fd, "}\n");
    close(fd);
    wait_for(&stub->logged, 2);
    assert_non_null(strstr(stub->log[0], "PUT /hold 200"));
    assert_int_equal(ask("GET /now", ""), 200);
}

static void closing_the_server_orphans_what_waits(void **state)
{
    int fd = dial(), other = dial();

    (void)state;
    put(fd, "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    put(other, "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(&stub->holding, 2);
    close(other);
    tell(&stub->close);
    read_until(fd, NULL);
    assert_int_equal(reply.length, 0);
    close(fd);
}

static void a_handler_may_close_the_server(void **state)
{
    int fd = dial();

    (void)state;
    put(fd, "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(&stub->holding, 1);
    ask("POST /close", "");
    read_until(fd, NULL);
    close(fd);
}

static void past_the_limit_connections_wait_for_a_place(void **state)
{
    int fds[256], late;
    struct pollfd waiting;

    (void)state;
    for (int i = 0; i < 256; i++) {
        fds[i] = dial();
        put(fds[i], "PUT /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_for(&stub->holding, 256);
    late = dial();
    put(late, "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
    waiting = (struct pollfd){late, POLLIN, 0};
    assert_int_equal(poll(&waiting, 1, 100), 0);
    tell(&stub->release);
    for (int i = 0; i < 256; i++)
        read_until(fds[i], "held");
    read_until(late, "now\n");
    close(late);
    for (int i = 0; i < 256; i++)
        close(fds[i]);
}

static void the_log_says_who_did_what(void **state)
{
    const char *peer = stub->path[0] ? "uid " : "127.0.0.1:";

    (void)state;
    ask("GET /now", "From: a\r\n");
    ask("PUT /now", "From: ann\x1b[1m@host\x07\r\n");
    ask("DELETE /v1/keys/a%0a\x80?row=1", "");
    ask("POST /nowhere", "");
    assert_int_equal(stub->logged, 3);
    assert_memory_equal(stub->log[0], peer, strlen(peer));
    assert_non_null(strstr(stub->log[0], " (ann?[1m@host?) | PUT /now 200"));
    assert_non_null(strstr(stub->log[1], " | DELETE /v1/keys/a%0a??row=1 409"));
    assert_null(strstr(stub->log[1], " refused"));
    assert_non_null(strstr(stub->log[2], " | POST /nowhere 404 refused"));
}

static void the_log_names_no_host_that_the_caller_made_up(void **state)
{
    (void)state;
    ask("PUT http://\"\"\"/now", "");
    assert_int_equal(stub->logged, 1);
    assert_non_null(strstr(stub->log[0], " | PUT /now 200"));
}

static void an_error_of_any_bytes_is_json(void **state)
{
    json_t *answer;

    (void)state;
    assert_int_equal(ask("DELETE /v1/keys/a", ""), 409);
    answer = json_loads(body(), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(answer, "error")),
                        "the row is there: \\xff");
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(a_call_is_answered_at_once_or_later),
        UNIX(a_call_is_answered_at_once_or_later),
        PLAIN(a_connection_serves_many_calls),
        PLAIN(pipelined_calls_are_answered_in_their_order),
        UNIX(pipelined_calls_are_answered_in_their_order),
        PLAIN(head_is_get_without_a_body),
        PLAIN(an_answer_may_have_no_body),
        PLAIN(what_json_cannot_say_is_no_empty_success),
        PLAIN(the_index_and_an_unknown_path_list_the_calls),
        PLAIN(keys_and_queries_hold_any_byte),
        PLAIN(a_client_that_leaves_does_not_end_its_call),
        PLAIN(closing_the_server_orphans_what_waits),
        UNIX(closing_the_server_orphans_what_waits),
        PLAIN(a_handler_may_close_the_server),
        PLAIN(past_the_limit_connections_wait_for_a_place),
        PLAIN(the_log_says_who_did_what),
        UNIX(the_log_says_who_did_what),
        PLAIN(the_log_names_no_host_that_the_caller_made_up),
        PLAIN(an_error_of_any_bytes_is_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
