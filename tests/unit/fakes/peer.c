#include "fakes/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

int listen_somewhere(uint16_t *port, int flags)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

void must_be_readable(int fd, const char *for_what)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, PATIENCE_MS) != 1)
        fail_msg("nothing came: %s", for_what);
}

void say_bytes(int fd, const char *bytes, size_t length)
{
    while (length > 0) { /* the kernel may cut a long one in two */
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        assert_true(sent > 0 || errno == EINTR);
        bytes += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

void must_hear_bytes(int fd, const char *wanted, size_t length)
{
    char *got = malloc(length + 1);
    assert_non_null(got);
    size_t have = 0;
    while (have < length) {
        must_be_readable(fd, wanted);
        ssize_t count = recv(fd, got + have, length - have, 0);
        if (count <= 0)
            fail_msg("the connection ended before: %s", wanted + have);
        have += (size_t)count;
    }
    got[have] = '\0';
    if (memcmp(got, wanted, length) != 0)
        fail_msg("not \"%s\" came, but \"%s\"", wanted, got);
    free(got);
}

void must_hear(int fd, const char *wanted)
{
    must_hear_bytes(fd, wanted, strlen(wanted));
}

void must_be_silent(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 30), 0);
}

void must_end(int fd, const char *last)
{
    char byte;
    must_hear(fd, last);
    must_be_readable(fd, "the end");
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

int connect_to(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

void vanish(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}
