#include "fakes/http_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span http_call_rest(const struct http_call *call)
{
    return span_of(call->rest ? call->rest : "");
}

const char *http_call_query(const struct http_call *call, const char *name)
{
    return call->parameter && strcmp(call->parameter, name) == 0 ? call->value : NULL;
}

void http_answer_json(struct http_call *call, unsigned status, json_t *body)
{
    assert_int_equal(call->status, 0); /* once */
    call->status = status;
    call->body = body;
}

void http_answer_error(struct http_call *call, unsigned status, const char *format, ...)
{
    char text[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    http_answer_json(call, status, json_pack("{s:s}", "error", text));
}

void http_answer_text(struct http_call *call, unsigned status, const char *type, struct span text)
{
    (void)type;
    assert_int_equal(call->status, 0);
    call->status = status;
    call->text = xstrndup(text.at, text.length);
}

void http_answer_page(struct http_call *call, struct span html, const char *policy)
{
    (void)policy;
    http_answer_text(call, 200, "text/html", html);
}

void fake_call(struct http_call *call, const struct http_route *routes, const char *method,
               const char *path, void *arg)
{
    while (strcmp(routes->method, method) != 0 || strcmp(routes->path, path) != 0) {
        routes++;
        assert_non_null(routes->method);
    }
    routes->handle(call, arg);
}

void fake_call_must_end(struct http_call *call, unsigned status, const char *error)
{
    const char *said = json_string_value(json_object_get(call->body, "error"));
    assert_int_equal(call->status, status);
    assert_int_equal(said != NULL, error[0] != '\0');
    if (said)
        assert_non_null(strstr(said, error));
    json_decref(call->body);
    free(call->text);
    *call = (struct http_call){0};
}

void *http_call_take_upload(struct http_call *call)
{
    void *upload = call->upload;
    call->upload = NULL;
    return upload;
}

void http_call_go_on(struct http_call *call)
{
    call->gone_on++;
}
