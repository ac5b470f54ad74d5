/* libcurl, told to send the target as it is and to trust nothing from the environment. */
#include "ctl/ctl_call.h"

#include "base/memory.h"

#include <curl/curl.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A guard that hangs is not waited for without end; an address that is no guard's may send as much
 * as it likes, and is cut off there. */
enum {
    CONNECT_SECONDS = 5,
    TOTAL_SECONDS = 60,
    ANSWER_MAX = 64 * 1024 * 1024,
    PIECE = 256 * 1024 /* is sent at once */
};

/* libcurl hands over a piece of the body; `size` is always 1. */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct ctl_answer *answer = arg;
    size_t length = size * count;

    if (length > ANSWER_MAX - answer->length)
        return 0; /* fewer than given: curl gives up with CURLE_WRITE_ERROR */
    answer->body = xrealloc(answer->body, answer->length + length + 1);
    memcpy(answer->body + answer->length, bytes, length);
    answer->length += length;
    answer->body[answer->length] = '\0';
    return length;
}

/* A new string. The host is of no meaning over a unix socket; the '%' before the zone of an IPv6
 * address is escaped in a URL (RFC 6874). */
static char *url_of(const struct ctl_call *call)
{
    const struct address *address = call->address;
    const char *host = address->host, *zone;

    if (address->path)
        return xasprintf("http://localhost%s", call->target);
    if (!strchr(host, ':'))
        return xasprintf("http://%s:%u%s", host, (unsigned)address->port, call->target);
    zone = host + strcspn(host, "%");
    return xasprintf("http://[%.*s%s%s]:%u%s", (int)(zone - host), host, *zone ? "%25" : "",
                     *zone ? zone + 1 : "", (unsigned)address->port, call->target);
}

/* Takes the header over; the list has a copy of it. */
static struct curl_slist *add_header(struct curl_slist *list, char *header)
{
    struct curl_slist *longer = curl_slist_append(list, header);

    free(header);
    if (!longer)
        abort();
    return longer;
}

/* The guard's log names who administers it; From is the header that HTTP has for a person. */
static struct curl_slist *headers_of(const struct ctl_call *call)
{
    const struct passwd *user = getpwuid(getuid());
    struct curl_slist *list = NULL;
    char host[256] = "localhost";

    if (gethostname(host, sizeof(host) - 1) != 0)
        strcpy(host, "localhost");
    list = add_header(list, user ? xasprintf("From: %s@%s", user->pw_name, host)
                                 : xasprintf("From: uid-%u@%s", (unsigned)getuid(), host));
    if (call->token)
        list = add_header(list, xasprintf("Authorization: Bearer %s", call->token));
    return list;
}

static size_t on_more(char *into, size_t size, size_t count, void *arg)
{
    ssize_t got = ctl_body_read(arg, into, size * count);
    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

/* Once a second at least. */
static int on_time(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                   curl_off_t up)
{
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return ctl_body_stands_still(arg);
}

/* libcurl asks for leave first ("Expect: 100-continue"), so that a guard which wants no such body
 * need not be sent it. Of unknown length it is sent in chunks. */
static void send_body(CURL *curl, struct ctl_body *body)
{
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)PIECE);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_more);
    curl_easy_setopt(curl, CURLOPT_READDATA, body);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body->length);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_time);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, body);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

static void set_up(CURL *curl, const struct ctl_call *call, struct ctl_answer *answer)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* timeouts without SIGALRM */
    /* A key may be "..", and http_proxy in the environment is not meant for the guard. */
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    if (call->body)
        send_body(curl, call->body);
    else
        curl_easy_setopt(curl, CURLOPT_TIMEOUT,
                         call->seconds ? (long)call->seconds : (long)TOTAL_SECONDS);
    if (call->address->path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->address->path);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
}

/* A new string for a person. */
static char *explain(CURL *curl, CURLcode code, const char *details, const struct ctl_call *call)
{
    const char *address = call->address->text;
    long number = 0;

    switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
        if (call->body->failed)
            return xasprintf("what is to be sent cannot be read: %s",
                             strerror(-call->body->failed));
        return xasprintf("%s has neither taken nor answered anything for %d minutes", address,
                         CTL_BODY_MINUTES);
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
        return xasprintf("nothing answers at %s (%s): is nestguard running, and is its `control` "
                         "setting this address?",
                         address, number ? strerror((int)number) : details);
    case CURLE_OPERATION_TIMEDOUT:
        return xasprintf("no answer from %s in time (%s)", address, details);
    case CURLE_GOT_NOTHING:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return xasprintf("%s is no control port: what answers there speaks no HTTP (the guard's "
                         "`control` setting has the address)",
                         address);
    case CURLE_WRITE_ERROR:
        return xasprintf("the answer from %s is longer than %d bytes", address, ANSWER_MAX);
    default:
        return xasprintf("%s: %s", address, *details ? details : curl_easy_strerror(code));
    }
}

int ctl_call(struct ctl_answer *out, const struct ctl_call *call, char **error)
{
    CURL *curl = curl_easy_init();
    char details[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers;
    char *url;
    CURLcode code;

    *out = (struct ctl_answer){0, xstrdup(""), 0};
    if (!curl)
        abort();
    headers = headers_of(call);
    url = url_of(call);
    set_up(curl, call, out);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    code = curl_easy_perform(curl);
    if (call->body)
        ctl_body_hide(call->body);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
    else
        *error = explain(curl, code, details, call);
    free(url);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (code == CURLE_OK)
        return 0;
    ctl_answer_finish(out);
    return -EIO;
}

void ctl_answer_finish(struct ctl_answer *answer)
{
    free(answer->body);
    *answer = (struct ctl_answer){0};
}

bool ctl_answer_is_success(const struct ctl_answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

json_t *ctl_ask(const struct ctl_call *call, char **error)
{
    struct ctl_answer answer;
    if (ctl_call(&answer, call, error) < 0)
        return NULL;
    json_t *body = json_loadb(answer.body, answer.length, JSON_ALLOW_NUL, NULL);
    if (!body || !ctl_answer_is_success(&answer)) {
        const char *said = json_string_value(json_object_get(body, "error"));
        *error =
            said ? xstrdup(said) : xasprintf("the guard answered with status %ld", answer.status);
        json_decref(body);
        body = NULL;
    }
    ctl_answer_finish(&answer);
    return body;
}
