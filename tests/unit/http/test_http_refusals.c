#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "raw_http.h"

#include <poll.h>

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    (void)state;
    assert_int_equal(ask("POST /now", "Content-Length: 0\r\n"), 405);
    assert_reply_has("\r\nAllow: GET, HEAD, PUT\r\n");
    assert_int_equal(ask("OPTIONS /v1/keys/a", ""), 405);
    assert_reply_has("\r\nAllow: GET, HEAD, PUT, DELETE\r\n");
    assert_int_equal(ask("PUT /v1", ""), 405);
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
        assert_int_equal(ask("GET /v1", wrong[i]), 401);
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
        put(fd, "1f4\r\n");
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

static void a_parameter_that_the_call_does_not_take_is_400(void **state)
{
    static const char *const unknown[] = {"DELETE /v1/keys/a?blok=10m",
                                          "DELETE /v1/keys/a?ro=delete",
                                          "DELETE /v1/keys/a?rows=delete",
                                          "DELETE /v1/keys/a?row=delete&x",
                                          "DELETE /v1/keys/a?=",
                                          "DELETE /v1/keys/a?row%26block=1",
                                          "PUT /v1/keys/a?block=1m",
                                          "PUT /now?for=1m",
                                          "GET /v1?x=1"};
    static const char *const twice[] = {"PUT /v1/keys/a?for=1h&for=1h",
                                        "DELETE /v1/keys/a?row=delete&block=1m&row"};

    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_int_equal(ask(unknown[i], "Content-Length: 0\r\n"), 400);
        assert_reply_has("unknown parameter");
    }
    ask("DELETE /v1/keys/a?blok=10m", "");
    assert_reply_has("blok: this call takes row or block");
    ask("PUT /v1/keys/a?x", "Content-Length: 0\r\n");
    assert_reply_has("x: this call takes for");
    ask("GET /now?x", "");
    assert_reply_has("x: this call takes none");
    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
        assert_int_equal(ask(twice[i], "Content-Length: 0\r\n"), 400);
        assert_reply_has("is given twice");
    }
}

/* More of them than the server takes connections. */
static void half_requests_keep_nobody_out(void **state)
{
    enum { HALF = 400 };
    int held = dial(), idle = dial(), half[HALF];
    time_t began = time(NULL);

    (void)state;
    put(idle, "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(idle, "now\n");
    put(held, "PUT /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    for (int i = 0; i < HALF; i++) {
        half[i] = dial();
        put(half[i],
            i % 2 ? "GET /no" : "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1");
        if (i % 50 == 0)
            assert_int_equal(ask("GET /now", ""), 200);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask("GET /now", ""), 200);
    assert_true(time(NULL) - began < 15);
    wait_for(&stub->holding, 1);
    tell(&stub->release);
    read_until(held, "\r\n\r\n");
    close(held);
    close(idle);
    for (int i = 0; i < HALF; i++)
        close(half[i]);
}

/* More of them than the server takes connections; each takes a byte now and then. */
static void who_takes_no_answers_keeps_nobody_out(void **state)
{
    enum { DEAF = 300, SMALL = 4096 };
    int deaf[DEAF], small = SMALL, most = 0;
    time_t began;

    (void)state;
    for (; most < DEAF; most++) {
        struct pollfd first = {.events = POLLIN};
        deaf[most] = first.fd = dial();
        setsockopt(first.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        put(first.fd, "GET /vast HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (poll(&first, 1, 2000) == 0) { /* it is not let in */
            most++;
            break;
        }
    }
    began = time(NULL);
    for (int i = 0; i < 10; i++) {
        char byte;
        assert_int_equal(ask("GET /now", ""), 200);
        for (int j = 0; j < most; j++)
            (void)!recv(deaf[j], &byte, 1, MSG_DONTWAIT);
    }
    assert_true(time(NULL) - began < 25);
    while (most)
        close(deaf[--most]);
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

/* Refused, or, since libmicrohttpd 1.0, hung up on. */
static void assert_not_understood(const char *request, size_t length)
{
    unsigned status = ask_bytes(request, length);

    if (status != 400 && reply.length > 0)
        fail_msg("got %u", status);
}

static void a_zero_byte_never_cuts_a_key(void **state)
{
    static const char request[] =
        "DELETE /v1/keys/a\0b?row=delete HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char query[] =
        "DELETE /v1/keys/a?row=delete\0d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    (void)state;
    assert_not_understood(request, sizeof(request) - 1);
    assert_not_understood(query, sizeof(query) - 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(a_wrong_method_is_told_the_right_ones),
        TOKEN(without_the_token_nothing_but_open_calls),
        PLAIN(a_refused_body_does_not_break_the_connection),
        PLAIN(a_body_that_need_not_be_sent_is_refused_at_once),
        PLAIN(a_long_key_works_and_a_longer_target_is_414),
        PLAIN(a_parameter_that_the_call_does_not_take_is_400),
        PLAIN(half_requests_keep_nobody_out),
        PLAIN(who_takes_no_answers_keeps_nobody_out),
        PLAIN(too_many_headers_are_431),
        PLAIN(malformed_requests_are_400),
        PLAIN(a_zero_byte_never_cuts_a_key),
        PLAIN(noise_harms_nobody),
        PLAIN(web_pages_may_only_read),
        PLAIN(names_that_a_stranger_can_point_here_are_refused),
        TOKEN(with_a_token_any_host_name_is_right),
        cmocka_unit_test(an_empty_token_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
