/* See client.h. */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

void *need(void *memory)
{
    if (!memory)
        fail("memory");
    return memory;
}

uint64_t clock_ns(clockid_t clock)
{
    struct timespec at;
    if (clock_gettime(clock, &at) < 0)
        fail("clock");
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t random_seed(void)
{
    uint64_t seed = 0;
    while (!seed) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            fail("random numbers");
    }
    return seed;
}

int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connecting");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}
