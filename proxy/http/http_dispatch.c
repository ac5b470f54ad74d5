/* Which calls are refused, in which order, and whose the others are. A short body has been read
 * (and thrown away) before, so that a refusal does not break a persistent connection.
 *
 *   414        the target is too long
 *   400, 503   target or headers are malformed; there is no memory to read them
 *   413        the body is too long
 *   401        no token, and the path is not an open one
 *   403        the doing of a web page
 *   405, 404   the path takes other methods; there is no such path
 *   400        a parameter that the call does not take
 *      └─▶ the route's handler
 *
 * A body that the route takes (http_begin_upload()) has gone there piece by piece, if nothing was
 * against the call from its beginning on.
 *
 * What need not be sent, or cannot be read to its end, is refused before it comes: on_headers() in
 * http_server.c.
 */
#include "http/http_call.h"

#include "base/memory.h"
#include "base/text/secret.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* A key of 8 KiB with every byte escaped is 24 KiB. */
enum { TARGET_MAX = 32 * 1024 };

static const char *header(const struct http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

struct named {
    const char *name;
    unsigned count;
};

static enum MHD_Result count_named(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct named *named = arg;

    (void)kind;
    (void)value;
    named->count += strcasecmp(name, named->name) == 0;
    return MHD_YES;
}

/* MHD_lookup_connection_value() gives one value, however many there are. */
static unsigned header_count(const struct http_call *call, const char *name)
{
    struct named named = {name, 0};

    MHD_get_connection_values(call->connection, MHD_HEADER_KIND, count_named, &named);
    return named.count;
}

/* Two ways to read a request's end would let one smuggle another past a proxy in front (RFC 9112
 * §11.2). */
const char *http_check_framing(const struct http_call *call, uint64_t *announced)
{
    const char *encoding = header(call, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    unsigned lengths = header_count(call, MHD_HTTP_HEADER_CONTENT_LENGTH);

    if (encoding && strcasecmp(encoding, "chunked") != 0)
        return "the only transfer encoding is chunked";
    if (lengths + header_count(call, MHD_HTTP_HEADER_TRANSFER_ENCODING) > 1)
        return "the length of the body is given twice";
    /* That it is a number is known: libmicrohttpd checks it. */
    if (encoding)
        *announced = UINT64_MAX;
    else
        *announced = lengths ? strtoull(header(call, MHD_HTTP_HEADER_CONTENT_LENGTH), NULL, 10) : 0;
    return NULL;
}

/* RFC 9112 §3.2: exactly one Host header in HTTP/1.1; none at all may be HTTP/1.0. */
const char *http_check_host(const struct http_call *call, const char *version)
{
    unsigned hosts = header_count(call, MHD_HTTP_HEADER_HOST);

    if (hosts > 1 || (hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0))
        return "a request has exactly one Host header";
    return NULL;
}

/* RFC 6750 §2.1; the scheme in any case. */
static bool has_token(const struct http_call *call)
{
    const char *given = header(call, MHD_HTTP_HEADER_AUTHORIZATION);

    if (!call->server->token)
        return true;
    if (!given || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += 7;
    given += strspn(given, " ");
    return secret_equal(span_of(given), span_of(call->server->token));
}

/* An IP literal or localhost, with any port: names that no stranger's DNS can point here. */
static bool is_literal_host(const char *host)
{
    char name[INET6_ADDRSTRLEN], address[sizeof(struct in6_addr)];
    bool bracket = *host == '[';
    size_t length = strcspn(host += bracket, bracket ? "]" : ":");

    if (length >= sizeof(name))
        return false;
    memcpy(name, host, length);
    name[length] = '\0';
    if (bracket)
        return inet_pton(AF_INET6, name, address) == 1;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1;
}

/* Browsers send Origin with every request of a page that could change something: no page may
 * administer the guard through an operator's browser. A page whose own name was made to point here
 * (DNS rebinding) could leave it out, and read what it gets; where no token stands in its way, the
 * Host header gives it away. */
static const char *check_browser(const struct http_call *call)
{
    const char *host = header(call, MHD_HTTP_HEADER_HOST);

    if (!http_call_reads(call) && header(call, "Origin"))
        return "requests of web pages (with an Origin header) may only read";
    if (call->server->check_host && host && !is_literal_host(host))
        return "without a token, the Host header must be an IP address or localhost";
    return NULL;
}

/* A new reference; by the order of the routes. */
static json_t *list_calls(const struct http_server *server)
{
    json_t *calls = json_array();

    for (const struct http_route *route = server->options.routes; route->path; route++)
        json_array_append_new(calls, json_pack("{s:s, s:s, s:s}", "method", route->method, "path",
                                               route->path, "help", route->help));
    return calls;
}

static void answer_index(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_json(call, 200, json_pack("{s:o}", "calls", list_calls(call->server)));
}

static const struct http_route index_route = {"GET",       "/v1", answer_index, false,
                                              "this list", NULL,  NULL};

/* A star stands for anything, also nothing; *rest is that. */
static bool path_matches(const struct http_route *route, struct span path, struct span *rest)
{
    size_t before = strcspn(route->path, "*");
    bool has_star = route->path[before] == '*';
    const char *end = route->path + before + has_star;
    size_t after = strlen(end);

    if (path.length < before + after || (!has_star && path.length > before))
        return false;
    *rest = (struct span){path.at + before, path.length - before - after};
    return memcmp(path.at, route->path, before) == 0 &&
           memcmp(rest->at + rest->length, end, after) == 0;
}

static bool method_matches(const struct http_route *route, const char *method)
{
    return !strcmp(route->method, method) ||
           (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
}

/* The call's route, or NULL; then `allowed` lists the methods of its path, or is empty. */
static const struct http_route *find_route(struct http_call *call, char *allowed, size_t size)
{
    const struct http_route *route = call->server->options.routes;
    size_t used = 0;

    allowed[0] = '\0';
    for (;; route++) {
        bool last = !route->path;

        if (last)
            route = &index_route;
        if (path_matches(route, call->target.path, &call->rest)) {
            if (method_matches(route, call->method))
                return route;
            if (used < size)
                used +=
                    (size_t)snprintf(allowed + used, size - used, "%s%s", used ? ", " : "",
                                     strcmp(route->method, "GET") ? route->method : "GET, HEAD");
        }
        if (last)
            return NULL;
    }
}

static void refuse_unknown(struct http_call *call, const char *allowed)
{
    if (*allowed) {
        http_answer_error(call, 405, "this path takes %s", allowed);
        http_call_header(call, MHD_HTTP_HEADER_ALLOW, allowed);
        return;
    }
    http_answer_json(call, 404,
                     json_pack("{s:s, s:o}", "error", "there is no such call; these there are",
                               "calls", list_calls(call->server)));
}

/* Whether `name` is one of the names in "row&block". Calls take two at most. */
static bool is_among(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (; names && *names; names += strspn(names, "&")) {
        size_t size = strcspn(names, "&");

        if (size == length && memcmp(names, name, size) == 0)
            return true;
        names += size;
    }
    return false;
}

static void refuse_parameter(struct http_call *call, const char *name, const char *names)
{
    const char *second = names ? strchr(names, '&') : NULL;

    if (!names)
        http_answer_error(call, 400, "unknown parameter %.100s: this call takes none", name);
    else if (!second)
        http_answer_error(call, 400, "unknown parameter %.100s: this call takes %s", name, names);
    else
        http_answer_error(call, 400, "unknown parameter %.100s: this call takes %.*s or %s", name,
                          (int)(second - names), names, second + 1);
}

/* The first parameter that the call does not take, or NULL. A name that is misspelt must not make
 * of one order another one: DELETE with ?blok=10m. */
static const char *stray_parameter(const struct http_call *call, const struct http_route *route)
{
    struct span query = call->target.query;

    for (const char *name = query.at, *value; name < query.at + query.length;
         name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        /* http_target_query() gives the first of that name */
        if (!is_among(route->query, name) || http_target_query(&call->target, name) != value)
            return name;
    }
    return NULL;
}

/* Whether it was refused. */
static bool refuse_query(struct http_call *call, const struct http_route *route)
{
    const char *stray = stray_parameter(call, route);

    if (stray && is_among(route->query, stray))
        http_answer_error(call, 400, "the parameter %s is given twice", stray);
    else if (stray)
        refuse_parameter(call, stray, route->query);
    return stray;
}

static void refuse_stranger(struct http_call *call)
{
    http_answer_error(call, 401, "this call needs the header Authorization: Bearer TOKEN");
    http_call_header(call, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
}

/* The target is read once. */
static int read_target(struct http_call *call)
{
    if (!call->malformed && !call->target.own)
        call->fault = http_target_parse(&call->target, call->url, &call->malformed);
    if (!call->malformed)
        return 0;
    return call->fault ? call->fault : -EINVAL;
}

/* Before the body, and without an answer of ours: whatever is against the call, http_refuse() says
 * it, now or when as much of the body as such calls may have was thrown away. */
bool http_begin_upload(struct http_call *call)
{
    const struct http_route *route;
    char allowed[128];

    if (strlen(call->url) > TARGET_MAX || read_target(call) < 0)
        return false;
    route = find_route(call, allowed, sizeof(allowed));
    if (!route || !route->upload || !has_token(call) || check_browser(call) ||
        stray_parameter(call, route))
        return false;
    call->is_handled = true;
    call->taker = route->upload;
    call->upload = route->upload->begin(call, call->server->options.arg);
    assert((call->upload != NULL) != (call->state == CALL_ANSWERED));
    return true;
}

static bool refuse_target(struct http_call *call)
{
    int status;

    if (strlen(call->url) > TARGET_MAX) {
        http_answer_error(call, 414, "the request's target may have %d bytes", TARGET_MAX);
        return true;
    }
    status = read_target(call);
    if (status < 0)
        http_answer_error(call, status == -ENOMEM ? 503 : 400, "%s", call->malformed);
    return status < 0;
}

/* The call's route, or NULL: it was refused. Strangers learn of no path but the open ones: whether
 * a path exists is told behind the token. */
static const struct http_route *accept_call(struct http_call *call)
{
    const struct http_route *route;
    const char *error;
    char allowed[128];

    if (refuse_target(call))
        return NULL;
    route = find_route(call, allowed, sizeof(allowed));
    error = check_browser(call);
    if (call->body > call->server->options.max_body && !(route && route->upload))
        http_answer_error(call, 413, "the body may have %zu bytes", call->server->options.max_body);
    else if (!(route && route->open) && !has_token(call))
        refuse_stranger(call);
    else if (error)
        http_answer_error(call, 403, "%s", error);
    else if (!route)
        refuse_unknown(call, allowed);
    else if (!refuse_query(call, route))
        return route;
    return NULL;
}

bool http_refuse(struct http_call *call)
{
    return !accept_call(call);
}

void http_dispatch(struct http_call *call)
{
    const struct http_route *route = accept_call(call);

    if (!route)
        return;
    call->is_handled = true;
    route->handle(call, call->server->options.arg);
}
