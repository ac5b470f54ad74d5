/* The loop's side of the HTTP server: libmicrohttpd has no thread; its epoll descriptor is watched
 * by our loop, and its timeouts by a timer of ours.
 *
 *   on_event, on_timeout ─▶ run ─▶ MHD_run ─▶ on_connection   accepted
 *                                          ─▶ on_target       a call begins
 *                                          ─▶ on_request      headers, body, end, and once resumed
 *                                          ─▶ on_completed    sent, or broken off
 */
#include "http/http_call.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 128,
    CONNECTIONS_MAX = 256,  /* the reserve of open files has room for so many: file_limits.c */
    CONNECTIONS_ROOM = 192, /* past it the oldest without a request go: more than one may come in a
                               run, and libmicrohttpd accepts none at its limit */
    IDLE_SECONDS = 30,      /* suspended calls do not count as idle */
    /* Of one connection: the longest target that is told its mistake by http_dispatch(), and its
     * headers. libmicrohttpd itself answers 414 or 431 past it. */
    CONNECTION_MEMORY = 96 * 1024,
    /* A body longer than this is not waited for: the refusal goes out, the connection ends. */
    DRAIN_MAX = 1024 * 1024,
    CROWDED_MS = 1000 /* between two looks for whom to end: at its limit libmicrohttpd lets nobody
                         in by whom it would be looked */
};

/* libmicrohttpd would decode in place and lose the length. */
static size_t leave_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

/* The only callback that sees the target before libmicrohttpd takes it apart, in its own buffer. It
 * would make a record of each pair of the query, which would take memory from the connection; when
 * that runs out, release 0.9.75 forgets the request. So it is not shown the query, which is taken
 * apart by http_target_parse(). */
static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    struct http_call *call = http_call_create(arg, connection, target ? target : "");
    char *query = target ? strchr(target, '?') : NULL;

    if (query && query[1])
        query[1] = '\0';
    return call;
}

static struct http_connection *connection_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Sent, or the connection broke: in either case libmicrohttpd is done with the call. */
static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = arg;

    (void)code;
    http_connection_idle(&server->connections, connection_of(connection));
    if (*context)
        http_call_leave(*context);
    *context = NULL;
}

static void linger(struct http_server *server, int fd)
{
    unsigned before = server->lingers.count;

    http_linger_begin(&server->lingers, fd);
    server->handles += server->lingers.count - before;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = arg;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct http_call *next;

    if (code != MHD_CONNECTION_NOTIFY_CLOSED) {
        *context = http_connection_open(&server->connections, fd);
        return;
    }
    if (http_connection_is_answered_early(*context) && !server->closing)
        linger(server, fd);
    http_connection_close(&server->connections, *context);
    /* At the limit of connections, the next run accepts one that waits for the place. */
    server->again = true;
    /* Some errors close a connection without on_completed(). */
    for (struct http_call *call = server->calls; call; call = next) {
        next = call->next;
        if (call->connection == connection)
            http_call_leave(call);
    }
}

/* The target is a C string to libmicrohttpd. If the version does not follow right behind its end,
 * there was a zero byte in it, and the key would be another one than the client meant. */
static bool target_was_cut(const struct http_call *call, const char *version)
{
    return call->target_at + strlen(call->url) + 1 != version;
}

/* Of one that is to be refused, whose sender waits for leave or has much to send, or nobody knows
 * how much. */
static bool is_awaited(const struct http_call *call, uint64_t announced)
{
    const char *expects =
        MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);

    return announced <= (expects ? call->server->options.max_body : (uint64_t)DRAIN_MAX);
}

/* A body that cannot be read, need not be sent, or is too long to wait for: whether the call was
 * answered, for one reason or another. */
static bool answer_early(struct http_call *call, const char *malformed, uint64_t announced)
{
    if (malformed) {
        http_answer_error(call, 400, "%s", malformed);
    } else if (http_begin_upload(call)) {
        if (call->upload)
            http_connection_busy(connection_of(call->connection)); /* for as long as that takes */
    } else if (!is_awaited(call, announced)) {
        call->body = announced == UINT64_MAX ? 0 : announced;
        http_refuse(call); /* a short body in chunks may be right */
        call->body = 0;
    }
    return call->state == CALL_ANSWERED;
}

static enum MHD_Result send_answer(struct http_call *call)
{
    http_connection_answered(connection_of(call->connection));
    return http_call_send(call);
}

/* Called once for each request, before its body. An answer before that was read ends the
 * connection. */
static enum MHD_Result on_headers(struct http_call *call, const char *method, const char *version)
{
    uint64_t announced = 0;
    const char *error;

    call->method = xstrdup(method);
    if (target_was_cut(call, version))
        call->malformed = "a zero byte must be percent-escaped";
    else
        call->malformed = http_check_host(call, version);
    error = http_check_framing(call, &announced);
    http_call_move(call, CALL_HANDLING);
    if (!answer_early(call, error, announced)) {
        http_call_move(call, CALL_READING);
        return MHD_YES;
    }
    http_connection_answered_early(connection_of(call->connection));
    return send_answer(call);
}

/* While it is not wanted the socket's buffers hold the rest, and its sender. Libmicrohttpd may have
 * some of it already, and keeps what is not taken. */
static enum MHD_Result give_body(struct http_call *call, const char *bytes, size_t *length)
{
    if (call->paused)
        return MHD_YES;
    call->body += *length;
    call->paused = !call->taker->take(call->upload, (struct span){bytes, *length});
    *length = 0;
    if (call->paused)
        MHD_suspend_connection(call->connection);
    return MHD_YES;
}

/* Taken, or counted and thrown away. */
static enum MHD_Result on_body(struct http_call *call, const char *bytes, size_t *length)
{
    if (call->upload)
        return give_body(call, bytes, length);
    call->body += *length;
    *length = 0;
    return call->body > DRAIN_MAX ? MHD_NO : MHD_YES;
}

/* Called with the headers, with each piece of the body, at the end of the request, and once more
 * after a resume.
 * NOLINTNEXTLINE(readability-function-size): the arguments are libmicrohttpd's. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_length, void **context)
{
    struct http_call *call = *context;

    (void)arg;
    (void)url;
    if (!call) /* there was no memory for its target: the connection ends */
        return MHD_NO;
    if (call->state == CALL_ANSWERED)
        return send_answer(call);
    if (!call->method)
        return on_headers(call, method, version);
    if (*upload_length > 0)
        return on_body(call, upload, upload_length);
    http_connection_busy(connection_of(connection));
    http_call_move(call, CALL_HANDLING);
    http_dispatch(call);
    if (call->state == CALL_ANSWERED)
        return send_answer(call);
    http_call_move(call, CALL_WAITING);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void release(struct http_server *server)
{
    if (--server->handles > 0)
        return;
    if (server->closed)
        server->closed(server->closed_arg);
    free(server->token);
    free(server);
}

static void on_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_linger_ended(void *server)
{
    release(server);
}

/* Not from within MHD_run(). Calls that wait become orphans: their connections end here. */
static void stop(struct http_server *server)
{
    uv_close((uv_handle_t *)&server->timer, on_closed);
    /* Before libmicrohttpd closes the descriptor that it watches. */
    uv_close((uv_handle_t *)&server->poll, on_closed);
    /* A daemon with suspended connections must not be stopped. */
    for (struct http_call *call = server->calls; call; call = call->next)
        if (call->state == CALL_WAITING || call->paused)
            MHD_resume_connection(call->connection);
    MHD_stop_daemon(server->daemon);
    http_lingers_end(&server->lingers);
}

/* The last bytes and the end of who sends no more may come as one event. Libmicrohttpd, which asks
 * the kernel for changes only, reads the bytes then and waits for more, until the time without any
 * is over. This makes another event, by which it finds the end. */
static void look_for_ends(struct http_server *server)
{
    for (struct http_call *call = server->calls; call; call = call->next) {
        char byte;
        int fd;

        if (!call->upload || call->state != CALL_READING || call->paused || call->ended)
            continue;
        fd = MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                 ->connect_fd;
        call->ended = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
        if (call->ended)
            shutdown(fd, SHUT_RD);
    }
}

static void on_timeout(uv_timer_t *timer);

/* Until there is something to do without an event. */
static void wait(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    uint64_t least = http_connections_make_room(&server->connections) ? UINT64_MAX : CROWDED_MS;

    if (server->again)
        least = 0;
    else if (MHD_get_timeout(server->daemon, &timeout) == MHD_YES && timeout < least)
        least = timeout;
    if (least < UINT64_MAX)
        uv_timer_start(&server->timer, on_timeout, least, 0);
    else
        uv_timer_stop(&server->timer);
}

/* A handler may close the server from within MHD_run(): that is done here, when it is off the
 * stack. */
static void run(struct http_server *server)
{
    server->running = true;
    server->again = false;
    MHD_run(server->daemon);
    server->running = false;
    look_for_ends(server);
    if (server->closing)
        stop(server);
    else
        wait(server);
}

static void on_timeout(uv_timer_t *timer)
{
    run(timer->data);
}

void http_server_wake(struct http_server *server)
{
    server->again = true;
    uv_timer_start(&server->timer, on_timeout, 0, 0);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

void http_server_quiesce(struct http_server *server)
{
    int fd = server->closing ? -1 : MHD_quiesce_daemon(server->daemon);

    if (fd >= 0)
        close(fd);
}

void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg)
{
    if (!server || server->closing)
        return;
    server->closing = true;
    server->closed = closed;
    server->closed_arg = arg;
    if (!server->running) /* else run() stops it: a handler is on the stack */
        stop(server);
}

/* Of the port: see check_browser() in http_dispatch.c. */
static bool is_loopback_tcp(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    return address.ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address)->sin6_addr);
}

/* Since 1.0 libmicrohttpd repairs malformed requests, and redirects their senders, unless it is
 * told not to; what it was told before that was another thing. */
#if MHD_VERSION >= 0x01000000
#define OPTION_STRICT MHD_OPTION_STRICT_FOR_CLIENT, 1
#else
#define OPTION_STRICT MHD_OPTION_STRICT_FOR_CLIENT, 0
#endif

static struct MHD_Daemon *start(struct http_server *server)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, server->options.fd, MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes,
        NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        OPTION_STRICT, MHD_OPTION_END);
}

/* Both handles carry the server; it is freed when the second of them has closed. */
static void watch(struct http_server *server, uv_loop_t *loop)
{
    int epoll = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

    uv_timer_init(loop, &server->timer);
    uv_poll_init(loop, &server->poll, epoll);
    server->timer.data = server->poll.data = server;
    server->handles = 2;
    uv_poll_start(&server->poll, UV_READABLE, on_event);
    /* The first run puts the listening socket into the epoll set. */
    uv_timer_start(&server->timer, on_timeout, 0, 0);
}

/* The Host header is looked at where nothing else keeps a stranger's page out. */
void http_server_set_token(struct http_server *server, const char *token)
{
    char *before = server->token;
    server->token = token ? xstrdup(token) : NULL;
    server->options.token = server->token;
    server->check_host = !token && server->is_loopback;
    free(before);
}

int http_server_create(struct http_server **out, uv_loop_t *loop,
                       const struct http_options *options, const char **error)
{
    struct http_server *server;
    int status;

    if (options->token && !*options->token) {
        *error = "the token is empty";
        close(options->fd);
        return -EINVAL;
    }
    if (listen(options->fd, BACKLOG) != 0) {
        status = -errno;
        *error = "the control port cannot listen";
        close(options->fd);
        return status;
    }
    server = xcalloc(1, sizeof(*server));
    server->options = *options;
    server->connections.most = CONNECTIONS_ROOM;
    server->lingers = (struct http_lingers){.loop = loop, .ended = on_linger_ended, .arg = server};
    server->is_loopback = is_loopback_tcp(options->fd);
    http_server_set_token(server, options->token);
    server->daemon = start(server); /* closes the socket when it fails */
    if (!server->daemon) {
        *error = "the HTTP server cannot start";
        free(server->token);
        free(server);
        return -ENOMEM;
    }
    watch(server, loop);
    *out = server;
    return 0;
}
