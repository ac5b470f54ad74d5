#include "fakes/control_port.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void must(bool holds)
{
    if (!holds)
        abort();
}

static void stub_now(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_text(call, 200, "text/plain; charset=utf-8", span_of("now\n"));
}

static char x[8 << 20];

static void answer_with(struct http_call *call, size_t length)
{
    memset(x, 'x', length);
    http_answer_text(call, 200, "text/plain", (struct span){x, length});
}

static void stub_large(struct http_call *call, void *arg)
{
    (void)arg;
    answer_with(call, 50000);
}

static void stub_vast(struct http_call *call, void *arg)
{
    (void)arg;
    answer_with(call, sizeof(x));
}

static void stub_on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stub_on_timer(uv_timer_t *timer)
{
    http_answer_json(timer->data, 200, json_pack("{s:s}", "when", "later"));
    uv_close((uv_handle_t *)timer, stub_on_timer_closed);
}

static void stub_later(struct http_call *call, void *arg)
{
    struct stub *stub = arg;
    uv_timer_t *timer = malloc(sizeof(*timer));

    uv_timer_init(&stub->loop, timer);
    timer->data = call;
    uv_timer_start(timer, stub_on_timer, 20, 0);
}

static void stub_hold(struct http_call *call, void *arg)
{
    struct stub *stub = arg;

    uv_mutex_lock(&stub->lock);
    must(stub->holding < STUB_HELD_MAX);
    stub->held[stub->holding++] = call;
    uv_cond_signal(&stub->changed);
    uv_mutex_unlock(&stub->lock);
}

/* The key in hexadecimal digits, so that any byte can be seen. */
static void stub_get_key(struct http_call *call, void *arg)
{
    struct span rest = http_call_rest(call);
    char *hex = calloc(rest.length + 1, 2);
    const char *query = http_call_query(call, "q");

    (void)arg;
    for (size_t i = 0; i < rest.length; i++)
        sprintf(hex + 2 * i, "%02x", (unsigned)(unsigned char)rest.at[i]);
    http_answer_json(call, 200, json_pack("{s:s, s:s?, s:f}", "key", hex, "q", query, "rate", 0.1));
    free(hex);
}

static void stub_put_key(struct http_call *call, void *arg)
{
    const char *time = http_call_query(call, "for");

    (void)arg;
    http_answer_json(call, 201, json_pack("{s:s?}", "for", time));
}

static void stub_delete_key(struct http_call *call, void *arg)
{
    const char *row = http_call_query(call, "row"), *block = http_call_query(call, "block");

    (void)arg;
    if ((row && !strcmp(row, "delete")) || (block && !strcmp(block, "10m")))
        http_answer_json(call, 204, NULL);
    else
        http_answer_error(call, 409, "the row is there: \xff");
}

/* ---- bodies ---- */

struct stub_upload {
    uv_timer_t timer; /* its pauses end */
    struct stub *stub;
    struct http_call *call;
    bool slowly;
    uint64_t bytes, sum;
};

static void stub_raise(struct stub *stub, unsigned *number)
{
    uv_mutex_lock(&stub->lock);
    ++*number;
    uv_cond_signal(&stub->changed);
    uv_mutex_unlock(&stub->lock);
}

static void *stub_begin(struct http_call *call, void *arg)
{
    struct stub *stub = arg;
    struct stub_upload *upload;

    if (span_is(http_call_rest(call), "not")) {
        http_answer_error(call, 409, "not now");
        return NULL;
    }
    upload = calloc(1, sizeof(*upload));
    upload->stub = stub;
    upload->call = call;
    upload->slowly = span_is(http_call_rest(call), "slowly");
    uv_timer_init(&stub->loop, &upload->timer);
    upload->timer.data = upload;
    stub_raise(stub, &stub->taking);
    return upload;
}

static void stub_on_pause_over(uv_timer_t *timer)
{
    http_call_go_on(((struct stub_upload *)timer->data)->call);
}

static bool stub_take(void *arg, struct span bytes)
{
    struct stub_upload *upload = arg;

    must(bytes.length > 0 && !uv_is_active((uv_handle_t *)&upload->timer));
    upload->bytes += bytes.length;
    for (size_t i = 0; i < bytes.length; i++)
        upload->sum += (unsigned char)bytes.at[i];
    if (upload->slowly)
        uv_timer_start(&upload->timer, stub_on_pause_over, 1, 0);
    return !upload->slowly;
}

static void stub_on_upload_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void stub_broken(void *arg)
{
    struct stub_upload *upload = arg;

    stub_raise(upload->stub, &upload->stub->broken);
    uv_close((uv_handle_t *)&upload->timer, stub_on_upload_closed);
}

static void stub_taken(struct http_call *call, void *arg)
{
    struct stub_upload *upload = http_call_take_upload(call);

    (void)arg;
    must(upload != NULL);
    http_answer_json(call, 200,
                     json_pack("{s:I, s:I}", "bytes", (json_int_t)upload->bytes, "sum",
                               (json_int_t)upload->sum));
    uv_close((uv_handle_t *)&upload->timer, stub_on_upload_closed);
}

static const struct http_upload stub_upload = {stub_begin, stub_take, stub_broken};

static void stub_on_server_closed(void *arg)
{
    ((struct stub *)arg)->closed = true;
}

static void stub_close(struct http_call *call, void *arg)
{
    struct stub *stub = arg;

    stub->close = false;
    http_server_close(stub->server, stub_on_server_closed, stub);
    stub->server = NULL;
    http_answer_json(call, 204, NULL);
}

/* Of a text that is no UTF-8, which jansson makes nothing of. */
static void stub_unspeakable(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_json(call, 200, json_pack("{s:s}", "name", "\xff"));
}

static void stub_not_ready(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_json(call, 503, json_pack("{s:s}", "items", "loading"));
}

const struct http_route stub_routes[STUB_ROUTES] = {
    {"GET", "/healthz", stub_now, true, "alive", NULL, NULL},
    {"GET", "/readyz", stub_not_ready, true, "ready", NULL, NULL},
    {"GET", "/now", stub_now, false, "answers at once", NULL, NULL},
    {"PUT", "/now", stub_now, false, "the same", NULL, NULL},
    {"GET", "/later", stub_later, false, "answers from a timer", NULL, NULL},
    {"PUT", "/hold", stub_hold, false, "answers when told", NULL, NULL},
    {"POST", "/close", stub_close, false, "closes the server", NULL, NULL},
    {"POST", "/v1/rebuild", stub_later, false, "a new generation", NULL, NULL},
    {"GET", "/v1/keys/*", stub_get_key, false, "what arrived", "q", NULL},
    {"PUT", "/v1/keys/*", stub_put_key, false, "admits", "for", NULL},
    {"DELETE", "/v1/keys/*", stub_delete_key, false, "deletes", "row&block", NULL},
    {"GET", "/unspeakable", stub_unspeakable, false, "no JSON", NULL, NULL},
    {"GET", "/large", stub_large, false, "a long text", NULL, NULL},
    {"GET", "/vast", stub_vast, false, "more than a socket takes", NULL, NULL},
    {"PUT", "/take/*", stub_taken, false, "takes a body", NULL, &stub_upload},
    {0},
};

static void stub_on_call(void *arg, const struct http_finished *call)
{
    struct stub *stub = arg;

    uv_mutex_lock(&stub->lock);
    snprintf(stub->log[stub->logged++ % STUB_LOG_MAX], sizeof(stub->log[0]), "%s | %s %.200s %u%s",
             call->who, call->method, call->url, call->status, call->was_refused ? " refused" : "");
    uv_cond_signal(&stub->changed);
    uv_mutex_unlock(&stub->lock);
}

static void stub_answer_held(struct stub *stub)
{
    for (unsigned i = 0; i < stub->holding; i++)
        http_answer_json(stub->held[i], 200, json_pack("{s:i}", "held", (int)i));
    stub->holding = 0;
}

/* The test's wishes, on the loop's thread. A stop answers what is still held after the server is
 * closed: such answers must go nowhere. */
static void stub_on_wake(uv_async_t *async)
{
    struct stub *stub = async->data;
    bool release, close_server, stop;
    unsigned held;

    uv_mutex_lock(&stub->lock);
    release = stub->release;
    close_server = stub->close || stub->stop;
    stop = stub->stop;
    stub->release = stub->close = false;
    held = stub->holding;
    uv_mutex_unlock(&stub->lock);
    if (release)
        stub_answer_held(stub);
    if (close_server && stub->server) {
        http_server_close(stub->server, stub_on_server_closed, stub);
        stub->server = NULL;
    }
    if (stop && held > 0)
        stub_answer_held(stub);
    if (stop)
        uv_close((uv_handle_t *)async, NULL);
}

static void stub_run(void *arg)
{
    struct stub *stub = arg;

    uv_run(&stub->loop, UV_RUN_DEFAULT);
}

static int stub_listen(struct stub *stub, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(in);

    must(fd >= 0);
    if (family == AF_UNIX) {
        snprintf(stub->path, sizeof(stub->path), "/tmp/nestguard-stub-%d.sock", (int)getpid());
        unlink(stub->path);
        strcpy(un.sun_path, stub->path);
        must(bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0);
        return fd;
    }
    must(bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0);
    must(getsockname(fd, (struct sockaddr *)&in, &size) == 0);
    stub->port = ntohs(in.sin_port);
    return fd;
}

struct stub *stub_start(int family, const char *token)
{
    struct stub *stub = calloc(1, sizeof(*stub));
    struct http_options options = {.fd = stub_listen(stub, family),
                                   .token = token,
                                   .routes = stub_routes,
                                   .arg = stub,
                                   .max_body = STUB_BODY_MAX,
                                   .on_call = stub_on_call};
    const char *error = NULL;
    int status;

    uv_loop_init(&stub->loop);
    uv_mutex_init(&stub->lock);
    uv_cond_init(&stub->changed);
    uv_async_init(&stub->loop, &stub->wake, stub_on_wake);
    stub->wake.data = stub;
    status = http_server_create(&stub->server, &stub->loop, &options, &error);
    must(status == 0);
    uv_thread_create(&stub->thread, stub_run, stub);
    return stub;
}

void stub_finish(struct stub *stub)
{
    int status;

    uv_mutex_lock(&stub->lock);
    stub->stop = true;
    uv_mutex_unlock(&stub->lock);
    uv_async_send(&stub->wake);
    uv_thread_join(&stub->thread);
    status = uv_loop_close(&stub->loop);
    must(status == 0 && stub->closed);
    uv_cond_destroy(&stub->changed);
    uv_mutex_destroy(&stub->lock);
    if (stub->path[0])
        unlink(stub->path);
    free(stub);
}
