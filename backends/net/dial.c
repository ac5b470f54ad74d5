/* A handle of libuv's that was connected in vain can only be closed, and then only its close
 * callback says when its memory may be used again. So whatever is wrong with an address (it
 * refuses, takes too long, fails at TLS, nobody wants it any more) goes the same way: give_up(),
 * and what comes next is decided when the handle is closed. end() alone calls done(), as the last
 * thing that it does: its owner may dial anew from there, or free what this is a part of.
 */
#include "net/dial.h"

#include <stdio.h>

static void end(struct dial *dial, const char *error)
{
    uv_freeaddrinfo(dial->found);
    dial->found = dial->next = NULL;
    dial->state = DIAL_OVER;
    dial->done(dial->arg, error);
}

/* ---- one address ---- */

static void try_next(struct dial *dial);

/* A handle of libuv's is not to be used again once closed: every address has a fresh one. */
static void on_attempt_closed(uv_handle_t *handle)
{
    struct dial *dial = handle->data;
    if (dial->left && !dial->stopped)
        try_next(dial);
    else
        end(dial, dial->error);
}

static void give_up(struct dial *dial, const char *why)
{
    snprintf(dial->error, sizeof dial->error, "%s", why);
    dial->state = DIAL_CLOSING;
    stream_close(dial->stream, on_attempt_closed);
}

static void on_secured(void *arg, const char *error)
{
    struct dial *dial = arg;
    if (error)
        give_up(dial, error);
    else
        end(dial, NULL);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct dial *dial = connect->data;
    if (dial->state != DIAL_CONNECTING) /* given up: this is the end of its handle */
        return;
    if (status == 0)
        stream_tune(dial->stream);
    if (status == 0 && dial->options.tls)
        status = stream_secure_dialed(dial->stream, dial->options.tls, dial->options.host,
                                      on_secured, dial);
    if (status < 0)
        give_up(dial, uv_strerror(status));
    else if (!dial->options.tls)
        end(dial, NULL);
}

static void open_handle(struct dial *dial, bool is_unix)
{
    dial->state = DIAL_CONNECTING;
    dial->since = uv_now(dial->loop);
    stream_init(dial->stream, dial->loop, is_unix);
    dial->stream->handle.data = dial;
}

/* Around the list from where the owner's turn has it begin: `left` sees to it that each is tried
 * once. */
static void try_next(struct dial *dial)
{
    const struct addrinfo *address = dial->next;
    dial->next = address->ai_next ? address->ai_next : dial->found;
    dial->left--;
    open_handle(dial, false);
    int status = uv_tcp_connect(&dial->connect, &dial->stream->tcp, address->ai_addr, on_connected);
    if (status < 0)
        give_up(dial, uv_strerror(status));
}

/* ---- the name ---- */

static void try_all(struct dial *dial, struct addrinfo *found)
{
    dial->found = dial->next = found;
    for (const struct addrinfo *address = found; address; address = address->ai_next)
        dial->left++;
    for (unsigned turn = dial->options.turn % dial->left; turn; turn--)
        dial->next = dial->next->ai_next;
    try_next(dial);
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct dial *dial = resolve->data;
    if (!status && !dial->stopped) {
        try_all(dial, found);
        return;
    }
    dial->found = found;
    end(dial, uv_strerror(status < 0 ? status : UV_ECANCELED));
}

static bool is_number(const char *host)
{
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    return uv_ip4_addr(host, 0, &ip4) == 0 || uv_ip6_addr(host, 0, &ip6) == 0;
}

/* Both IPv4 and IPv6, in the order that the system prefers (RFC 6724). What is a number needs no
 * thread, of which there are few, and all of them may be at names that nobody answers for. */
static int resolve(struct dial *dial)
{
    char port[8];
    const char *host = dial->options.host;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    snprintf(port, sizeof port, "%u", (unsigned)dial->options.port);
    if (is_number(host) && getaddrinfo(host, port, &hints, &found) == 0) {
        try_all(dial, found);
        return 0;
    }
    hints.ai_flags = 0;
    dial->state = DIAL_RESOLVING;
    dial->since = uv_now(dial->loop);
    int status = uv_getaddrinfo(dial->loop, &dial->resolve, on_resolved, host, port, &hints);
    if (status < 0)
        dial->state = DIAL_OVER;
    return status;
}

/* ---- life ---- */

int dial_start(struct dial *dial, uv_loop_t *loop, struct stream *stream,
               const struct dial_options *options, dial_done_cb done, void *arg)
{
    *dial = (struct dial){
        .options = *options, .loop = loop, .stream = stream, .done = done, .arg = arg};
    dial->resolve.data = dial->connect.data = dial;
    if (!options->path)
        return resolve(dial);
    open_handle(dial, true);
    uv_pipe_connect(&dial->connect, &stream->pipe, options->path, on_connected);
    return 0;
}

bool dial_is_over(const struct dial *dial)
{
    return dial->state == DIAL_OVER;
}

void dial_skip(struct dial *dial, const char *why)
{
    if (dial->state == DIAL_CONNECTING)
        give_up(dial, why);
}

/* A look-up that a thread is at already goes on; on_resolved() then finds that nobody wants it. */
void dial_stop(struct dial *dial)
{
    dial->stopped = true;
    if (dial->state == DIAL_RESOLVING)
        uv_cancel((uv_req_t *)&dial->resolve);
    else
        dial_skip(dial, uv_strerror(UV_ECANCELED));
}
