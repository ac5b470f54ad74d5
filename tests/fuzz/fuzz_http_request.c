/* Connections to the control port, of any bytes: a server of its own on a socket in the file
 * system, with routes that answer what they were asked. Each answer is one, and the server stays
 * up. The first byte of the input says whether there is a token, and whether the client stops
 * sending. */
#include "http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

enum { TURNS = 60, ANSWER_BYTES = 1 << 18 };

static uv_loop_t loop;
static struct sockaddr_un addresses[2];
static struct http_server *servers[2];

/* ---- what it answers ---- */

static void answer_now(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_text(call, 200, "text/plain", (struct span){"now\n", 4});
}

static void answer_key(struct http_call *call, void *arg)
{
    struct span key = http_call_rest(call);
    const char *row = http_call_query(call, "row");
    (void)arg;
    CHECK(key.at || !key.length);
    if (key.length && key.at[0] == '!')
        http_answer_error(call, 409, "row %s", row ? row : "?");
    else
        http_answer_json(call, key.length % 2 ? 200 : 204,
                         key.length % 2 ? json_pack("{s:i}", "length", (int)key.length) : NULL);
}

/* A body that is taken in pieces, with a pause after some, or not at all; each is begun once and
 * ends once. */
struct body {
    uv_timer_t pause;
    struct http_call *call;
    size_t bytes, pieces;
};

static long bodies;

static void on_pause_over(uv_timer_t *pause)
{
    http_call_go_on(((struct body *)pause->data)->call);
}

static void *begin_body(struct http_call *call, void *arg)
{
    struct span name = http_call_rest(call);
    (void)arg;
    if (name.length && name.at[0] == '!') {
        http_answer_error(call, 404, "there is none");
        return NULL;
    }
    struct body *body = calloc(1, sizeof *body);
    CHECK(body);
    body->call = call;
    uv_timer_init(&loop, &body->pause);
    body->pause.data = body;
    bodies++;
    return body;
}

static bool take_body(void *arg, struct span bytes)
{
    struct body *body = arg;
    CHECK(bytes.at && bytes.length && !uv_is_active((uv_handle_t *)&body->pause));
    body->bytes += bytes.length;
    if (++body->pieces % 2)
        return true;
    uv_timer_start(&body->pause, on_pause_over, 0, 0);
    return false;
}

static void on_body_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void end_body(void *arg)
{
    struct body *body = arg;
    CHECK(bodies-- > 0);
    uv_close((uv_handle_t *)&body->pause, on_body_closed);
}

static void answer_body(struct http_call *call, void *arg)
{
    struct body *body = http_call_take_upload(call);
    (void)arg;
    CHECK(body && body->call == call);
    http_answer_json(call, 200, json_pack("{s:I}", "bytes", (json_int_t)body->bytes));
    end_body(body);
}

static const struct http_upload upload = {begin_body, take_body, end_body};

static const struct http_route routes[] = {
    {"GET", "/healthz", answer_now, true, "alive", NULL, NULL},
    {"GET", "/v1/keys/*", answer_key, false, "explains", NULL, NULL},
    {"PUT", "/v1/keys/*", answer_key, false, "admits", "ttl", NULL},
    {"DELETE", "/v1/keys/*", answer_key, false, "deletes", "row&block", NULL},
    {"POST", "/v1/rebuild", answer_now, false, "rebuilds", NULL, NULL},
    {"PUT", "/v1/keyspaces/*/keys", answer_body, false, "takes", NULL, &upload},
    {NULL, NULL, NULL, false, NULL, NULL, NULL}};

static void on_call(void *arg, const struct http_finished *call)
{
    (void)arg;
    CHECK(call->who && call->method && call->url && call->status >= 200 && call->status < 600);
}

static void start(int which)
{
    struct sockaddr_un *address = &addresses[which];
    const char *error = NULL;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "fuzz-http-%d-%d", (int)getpid(),
             which); /* in no file system */
    struct http_options options = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0),
                                   .token = which ? "s3cret" : NULL,
                                   .routes = routes,
                                   .max_body = 1000,
                                   .on_call = on_call};
    CHECK(bind(options.fd, (struct sockaddr *)address, sizeof *address) == 0);
    CHECK(http_server_create(&servers[which], &loop, &options, &error) == 0);
}

/* ---- the client ---- */

static size_t receive(int fd, char *answer, size_t have, bool *ended)
{
    ssize_t count = recv(fd, answer + have, ANSWER_BYTES - have, MSG_DONTWAIT);
    *ended = count == 0 || (count < 0 && errno != EAGAIN);
    return count > 0 ? (size_t)count : 0;
}

/* Until the server has nothing more to do with it. */
static size_t talk(int fd, const char *bytes, size_t length, char *answer)
{
    size_t sent = 0, have = 0;
    bool ended = false;
    for (int quiet = 0; quiet < TURNS && !ended && have < ANSWER_BYTES; quiet++) {
        ssize_t count =
            length > sent ? send(fd, bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += count > 0 ? (size_t)count : 0;
        uv_run(&loop, UV_RUN_NOWAIT);
        size_t got = receive(fd, answer, have, &ended);
        have += got;
        if (count > 0 || got)
            quiet = 0;
    }
    return have;
}

/* Whatever was sent, what comes is HTTP. */
static void check_answer(const char *answer, size_t length)
{
    CHECK(!length || (length > 12 && memcmp(answer, "HTTP/1.", 7) == 0));
    CHECK(!length || (answer[9] >= '1' && answer[9] <= '5'));
}

static int dial(int which)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&addresses[which], sizeof addresses[which]) == 0);
    return fd;
}

static void hang_up(int fd)
{
    close(fd);
    for (int turn = 0; turn < 3; turn++)
        uv_run(&loop, UV_RUN_NOWAIT);
}

static void check_alive(int which, char *answer)
{
    static const char asked[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = dial(which);
    size_t length = talk(fd, asked, sizeof asked - 1, answer);
    CHECK(length > 15 && memcmp(answer, "HTTP/1.1 200 OK", 15) == 0);
    hang_up(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char answer[ANSWER_BYTES];
    static unsigned long runs;
    if (!servers[0]) {
        uv_loop_init(&loop);
        start(0);
        start(1);
    }
    if (size < 1)
        return 0;
    int which = bytes[0] & 1, fd = dial(which);
    if (bytes[0] & 2) {
        CHECK(send(fd, bytes + 1, size - 1, MSG_DONTWAIT | MSG_NOSIGNAL) >= -1);
        shutdown(fd, SHUT_WR);
        check_answer(answer, talk(fd, NULL, 0, answer));
    } else {
        check_answer(answer, talk(fd, (const char *)bytes + 1, size - 1, answer));
    }
    hang_up(fd);
    if (runs++ % 64 == 0)
        check_alive(which, answer);
    return 0;
}
