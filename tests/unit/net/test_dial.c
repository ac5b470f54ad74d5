/* A name with several addresses, which this program resolves in the resolver's place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/dial.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESSES = 3 };

static unsigned asked; /* how often the name was looked up */

/* In the place of libuv's: 127.0.0.1, 127.0.0.2, 127.0.0.3, on the next turn of the loop. */
static void answer(uv_timer_t *timer)
{
    uv_getaddrinfo_t *request = timer->data;
    struct addrinfo *first = NULL;
    for (int i = ADDRESSES; i > 0; i--) {
        struct addrinfo *each = calloc(1, sizeof *each);
        struct sockaddr_in *address = calloc(1, sizeof *address);
        address->sin_family = AF_INET;
        address->sin_port = htons((uint16_t)(uintptr_t)request->reserved[0]);
        address->sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)i - 1);
        *each = (struct addrinfo){.ai_family = AF_INET,
                                  .ai_addrlen = sizeof *address,
                                  .ai_addr = (struct sockaddr *)address,
                                  .ai_next = first};
        first = each;
    }
    request->cb(request, 0, first);
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
}

int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                   const char *node, const char *service, const struct addrinfo *hints)
{
    uv_timer_t *timer = malloc(sizeof *timer);
    (void)node;
    (void)hints;
    asked++;
    request->reserved[0] = (void *)(uintptr_t)strtoul(service, NULL, 10);
    request->cb = done;
    uv_timer_init(loop, timer);
    timer->data = request;
    return uv_timer_start(timer, answer, 0, 0);
}

void uv_freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list->ai_addr);
        free(list);
        list = next;
    }
}

/* Listens on the addresses whose bits are set, all on one port. */
struct bench {
    uv_loop_t loop;
    struct dial dial;
    struct stream stream;
    uint16_t port;
    int listeners[ADDRESSES];
    char reached[INET_ADDRSTRLEN]; /* "": none */
    bool done;
};

static void open_bench(struct bench *bench, unsigned listening)
{
    *bench = (struct bench){0};
    uv_loop_init(&bench->loop);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(bench->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK + i)};
        socklen_t length = sizeof address;
        bench->listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(bench->listeners[i], (struct sockaddr *)&address, length), 0);
        if (listening & 1u << i)
            assert_int_equal(listen(bench->listeners[i], 10), 0);
        assert_int_equal(getsockname(bench->listeners[i], (struct sockaddr *)&address, &length), 0);
        bench->port = ntohs(address.sin_port);
    }
}

static void on_dialed(void *arg, const char *error)
{
    struct bench *bench = arg;
    struct sockaddr_in address;
    int length = sizeof address;
    bench->done = true;
    bench->reached[0] = '\0';
    if (error)
        return;
    uv_tcp_getpeername(&bench->stream.tcp, (struct sockaddr *)&address, &length);
    inet_ntop(AF_INET, &address.sin_addr, bench->reached, sizeof bench->reached);
    stream_close(&bench->stream, NULL);
}

static const char *reach(struct bench *bench, unsigned turn)
{
    struct dial_options options = {.host = "several", .port = bench->port, .turn = turn};
    bench->done = false;
    assert_int_equal(
        dial_start(&bench->dial, &bench->loop, &bench->stream, &options, on_dialed, bench), 0);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_true(bench->done);
    return bench->reached;
}

static void close_bench(struct bench *bench)
{
    for (int i = 0; i < ADDRESSES; i++)
        close(bench->listeners[i]);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void each_address_has_its_turn(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench, 7);
    assert_string_equal(reach(&bench, 0), "127.0.0.1");
    assert_string_equal(reach(&bench, 1), "127.0.0.2");
    assert_string_equal(reach(&bench, 2), "127.0.0.3");
    assert_string_equal(reach(&bench, 3), "127.0.0.1");
    assert_string_equal(reach(&bench, UINT32_MAX), "127.0.0.1");
    close_bench(&bench);
}

static void one_that_is_not_there_is_passed_over(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench, 1);
    for (unsigned turn = 0; turn < 4; turn++)
        assert_string_equal(reach(&bench, turn), "127.0.0.1");
    close_bench(&bench);
}

static void when_none_is_there_each_was_tried_once(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench, 0);
    assert_string_equal(reach(&bench, 2), "");
    close_bench(&bench);
}

static void the_name_is_looked_up_each_time(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench, 7);
    asked = 0;
    reach(&bench, 0);
    reach(&bench, 0);
    assert_int_equal(asked, 2);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_its_turn),
        cmocka_unit_test(one_that_is_not_there_is_passed_over),
        cmocka_unit_test(when_none_is_there_each_was_tried_once),
        cmocka_unit_test(the_name_is_looked_up_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
