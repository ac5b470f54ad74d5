#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control_stub.h"

#include <errno.h>
#include <poll.h>
#include <sys/time.h>

enum { ANSWER_MAX = 128 * 1024 };

/* What a test read from the server. */
struct reply {
    char text[ANSWER_MAX];
    size_t length;
};

static struct stub *stub;
static struct reply reply;

static int start(void **state)
{
    (void)state;
    stub = stub_start(AF_INET, NULL);
    return 0;
}

static int start_with_token(void **state)
{
    (void)state;
    stub = stub_start(AF_INET, "s3cret");
    return 0;
}

static int start_unix(void **state)
{
    (void)state;
    stub = stub_start(AF_UNIX, NULL);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    stub_finish(stub);
    return 0;
}

static int dial(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(stub->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    bool is_unix = stub->path[0];
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    struct timeval patience = {20, 0};

    strcpy(un.sun_path, stub->path);
    assert_return_code(fd, errno);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (is_unix)
        assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    else
        assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

static void put_bytes(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0)
            return; /* the server may have refused and closed; its answer is what counts */
        bytes += sent;
        length -= (size_t)sent;
    }
}

static void put(int fd, const char *text)
{
    put_bytes(fd, text, strlen(text));
}

/* Reads until the answers hold `mark`; without one, until the server closes. */
static void read_until(int fd, const char *mark)
{
    reply.length = 0;
    for (;;) {
        ssize_t got = recv(fd, reply.text + reply.length, ANSWER_MAX - 1 - reply.length, 0);

        reply.text[reply.length + (got > 0 ? (size_t)got : 0)] = '\0';
        if (got <= 0)
            break;
        reply.length += (size_t)got;
        if (mark && strstr(reply.text, mark))
            return;
    }
    if (mark)
        fail_msg("\"%s\" is not in: %s", mark, reply.text);
}

static unsigned status_of(const char *text)
{
    unsigned status = 0;

    sscanf(text, "HTTP/1.1 %u", &status);
    return status;
}

/* Sends the request on a connection of its own, which must then end. Returns the status. */
static unsigned ask_bytes(const char *request, size_t length)
{
    int fd = dial();

    put_bytes(fd, request, length);
    read_until(fd, NULL);
    close(fd);
    return status_of(reply.text);
}

/* A request line and more header lines ("A: b\r\n"), to localhost. */
static unsigned ask(const char *line, const char *headers)
{
    char *request = NULL;
    unsigned status;

    must(asprintf(&request, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", line,
                  headers) > 0);
    status = ask_bytes(request, strlen(request));
    free(request);
    return status;
}

static void assert_reply_has(const char *text)
{
    if (!strstr(reply.text, text))
        fail_msg("\"%s\" is not in: %s", text, reply.text);
}

static const char *body(void)
{
    const char *end = strstr(reply.text, "\r\n\r\n");

    return end ? end + 4 : "";
}

static void wait_for(unsigned *number, unsigned least)
{
    uv_mutex_lock(&stub->lock);
    while (*number < least)
        if (uv_cond_timedwait(&stub->changed, &stub->lock, 20ull * 1000 * 1000 * 1000) != 0)
            break;
    uv_mutex_unlock(&stub->lock);
    assert_true(*number >= least);
}

static void tell(bool *wish)
{
    uv_mutex_lock(&stub->lock);
    *wish = true;
    uv_mutex_unlock(&stub->lock);
    uv_async_send(&stub->wake);
}

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

static void the_index_and_an_unknown_path_list_the_calls(void **state)
{
    static const char *const paths[] = {"GET /", "GET /v2/status", "POST /nowhere", "GET /now/"};

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

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    (void)state;
    assert_int_equal(ask("POST /now", "Content-Length: 0\r\n"), 405);
    assert_reply_has("\r\nAllow: GET, HEAD, PUT\r\n");
    assert_int_equal(ask("OPTIONS /v1/keys/a", ""), 405);
    assert_reply_has("\r\nAllow: GET, HEAD, PUT, DELETE\r\n");
    assert_int_equal(ask("PUT /", ""), 405);
    assert_reply_has("\r\nAllow: GET, HEAD\r\n");
    assert_int_equal(ask("get /now", ""), 405);
}

static void without_the_token_nothing_but_open_calls(void **state)
{
    static const char *const wrong[] = {"",
                                        "Authorization: Bearer\r\n",
                                        "Authorization: Bearer s3cre\r\n",
                                        "Authorization: Bearer s3crets\r\n",
                                        "Authorization: Bearer s3crets3cret\r\n",
                                        "Authorization: Bearer S3CRET\r\n",
                                        "Authorization: Basic s3cret\r\n",
                                        "Authorization: s3cret\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ask("GET /now", wrong[i]), 401);
        assert_reply_has("\r\nWWW-Authenticate: Bearer\r\n");
        assert_int_equal(ask("GET /unknown", wrong[i]), 401);
        assert_int_equal(ask("PUT /healthz", wrong[i]), 401);
        assert_int_equal(ask("GET /", wrong[i]), 401);
        assert_int_equal(ask("GET /healthz", wrong[i]), 200);
    }
    assert_int_equal(ask("GET /now", "Authorization: Bearer s3cret\r\n"), 200);
    assert_int_equal(ask("GET /now", "authorization: bearer  s3cret\r\n"), 200);
    assert_int_equal(ask("PUT /now", "Host: x\r\nAuthorization: Bearer s3cret\r\n"), 400);
}

static void a_refused_body_does_not_break_the_connection(void **state)
{
    int fd = dial();
    char text[5000];

    (void)state;
    memset(text, 'x', sizeof(text));
    put(fd, "PUT /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n");
    put_bytes(fd, text, sizeof(text));
    read_until(fd, "}\n");
    assert_int_equal(status_of(reply.text), 413);
    put(fd, "PUT /now HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        put(fd, "1f4;ignored\r\n");
        put_bytes(fd, text, 500);
        put(fd, "\r\n");
    }
    put(fd, "0\r\nTrailer: ignored\r\n\r\n");
    read_until(fd, "}\n");
    assert_int_equal(status_of(reply.text), 413);
    put(fd, "PUT /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
    put_bytes(fd, text, 1000);
    read_until(fd, "now\n");
    assert_int_equal(status_of(reply.text), 200);
    close(fd);
}

static void a_body_that_need_not_be_sent_is_refused_at_once(void **state)
{
    (void)state;
    assert_int_equal(ask("PUT /now", "Content-Length: 1001\r\nExpect: 100-continue\r\n"), 413);
    assert_int_equal(ask("PUT /now", "Content-Length: 99999999999\r\n"), 413);
    assert_int_equal(ask("PUT /now", "Content-Length: 99999999999999999999999\r\n"), 413);
}

static void a_long_key_works_and_a_longer_target_is_414(void **state)
{
    size_t sizes[] = {40 * 1024, 100 * 1024, 1024 * 1024};
    char *target = malloc(1024 * 1024 + 64), *at;

    (void)state;
    at = target + sprintf(target, "GET /v1/keys/");
    for (int i = 0; i < 8192; i++)
        at += sprintf(at, "%%%02x", i % 256);
    assert_int_equal(ask(target, ""), 200);
    assert_reply_has("\"key\": \"000102");
    assert_reply_has("fdfeff\"");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        at = target + sprintf(target, "GET /v1/keys/");
        memset(at, 'k', sizes[i]);
        at[sizes[i]] = '\0';
        assert_int_equal(ask(target, ""), 414);
    }
    free(target);
}

static void too_many_headers_are_431(void **state)
{
    char *headers = malloc(300 * 1024), *at = headers;

    (void)state;
    for (int i = 0; i < 20000; i++)
        at += sprintf(at, "A%d: x\r\n", i);
    assert_int_equal(ask("GET /now", headers), 431);
    at = headers + sprintf(headers, "GET /now?");
    memset(at, '&', 30000);
    at[30000] = '\0';
    assert_int_equal(ask(headers, ""), 200);
    free(headers);
}

static void malformed_requests_are_400(void **state)
{
    static const char *const requests[] = {
        "GET /%zz HTTP/1.1\r\nHost: a\r\n",
        "GET /now?a=%0 HTTP/1.1\r\nHost: a\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n",
        "GET /now\tHTTP/1.1\r\nHost: a\r\n",
        "GET now HTTP/1.1\r\nHost: a\r\n",
        "GET /now HTTPS/1.1\r\nHost: a\r\n",
        "GET /now\r\nHost: a\r\n",
        "GET /now HTTP/1.1\r\n",
        "GET /now HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
        "GET /now HTTP/1.1\r\nHost: a\r\nno colon here\r\n",
        "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n",
        "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 3\r\n",
        "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "PUT /now HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        char request[512];
        unsigned status;

        snprintf(request, sizeof(request), "%sConnection: close\r\n\r\n", requests[i]);
        status = ask_bytes(request, strlen(request));
        if (status != 400)
            fail_msg("%s got %u", request, status);
    }
    assert_int_equal(ask("PUT /now", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
}

static void a_zero_byte_never_cuts_a_key(void **state)
{
    static const char request[] =
        "DELETE /v1/keys/a\0b?row=delete HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char query[] =
        "DELETE /v1/keys/a?row=delete\0d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    (void)state;
    assert_int_equal(ask_bytes(request, sizeof(request) - 1), 400);
    assert_int_equal(ask_bytes(query, sizeof(query) - 1), 400);
}

static void noise_harms_nobody(void **state)
{
    char noise[4096];

    (void)state;
    srand(7);
    for (int round = 0; round < 100; round++) {
        int fd = dial();

        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)(rand() % (round % 2 ? 256 : 64));
        put(fd, round % 3 ? "" : "PUT /now HTTP/1.1\r\nHost: localhost\r\n");
        put_bytes(fd, noise, sizeof(noise));
        shutdown(fd, SHUT_WR);
        read_until(fd, NULL);
        close(fd);
    }
    assert_int_equal(ask("GET /now", ""), 200);
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

static void web_pages_may_only_read(void **state)
{
    (void)state;
    assert_int_equal(ask("PUT /now", "Origin: http://evil.example\r\n"), 403);
    assert_int_equal(ask("DELETE /v1/keys/a?row=delete", "Origin: null\r\n"), 403);
    assert_int_equal(ask("GET /now", "Origin: http://evil.example\r\n"), 200);
    assert_null(strstr(reply.text, "Access-Control"));
    assert_int_equal(ask("HEAD /now", "Origin: http://evil.example\r\n"), 200);
}

static unsigned put_to_host(const char *host, const char *headers)
{
    char request[512];

    snprintf(request, sizeof(request),
             "PUT /now HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", host, headers);
    return ask_bytes(request, strlen(request));
}

static void names_that_a_stranger_can_point_here_are_refused(void **state)
{
    static const char *const bad[] = {"evil.example",
                                      "evil.example:6390",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "1.2.3",
                                      "[evil]",
                                      "",
                                      ":80"};
    static const char *const good[] = {"localhost",   "LocalHost:6390", "127.0.0.1",
                                       "10.1.2.3:80", "[::1]",          "[fe80::1]:80"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(put_to_host(bad[i], ""), 403);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(put_to_host(good[i], ""), 200);
    assert_int_equal(ask_bytes("PUT /now HTTP/1.0\r\n\r\n", 21), 200);
}

static void with_a_token_any_host_name_is_right(void **state)
{
    (void)state;
    assert_int_equal(put_to_host("guard.example", "Authorization: Bearer s3cret\r\n"), 200);
    assert_int_equal(
        put_to_host("guard.example", "Origin: http://a\r\nAuthorization: Bearer s3cret\r\n"), 403);
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
    for (int i = 0; i < 256; i++)
        fds[i] = dial();
    put(fds[255], "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(fds[255], "now\n");
    late = dial();
    put(late, "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
    waiting = (struct pollfd){late, POLLIN, 0};
    assert_int_equal(poll(&waiting, 1, 100), 0);
    close(fds[0]);
    read_until(late, "now\n");
    close(late);
    for (int i = 1; i < 256; i++)
        close(fds[i]);
}

static void the_log_says_who_did_what(void **state)
{
    const char *peer = stub->path[0] ? "uid " : "127.0.0.1:";

    (void)state;
    ask("GET /now", "From: a\r\n");
    ask("PUT /now", "From: ann\x1b[1m@host\x07\r\n");
    ask("DELETE /v1/keys/a%0a\x80?x=1", "");
    ask("POST /nowhere", "");
    assert_int_equal(stub->logged, 3);
    assert_memory_equal(stub->log[0], peer, strlen(peer));
    assert_non_null(strstr(stub->log[0], " (ann?[1m@host?) | PUT /now 200"));
    assert_non_null(strstr(stub->log[1], " | DELETE /v1/keys/a%0a??x=1 409"));
    assert_non_null(strstr(stub->log[2], " | POST /nowhere 404"));
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

static void an_empty_token_is_refused(void **state)
{
    struct http_options options = {.fd = socket(AF_INET, SOCK_STREAM, 0), .token = ""};
    struct http_server *server = NULL;
    const char *error = NULL;
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    assert_int_equal(http_server_create(&server, &loop, &options, &error), -EINVAL);
    assert_non_null(error);
    assert_null(server);
    http_server_close(NULL, NULL, NULL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, start, finish)
#define TOKEN(test) cmocka_unit_test_setup_teardown(test, start_with_token, finish)
#define UNIX(test) cmocka_unit_test_setup_teardown(test, start_unix, finish)

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
        PLAIN(the_index_and_an_unknown_path_list_the_calls),
        PLAIN(a_wrong_method_is_told_the_right_ones),
        TOKEN(without_the_token_nothing_but_open_calls),
        PLAIN(a_refused_body_does_not_break_the_connection),
        PLAIN(a_body_that_need_not_be_sent_is_refused_at_once),
        PLAIN(a_long_key_works_and_a_longer_target_is_414),
        PLAIN(too_many_headers_are_431),
        PLAIN(malformed_requests_are_400),
        PLAIN(a_zero_byte_never_cuts_a_key),
        PLAIN(noise_harms_nobody),
        PLAIN(keys_and_queries_hold_any_byte),
        PLAIN(web_pages_may_only_read),
        PLAIN(names_that_a_stranger_can_point_here_are_refused),
        TOKEN(with_a_token_any_host_name_is_right),
        PLAIN(a_client_that_leaves_does_not_end_its_call),
        PLAIN(closing_the_server_orphans_what_waits),
        UNIX(closing_the_server_orphans_what_waits),
        PLAIN(a_handler_may_close_the_server),
        PLAIN(past_the_limit_connections_wait_for_a_place),
        PLAIN(the_log_says_who_did_what),
        UNIX(the_log_says_who_did_what),
        PLAIN(an_error_of_any_bytes_is_json),
        cmocka_unit_test(an_empty_token_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
