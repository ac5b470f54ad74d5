/* What is wrong with a call is known before its body has come, and said behind it: who is sending
 * still may not be listening. */
#include "control/push.h"

#include "base/memory.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call; freed when it is answered, or broken off. */
struct push_call {
    struct http_call *call;
    struct push *push; /* NULL: refused */
    char *name;        /* the keyspace's */
    unsigned status;   /* of the refusal, and why */
    char why[300];
};

static void destroy(struct push_call *push)
{
    free(push->name);
    free(push);
}

__attribute__((format(printf, 3, 4))) static void refuse(struct push_call *push, unsigned status,
                                                         const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(push->why, sizeof push->why, format, list);
    va_end(list);
    push->status = status;
}

static int find_keyspace(const struct config *config, struct span name)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired && span_is(name, config->keyspaces[i].name))
            return (int)i;
    return -1;
}

static void begin_push(struct push_call *push, struct keeper *keeper, int number)
{
    int status = pushes_begin(keeper_parts(keeper).pushes, (size_t)number, &push->push);
    if (status == -EALREADY)
        refuse(push, 409, "keys of this keyspace are being pushed already: nothing was changed");
    else if (status == -ESHUTDOWN)
        refuse(push, 503, "the guard is ending");
    else if (status)
        refuse(push, 503, "there is no temporary file for the keys ($TMPDIR or /tmp): %s",
               strerror(-status));
}

static void *begin(struct http_call *call, void *arg)
{
    struct push_call *push = xcalloc(1, sizeof *push);
    const struct config *config = keeper_config(arg);
    struct span name = http_call_rest(call);
    int number = find_keyspace(config, name);
    push->call = call;
    push->name = xasprintf("%.*s", (int)name.length, name.at);
    if (number < 0)
        refuse(push, 404, "there is no keyspace of this name");
    else if (!keyspace_is_pushed(&config->keyspaces[number]))
        refuse(push, 409,
               "nothing was changed: the keys of this keyspace are those of %s: only one with "
               "source: push takes them from here",
               config->keyspaces[number].source ? "a file" : "rows");
    else
        begin_push(push, arg, number);
    return push;
}

static void go_on(void *arg)
{
    http_call_go_on(((struct push_call *)arg)->call);
}

static bool take(void *upload, struct span bytes)
{
    struct push_call *push = upload;
    return !push->push || push_take(push->push, bytes, go_on, push);
}

static void broken(void *upload)
{
    struct push_call *push = upload;
    if (push->push)
        push_break(push->push);
    destroy(push);
}

const struct http_upload push_upload = {begin, take, broken};

static void answer(void *arg, const struct push_result *result)
{
    static const unsigned statuses[] = {[PUSH_TAKEN] = 200,
                                        [PUSH_WRONG] = 400,
                                        [PUSH_TOO_FEW] = 409,
                                        [PUSH_TOO_LARGE] = 413,
                                        [PUSH_FAILED] = 503};
    struct push_call *push = arg;
    if (result->outcome != PUSH_TAKEN)
        http_answer_error(push->call, statuses[result->outcome], "nothing was changed: %s",
                          result->why);
    else
        http_answer_json(push->call, 200,
                         json_pack("{s:o, s:I, s:I, s:I, s:I}", "keyspace",
                                   json_bytes(push->name, strlen(push->name)), "lines",
                                   (json_int_t)result->lines, "keys", (json_int_t)result->keys,
                                   "duplicates", (json_int_t)(result->lines - result->keys),
                                   "generation", (json_int_t)result->generation));
    destroy(push);
}

void push_keys(struct http_call *call, void *arg)
{
    struct push_call *push = http_call_take_upload(call);
    (void)arg;
    if (!push) { /* a token was changed while the body came */
        http_answer_error(call, 503, "nothing was changed: repeat the call");
    } else if (push->push) {
        push_end(push->push, answer, push);
    } else {
        http_answer_error(call, push->status, "%s", push->why);
        destroy(push);
    }
}
