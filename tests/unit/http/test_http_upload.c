/* Bodies of any length, which a route takes piece by piece (struct http_upload); and answers that
 * come before a body does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "raw_http.h"

enum { PIECE = 60000, PIECES = 50, MUCH = 400 };

static char piece[PIECE];

static void begin(int fd, const char *path, const char *framing)
{
    char head[300];

    snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", path, framing);
    put(fd, head);
}

/* So many pieces with a length, or in chunks; their sum. */
static uint64_t send_pieces(int fd, int count, bool chunked)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++) {
        char size[16];

        for (size_t at = 0; at < sizeof(piece); at++)
            sum += (unsigned char)(piece[at] = (char)('a' + (at * 7 + (size_t)i) % 26));
        snprintf(size, sizeof(size), "%x\r\n", PIECE);
        if (chunked)
            put(fd, size);
        put_bytes(fd, piece, sizeof(piece));
        if (chunked)
            put(fd, "\r\n");
    }
    return sum;
}

static void assert_is_taken(const char *path, bool chunked)
{
    int fd = dial();
    char framing[100], said[200];
    uint64_t sum;

    snprintf(framing, sizeof(framing), "Content-Length: %d", PIECE * PIECES);
    begin(fd, path, chunked ? "Transfer-Encoding: chunked" : framing);
    sum = send_pieces(fd, PIECES, chunked);
    put(fd, chunked ? "0\r\n\r\n" : "");
    read_until(fd, "}\n");
    snprintf(said, sizeof(said), "\"bytes\": %d,\n  \"sum\": %llu\n", PIECE * PIECES,
             (unsigned long long)sum);
    assert_reply_has(said);
    put(fd, "PUT /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1");
    read_until(fd, "now\n");
    close(fd);
    assert_int_equal(stub->broken, 0);
}

static void a_body_is_taken_whole_and_the_connection_goes_on(void **state)
{
    (void)state;
    assert_is_taken("/take/x", false);
    assert_is_taken("/take/x", true);
}

/* While nothing is wanted nothing comes, and nothing comes twice. */
static void a_taker_may_pause(void **state)
{
    (void)state;
    assert_is_taken("/take/slowly", false);
    assert_is_taken("/take/slowly", true);
}

static void no_body_at_all_is_taken(void **state)
{
    (void)state;
    assert_int_equal(ask("PUT /take/x", "Content-Length: 0\r\n"), 200);
    assert_reply_has("\"bytes\": 0");
    assert_int_equal(ask("PUT /take/x", "Transfer-Encoding: chunked\r\n\r\n0\r\n"), 200);
    assert_int_equal(ask("PUT /take/x", ""), 200);
}

/* Who has sent all may shut his side down. */
static void whoever_has_sent_all_is_answered(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        int fd = dial();

        begin(fd, "/take/x", "Transfer-Encoding: chunked");
        if (i % 2)
            wait_for(&stub->taking, i + 1);
        put(fd, "5\r\nhello\r\n0\r\n\r\n");
        shutdown(fd, SHUT_WR);
        read_until(fd, "\"bytes\": 5");
        close(fd);
    }
    assert_int_equal(stub->broken, 0);
}

/* Often enough for the last bytes and the end to be one event. */
static void an_end_that_comes_with_the_last_bytes_is_seen(void **state)
{
    unsigned begun = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        int fd = dial();

        begin(fd, i % 3 ? "/take/x" : "/take/slowly",
              i % 2 ? "Transfer-Encoding: chunked" : "Content-Length: 100");
        wait_for(&stub->taking, begun + 1);
        put(fd, i % 2 ? "5\r\nhello\r\n" : "hello");
        if (i % 5 == 0)
            shutdown(fd, SHUT_WR);
        else
            close(fd);
        wait_for(&stub->broken, ++begun);
        if (i % 5 == 0)
            close(fd);
    }
    assert_int_equal(stub->taking, stub->broken);
}

static void a_server_that_ends_breaks_off(void **state)
{
    int fds[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fds[i] = dial();
        begin(fds[i], i ? "/take/slowly" : "/take/x", "Transfer-Encoding: chunked");
        put(fds[i], "5\r\nhello\r\n");
        wait_for(&stub->taking, i + 1);
    }
    tell(&stub->close);
    wait_for(&stub->broken, 2);
    close(fds[0]);
    close(fds[1]);
}

/* Nothing of the body is sent. */
static void assert_refused_at_once(const char *path, const char *framing, unsigned status)
{
    int fd = dial();

    begin(fd, path, framing);
    read_until(fd, NULL);
    if (status_of(reply.text) != status)
        fail_msg("%s %s got %s", path, framing, reply.text);
    assert_reply_has("\r\nConnection: close\r\n");
    close(fd);
}

static const char *const framings[] = {"Content-Length: 1000000000", "Content-Length: 5",
                                       "Transfer-Encoding: chunked",
                                       "Transfer-Encoding: chunked\r\nExpect: 100-continue",
                                       "Content-Length: 1000000000\r\nExpect: 100-continue"};

static void a_refusal_does_not_wait_for_the_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(framings) / sizeof(framings[0]); i++)
        assert_refused_at_once("/take/not", framings[i], 409);
    assert_int_equal(stub->taking, 0);
}

static void whatever_is_against_a_long_body_is_said_before_it(void **state)
{
    static const char unknown[] = "Transfer-Encoding: chunked";

    (void)state;
    assert_refused_at_once("/take/x?y=1", unknown, 400);
    assert_refused_at_once("/take/x", "Transfer-Encoding: chunked\r\nOrigin: http://a", 403);
    assert_refused_at_once("/nowhere", unknown, 404);
    assert_refused_at_once("/healthz", unknown, 405);
    assert_refused_at_once("/nowhere", "Content-Length: 1000000000", 413);
    assert_int_equal(stub->taking, 0);
}

static void a_stranger_is_refused_before_he_sends(void **state)
{
    (void)state;
    assert_refused_at_once("/take/x", "Transfer-Encoding: chunked", 401);
    assert_refused_at_once("/take/x", "Content-Length: 1000000000", 401);
    assert_refused_at_once("/now", "Transfer-Encoding: chunked", 401);
    assert_int_equal(stub->taking, 0);
}

/* Many clients look for an answer only behind what they send. */
static void who_sends_on_after_a_refusal_gets_it(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = dial();

        begin(fd, "/take/not", i % 2 ? "Transfer-Encoding: chunked" : "Content-Length: 1000000000");
        send_pieces(fd, MUCH, i % 2);
        read_until(fd, "not now");
        close(fd);
    }
}

static void who_never_ends_is_left_alone(void **state)
{
    int fd = dial();
    time_t began = time(NULL);

    (void)state;
    begin(fd, "/take/not", "Transfer-Encoding: chunked");
    while (send(fd, piece, sizeof(piece), MSG_NOSIGNAL) > 0)
        assert_true(time(NULL) - began < 60);
    close(fd);
    assert_int_equal(ask("GET /now", ""), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(a_body_is_taken_whole_and_the_connection_goes_on),
        UNIX(a_body_is_taken_whole_and_the_connection_goes_on),
        PLAIN(a_taker_may_pause),
        PLAIN(no_body_at_all_is_taken),
        PLAIN(whoever_has_sent_all_is_answered),
        UNIX(whoever_has_sent_all_is_answered),
        PLAIN(an_end_that_comes_with_the_last_bytes_is_seen),
        UNIX(an_end_that_comes_with_the_last_bytes_is_seen),
        PLAIN(a_server_that_ends_breaks_off),
        PLAIN(a_refusal_does_not_wait_for_the_body),
        UNIX(a_refusal_does_not_wait_for_the_body),
        PLAIN(whatever_is_against_a_long_body_is_said_before_it),
        TOKEN(a_stranger_is_refused_before_he_sends),
        PLAIN(who_sends_on_after_a_refusal_gets_it),
        PLAIN(who_never_ends_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
