/* A call's life and its answer. libmicrohttpd owns the connection, the handler owes the answer; the
 * call goes when both are done with it. What takes as much memory as a client or a configuration
 * likes, targets and answers, fails the call, not the guard. */
#include "http/http_call.h"

#include "base/memory.h"
#include "http/json_bytes.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct http_call *http_call_create(struct http_server *server, struct MHD_Connection *connection,
                                   const char *target)
{
    size_t length = strlen(target);
    char *url = malloc(length + 1);
    struct http_call *call;

    if (!url)
        return NULL;
    call = xcalloc(1, sizeof(*call));
    call->server = server;
    call->connection = connection;
    call->target_at = target;
    call->url = memcpy(url, target, length + 1);
    call->next = server->calls;
    if (call->next)
        call->next->previous = call;
    server->calls = call;
    return call;
}

/* Neither server nor connection is touched by the call from here on. */
static void detach(struct http_call *call)
{
    if (call->previous)
        call->previous->next = call->next;
    else
        call->server->calls = call->next;
    if (call->next)
        call->next->previous = call->previous;
    call->previous = call->next = NULL;
    call->server = NULL;
    call->connection = NULL;
}

/* The answer may never have been sent: its response goes with the call. */
static void destroy(struct http_call *call)
{
    if (call->server)
        detach(call);
    if (call->upload)
        call->taker->broken(call->upload);
    if (call->response)
        MHD_destroy_response(call->response);
    http_target_finish(&call->target);
    free(call->method);
    free(call->url);
    free(call);
}

/* For each state, the states that may follow it, a bit each. */
void http_call_move(struct http_call *call, enum http_call_state state)
{
    static const unsigned allowed[] = {
        [CALL_READING] = 1u << CALL_HANDLING,
        [CALL_HANDLING] = 1u << CALL_READING | 1u << CALL_WAITING | 1u << CALL_ANSWERED,
        [CALL_WAITING] = 1u << CALL_ANSWERED | 1u << CALL_ORPHANED,
        [CALL_ANSWERED] = 0,
        [CALL_ORPHANED] = 0,
    };
    assert(allowed[call->state] & 1u << state);
    (void)allowed;
    call->state = state;
}

/* A handler that still owes an answer keeps the call; nobody will hear it. */
void http_call_leave(struct http_call *call)
{
    if (call->state != CALL_WAITING) {
        destroy(call);
        return;
    }
    http_call_move(call, CALL_ORPHANED);
    detach(call);
}

/* libmicrohttpd holds a reference of its own until the answer is sent. */
enum MHD_Result http_call_send(struct http_call *call)
{
    enum MHD_Result result = MHD_queue_response(call->connection, call->status, call->response);

    MHD_destroy_response(call->response);
    call->response = NULL;
    return result;
}

void http_call_header(struct http_call *call, const char *name, const char *value)
{
    if (call->response)
        MHD_add_response_header(call->response, name, value);
}

bool http_call_reads(const struct http_call *call)
{
    return !strcmp(call->method, "GET") || !strcmp(call->method, "HEAD");
}

struct span http_call_rest(const struct http_call *call)
{
    return call->rest;
}

void *http_call_take_upload(struct http_call *call)
{
    void *upload = call->upload;

    call->upload = NULL;
    return upload;
}

void http_call_go_on(struct http_call *call)
{
    if (!call->paused)
        return;
    call->paused = false;
    MHD_resume_connection(call->connection);
    http_server_wake(call->server);
}

const char *http_call_query(const struct http_call *call, const char *name)
{
    return http_target_query(&call->target, name);
}

/* Whatever a client sent goes to the log as one line of harmless characters. */
static void make_harmless(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* What libmicrohttpd tells of a connection it lends until it is asked the next question: each of
 * these is done with one answer before the other asks. */

/* A new string, or NULL when the peer has no such address. */
static char *address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = peer ? peer->client_addr : NULL;
    char text[INET6_ADDRSTRLEN] = "?";

    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

        inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        return xasprintf("%s:%u", text, (unsigned)ntohs(in->sin_port));
    }
    if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;

        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
        return xasprintf("[%s]:%u", text, (unsigned)ntohs(in->sin6_port));
    }
    return NULL;
}

/* A new string, or NULL when it is not known. */
static char *user_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ucred user;
    socklen_t size = sizeof(user);

    if (fd && getsockopt(fd->connect_fd, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0)
        return xasprintf("uid %u", (unsigned)user.uid);
    return NULL;
}

/* A new string: the peer's address and port, or "uid 1000" of a unix socket's. */
static char *peer_of(struct MHD_Connection *connection)
{
    char *peer = address_of(connection);

    if (!peer)
        peer = user_of(connection);
    return peer ? peer : xstrdup("somebody");
}

/* Reported when answered, not when sent: what was done was done, also when the client has left. */
static void report(struct http_call *call)
{
    struct http_server *server = call->server;
    char *who, *method, *url, *peer;
    const char *from;

    if (!server->options.on_call || (http_call_reads(call) && call->status != 401))
        return;
    peer = peer_of(call->connection);
    from = MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_FROM);
    who = from && *from ? xasprintf("%s (%.200s)", peer, from) : xstrdup(peer);
    method = xasprintf("%.32s", call->method);
    url = strdup(http_target_local(call->url));
    make_harmless(who);
    make_harmless(method);
    if (url)
        make_harmless(url);
    server->options.on_call(server->options.arg,
                            &(struct http_finished){.who = who,
                                                    .method = method,
                                                    .url = url ? url : "?",
                                                    .status = call->status,
                                                    .was_refused = !call->is_handled});
    free(url);
    free(method);
    free(who);
    free(peer);
}

/* Every answer ends here. Takes the response. */
static void answer(struct http_call *call, unsigned status, const char *type,
                   struct MHD_Response *response)
{
    bool was_waiting = call->state == CALL_WAITING;

    if (!response) { /* small: it only refers to the text */
        fputs("nestguard: out of memory\n", stderr);
        abort();
    }
    call->response = response;
    call->status = status;
    if (call->state == CALL_ORPHANED) {
        destroy(call);
        return;
    }
    if (type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    report(call);
    http_call_move(call, CALL_ANSWERED);
    if (was_waiting) { /* on_request() is called once more, and sends */
        MHD_resume_connection(call->connection);
        http_server_wake(call->server);
    }
}

/* Indented: people read it, too, with curl. */
void http_answer_json(struct http_call *call, unsigned status, json_t *body)
{
    static char nothing[] = "";
    char *text, *grown;
    size_t length;

    if (!body && status == MHD_HTTP_NO_CONTENT) {
        answer(call, status, NULL,
               MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT));
        return;
    }
    text =
        body ? json_dumps(body, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(body);
    if (!text) { /* a number or a text that JSON cannot say, or no memory */
        text = xstrdup("{\"error\": \"the answer could not be written as JSON\"}");
        status = 500;
    }
    length = strlen(text);
    grown = realloc(text, length + 2);
    if (grown) { /* else it ends without the newline, which is for people */
        text = grown;
        text[length++] = '\n';
    }
    answer(call, status, "application/json",
           MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));
}

void http_answer_error(struct http_call *call, unsigned status, const char *format, ...)
{
    va_list arguments;
    char *text;
    json_t *body;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = xstrdup("out of memory");
    va_end(arguments);
    body = json_object();
    json_object_set_new(body, "error", json_text(text));
    free(text);
    http_answer_json(call, status, body);
}

void http_answer_text(struct http_call *call, unsigned status, const char *type, struct span text)
{
    char *copy = malloc(text.length + 1);

    if (!copy) {
        http_answer_error(call, 503, "no memory for an answer of %zu bytes", text.length);
        return;
    }
    if (text.length > 0)
        memcpy(copy, text.at, text.length);
    answer(call, status, type,
           MHD_create_response_from_buffer(text.length, copy, MHD_RESPMEM_MUST_FREE));
}

void http_answer_page(struct http_call *call, struct span html, const char *policy)
{
    http_answer_text(call, 200, "text/html; charset=utf-8", html);
    http_call_header(call, "Content-Security-Policy", policy);
    http_call_header(call, "X-Content-Type-Options", "nosniff");
    http_call_header(call, "X-Frame-Options", "DENY");
    http_call_header(call, "Referrer-Policy", "no-referrer");
    http_call_header(call, "Cross-Origin-Opener-Policy", "same-origin");
    http_call_header(call, "Cross-Origin-Resource-Policy", "same-origin");
}
