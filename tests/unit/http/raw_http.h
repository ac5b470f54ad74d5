/* A client of the stub that speaks HTTP byte by byte, so that it can speak it wrongly, too. */
#ifndef NESTGUARD_TEST_RAW_HTTP_H
#define NESTGUARD_TEST_RAW_HTTP_H

#include "fakes/control_port.h"

#include <errno.h>
#include <sys/time.h>

enum { ANSWER_MAX = 128 * 1024 };

/* What a test read from the server. */
struct reply {
    char text[ANSWER_MAX];
    size_t length;
};

static struct stub *stub;
static struct reply reply;

static inline int start(void **state)
{
    (void)state;
    stub = stub_start(AF_INET, NULL);
    return 0;
}

static inline int start_with_token(void **state)
{
    (void)state;
    stub = stub_start(AF_INET, "s3cret");
    return 0;
}

static inline int start_unix(void **state)
{
    (void)state;
    stub = stub_start(AF_UNIX, NULL);
    return 0;
}

static inline int finish(void **state)
{
    (void)state;
    stub_finish(stub);
    return 0;
}

static inline int dial(void)
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

static inline void put_bytes(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0)
            return; /* the server may have refused and closed; its answer is what counts */
        bytes += sent;
        length -= (size_t)sent;
    }
}

static inline void put(int fd, const char *text)
{
    put_bytes(fd, text, strlen(text));
}

/* Reads until the answers hold `mark`; without one, until the server closes. */
static inline void read_until(int fd, const char *mark)
{
    reply.length = 0;
    for (;;) {
        ssize_t got = recv(fd, reply.text + reply.length, ANSWER_MAX - 1 - reply.length, 0);

        if (got < 0 && errno == EINTR) /* with a timeout, recv() is not taken up again by itself */
            continue;
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

static inline unsigned status_of(const char *text)
{
    unsigned status = 0;

    sscanf(text, "HTTP/1.1 %u", &status);
    return status;
}

/* Sends the request on a connection of its own, which must then end. Returns the status. */
static inline unsigned ask_bytes(const char *request, size_t length)
{
    int fd = dial();

    put_bytes(fd, request, length);
    read_until(fd, NULL);
    close(fd);
    return status_of(reply.text);
}

/* A request line and more header lines ("A: b\r\n"), to localhost. */
static inline unsigned ask(const char *line, const char *headers)
{
    char *request = NULL;
    unsigned status;

    must(asprintf(&request, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", line,
                  headers) > 0);
    status = ask_bytes(request, strlen(request));
    free(request);
    return status;
}

static inline void assert_reply_has(const char *text)
{
    if (!strstr(reply.text, text))
        fail_msg("\"%s\" is not in: %s", text, reply.text);
}

static inline const char *body(void)
{
    const char *end = strstr(reply.text, "\r\n\r\n");

    return end ? end + 4 : "";
}

static inline void wait_for(unsigned *number, unsigned least)
{
    uv_mutex_lock(&stub->lock);
    while (*number < least)
        if (uv_cond_timedwait(&stub->changed, &stub->lock, 20ull * 1000 * 1000 * 1000) != 0)
            break;
    uv_mutex_unlock(&stub->lock);
    assert_true(*number >= least);
}

static inline void tell(bool *wish)
{
    uv_mutex_lock(&stub->lock);
    *wish = true;
    uv_mutex_unlock(&stub->lock);
    uv_async_send(&stub->wake);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, start, finish)
#define TOKEN(test) cmocka_unit_test_setup_teardown(test, start_with_token, finish)
#define UNIX(test) cmocka_unit_test_setup_teardown(test, start_unix, finish)

#endif
